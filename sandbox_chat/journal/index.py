"""The list of sessions: what each is about, and how the one that a user means is found."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sandbox_chat.events import (
    Event,
    SessionForked,
    SessionRenamed,
    SessionStarted,
    TurnFinished,
    TurnSettled,
    TurnStarted,
)
from sandbox_chat.gateway.whole_file import write_whole
from sandbox_chat.journal.errors import SessionAmbiguous, SessionError, SessionNotFound
from sandbox_chat.journal.files import EVENTS, FORMAT, LARGEST, META, read_some, valid_id
from sandbox_chat.text import clean_line

TITLE_LIMIT = 80
PROMPT_LIMIT = 200
"""Characters of the last prompt that a list keeps."""
SHORT_ID = 8
"""Characters of an id that are shown in a list; enough to name one of thousands of sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """What a list says about a session.

    ``title`` is the one that the user gave (then ``renamed``), or else ``made_title``, which comes from the first
    prompt, that of a branch from the title of its origin; ``created`` and ``updated`` are UTC; ``turns`` counts the
    prompts; ``total_cost_usd`` is ``None`` while nothing was finished or where a price is not known.
    """

    id: str
    title: str = ""
    created: datetime
    updated: datetime
    turns: int = 0
    model: str = ""
    sandbox: str = ""
    demo: bool = False
    total_cost_usd: float | None = None
    last_prompt: str = ""
    made_title: str = ""
    renamed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: times in ISO 8601."""
        out = dataclasses.asdict(self)
        out["created"] = self.created.isoformat()
        out["updated"] = self.updated.isoformat()
        return out

    def after(self, event: Event) -> SessionSummary:
        """Return the summary that is true once ``event`` has happened."""
        changes: dict[str, Any] = {"updated": max(event.at, self.updated)}
        if isinstance(event, SessionStarted):
            changes.update(model=event.model or self.model, sandbox=event.sandbox, demo=event.demo)
        elif isinstance(event, TurnStarted):
            made = self.made_title or clean_line(event.prompt, TITLE_LIMIT)
            changes.update(turns=self.turns + 1, made_title=made, title=self.title if self.renamed else made)
            changes.update(last_prompt=clean_line(event.prompt, PROMPT_LIMIT))
        elif isinstance(event, SessionRenamed):
            title = clean_line(event.title, TITLE_LIMIT)
            changes = {"renamed": bool(title), "title": title or self.made_title}  # which is no use of it
        elif isinstance(event, SessionForked):
            made = clean_line(event.title, TITLE_LIMIT) or self.made_title
            changes.update(made_title=made, title=self.title if self.renamed else made)
        elif isinstance(event, TurnFinished):
            changes.update(total_cost_usd=event.total_cost_usd)
            if event.models and not self.model:
                changes.update(model=event.models[-1].model)
        elif isinstance(event, TurnSettled):
            changes.update(total_cost_usd=event.total_cost_usd)
        return dataclasses.replace(self, **changes)


def write_meta(folder: Path, summary: SessionSummary) -> None:
    """Write ``meta.json``, whole or not at all. Raises ``OSError``."""
    data = {"format": FORMAT, **summary.to_dict()}
    write_whole(folder / META, json.dumps(data, indent=1).encode())


def read_format(folder: Path) -> int:
    """Return the version of the layout of the session in ``folder``; 1 where it is not said."""
    try:
        value = _read_meta(folder)["format"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return FORMAT
    return value if isinstance(value, int) else FORMAT


def summarise(folder: Path) -> SessionSummary | None:
    """Return the summary of the session in ``folder``, ``None`` when there is no session in it.

    ``meta.json`` saves reading the events; where it is missing or damaged the events are read.
    """
    try:
        if not (folder / EVENTS).is_file():  # opening a pipe would wait for ever
            return None
        changed = datetime.fromtimestamp((folder / EVENTS).stat().st_mtime, UTC)
    except (OSError, ValueError, OverflowError):
        return None
    try:
        summary = _from_meta(folder, _read_meta(folder))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return _from_events(folder)
    return dataclasses.replace(summary, updated=max(summary.updated, changed))


def _read_meta(folder: Path) -> Any:
    path = folder / META
    if not path.is_file():
        raise FileNotFoundError(path)
    return json.loads(path.read_bytes())


def _from_meta(folder: Path, data: dict[str, Any]) -> SessionSummary:
    turns, cost = int(data["turns"]), data["total_cost_usd"]
    if not 0 <= turns < LARGEST or (cost is not None and not 0 <= float(cost) < LARGEST):
        raise ValueError("a number that cannot be true")
    title = clean_line(str(data["title"]), TITLE_LIMIT)
    return SessionSummary(
        id=folder.name,
        title=title,
        created=_time(data["created"]),
        updated=_time(data["updated"]),
        turns=turns,
        model=clean_line(str(data["model"])),
        sandbox=clean_line(str(data["sandbox"])),
        demo=bool(data["demo"]),
        total_cost_usd=None if cost is None else float(cost),
        last_prompt=clean_line(str(data.get("last_prompt", "")), PROMPT_LIMIT),
        made_title=clean_line(str(data.get("made_title", title)), TITLE_LIMIT),
        renamed=data.get("renamed") is True,
    )


def _time(value: str) -> datetime:
    time = datetime.fromisoformat(value)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


_TOLD = (SessionStarted, TurnStarted, TurnFinished, TurnSettled, SessionRenamed, SessionForked)
"""Types of events that a summary is made from."""


def _from_events(folder: Path) -> SessionSummary | None:
    summary: SessionSummary | None = None
    try:
        for event in read_some(folder, _TOLD):
            if summary is None:
                summary = SessionSummary(id=folder.name, created=event.at, updated=event.at)
            summary = summary.after(event)
    except OSError:
        return None
    return summary


def records(root: Path) -> dict[str, tuple[Path, int, int]]:
    """Return the record of each session with its size and its time in nanoseconds, the one that changed last first.

    Folders that hold none are passed over; none at all when ``root`` cannot be read.
    """
    found: list[tuple[int, str, Path, int]] = []
    try:
        folders = list(root.iterdir())
    except OSError:
        return {}
    for folder in folders:
        path = folder / EVENTS
        try:
            if not valid_id(folder.name) or not path.is_file():
                continue
            info = path.stat()
        except (OSError, ValueError):
            continue
        found.append((info.st_mtime_ns, folder.name, path, info.st_size))
    return {name: (path, size, time) for time, name, path, size in sorted(found, reverse=True)}


def list_sessions(root: Path) -> list[SessionSummary]:
    """Return the sessions under ``root``, the one used last first. Folders that hold none are passed over."""
    try:
        folders = [path for path in root.iterdir() if valid_id(path.name) and path.is_dir()]
    except OSError:
        return []
    found = [summary for path in folders if (summary := summarise(path)) is not None]
    return sorted(found, key=lambda summary: (summary.updated, summary.id), reverse=True)


def titles(root: Path) -> set[str]:
    """Return the titles of the sessions under ``root``. One whose ``meta.json`` cannot be read is passed over."""
    found: set[str] = set()
    with contextlib.suppress(OSError):
        for folder in filter(lambda path: valid_id(path.name), root.iterdir()):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
                found.add(str(_read_meta(folder)["title"]))
    return found


def check_readable(root: Path) -> None:
    """Raise ``SessionError`` when the folder of the sessions is there and cannot be read: it is not empty then."""
    try:
        with os.scandir(root):
            return
    except FileNotFoundError:
        return
    except OSError as error:
        raise SessionError(
            f"The sessions in {root} cannot be read ({error.strerror}). Check the permissions of that folder."
        ) from None


def resolve(root: Path, text: str | None) -> str:
    """Return the id of the session that ``text`` means: an id, the beginning of one, or ``None`` for the newest.

    Raises ``SessionNotFound`` with a sentence that says what to do, and ``SessionError`` when ``root`` cannot be read.
    """
    check_readable(root)
    if text is None:
        sessions = list_sessions(root)
        if not sessions:
            raise SessionNotFound("There is no session yet. Start one with: sandbox-chat")
        return sessions[0].id
    wanted = text.strip()
    shown = clean_line(wanted, 60)
    advice = "See the list with: sandbox-chat sessions"
    if not valid_id(wanted):
        raise SessionNotFound(f"{shown!r} is not the id of a session. {advice}")
    if (root / wanted / EVENTS).is_file():
        return wanted
    try:
        names = sorted(path.name for path in root.iterdir() if path.name.startswith(wanted.lower()))
    except OSError:
        names = []
    names = [name for name in names if valid_id(name) and (root / name / EVENTS).is_file()]
    if not names:
        raise SessionNotFound(f"There is no session {shown!r}. {advice}")
    if len(names) > 1:
        some = [name[: max(SHORT_ID, len(wanted) + 4)] for name in names[:5]]
        words = f"{len(names)} sessions begin with {shown!r} ({', '.join(some)}). Write more of the id."
        raise SessionAmbiguous(words, some)
    return names[0]
