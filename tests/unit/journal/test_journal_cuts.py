"""A session's file cut at every byte of its last two kilobytes: it loads, goes on, and is read again whole. Case T15."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox_chat import sessions
from sandbox_chat.events import (
    Event,
    SessionStarted,
    Text,
    TextContent,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from sandbox_chat.journal import Journal, files, record
from sandbox_chat.journal.lines import DAMAGED

ID = "s-1"
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
LAST = 2048


def turn(seq: int, text: str = "Hé, 한글 👩‍💻") -> list[Event]:
    return [
        TurnStarted(at=NOON, seq=seq, turn_id=f"t{seq}", prompt="plot"),
        Text(at=NOON, seq=seq + 1, text=text),
        ToolFinished(
            at=NOON, seq=seq + 2, tool_use_id="u", is_error=False, content=(TextContent("ok"),), duration_ms=1
        ),
        TurnFinished(
            at=NOON, seq=seq + 3, turn_id=f"t{seq}", subtype="success", is_error=False, interrupted=False, num_turns=1,
            duration_ms=3, cost_usd=0.5, total_cost_usd=0.5,
        ),
    ]  # fmt: skip


@pytest.fixture
def whole(tmp_path: Path) -> tuple[Path, list[Event], bytes]:
    """Root, events and file of a session of four turns, whose last 2 kB hold several records."""
    past: list[Event] = [
        SessionStarted(at=NOON, seq=1, session_id=ID, model="m", sandbox="local", demo=False)
    ]
    for number in range(4):
        past += turn(2 + 4 * number)
    journal = Journal.create(tmp_path, ID)
    for event in past:
        journal.append(event)
    journal.close()
    data = (tmp_path / ID / files.EVENTS).read_bytes()
    assert len(data) > LAST + 300
    return tmp_path, past, data


def test_t15_a_file_cut_at_every_byte_of_its_last_two_kilobytes(
    whole: tuple[Path, list[Event], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Thousands of these take the test's time.
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(record, "write_meta", lambda folder, summary: None)
    root, past, data = whole
    path = root / ID / files.EVENTS
    ends = [place + 1 for place, byte in enumerate(data) if byte == 0x0A]
    later = turn(100)
    before = {lines: past[:lines] for lines in range(len(past) + 1)}
    for cut in range(len(data) - LAST, len(data) + 1):
        (root / ID / DAMAGED).unlink(missing_ok=True)
        path.write_bytes(data[:cut])
        lines = sum(end <= cut for end in ends) + (
            cut + 1 in ends
        )  # one whose newline alone is gone is whole
        torn = cut not in ends and cut + 1 not in ends
        journal = Journal.open(root, ID)
        assert list(journal.events()) == before[lines]
        assert journal.skipped == torn
        assert journal.last_seq == lines
        assert not (root / ID / DAMAGED).exists()
        for event in later:
            journal.append(event)
        assert journal.problem == ""
        journal.close()
        assert list(journal.events()) == past[:lines] + later
        assert journal.skipped == torn
        aside = (root / ID / DAMAGED).read_bytes() if torn else b""
        start = max(end for end in (0, *ends) if end <= cut)
        assert aside == (
            b"### %d bytes at byte %d of events.jsonl\n%s\n" % (cut - start, start, data[start:cut])
            if torn
            else b""
        )
        if cut % 16 == 0:
            again = Journal.open(root, ID)
            assert list(again.tail().events) == past[:lines] + later
            assert again.new_damage() == 0  # it was told of when it was found
            again.close()


def test_the_list_and_the_transcript_stand_every_cut(whole: tuple[Path, list[Event], bytes]) -> None:
    root, _, data = whole
    path = root / ID / files.EVENTS
    for cut in range(len(data) - LAST, len(data) + 1, 7):
        path.write_bytes(data[:cut])
        out, said = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(said):
            assert sessions.show(root, ID) == 0
            assert sessions.show(root, ID, as_json=True) == 0
        torn = data[cut - 1 : cut] != b"\n" and data[cut : cut + 1] != b"\n"
        assert said.getvalue().count("damaged place") == 2 * torn  # once each time
        assert "› plot" in out.getvalue()
        for line in out.getvalue().splitlines():
            if line.startswith("{"):
                json.loads(line)


def watched(folder: Path, seen: list[tuple[bytes, bool]]) -> Callable[[Path], int]:
    """``open_append`` that notes what the record holds, and whether something was kept aside, when it is opened."""
    real = files.open_append

    def opened(path: Path) -> int:
        if path.name == files.EVENTS:
            seen.append((path.read_bytes(), (folder / DAMAGED).exists()))
        return real(path)

    return opened


@pytest.mark.parametrize("many", [1, 3])
def test_damage_is_kept_aside_once_and_before_anything_is_appended(
    whole: tuple[Path, list[Event], bytes], many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, past, data = whole
    folder = root / ID
    lines = data.splitlines(keepends=True)
    lines.insert(3, b"\0" * 40 + b"\n")
    lines.insert(6, b'{"type":"text"\n' * many)
    lines[-1] = lines[-1][:20]
    (folder / files.EVENTS).write_bytes(b"".join(lines))
    for run in range(3):
        journal = Journal.open(root, ID)
        assert len(list(journal.events())) == len(past) - 1 + 4 * run
        assert journal.skipped == 3
        assert journal.new_damage() == (3 if not run else 0)
        before = (folder / files.EVENTS).read_bytes()
        seen: list[tuple[bytes, bool]] = []
        monkeypatch.setattr(files, "open_append", watched(folder, seen))
        for event in turn(50 + 10 * run):
            journal.append(event)
        journal.close()
        assert seen == [(before, True)]
        aside = (folder / DAMAGED).read_bytes()
        assert aside.count(b"### ") == 3
        assert aside.count(b'{"type":"text"\n') == many
        assert aside.endswith(lines[-1] + b"\n")
        assert (folder / DAMAGED).stat().st_mode & 0o777 == 0o600
        monkeypatch.undo()
