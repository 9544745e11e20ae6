"""What the screen knows and says of MCP servers."""

from __future__ import annotations

from support.screen import START
from support.servers import GIT_TOOLS, server, some_servers

from sandbox_chat import events as ev
from sandbox_chat.event_json import from_json, to_json
from sandbox_chat.server_text import DESCRIPTION, server_line, server_lines
from sandbox_chat.ui.server_views import rows, trouble
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.transcript.cells import row_width


def started() -> ev.SessionStarted:
    return ev.SessionStarted(at=START, session_id="s", model="m", sandbox="local", demo=True)


def told(*events: ev.Event) -> ChatState:
    state = ChatState()
    state.apply_all(events)
    return state


def text_of(found: ev.ServerChanged, width: int = 60) -> str:
    return "\n".join("".join(run.text for run in row) for row in rows(found, width))


def test_the_last_word_of_each_server_counts_and_none_outlives_the_run() -> None:
    state = told(started(), server("b", "starting"), server("a"), server("b", "failed"))
    assert [(each.name, each.state) for each in state.servers.values()] == [("b", "failed"), ("a", "ready")]
    state.apply(started())
    assert state.servers == {}


def test_a_replay_shows_the_same() -> None:
    events = (started(), *some_servers(), server("time", "ready"))
    replayed = [from_json(to_json(event)) for event in events]
    assert None not in replayed
    assert told(*(event for event in replayed if event is not None)) == told(*events)


def test_only_trouble_is_told_in_the_title() -> None:
    assert trouble({}) is None
    well = {each.name: each for each in some_servers() if each.state not in ("failed", "lost")}
    assert len(well) == 4 and trouble(well) is None
    lost = trouble({**well, "git": server("git", "lost")})
    assert lost is not None and (lost.sign, lost.words) == ("!", "git lost")
    both = trouble({"git": server("git", "lost"), "x": server("x", "failed")})
    assert both is not None and (both.sign, both.colour, both.words) == (
        "✗",
        "$error",
        "2 MCP servers are down",
    )
    long = trouble({"x": server("x" * 300, "failed")})
    assert long is not None and len(long.words) < 40


def test_all_that_is_known_of_a_server_fits_its_width() -> None:
    found = server(
        "weather", "failed", text="你好 " * 40 + "\n\tsecond line", tools=(*GIT_TOOLS, ev.ServerTool("x" * 200, "y" * 200, "z" * 9000))
    )  # fmt: skip
    for width in (2, 3, 20, 59, 200):
        assert all(row_width(row) <= max(width, 4) for row in rows(found, width))
    text = text_of(found, 4000)
    assert "second line" in text and "Newest first, ten by default." in text
    assert "called git-log by the server" in text and "called git_status" not in text
    assert text.count("z") == DESCRIPTION


def test_a_state_without_a_reason_says_what_follows_from_it() -> None:
    assert "It starts at its first call." in text_of(server(state="idle"))
    assert "It starts again at its next call." in text_of(server(state="lost"))
    assert "not offered until" in text_of(server(state="off"))
    assert text_of(server(state="failed", text="no program", tools=(), log="")) == "no program\nover stdio"
    assert text_of(server(state="ready", tools=(), log="")) == "over stdio"


def test_a_server_on_one_line_and_on_many() -> None:
    assert server_line(server()) == "git: ready, on this machine, 3 tools"
    assert (
        server_line(server(state="starting", tools=()))
        == "git: starting, on this machine, tools not known yet"
    )
    assert server_line(server(tools=(), place="sandbox")) == "git: ready, in the sandbox, 0 tools"
    lines = list(
        server_lines(server("git", "failed", text="no\nprogram", tools=GIT_TOOLS[1:2], log="/l/git.log"))
    )
    assert lines == [
        "git: failed, on this machine, 1 tool",
        "no",
        "program",
        "log: /l/git.log",
        "",
        "git_log  called git-log by the server",
        "  Shows the commit logs.",
        "  Newest first, ten by default.",
    ]
