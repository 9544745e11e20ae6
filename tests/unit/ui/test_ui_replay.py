"""Live view ≡ replayed view: however the events came, the screen and the totals are the same."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from support.screen import START, shown, tool_finished, turn_finished
from support.servers import server

from sandbox_chat import events as ev
from sandbox_chat.event_json import from_json, to_json
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.transcript import Feed

NAME = "mcp__sandbox__run_code"
CODE = '{"code": "import math\\n\\ndef f(x):\\n    \\"\\"\\"Doc\\n    x\\"\\"\\"\\n    return x\\\\n", "timeout": 5}'
PIECES = st.sampled_from(
    ["Some *words*", " and more. ", "\n", "\n\n", "- item\n", "```python\n", "x = 1\n", "```\n", "| a | b |\n",
     "|---|---|\n", "你好", "`co", "de`", "# Head\n", "  ", "[link](http://a.b)", "> quote\n", "1. one\n"]
)  # fmt: skip
IDS = st.sampled_from(["a", "b"])
PICTURE = ev.ImageContent(path="/nowhere/p.png", mime="image/png", width=40, height=30)
EVENTS = st.one_of(
    st.builds(ev.TextDelta, text=PIECES, at=st.just(START)),
    st.builds(ev.ThinkingDelta, text=PIECES, at=st.just(START)),
    st.builds(ev.Text, text=st.lists(PIECES, max_size=8).map("".join), at=st.just(START)),
    st.builds(
        lambda i, start, end: ev.ToolInputDelta(tool_use_id=i, name=NAME, text=CODE[start:end], at=START),
        IDS,
        st.integers(0, 40),
        st.integers(20, len(CODE)),
    ),
    st.builds(lambda i: ev.ToolStarted(tool_use_id=i, name=NAME, input={"code": "x = 1\nx"}, at=START), IDS),
    st.builds(
        ev.ToolOutput,
        tool_use_id=IDS,
        stream=st.sampled_from(["stdout", "stderr"]),
        text=PIECES,
        at=st.just(START),
    ),
    st.builds(
        lambda i, failed, stopped, parts: ev.ToolFinished(
            tool_use_id=i, is_error=failed, interrupted=stopped, content=tuple(parts), duration_ms=7, at=START
        ),
        IDS,
        st.booleans(),
        st.booleans(),
        st.lists(st.sampled_from([PICTURE, ev.TextContent("[success] True\n[stdout]\na\nb")]), max_size=2),
    ),
    st.builds(ev.ToolOutput, tool_use_id=IDS, stream=st.just("stdout"), text=PIECES, late=st.just(True), at=st.just(START)),
    st.builds(
        lambda i, of: ev.ApprovalRequested(
            at=START, approval_id=i, kind="overwrite", question="Replace it?", detail="/x",
            choices=(ev.Choice("replace", "r", "replace it"), ev.Choice("no", "n", "do not save")),
            default="no", tool_use_id=of,
        ),
        IDS,
        st.sampled_from(["a", "b", ""]),
    ),
    st.builds(
        ev.ApprovalAnswered, approval_id=IDS, choice=st.sampled_from(["replace", ""]),
        by=st.sampled_from(["user", "cancelled"]), at=st.just(START),
    ),
    st.builds(
        ev.Attached, attach_id=IDS, name=st.just("f"), path=st.just("/tmp/attached/f"), size=st.just(3),
        error=st.sampled_from(["", "There is no file f."]), at=st.just(START),
    ),
    st.builds(ev.Retry, reason=st.just("busy"), attempt=st.integers(1, 3), delay_ms=st.just(0), at=st.just(START)),
    st.builds(ev.Notice, level=st.just("info"), text=PIECES, at=st.just(START)),
    st.builds(ev.TurnStarted, turn_id=st.sampled_from(["1", "2"]), prompt=PIECES, at=st.just(START)),
    st.sampled_from([turn_finished("1"), turn_finished("2", interrupted=True), turn_finished("1", is_error=True)]),
    st.just(ev.SessionStarted(at=START, session_id="s", model="m", sandbox="local", demo=True)),
    st.just(ev.SessionFinished(at=START)),
    st.builds(server, st.sampled_from(["git", "time"]), st.sampled_from(["idle", "ready", "failed", "lost", "off"])),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, max_size=40), st.lists(st.integers(1, 5), min_size=1), st.booleans())
def test_any_stream_in_any_pieces_ends_as_its_replay(
    events: list[ev.Event], sizes: list[int], expanded: bool
) -> None:
    assert shown(events, sizes, expanded=expanded) == shown(
        [from_json(to_json(event)) or event for event in events], [len(events) or 1], expanded=expanded
    )


def killed() -> list[ev.Event]:
    """A session whose program was killed in the middle of a call, and the begin of the next run."""
    return [
        ev.SessionStarted(at=START, session_id="s", model="m", sandbox="local", demo=True),
        ev.TurnStarted(at=START, turn_id="1", prompt="go"),
        ev.TextDelta(at=START, text="I will"),
        ev.ToolStarted(at=START, tool_use_id="a", name=NAME, input={"code": "sleep(30)"}),
        ev.ToolInputDelta(at=START, tool_use_id="b", name=NAME, text='{"code": "1'),
        ev.SessionStarted(at=START, session_id="s", model="m", sandbox="local", demo=True),
    ]


def play(events: Iterable[ev.Event]) -> tuple[Feed, ChatState]:
    feed, state = Feed(), ChatState()
    for event in events:
        feed.apply(event)
        state.apply(event)
    return feed, state


def test_what_a_killed_program_left_open_has_ended_when_the_session_is_resumed() -> None:
    feed, state = play(killed())
    assert not any(block.live for block in feed.blocks)
    assert [card.status for card in feed.cards.values()] == ["interrupted", "interrupted"]
    assert [tool.status for tool in state.tools.values()] == ["interrupted", "interrupted"]
    assert "ended before this turn did" in feed.blocks[-1].text
    assert not state.busy


def test_a_session_that_ended_well_says_nothing_of_the_kind() -> None:
    past = killed()[:2]
    feed, _ = play([*past, turn_finished("1"), ev.SessionFinished(at=START), past[0]])
    assert [block.kind for block in feed.blocks] == ["prompt"]


def test_a_retry_withdraws_the_calls_that_were_being_written_everywhere() -> None:
    feed, state = play(
        [
            ev.TurnStarted(at=START, turn_id="1", prompt="go"),
            ev.ToolStarted(at=START, tool_use_id="u1", name=NAME, input={}),
            ev.ToolInputDelta(at=START, tool_use_id="b", name=NAME, text='{"code": "1'),
            ev.Retry(at=START + timedelta(seconds=1), reason="busy", attempt=1, delay_ms=0),
            tool_finished(),
        ]
    )
    assert list(feed.cards) == list(state.tools) == ["u1"]
    assert state.phase == "connecting"
