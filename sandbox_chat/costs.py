"""What all sessions have cost, as a table or JSON: by day, by model, by session, or in all."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from sandbox_chat import words
from sandbox_chat.events import Usage
from sandbox_chat.journal.files import EVENTS, valid_id
from sandbox_chat.journal.index import SHORT_ID, check_readable, summarise
from sandbox_chat.journal.spending import Spent, read_spending
from sandbox_chat.plain import NOT_AVAILABLE, cost_text
from sandbox_chat.settings import ConfigError, Settings
from sandbox_chat.words import tr, tr_count

TITLE = 40
"""Cells of a session's title that are printed."""


@dataclass
class Sum:
    """What was spent under one name. ``known`` in dollars; ``unknown`` counts the turns whose cost is not known."""

    name: str = ""
    turns: int = 0
    known: float = 0.0
    unknown: int = 0
    usage: Usage = field(default_factory=Usage)

    def add(self, spent: Spent) -> None:
        """Enter what a model used in a turn."""
        self.turns += spent.first
        if spent.cost is None:
            self.unknown += 1
        else:
            self.known += spent.cost
        mine, more = self.usage, spent.usage
        self.usage = Usage(
            input=mine.input + more.input,
            output=mine.output + more.output,
            cache_read=mine.cache_read + more.cache_read,
            cache_creation=mine.cache_creation + more.cache_creation,
        )

    @property
    def cost(self) -> str:
        """The cost in words: what is known, and that there is more."""
        if not self.unknown:
            return cost_text(self.known)
        return f"{cost_text(self.known)} + {NOT_AVAILABLE}" if self.known else NOT_AVAILABLE

    def to_dict(self, group: str) -> dict[str, Any]:
        """Return the JSON form; ``cost_usd`` is what is known."""
        named = {group: self.name} if group else {}
        return {
            **named,
            "turns": self.turns,
            "cost_usd": self.known,
            "unknown_turns": self.unknown,
            "input_tokens": self.usage.input,
            "output_tokens": self.usage.output,
            "cache_read_tokens": self.usage.cache_read,
            "cache_written_tokens": self.usage.cache_creation,
        }


@dataclass
class Report:
    """The sums of all sessions: in all, and by name in the order in which they are shown."""

    total: Sum = field(default_factory=Sum)
    rows: dict[str, Sum] = field(default_factory=dict)
    sessions: int = 0
    demo: int = 0
    damaged: int = 0


def read_date(text: str) -> date:
    """Return the day that was meant by ``--since``. Raises ``ConfigError``."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise ConfigError(f"--since must be a day such as 2026-01-31. It is {text[:40]!r}.") from None


def collect(root: Path, *, since: date | None = None, by: str = "") -> Report:
    """Add up what the sessions under ``root`` spent, those of the demo left out. Days are those of this place."""
    report = Report()
    for folder in _folders(root):
        try:
            spending = read_spending(folder)
        except OSError:
            report.damaged += 1
            continue
        wanted = [(spent, _day(spent)) for spent in spending]
        wanted = [(spent, day) for spent, day in wanted if since is None or day >= since]
        paid = [(spent, day) for spent, day in wanted if not spent.demo]
        report.demo += len(paid) < len(wanted)
        report.sessions += bool(paid)
        for spent, day in paid:
            report.total.add(spent)
            name = {"day": day.isoformat(), "model": spent.model, "session": folder.name}.get(by)
            if name is not None:
                report.rows.setdefault(name, Sum(name)).add(spent)
    report.rows = {row.name: row for row in _sorted(report.rows.values(), by)}
    return report


def _folders(root: Path) -> list[Path]:
    try:
        return [path for path in root.iterdir() if valid_id(path.name) and (path / EVENTS).is_file()]
    except OSError:
        return []


def _day(spent: Spent) -> date:
    try:
        return spent.at.astimezone().date()
    except (OverflowError, ValueError, OSError):  # a damaged record may name a year that no clock knows
        return spent.at.date()


def _sorted(rows: Iterable[Sum], by: str) -> list[Sum]:
    """Days in their order; models and sessions by what they cost, the dearest first."""
    if by == "day":
        return sorted(rows, key=lambda row: row.name)
    return sorted(rows, key=lambda row: (-row.known, -row.unknown, row.name))


def run(settings: Settings, *, since: str | None = None, by: str = "", as_json: bool = False) -> int:
    """Print what all sessions have cost; return the exit code. Raises ``ConfigError`` for a day that is none, ``SessionError``."""
    words.use(words.choose(settings.language, os.environ))
    root = settings.data_path / "sessions"
    day = read_date(since) if since is not None else None
    check_readable(root)
    report = collect(root, since=day, by=by)
    if as_json:
        sys.stdout.write(json.dumps(_json(report, day, by), indent=1) + "\n")
    else:
        sys.stdout.write("".join(line + "\n" for line in _lines(report, root, day, by)))
    sys.stdout.flush()
    return 0


def _json(report: Report, day: date | None, by: str) -> dict[str, Any]:
    return {
        "since": day.isoformat() if day else None,
        "by": by or None,
        "rows": [row.to_dict(by) for row in report.rows.values()],
        "total": report.total.to_dict(""),
        "sessions": report.sessions,
        "demo_sessions_left_out": report.demo,
        "sessions_not_read": report.damaged,
    }


def _lines(report: Report, root: Path, day: date | None, by: str) -> Iterator[str]:
    if report.sessions:
        yield from _table(report, root, by)
    else:
        yield tr("costs.none_since", date=day.isoformat()) if day else tr("costs.none")
    for name, count in (
        ("unknown", report.total.unknown),
        ("demo", report.demo),
        ("damaged", report.damaged),
    ):
        if count:
            yield tr_count(f"costs.{name}", count)


def _table(report: Report, root: Path, by: str) -> Iterator[str]:
    titled = by == "session"
    heads = [by or "total", "turns", "cost", "in", "out", "read", "written"]
    cells = [["" if name == "total" else tr(f"costs.{name}") for name in heads]]
    cells += [_cells(_shown(row.name, by), row) for row in report.rows.values()]
    cells.append(_cells(tr("costs.total"), report.total))
    widths = [max(_width(row[column]) for row in cells) for column in range(len(heads))]
    titles = (
        [tr("costs.title"), *(_title(root, row.name) for row in report.rows.values()), ""] if titled else []
    )
    for number, (name, *rest) in enumerate(cells):
        parts = [_padded(name, widths[0])]
        parts += [_padded(cell, wide, right=True) for cell, wide in zip(rest, widths[1:], strict=True)]
        if titled:
            parts.append(titles[number])
        yield "  ".join(parts).rstrip()


def _cells(name: str, row: Sum) -> list[str]:
    usage = row.usage
    counts = (usage.input, usage.output, usage.cache_read, usage.cache_creation)
    return [name, f"{row.turns:,}", row.cost, *(f"{count:,}" for count in counts)]


def _shown(name: str, by: str) -> str:
    if by == "session":
        return name[:SHORT_ID]
    return name or tr("costs.no_model")


def _title(root: Path, session_id: str) -> str:
    summary = summarise(root / session_id)
    title = summary.title if summary is not None else ""
    if not title:
        return tr("costs.no_prompt")
    from rich.cells import set_cell_size

    return title if _width(title) <= TITLE else set_cell_size(title, TITLE - 1).rstrip() + "…"


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _padded(text: str, width: int, *, right: bool = False) -> str:
    room = " " * (width - _width(text))
    return room + text if right else text + room
