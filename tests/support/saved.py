"""Saved sessions for tests, written as the journal writes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sandbox_chat import events as ev
from sandbox_chat.journal import Journal
from sandbox_chat.journal.keeping import rename

Spoken = tuple[str, ...]
"""A turn: prompt, answer, and perhaps code and its output."""

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def turn(number: int, prompt: str, answer: str = "", code: str = "", output: str = "") -> list[ev.Event]:
    """The events of a turn."""
    events: list[ev.Event] = [ev.TurnStarted(at=NOON, turn_id=f"t{number}", prompt=prompt)]
    if code or output:
        events += [
            ev.ToolStarted(
                at=NOON, tool_use_id=f"u{number}", name="mcp__sandbox__run_code", input={"code": code}
            ),
            ev.ToolOutput(at=NOON, tool_use_id=f"u{number}", stream="stdout", text=output[:1000]),
            ev.ToolFinished(
                at=NOON,
                tool_use_id=f"u{number}",
                is_error=False,
                content=(ev.TextContent(output),),
                duration_ms=12,
            ),
        ]
    if answer:
        half = len(answer) // 2
        events += [ev.TextDelta(at=NOON, text=answer[:half]), ev.TextDelta(at=NOON, text=answer[half:])]
        events.append(ev.Text(at=NOON, text=answer))
    usage = ev.Usage(1000, 100, 0, 0)
    events.append(
        ev.TurnFinished(
            at=NOON, turn_id=f"t{number}", subtype="success", is_error=False, interrupted=False, num_turns=1, duration_ms=900,
            cost_usd=0.01, total_cost_usd=0.01 * number, usage=usage, models=(ev.ModelUse("m-1", usage, 0.01),),
        )
    )  # fmt: skip
    return events


class Saved:
    """Writes sessions into ``data``/sessions."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.root = data / "sessions"

    def path(self, session_id: str) -> Path:
        """The record of a session."""
        return self.root / session_id / "events.jsonl"

    def session(
        self, session_id: str, turns: Sequence[Spoken], *, model: str = "m-1", demo: bool = False
    ) -> Path:
        """Write a session and return the path of its record."""
        journal = Journal.create(self.root, session_id)
        started = ev.SessionStarted(at=NOON, session_id=session_id, model=model, sandbox="local", demo=demo)
        if not turns:
            self.path(session_id).parent.mkdir(parents=True)
            self.path(session_id).write_bytes(b"")
            return self.path(session_id)
        self._append(
            journal, [started, *(event for n, spoken in enumerate(turns, 1) for event in turn(n, *spoken))]
        )
        return self.path(session_id)

    def more(self, session_id: str, turns: Sequence[Spoken]) -> None:
        """Let a session go on."""
        journal = Journal.open(self.root, session_id)
        first = journal.last_seq
        self._append(journal, [event for n, spoken in enumerate(turns, first) for event in turn(n, *spoken)])

    def _append(self, journal: Journal, events: Sequence[ev.Event]) -> None:
        import dataclasses

        for event in events:
            journal.append(dataclasses.replace(event, seq=journal.last_seq + 1))
        journal.close()

    def lines(self, session_id: str, *events: dict[str, Any]) -> None:
        """Append lines as they are given."""
        with self.path(session_id).open("ab") as file:
            for event in events:
                file.write(json.dumps(event, separators=(",", ":")).encode() + b"\n")

    def rename(self, session_id: str, title: str) -> None:
        """Give a session another title."""
        rename(self.root, session_id, title)
