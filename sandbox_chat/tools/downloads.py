"""The tool download_file: a file of the sandbox into the user's downloads folder, over another only if the user says so."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import posixpath
import re
import secrets
import stat
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from sandbox_chat.events import Choice
from sandbox_chat.text import clean
from sandbox_chat.tools.context import Question, ToolContext, ToolInputError, ToolOutcome, text_outcome

NAME_BYTES = 150
"""Longest name of a downloaded file in UTF-8: file systems take 255, a suffix must still fit."""
SAME_NAME_LIMIT = 1000
"""Files of the same name that a downloads folder may hold."""
PROGRESS_AFTER = 0.5
"""Seconds after which a transfer says how far it is, and between two times that it says so."""
CHOICES = (
    Choice("replace", "r", "replace it"),
    Choice("replace_session", "s", "replace this file for this session"),
    Choice("keep_both", "k", "keep both"),
    Choice("never", "v", "never replace this file in this session"),
    Choice("no", "n", "do not save"),
)
"""What can be answered when a file has the name. What holds for the session does so for this one path: a file that is
saved again and again is the same to the user, another one of the same folder is not."""

_UNSAFE = re.compile(r'[\\/:*?"<>|]')
_EDGES = re.compile(r"^[\s.~-]+|[\s.]+$")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[\d¹²³]|lpt[\d¹²³])(?: *\..*)?", re.IGNORECASE)
_PART = ".sandbox-chat-"


async def download_file(context: ToolContext, call_id: str, arguments: dict[str, Any]) -> ToolOutcome:
    """Copy a file from the sandbox to the user's downloads folder."""
    settings = context.settings
    path = arguments["path"]
    name = safe_name(arguments.get("name") or posixpath.basename(path.rstrip("/")))
    folder = settings.downloads_path
    try:
        with await asyncio.to_thread(Part.make, folder) as part:
            meter = Meter(asyncio.get_running_loop(), context.progress, call_id, name)
            try:
                size = await context.worker.download(
                    path, part.file, max_bytes=settings.download_limit, on_progress=meter.take
                )
            finally:
                meter.close()
            await asyncio.to_thread(part.finish)
            return await _place(context, call_id, part, folder / name, size)
    except OSError as error:
        raise ToolInputError(
            f"The file could not be saved on the user's computer: {clean(error.strerror or type(error).__name__)} "
            f"({clean(str(folder))}). Tell the user; the folder is set by SANDBOX_CHAT_DOWNLOADS_DIR."
        ) from None


async def _place(context: ToolContext, call_id: str, part: Part, target: Path, size: int) -> ToolOutcome:
    """Give the file its name; ask what to do when that is taken."""
    if await asyncio.to_thread(part.link, target):
        return _said(context, f"Saved {clean(str(target))} on the user's computer ({bytes_text(size)}).")
    there = await asyncio.to_thread(look, target)
    choice = "keep_both"
    if there is not None and there.replaceable:
        choice = await context.ask(_question(call_id, target, size, there))
    if choice == "never":
        return _said(
            context,
            f"The user does not want {clean(str(target))} to be replaced in this session, so nothing was saved, and it is "
            "not asked again. Save under another name (argument name) if the user still wants the file.",
        )
    if choice == "no":
        return _said(
            context,
            f"The user did not want the file to be saved: {clean(str(target))} exists already and was left as it is. "
            "Do not try again unless the user asks for it.",
        )
    if choice in ("replace", "replace_session"):
        if await asyncio.to_thread(look, target) == there:
            await asyncio.to_thread(part.replace, target)
            allowed = ", as for the whole session" if choice == "replace_session" else ""
            words = (
                f"Saved {clean(str(target))} on the user's computer ({bytes_text(size)}); the user let it replace the file "
                f"of that name{allowed}."
            )
            return _said(context, words)
        why = " The file of that name changed while the user was asked, so it was not replaced."
    else:
        why = " Another file has the name itself."
    saved = await asyncio.to_thread(part.link_beside, target)
    return _said(context, f"Saved {clean(str(saved))} on the user's computer ({bytes_text(size)}).{why}")


def _question(call_id: str, target: Path, size: int, there: There) -> Question:
    return Question(
        kind="overwrite",
        question=f"{clean(target.name)} exists already. Replace it?",
        detail=(f"{clean(str(target))}\nthere now: {there.words}\nfrom the sandbox: {bytes_text(size)}"),
        choices=CHOICES,
        default="keep_both",
        tool_use_id=call_id,
        subject=clean(str(target)),
        lasting=("replace_session", "never"),
    )


@dataclass(frozen=True, slots=True)
class There:
    """What has the name that is wanted: its identity, so that a later look tells whether it changed."""

    device: int
    inode: int
    mode: int
    size: int
    changed_ns: int

    @property
    def replaceable(self) -> bool:
        """True for files and links; nothing else is ever replaced."""
        return stat.S_ISREG(self.mode) or stat.S_ISLNK(self.mode)

    @property
    def words(self) -> str:
        """Size and date for people."""
        when = datetime.fromtimestamp(self.changed_ns / 1e9).astimezone()
        if stat.S_ISLNK(self.mode):
            return f"a link, made {when:%Y-%m-%d %H:%M} (what it leads to stays as it is)"
        return f"{bytes_text(self.size)}, changed {when:%Y-%m-%d %H:%M}"


def look(path: Path) -> There | None:
    """Look at what has a name, without following a link; ``None`` when there is nothing."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return There(found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns)


class Part:
    """A file under a passing name in the folder where it is wanted. Gone after the ``with``, unless it got its name.

    Nothing is ever followed or overwritten except by ``replace``. The file is locked while it is written, so that
    what a killed program left can be told and is removed by the next one.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.file = file

    @classmethod
    def make(cls, folder: Path) -> Part:
        """Make one in ``folder``, which is made too. Raises ``OSError``."""
        folder.mkdir(parents=True, exist_ok=True)
        _clear(folder)
        path = folder / f"{_PART}{secrets.token_hex(8)}.part"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        _lock(handle)
        return cls(path, os.fdopen(handle, "wb"))

    def __enter__(self) -> Part:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)  # while it is locked: nobody else clears it
        with contextlib.suppress(OSError):
            self.file.close()

    def finish(self) -> None:
        """Let all of it be on the disk's side. Raises ``OSError`` when there is no room."""
        self.file.flush()
        os.fsync(self.file.fileno())

    def link(self, target: Path) -> bool:
        """Give it the name ``target``; false when that is taken, be it by a link that leads nowhere."""
        try:
            os.link(self.path, target, follow_symlinks=False)
            return True
        except FileExistsError:
            return False
        except (OSError, NotImplementedError):
            pass  # a file system without hard links: the name is taken first, by an empty file
        try:
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
        except FileExistsError:
            return False
        try:
            os.replace(self.path, target)  # noqa: PTH105 - beside the others
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        return True

    def replace(self, target: Path) -> None:
        """Give it the name ``target`` in place of the file or link that has it. Raises ``OSError``."""
        os.replace(self.path, target)  # noqa: PTH105 - beside the others

    def link_beside(self, target: Path) -> Path:
        """Give it the name ``target`` with " (2)", " (3)", … and return that. Raises ``OSError``."""
        stem, dot, suffix = target.name.rpartition(".")
        if not stem:
            stem, dot, suffix = target.name, "", ""
        for number in range(2, SAME_NAME_LIMIT + 1):
            beside = target.with_name(f"{stem} ({number}){dot}{suffix}")
            if self.link(beside):
                return beside
        raise FileExistsError(errno.EEXIST, f"{SAME_NAME_LIMIT} files of that name exist already")


def _lock(handle: int) -> bool:
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _clear(folder: Path) -> None:
    """Remove what a killed program left: parts that nobody holds a lock on."""
    for path in folder.glob(f"{_PART}*.part"):
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if _lock(handle):
                    path.unlink()
            finally:
                os.close(handle)


class Meter:
    """Says how far a transfer has come, from the worker's thread to the session's loop, only when it takes a while."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        show: Callable[[str, str, int, int, bool], None],
        subject: str,
        label: str,
    ) -> None:
        self._loop = loop
        self._show = show
        self._subject = subject
        self._label = label
        self._said = time.monotonic()
        self._last = (0, 0)
        self._shown = False

    def take(self, done: int, total: int) -> None:
        """Note how many bytes are done. The worker's thread."""
        now = time.monotonic()
        self._last = (done, total)
        if now - self._said < PROGRESS_AFTER:
            return
        self._said = now
        self._shown = True
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody looks any more
            self._loop.call_soon_threadsafe(self._show, self._subject, self._label, done, total, False)

    def close(self) -> None:
        """The transfer is over. On the loop; what was said before is shown before."""
        if self._shown:
            self._loop.call_soon(self._show, self._subject, self._label, *self._last, True)


def bytes_text(size: int) -> str:
    """Return an exact number of bytes for reading."""
    return "1 byte" if size == 1 else f"{size:,} bytes"


def safe_name(name: str) -> str:
    """Return ``name`` as a plain file name: no path, no control or invisible characters, not hidden, not too long."""
    name = unicodedata.normalize("NFC", name).replace("\\", "/")
    name = posixpath.basename(name.rstrip("/"))
    kept = "".join(
        c for c in name if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    )
    kept = _EDGES.sub("", _UNSAFE.sub("_", kept)) or "file"
    if _RESERVED.fullmatch(kept):
        kept = "_" + kept
    stem, dot, suffix = kept.rpartition(".")
    if not stem or len(suffix) > 20:
        stem, dot, suffix = kept, "", ""
    while len(f"{stem}{dot}{suffix}".encode()) > NAME_BYTES:
        stem = stem[:-1]
    return f"{stem.rstrip()}{dot}{suffix}"


def _said(context: ToolContext, text: str) -> ToolOutcome:
    return text_outcome(text, limit=context.settings.text_limit)
