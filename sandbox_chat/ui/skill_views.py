"""The user's skills and the agent's drafts for the screen: read from disk, and as rows. Reading blocks; the rest is pure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sandbox_chat.skills import Store
from sandbox_chat.skills.skill import FIRST_LINE, Look, State
from sandbox_chat.skills.store import DIFFERENCE, DRAFTS, PROMOTED
from sandbox_chat.text import bound, clean, clean_line
from sandbox_chat.ui.transcript.cells import TAB, Row, Run
from sandbox_chat.ui.transcript.wrap import wrap
from sandbox_chat.words import tr

EntryState = Literal[State, "draft"]
STATES: dict[EntryState, tuple[str, str]] = {
    "draft": ("asks", "$warning"),
    "changed": ("warning", "$warning"),
    "new": ("off", "$muted"),
    "damaged": ("failed", "$error"),
    "ready": ("on", "$success"),
}
"""Name of the sign and colour of each state, what is to be decided first; with its word, so that neither has to be seen."""
PROMOTABLE: tuple[EntryState, ...] = ("draft", "changed", "new")
HASH = 12
"""Signs of a hash that are shown."""
LOOKED_AT = 5000
"""Files whose times are looked at to find out whether something has changed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A skill or a draft in the list; ``version`` is what was promoted last under its name. ``shadowed``: there is a draft of the same name, which is decided about first."""

    name: str
    state: EntryState
    version: int
    about: str
    digest: str
    origin: str
    shadowed: bool = False

    @property
    def draft(self) -> bool:
        """True for what the agent handed in."""
        return self.state == "draft"


def entries(store: Store) -> list[Entry]:
    """Return drafts and skills, those that wait for the user first. Blocking."""
    skills = store.skills()
    versions = {each.name: each.version for each in skills}
    found = [
        Entry(
            each.name,
            "draft",
            versions.get(each.name, 0),
            clean_line(each.description, FIRST_LINE),
            each.digest,
            each.origin,
        )
        for each in store.drafts()
    ]
    drafts = {each.name for each in found}
    found += [
        Entry(
            each.name,
            each.state,
            each.version,
            each.problem or each.first_line,
            each.digest,
            each.origin,
            shadowed=each.name in drafts,
        )
        for each in skills
    ]
    order = list(STATES)
    return sorted(found, key=lambda each: (order.index(each.state), each.name))


def stamp(folder: Path) -> int:
    """Return a number that is another one when something in the folder has changed. Blocking, but reads no file."""
    seen: list[tuple[str, int, int]] = []
    for path in _watched(folder):
        with contextlib.suppress(OSError):
            found = path.lstat()
            seen.append((str(path), found.st_mtime_ns, found.st_size))
        if len(seen) >= LOOKED_AT:
            break
    return hash(tuple(seen))


def _watched(folder: Path) -> Iterator[Path]:
    yield folder / PROMOTED
    for top in (folder, folder / DRAFTS):
        yield top
        for path in _within(top):
            yield path
            yield from _within(path)


def _within(path: Path) -> list[Path]:
    """What is in a folder and not hidden; nothing for what is none."""
    try:
        return sorted(each for each in path.iterdir() if not each.name.startswith("."))
    except OSError:
        return []


def rows(entry: Entry, look: Look | None, width: int) -> list[Row]:
    """Return what is known of a skill: whence, what to look at, and what differs or, where nothing does, its files.

    Sentences are wrapped at ``width`` cells; code is left to the view. ``look`` is ``None`` where it cannot be read.
    """
    out: list[Row] = []
    if entry.state == "damaged" or look is None:
        return _wrapped(entry.about, width, "error")
    if entry.about:
        out += _wrapped(entry.about, width, "strong")
    if entry.draft and entry.version:
        out += _wrapped(tr("skill_screen.about_newer", number=entry.version), width)
    else:
        out += _wrapped(tr(f"skill_screen.about_{entry.state}"), width)
    if entry.shadowed and entry.state in PROMOTABLE:
        out += _wrapped(tr("skill_screen.shadowed"), width, "warning")
    facts = [tr("skills.hash", digest=look.digest[:HASH])]
    if look.origin:
        facts.insert(0, tr("skills.origin", origin=look.origin))
    out += _wrapped("  ".join(facts), width, "muted")
    if entry.state in PROMOTABLE:
        for risk in look.risks:
            out += _wrapped(tr("skills.risk", risk=risk), width, "warning")
        if not look.risks:
            out += _wrapped(tr("skills.nothing_odd"), width, "muted")
        if look.cut:
            out += _wrapped(tr("skill_screen.cut"), width, "warning")
        out.append([])
        out += _changes(look.difference) if look.difference else _wrapped(tr("skills.same"), width)
    else:
        out += _files(look)
    return out


def text_of(entry: Entry, look: Look | None) -> str:
    """Return the same as text, with its lines whole."""
    return "\n".join("".join(run.text for run in row) for row in rows(entry, look, 1_000_000))


def _files(look: Look) -> list[Row]:
    out: list[Row] = []
    left = DIFFERENCE
    for name, data in sorted(look.files.items()):
        text = bound(clean(data.decode("utf-8", "replace")), max(left, 0))
        left -= len(text)
        out += [[], [Run(clean_line(name, 200), ("tool",))]]
        out += [[Run(line.expandtabs(len(TAB)))] for line in text.rstrip("\n").split("\n")]
    return out


def _changes(difference: str) -> list[Row]:
    lines = difference.split("\n")
    out: list[Row] = []
    heads = 0
    for place, line in enumerate(lines):
        if line.startswith("--- ") and [each[:3] for each in lines[place + 1 : place + 3]] == ["+++", "@@ "]:
            heads = 2  # what follows "--- " within a file is followed by no "@@"
            out += [[]] if out else []
        names: tuple[str, ...] = ()
        if heads:
            names, heads = ("strong",), heads - 1
        elif line[:1] in ("+", "-"):
            names = ("tok-inserted",) if line[0] == "+" else ("tok-deleted",)
        elif line.startswith("@@"):
            names = ("muted",)
        out.append([Run(line.expandtabs(len(TAB)), names)])
    return out


def _wrapped(words: str, width: int, *names: str) -> list[Row]:
    return list(wrap([Run(words.replace("\t", TAB), names)], max(2, width)))
