"""The last turns of a long session are found from the end; what is left out of them shows nothing."""

from __future__ import annotations

import dataclasses
import itertools
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox_chat import events as ev
from sandbox_chat.events import Event
from sandbox_chat.journal import Journal, files, tail
from sandbox_chat.journal.brief import brief_lines
from sandbox_chat.journal.lines import Damage, read_lines
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.transcript import Feed, Scene

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
NAME = "mcp__sandbox__run_code"


def write(root: Path, past: list[Event]) -> Path:
    folder = root / "s"
    folder.mkdir(parents=True)
    with (folder / files.EVENTS).open("wb") as file:
        for seq, event in enumerate(past, 1):
            file.write(files.to_line(dataclasses.replace(event, seq=seq, at=NOON), folder))
    return folder


def finished(turn_id: str) -> ev.TurnFinished:
    return ev.TurnFinished(
        turn_id=turn_id, subtype="success", is_error=False, interrupted=False, num_turns=1, duration_ms=3,
        cost_usd=0.5, total_cost_usd=0.5,
    )  # fmt: skip


def streamed(turn_id: str, *, words: int = 20) -> list[Event]:
    """A turn as it is recorded: thoughts, a call and an answer, each in pieces."""
    call = f"call-{turn_id}"
    return [
        ev.TurnStarted(turn_id=turn_id, prompt=f"prompt {turn_id}"),
        ev.ThinkingDelta(text=" "),
        *(ev.ThinkingDelta(text=f"thought {n}, \ud83c") for n in range(3)),
        ev.ToolInputDelta(tool_use_id=call, name=NAME, text=""),
        *(ev.ToolInputDelta(tool_use_id=call, name=NAME, text=piece) for piece in ('{"code"', ': "1"', "}")),
        ev.ToolStarted(tool_use_id=call, name=NAME, input={"code": "1"}),
        ev.ToolOutput(tool_use_id=call, stream="stdout", text="out\n"),
        ev.ToolFinished(tool_use_id=call, is_error=False, content=(ev.TextContent("out"),), duration_ms=4),
        *(ev.TextDelta(text=f"word{n} ") for n in range(words)),
        ev.Text(text="".join(f"word{n} " for n in range(words))),
        finished(turn_id),
    ]


def shown(events: list[Event]) -> tuple[list[str], ChatState]:
    feed, state = Feed(Scene(now=lambda: NOON)), ChatState()
    for event in events:
        feed.apply(event)
        state.apply(event)
    for tool in state.tools.values():
        tool.revision = 0
    state.tool_revision = 0
    state.machine.odd, state.machine.oddity = 0, ""  # these count events
    for block in feed.blocks:
        block.expand()
    return [row.text.rstrip() for block in feed.blocks for row in block.rows(50)], state


# --- without pieces ------------------------------------------------------------------------------------


def test_pieces_whose_whole_follows_are_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path, [*streamed("a"), *streamed("b")])
    whole = list(files.read_events(folder))
    damage = Damage()
    brief = list(files.read_events(folder, damage, brief=True))
    assert damage.skipped == 0
    assert shown(brief) == shown(whole)
    kinds = [event.type for event in brief]
    assert "text_delta" not in kinds
    assert kinds.count("tool_input_delta") == 2  # the first of a call tells when it began
    assert kinds.count("thinking_delta") == 4  # a blank one, and the rest as one
    assert len(brief) < len(whole) / 2


def test_any_stream_shows_the_same_without_its_pieces(tmp_path: Path) -> None:
    chance = random.Random(5)
    pieces: list[Event] = [
        ev.TextDelta(text="a"), ev.TextDelta(text=" "), ev.Text(text="ab"), ev.Text(text=""), ev.ThinkingDelta(text="t"),
        ev.ThinkingDelta(text="\n"), ev.ToolInputDelta(tool_use_id="u", name=NAME, text='{"code'),
        ev.ToolInputDelta(tool_use_id="v", name=NAME, text=""), ev.ToolStarted(tool_use_id="u", name=NAME, input={}),
        ev.ToolStarted(tool_use_id="v", name=NAME, input={"code": "2"}), ev.Retry(reason="cut", attempt=1, delay_ms=0),
        ev.Notice(level="info", text="said"), finished("t"), ev.TurnStarted(turn_id="t", prompt="p"),
        ev.Status(component="agent", state="ready"),
    ]  # fmt: skip
    for number in range(300):
        past: list[Event] = [ev.TurnStarted(turn_id="t", prompt="p")]
        for _ in range(chance.randrange(25)):
            past += [chance.choice(pieces)] * chance.choice([1, 1, 2, 3])
        past.append(ev.SessionStarted(session_id="s", model="m", sandbox="local", demo=True))
        folder = write(tmp_path / str(number), past)
        rows, state = shown(list(files.read_events(folder)))
        again, replayed = shown(list(files.read_events(folder, brief=True)))
        assert again == rows, past
        assert replayed == state, past


@pytest.mark.parametrize("damage", [b'{"type":"text","seq":9,"text":"cut', b""], ids=["torn", "none"])
def test_pieces_stay_where_their_whole_is_damaged(tmp_path: Path, damage: bytes) -> None:
    folder = write(
        tmp_path, [ev.TurnStarted(turn_id="t", prompt="p"), ev.TextDelta(text="a"), ev.TextDelta(text="b")]
    )
    with (folder / files.EVENTS).open("ab") as file:
        file.write(damage)
    kinds = [event.type for event in files.read_events(folder, brief=True)]
    assert kinds == ["turn_started", "text_delta", "text_delta"]


@pytest.mark.parametrize(
    "bad", [b'{"type":"thinking_delta","seq":2,"text":5,"x":"y"}\n', b'{"type":"thinking_delta"}"}\n']
)
def test_a_damaged_piece_does_not_take_its_neighbours_along(tmp_path: Path, bad: bytes) -> None:
    folder = write(tmp_path, [ev.TurnStarted(turn_id="t", prompt="p")])
    good = files.to_line(ev.ThinkingDelta(at=NOON, seq=3, text="x"), folder)
    with (folder / files.EVENTS).open("ab") as file:
        file.write(bad + good)
    damage = Damage()
    assert [event.seq for event in files.read_events(folder, damage, brief=True)] == [1, 3]
    assert damage.skipped == 1


def test_places_of_lines_stay_true_where_pieces_are_joined(tmp_path: Path) -> None:
    folder = write(tmp_path, streamed("a"))
    with (folder / files.EVENTS).open("rb") as file:
        lines = list(brief_lines(read_lines(file)))
    size = (folder / files.EVENTS).stat().st_size
    assert lines[0].start == 0
    assert lines[-1].start + lines[-1].size + 1 == size
    assert all(a.start + a.size < b.start for a, b in itertools.pairwise(lines))


# --- the end first ----------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "TAIL", 4000)
    monkeypatch.setattr(tail, "_BLOCK", 1000)


def test_the_tail_and_what_is_older_are_the_whole(tmp_path: Path) -> None:
    past: list[Event] = [ev.SessionStarted(session_id="s", model="m", sandbox="local", demo=True)]
    for number in range(30):
        past += streamed(str(number))
    write(tmp_path, past)
    journal = Journal.open(tmp_path, "s")
    found = journal.tail()
    assert isinstance(found.events[0], ev.TurnStarted)
    assert 0 < len(found.events) < 60
    older = list(journal.older(found))
    whole = list(files.read_events(tmp_path / "s", brief=True))
    assert [*older, *found.events] == whole
    assert journal.skipped == 0
    journal.close()


@pytest.mark.parametrize("turns", [0, 1])
def test_a_short_session_is_its_own_tail(tmp_path: Path, turns: int) -> None:
    past: list[Event] = [ev.SessionStarted(session_id="s", model="m", sandbox="local", demo=True)]
    for number in range(turns):
        past += streamed(str(number), words=500)  # longer than what is read first
    write(tmp_path, past)
    found = tail.read_tail(tmp_path / "s")
    assert found.start == 0
    assert list(found.events) == list(files.read_events(tmp_path / "s", brief=True))


def test_a_turn_longer_than_what_is_read_first_is_read_whole(tmp_path: Path) -> None:
    past = [*streamed("a"), *streamed("b", words=900)]
    write(tmp_path, past)
    found = tail.read_tail(tmp_path / "s")
    assert found.start > 0
    first = found.events[0]
    assert isinstance(first, ev.TurnStarted) and first.turn_id == "b"


def test_it_begins_early_enough_for_what_goes_on_in_it(tmp_path: Path) -> None:
    past: list[Event] = []
    for number in range(12):
        past += streamed(str(number))
    asked = ev.ApprovalRequested(
        approval_id="q", kind="leftovers", question="End them?", detail="", choices=(), default="no"
    )
    past[9 * len(past) // 12 : 9 * len(past) // 12] = [asked]
    past.insert(len(past) - 1, ev.ApprovalAnswered(approval_id="q", choice="no", by="user"))
    past.insert(len(past) - 1, ev.ToolOutput(tool_use_id="call-8", stream="stdout", text="late", late=True))
    write(tmp_path, past)
    found = tail.read_tail(tmp_path / "s")
    started = [event.tool_use_id for event in found.events if isinstance(event, ev.ToolStarted)]
    assert "call-8" in started
    assert "call-0" not in started


def test_damage_is_found_in_both_parts(tmp_path: Path) -> None:
    past = [event for number in range(30) for event in streamed(str(number))]
    folder = write(tmp_path, past)
    lines = (folder / files.EVENTS).read_bytes().splitlines(keepends=True)
    lines.insert(3, b"garbage\n")
    lines.append(b"torn")
    (folder / files.EVENTS).write_bytes(b"".join(lines))
    journal = Journal.open(tmp_path, "s")
    found = journal.tail()
    assert journal.skipped == 1
    assert sum(1 for _ in journal.older(found))
    assert journal.skipped == 2
    journal.append(ev.TurnStarted(at=NOON, seq=journal.last_seq + 1, turn_id="x", prompt="p"))
    assert (folder / "events.damaged").read_bytes().count(b"### ") == 2
    journal.close()


def test_damage_that_is_found_after_writing_began_is_kept_aside_too(tmp_path: Path) -> None:
    past = [event for number in range(30) for event in streamed(str(number))]
    folder = write(tmp_path, past)
    lines = (folder / files.EVENTS).read_bytes().splitlines(keepends=True)
    lines.insert(3, b"garbage\n")
    (folder / files.EVENTS).write_bytes(b"".join(lines))
    journal = Journal.open(tmp_path, "s")
    found = journal.tail()
    journal.append(ev.TurnStarted(at=NOON, seq=journal.last_seq + 1, turn_id="x", prompt="p"))
    assert not (folder / "events.damaged").exists()
    assert sum(1 for _ in journal.older(found))
    assert b"garbage" in (folder / "events.damaged").read_bytes()
    journal.close()
