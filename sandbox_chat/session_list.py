"""The saved sessions on the command line: the list, what is found in them, another title, and their end."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sandbox_chat.journal import SessionError, SessionInUse, SessionSummary, list_sessions, resolve
from sandbox_chat.journal.index import SHORT_ID, check_readable, summarise
from sandbox_chat.plain import cost_text, local_time

TITLE_ROOM = 60
"""Characters of a title and of a last prompt in the table."""
MODEL_ROOM = 24
STEP = 25
"""Sessions that are read between two words about it."""


def print_list(data_path: Path, *, search: str | None = None, as_json: bool = False) -> int:
    """Print the sessions in ``data_path``, or those in which ``search`` is found; return the exit code.

    The one used last comes first. Raises ``SessionError`` when they cannot be read.
    """
    check_readable(data_path / "sessions")
    if search is not None:
        return _print_found(data_path, search, as_json=as_json)
    found = list_sessions(data_path / "sessions")
    if as_json:
        _print_json([summary.to_dict() for summary in found])
    elif not found:
        sys.stdout.write("There are no sessions yet. Start one with: sandbox-chat\n")
    else:
        sys.stdout.write("".join(line + "\n" for line in _table(found)))
    sys.stdout.flush()
    return 0


def _table(found: Sequence[SessionSummary]) -> Iterator[str]:
    rows = [("ID", "LAST USED", "TURNS", "COST", "MODEL", "TITLE › LAST PROMPT")]
    for summary in found:
        title = _fit(summary.title or "(no prompt)", TITLE_ROOM)
        last = _fit(summary.last_prompt, TITLE_ROOM)
        if last and last != title:
            title = f"{title} › {last}"
        rows.append((*_facts(summary), title))
    widths = [max(_width(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        short, when, turns, cost, model, title = row
        yield (
            f"{_left(short, widths[0])}  {_left(when, widths[1])}  {turns:>{widths[2]}}  {cost:>{widths[3]}}  "
            f"{_left(model, widths[4])}  {title}"
        )


def _facts(summary: SessionSummary) -> tuple[str, str, str, str, str]:
    cost = "demo" if summary.demo else cost_text(summary.total_cost_usd)
    model = _fit(summary.model, MODEL_ROOM)
    return summary.id[:SHORT_ID], local_time(summary.updated), str(summary.turns), cost, model


def _fit(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _left(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


# -- what is found ---------------------------------------------------------------------------------------


def _print_found(data_path: Path, search: str, *, as_json: bool) -> int:
    from sandbox_chat.journal.search import SessionSearch

    finder = SessionSearch(data_path)
    waits = sys.stderr.isatty()
    finder.update(told=_tell_reading if waits else None)
    if waits:
        sys.stderr.write("\r\x1b[K")
    found = finder.find(search)
    root = data_path / "sessions"
    pairs = [(match, summary) for match in found.matches if (summary := summarise(root / match.session_id))]
    if as_json:
        out: list[dict[str, Any]] = []
        for match, summary in pairs:
            places = [place.to_dict() for place in match.places]
            out.append({**summary.to_dict(), "matches": match.turns, "places": places})
        _print_json(out)
    elif not pairs:
        sys.stdout.write("Nothing was found.\n")
    else:
        for number, (match, summary) in enumerate(pairs):
            short, when, turns, cost, model = _facts(summary)
            facts = [short, when, "1 turn" if turns == "1" else f"{turns} turns", cost, model]
            head = "  ".join(fact for fact in facts if fact)
            sys.stdout.write(f"{chr(10) if number else ''}{head}  {summary.title or '(no prompt)'}\n")
            for place in match.places:
                where = f"turn {place.turn}, {place.kind}" if place.turn else "title"
                sys.stdout.write(f"    {where}: {_marked(place.excerpt.text, place.excerpt.marks)}\n")
            if match.turns > len(match.places):
                sys.stdout.write(f"    and {match.turns - len(match.places)} more\n")
        if found.more:
            sys.stdout.write(f"\nThere are more than these {len(pairs)}: search for more words.\n")
    sys.stdout.flush()
    return 0


def _tell_reading(done: int, total: int) -> None:
    """Say on one line how far the reading has come: the first search over many sessions takes a while."""
    if total > STEP and done % STEP == 0:
        sys.stderr.write(f"\rreading {done:,} of {total:,} sessions…")
        sys.stderr.flush()


def _marked(text: str, marks: Sequence[tuple[int, int]]) -> str:
    """Return a text with the places marked: bold at a terminal, between angle quotes elsewhere."""
    bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    before, after = ("\x1b[1m", "\x1b[22m") if bold else ("«", "»")
    for start, end in reversed(marks):
        text = f"{text[:start]}{before}{text[start:end]}{after}{text[end:]}"
    return text


def _print_json(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=1) + "\n")


# -- changes ---------------------------------------------------------------------------------------------


def rename(data_path: Path, wanted: str, title: str) -> int:
    """Give the session that ``wanted`` names another title; an empty one brings that of its first prompt back.

    Raises ``SessionError``.
    """
    from sandbox_chat.journal.keeping import rename as rename_session

    root = data_path / "sessions"
    session_id = resolve(root, wanted)
    kept = rename_session(root, session_id, title)
    sys.stdout.write(f"Session {session_id[:SHORT_ID]} is now called: {kept or '(no prompt)'}\n")
    sys.stdout.flush()
    return 0


def delete(data_path: Path, wanted: Sequence[str], *, yes: bool = False) -> int:
    """Delete the sessions that ``wanted`` names for good, after a question unless ``yes``; return the exit code.

    Raises ``SessionError``, before anything is deleted, when one is not there or is open.
    """
    from sandbox_chat.journal.keeping import delete as delete_session
    from sandbox_chat.journal.keeping import is_open

    root = data_path / "sessions"
    ids = list(dict.fromkeys(resolve(root, name) for name in wanted))
    for session_id in ids:
        if is_open(root, session_id):
            raise SessionInUse(
                f"Session {session_id} is open in a running Sandbox Chat. Close it there first."
            )
    if not yes:
        if not sys.stdin.isatty():
            raise SessionError(
                "Nothing was deleted: nobody can be asked here. Add --yes to delete without a question."
            )
        for session_id in ids:
            summary = summarise(root / session_id)
            title = summary.title if summary is not None else ""
            sys.stdout.write(f"{session_id[:SHORT_ID]}  {title or '(no prompt)'}\n")
        if not _agreed(len(ids)):
            sys.stdout.write("Nothing was deleted.\n")
            return 1
    for session_id in ids:
        delete_session(data_path, session_id)
        sys.stdout.write(f"Session {session_id[:SHORT_ID]} was deleted.\n")
    sys.stdout.flush()
    return 0


def _agreed(count: int) -> bool:
    what = "this session" if count == 1 else f"these {count} sessions"
    sys.stdout.write(f"Delete {what} for good? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
