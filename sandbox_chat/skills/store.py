"""The user's skills on disk.

``<folder>/<name>/`` holds a skill: ``SKILL.md`` and, if it is code, ``<name>.py``; other files may be beside them.
``<folder>/.drafts/<name>/`` holds what the agent handed in. ``<folder>/.promoted.json`` says which files the user has
promoted, by their digest; ``<folder>/.versions/<name>/<number>/`` keeps those that came before. What is not exactly as
it was promoted is never given to code.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sandbox_chat.gateway.whole_file import write_whole
from sandbox_chat.skills import skill as kinds
from sandbox_chat.skills.skill import MANIFEST, Draft, Look, Skill, SkillError
from sandbox_chat.text import bound, clean, clean_line

log = logging.getLogger(__name__)

DRAFTS = ".drafts"
VERSIONS = ".versions"
PROMOTED = ".promoted.json"
ORIGIN = ".origin"
MOST = 500
"""Skills that are looked at."""
DIFFERENCE = 100_000
"""Characters of a difference that are shown."""
LISTING = 20_000


class Store:
    """The skills in ``folder``. Blocking; any thread, and other programs may use the folder at the same time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # -- reading ---------------------------------------------------------------------------------------

    def skills(self) -> list[Skill]:
        """Return all skills that are no drafts, by name, whatever their state."""
        promoted = self._promoted()
        found = []
        for path in _folders(self.folder):
            if not path.name.startswith("."):
                found.append(self._skill(path, promoted.get(path.name)))
        return found

    def search(self, words: str) -> list[Skill]:
        """Return the skills whose name or description holds one of the words, those with more of them first."""
        wanted = [word for word in words.lower().replace("_", " ").split() if word]
        rated = []
        for each in self.skills():
            text = f"{each.name.replace('_', ' ')} {each.description}".lower()
            rate = sum((word in each.name) * 2 + (word in text) for word in wanted)
            if rate or not wanted:
                rated.append((-rate, each.name, each))
        return [each for _, _, each in sorted(rated, key=lambda row: row[:2])]

    def source(self, name: str) -> str:
        """Return the code of a skill that is as it was promoted. Raises ``SkillError``."""
        code = self.promoted(name).get(f"{name}.py")
        if code is None:
            raise SkillError(f"The skill {name} is a text and no code: it cannot be imported.")
        return code.decode("utf-8", "replace")

    def text(self, name: str, file: str = "") -> str:
        """Return a file of a skill that is as it was promoted: its code when none is named, or its ``SKILL.md`` where it is no code.

        Raises ``SkillError``.
        """
        files = self.promoted(name)
        if not file:
            file = f"{name}.py" if f"{name}.py" in files else MANIFEST
        if file not in files:
            there = ", ".join(sorted(files))
            raise SkillError(
                f"The skill {name} has no file {clean_line(file, 100)}; it has {bound(there, 1000)}."
            )
        return files[file].decode("utf-8", "replace")

    def promoted(self, name: str) -> Mapping[str, bytes]:
        """Return the files of a skill that is as it was promoted: what was checked is what is given.

        Raises ``SkillError``.
        """
        kinds.check_name(name)
        entry = self._promoted().get(name)
        path = self.folder / name
        if entry is None:
            if (self.folder / DRAFTS / name).is_dir():
                raise SkillError(f"The skill {name} is a draft: the user has not promoted it.")
            if path.is_dir():
                raise SkillError(f"The skill {name} was not promoted by the user.")
            there = ", ".join(each.name for each in self.skills() if each.state == "ready") or "none"
            raise SkillError(f"There is no skill {name}; there are {bound(there, 1000)}.")
        files = _files(path)
        if kinds.digest_of(files) != entry.get("digest"):
            log.warning("the skill %s is not as it was promoted, and was not given to code", name)
            raise SkillError(
                f"The skill {name} was changed after the user had promoted it. The user must promote it again."
            )
        return files

    def listing(self) -> str:
        """Return name and first line of each skill that is ready, a line each."""
        lines = [f"{each.name}: {each.first_line}" for each in self.skills() if each.state == "ready"]
        return bound("\n".join(lines), LISTING)

    def files(self, name: str, *, draft: bool = False) -> Mapping[str, bytes]:
        """Return the files of a skill or of a draft. Raises ``SkillError``."""
        kinds.check_name(name)
        return _files(self._place(name, draft=draft))

    def drafts(self) -> list[Draft]:
        """Return all drafts, by name."""
        found = []
        for path in _folders(self.folder / DRAFTS):
            with contextlib.suppress(SkillError):
                found.append(self.draft(path.name))
        return found

    def draft(self, name: str) -> Draft:
        """Return a draft. Raises ``SkillError`` when there is none."""
        kinds.check_name(name)
        path = self.folder / DRAFTS / name
        if not path.is_dir():
            raise SkillError(f"There is no draft of a skill {name}.")
        files = _files(path)
        origin = clean_line(files.get(ORIGIN, b"").decode("utf-8", "replace"), 200)
        kept = {key: data for key, data in files.items() if key != ORIGIN}
        _, description = kinds.described(kept.get(MANIFEST, b"").decode("utf-8", "replace"))
        return Draft(name, clean(description), kinds.digest_of(kept), origin, path)

    def difference(self, name: str) -> str:
        """Return how a draft, or a skill that is not as promoted, differs from what was promoted last; all of it when nothing was.

        Clean, for a terminal.
        """
        return self.look(name).difference

    def risks(self, name: str) -> list[str]:
        """Return what a reader of a draft, or of a skill, should look at."""
        draft = (self.folder / DRAFTS / name).is_dir()
        return kinds.risks(
            {key: data for key, data in self.files(name, draft=draft).items() if key != ORIGIN}
        )

    def look(self, name: str, *, draft: bool | None = None) -> Look:
        """Return what a user must know before promoting, all of it of the same bytes. ``draft``: which one; ``None``: the draft if there is one.

        Raises ``SkillError``.
        """
        kinds.check_name(name)
        if draft is None:
            draft = (self.folder / DRAFTS / name).is_dir()
        found = self.files(name, draft=draft)
        entry = self._promoted().get(name, {})
        origin = (
            found.get(ORIGIN, b"").decode("utf-8", "replace") if draft else str(entry.get("origin") or "")
        )
        after = {key: data for key, data in found.items() if key != ORIGIN}
        whole = clean(kinds.difference(self._last(name), after, "draft" if draft else "now"))
        return Look(
            name,
            kinds.digest_of(after),
            clean_line(origin, 200),
            bound(whole, DIFFERENCE),
            tuple(kinds.risks(after)),
            after,
            cut=len(whole) > DIFFERENCE,
        )

    # -- changing --------------------------------------------------------------------------------------

    def save_draft(self, name: str, code: str, description: str, *, origin: str) -> Draft:
        """Keep code as a draft, in place of an earlier one. Raises ``SkillError``."""
        kinds.check_name(name)
        kinds.check_code(code)
        kinds.check_description(description)
        files = {
            MANIFEST: kinds.manifest(name, clean(description)).encode("utf-8", "replace"),
            f"{name}.py": code.encode("utf-8", "replace"),
            ORIGIN: clean_line(origin, 200).encode(),
        }
        with self._alone():
            _put(files, self.folder / DRAFTS / name)
        return self.draft(name)

    def promote(self, name: str, *, expected: str) -> Skill:
        """Make a draft, or the files that the user put there, the skill that code gets.

        ``expected`` is the digest of what the user has seen; when it is another by now, nothing is promoted. Raises ``SkillError``.
        """
        kinds.check_name(name)
        with self._alone():
            draft = (self.folder / DRAFTS / name).is_dir()
            found = self.files(name, draft=draft)
            files = {key: data for key, data in found.items() if key != ORIGIN}
            if kinds.digest_of(files) != expected:
                raise SkillError(
                    f"The skill {name} was changed while it was looked at. Look at it again, then promote it."
                )
            if f"{name}.py" in files:
                kinds.check_code(files[f"{name}.py"].decode("utf-8", "replace"))
            entries = self._promoted()
            entry = entries.get(name, {})
            version = _number(entry.get("version")) + 1
            if draft:
                self._keep_old(name, entry)
                _put(files, self.folder / name)
                shutil.rmtree(self.folder / DRAFTS / name, ignore_errors=True)
            _put(files, self.folder / VERSIONS / name / str(version))
            origin = (
                found.get(ORIGIN, b"").decode("utf-8", "replace")
                or entry.get("origin")
                or "put there by the user"
            )
            entries[name] = {
                "version": version,
                "digest": expected,
                "origin": clean_line(str(origin), 200),
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
            }
            self._write(entries)
        return self._skill(self.folder / name, entries[name])

    def discard(self, name: str) -> None:
        """Delete a draft. Raises ``SkillError`` when there is none."""
        with self._alone():
            shutil.rmtree(self.draft(name).path)

    def remove(self, name: str) -> None:
        """Take a skill out; its promoted versions are kept. Raises ``SkillError`` when there is none."""
        kinds.check_name(name)
        path = self.folder / name
        with self._alone():
            if not path.is_dir() or path.is_symlink():
                raise SkillError(f"There is no skill {name}.")
            entries = self._promoted()
            self._keep_old(name, entries.pop(name, {}))
            self._write(entries)
            shutil.rmtree(path)

    def add(self, name: str, files: Mapping[str, bytes]) -> bool:
        """Put files there as a skill that is not promoted; False when there is one of the name."""
        kinds.check_name(name)
        with self._alone():
            if (self.folder / name).exists():
                return False
            _put(dict(files), self.folder / name)
        return True

    # -- inner parts -----------------------------------------------------------------------------------

    def _place(self, name: str, *, draft: bool) -> Path:
        path = self.folder / DRAFTS / name if draft else self.folder / name
        if not path.is_dir() or path.is_symlink():
            raise SkillError(f"There is no {'draft of a ' if draft else ''}skill {name}.")
        return path

    def _skill(self, path: Path, entry: Mapping[str, Any] | None) -> Skill:
        entry = entry or {}
        version, origin = _number(entry.get("version")), clean_line(str(entry.get("origin") or ""), 200)
        try:
            kinds.check_name(path.name)
            files = _files(path)
        except SkillError as problem:
            return Skill(
                clean_line(path.name, 60), "", "", "damaged", version, origin, path, (), str(problem)
            )
        _, description = kinds.described(files.get(MANIFEST, b"").decode("utf-8", "replace"))
        digest = kinds.digest_of(files)
        state: kinds.State = "ready" if digest == entry.get("digest") else "changed" if entry else "new"
        words = clean(bound(description, kinds.DESCRIPTION))
        return Skill(path.name, words, digest, state, version, origin, path, tuple(sorted(files)))

    def _last(self, name: str) -> Mapping[str, bytes]:
        """The files that were promoted last, as they are kept."""
        version = _number(self._promoted().get(name, {}).get("version"))
        path = self.folder / VERSIONS / name / str(version)
        return _files(path) if version and path.is_dir() else {}

    def _keep_old(self, name: str, entry: Mapping[str, Any]) -> None:
        """Keep what is in the place of a skill if it is not a version that is kept already."""
        path = self.folder / name
        if not path.is_dir() or path.is_symlink():
            return
        files = _files(path)
        if files and kinds.digest_of(files) != entry.get("digest"):
            kept = self.folder / VERSIONS / name / f"changed-{kinds.digest_of(files)[:12]}"
            if not kept.exists():
                _put(dict(files), kept)

    def _promoted(self) -> dict[str, Any]:
        path = self.folder / PROMOTED
        try:
            found = json.loads(path.read_text("utf-8"))
            entries = found["promoted"]
            if not isinstance(entries, dict) or not all(isinstance(each, dict) for each in entries.values()):
                raise TypeError
        except FileNotFoundError:
            return {}
        except OSError as error:
            log.warning("the list of promoted skills cannot be read: %s", error.strerror)
            return {}
        except (ValueError, KeyError, TypeError, RecursionError):
            log.warning("the list of promoted skills is damaged, and none is used: %s", path)
            return {}
        return entries

    def _write(self, entries: Mapping[str, Any]) -> None:
        write_whole(self.folder / PROMOTED, json.dumps({"promoted": entries}, indent=1).encode())

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Let no other program change the folder meanwhile. Raises ``SkillError`` when it cannot be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with (self.folder / ".lock").open("a") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield
        except OSError as error:
            where = clean_line(str(self.folder), 200)
            raise SkillError(
                f"The folder of the skills, {where}, cannot be used ({error.strerror}). Mend its permissions or set "
                "SANDBOX_CHAT_SKILLS_DIR."
            ) from None


def _folders(path: Path) -> list[Path]:
    try:
        found = sorted(each for each in path.iterdir() if each.is_dir() and not each.is_symlink())
    except OSError:
        return []
    return found[:MOST]


def _files(path: Path) -> dict[str, bytes]:
    """Return the files of a skill, with their paths in it. Raises ``SkillError`` where there is anything but small plain files."""
    found: dict[str, bytes] = {}
    size = 0
    for top, folders, names in os.walk(path, onerror=_raise):
        folders.sort()
        for folder in folders:
            if (Path(top) / folder).is_symlink():
                raise SkillError(
                    f"The skill {path.name} holds a link ({clean_line(folder, 60)}), which it must not."
                )
        folders[:] = [folder for folder in folders if folder != "__pycache__"]
        for name in sorted(names):
            place = Path(top) / name
            data = _plain(place, path.name, kinds.ALL_BYTES - size)
            size += len(data)
            found[place.relative_to(path).as_posix()] = data
            if len(found) > kinds.FILES:
                raise SkillError(f"The skill {path.name} has more than {kinds.FILES} files.")
    return found


def _raise(error: OSError) -> None:
    raise SkillError(f"A skill's folder cannot be read ({error.strerror}).")


def _plain(path: Path, skill: str, most: int) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise SkillError(
            f"{clean_line(path.name, 60)} of the skill {skill} cannot be read ({error.strerror})."
        ) from None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise SkillError(f"{clean_line(path.name, 60)} of the skill {skill} is no plain file.")
        data = file.read(most + 1)
    if len(data) > most:
        raise SkillError(f"The skill {skill} has more than {kinds.ALL_BYTES:,} bytes.")
    return data


def _put(files: Mapping[str, bytes], target: Path) -> None:
    """Write files into a new folder and put it in the place of ``target``."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
    try:
        for name, data in files.items():
            path = made / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        old = None
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=".old-", dir=target.parent))
            target.rename(old / "old")
        made.rename(target)
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else 0
