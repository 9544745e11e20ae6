"""Lines with bounds, damage, numbers: what a journal's file may hold that no journal wrote."""

from __future__ import annotations

import dataclasses
import io
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sandbox_chat import event_json
from sandbox_chat.agent.calls import Calls
from sandbox_chat.events import Event, SessionRenamed, Text, ToolStarted, TurnStarted
from sandbox_chat.journal import Journal, files, lines
from sandbox_chat.journal.lines import DAMAGED, Damage, Numbers, read_lines

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def line(event: Event) -> bytes:
    return event_json.to_json(event).encode() + b"\n"


def text(seq: int, words: str = "x") -> Text:
    return Text(at=NOON, seq=seq, text=words)


def session(root: Path, *rows: bytes) -> Path:
    folder = root / "s"
    folder.mkdir(exist_ok=True)
    (folder / files.EVENTS).write_bytes(
        line(TurnStarted(at=NOON, seq=1, turn_id="t", prompt="p")) + b"".join(rows)
    )
    return folder


def read(folder: Path) -> tuple[list[int], int]:
    damage = Damage()
    return [event.seq for event in files.read_events(folder, damage)], damage.skipped


@pytest.mark.parametrize("depth", [100, 490, 700, 960, 5000, 100_000])
def test_a_call_that_is_nested_deeply_stops_nothing(tmp_path: Path, depth: int) -> None:
    call = line(ToolStarted(at=NOON, seq=2, tool_use_id="u", name="n", input={"x": 0}))
    folder = session(tmp_path, call.replace(b"0}", b"[" * depth + b"1" + b"]" * depth + b"}"), line(text(3)))
    found, skipped = read(folder)
    assert (found, skipped) in (([1, 2, 3], 0), ([1, 3], 1))
    if depth < 500:
        assert skipped == 0, "one that an earlier version wrote is read, too"
    journal = Journal.open(tmp_path, "s")
    assert len(list(journal.events())) == len(found)
    journal.append(SessionRenamed(at=NOON, seq=4, title="t"))
    journal.close()
    assert journal.problem == ""
    assert read(folder) == ([*found, 4], skipped)


def test_a_call_that_is_nested_deeply_can_be_read_where_it_was_written(tmp_path: Path) -> None:
    value: Any = 1
    for _ in range(900):
        value = {"x": value}
    call = Calls().started("u", "n", value)
    assert call is not None
    folder = session(tmp_path, line(dataclasses.replace(call, at=NOON, seq=2)))

    def deeply(levels: int) -> list[Event]:
        return deeply(levels - 1) if levels else list(files.read_events(folder))

    for levels in (0, 500):
        found = deeply(levels)[1]
        assert isinstance(found, ToolStarted)
        assert found.input == call.input


@pytest.mark.parametrize("size", [99, 100, 101, 250, 1000])
def test_a_line_that_is_too_long_is_passed_over_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(lines, "LONGEST", 100)
    monkeypatch.setattr(lines, "_BLOCK", 10)
    data = b"a\n" + b"x" * (size - 1) + b"\n" + b"b\n" + b"y" * size
    found = list(read_lines(io.BytesIO(data)))
    assert [(each.start, each.size) for each in found] == [
        (0, 1),
        (2, size - 1),
        (2 + size, 1),
        (4 + size, size),
    ]
    assert [each.raw for each in found][::2] == [b"a", b"b"]
    assert bool(found[1].raw) == (size < 120)
    assert bool(found[3].raw) == (size <= 100)


def test_a_line_of_200_mb_costs_no_memory(tmp_path: Path) -> None:
    import tracemalloc

    folder = session(tmp_path, line(text(2)))
    with (folder / files.EVENTS).open("r+b") as file:
        file.seek(0, 2)
        file.truncate(file.tell() + (200 << 20))  # a hole: NUL bytes
        file.seek(0, 2)
        file.write(b"\n" + line(text(3)))
    tracemalloc.start()
    assert read(folder) == ([1, 2, 3], 1)
    assert tracemalloc.get_traced_memory()[1] < 3 * lines.LONGEST
    tracemalloc.stop()
    journal = Journal.open(tmp_path, "s")
    assert journal.last_seq == 3
    assert [event.seq for event in journal.tail().events] == [1, 2, 3]
    journal.append(TurnStarted(at=NOON, seq=4, turn_id="u", prompt="again"))
    assert journal.problem == ""
    journal.close()
    aside = folder / DAMAGED
    assert aside.stat().st_size < 2 * lines.ASIDE_MOST
    assert b"the first 1048576 of them" in aside.read_bytes()[:200]
    assert read(folder) == ([1, 2, 3, 4], 1)


@pytest.mark.parametrize(
    ("rows", "seen", "skipped"),
    [
        ([line(text(2)), line(text(2)), line(text(3))], [1, 2, 3], 1),
        ([line(text(2)), line(text(3)), line(text(2, "other")), line(text(1))], [1, 2, 3], 1),
        ([line(text(2)), b'{"type":"text","text":"no number"}\n', line(text(3))], [1, 2, 3], 1),
        ([line(text(3)), line(text(2))], [1, 3, 2], 0),  # two threads
        ([line(text(2)), line(text(9))], [1, 2, 9], 0),  # pieces that were given up
        ([line(text(2))[:-30], line(text(3))], [1], 1),  # torn, and the next is in the same line
        ([b'127.0.0.1 - - "GET /" 200\n', line(text(2))], [1, 2], 1),
        ([line(text(2, "한")).replace("한".encode(), "한".encode()[:2]), line(text(3))], [1, 3], 1),
    ],
    ids=[
        "twice",
        "twice-later",
        "no-number",
        "out-of-order",
        "gap",
        "merged",
        "another-program",
        "half-a-character",
    ],
)
def test_lines_that_no_journal_wrote(
    tmp_path: Path, rows: list[bytes], seen: list[int], skipped: int
) -> None:
    assert read(session(tmp_path, *rows)) == (seen, skipped)


def test_a_number_written_twice_at_the_end_is_not_given_again(tmp_path: Path) -> None:
    session(tmp_path, line(text(2)), line(text(3)), line(text(2)))
    journal = Journal.open(tmp_path, "s")
    assert journal.last_seq == 3
    journal.close()


def test_numbers_know_what_they_had() -> None:
    chance = random.Random(7)
    for _ in range(200):
        numbers, had = Numbers(), set()
        for number in (chance.randrange(1, 20) for _ in range(30)):
            assert numbers.add(number) == (number not in had)
            had.add(number)
    numbers = Numbers()
    assert all(numbers.add(number) for number in range(1, 10_000))
    assert len(numbers._starts) == 1
