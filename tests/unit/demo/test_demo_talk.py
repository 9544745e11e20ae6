"""Reading the history: sections of a result, errors, variables, what to run again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.demo_chat import Chat

from sandbox_chat.demo.talk import DEFAULT_RUN_LIMIT, Outcome, Snippet, Talk
from sandbox_chat.demo.wire import Message, Request, ToolCall, ToolResult

FAILED = """\
[success] False
[stdout]
before
[error]
KeyError: 'Sun'
[traceback]
Traceback (most recent call last):
  File "<cell>", line 4
KeyError: 'Sun'
"""


def outcome(text: str, *, is_error: bool = False) -> Outcome:
    return Outcome(ToolResult("t", text, is_error=is_error))


def test_sections() -> None:
    found = outcome("[success] True\n[stdout]\nmean: 2\nmax = 3 m\n[result]\n5\n[note] Picture 1 is shown.")
    assert found.ok
    assert found.stdout == "mean: 2\nmax = 3 m"
    assert found.value == "5"
    assert found.values() == {"mean": "2", "max": "3 m"}


def test_output_that_looks_like_a_heading() -> None:
    found = outcome("[success] True\n[stdout]\n[success] False\n[stdout]\nx\n[result]\n7")
    assert found.ok
    assert found.stdout == "[success] False\n[stdout]\nx"
    assert found.value == "7"


def test_failed_code() -> None:
    found = outcome(FAILED, is_error=True)
    assert not found.ok
    assert not found.broken
    assert (found.error, found.error_name, found.stdout) == ("KeyError: 'Sun'", "KeyError", "before")
    assert not outcome("[success] False\n[error]\nKeyError: 1").ok


def test_missing_name() -> None:
    found = outcome("[success] False\n[error]\nNameError: name 'y' is not defined", is_error=True)
    assert found.missing_name == "y"
    assert outcome(FAILED, is_error=True).missing_name == ""


def test_time_limit_is_told_in_the_tools_own_words() -> None:
    text = (
        "[success] False\n[error]\nThe code was stopped after 2 s, the time limit of this call. The variables are kept.\n"
        "[traceback]\nTraceback …\nKeyboardInterrupt"
    )
    found = outcome(text, is_error=True)
    assert found.timed_out
    assert found.error_name == ""
    assert found.error.startswith("The code was stopped after 2 s")


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        (
            "[tool_error] SandboxUnavailable: no bubblewrap\nDo not retry.",
            "SandboxUnavailable: no bubblewrap",
        ),
        (
            "<tool_use_error>Error: No such tool available: X</tool_use_error>",
            "<tool_use_error>Error: No such tool available: X</tool_use_error>",
        ),
        (
            'MCP server "sandbox" tool "slow" timed out after 2s',
            'MCP server "sandbox" tool "slow" timed out after 2s',
        ),
        (FAILED, ""),
        ("No such file: /tmp/x", ""),
    ],
)
def test_broken_tools(text: str, broken: str) -> None:
    assert outcome(text, is_error=True).broken == broken


@given(
    st.text(max_size=200)
    | st.lists(st.sampled_from(["[success] True", "[stdout]", "[error]", "x: 1", ""])).map("\n".join)
)
def test_any_result_can_be_read(text: str) -> None:
    found = outcome(text, is_error=True)
    assert isinstance(found.error, str)
    assert isinstance(found.broken, str)
    assert isinstance(found.values(), dict)
    assert found.ok is False


def test_names_of_a_snippet() -> None:
    code = "import numpy as np\nfrom math import pi as p\nx, (y, z) = 1, (2, 3)\ndef f(a):\n    b = a\n    return b\n[q for q in range(x)]"
    snippet = Snippet.of(code, True)
    assert set(snippet.sets) == {"np", "p", "x", "y", "z", "f"}
    assert {"x", "range"} <= snippet.needs
    assert Snippet.of("not python at all", True).sets == ()


def history(*codes: tuple[str, bool], prompt: str = "now") -> Talk:
    messages: list[Message] = []
    for number, (code, ok) in enumerate(codes):
        messages += [
            Message("user", f"prompt {number}"),
            Message("assistant", "", (ToolCall(f"t{number}", "mcp__sandbox__run_code", {"code": code}),)),
            Message("user", "", (), (ToolResult(f"t{number}", f"[success] {ok}", is_error=not ok),)),
            Message("assistant", "done"),
        ]
    return Talk(Request("m", (*messages, Message("user", prompt))))


def test_names_newest_first_without_failures() -> None:
    talk = history(("a = 1\nb = 2", True), ("c = 3", False), ("d = 4\n_e = 5\nb = 6", True))
    assert talk.names == ["b", "d", "a"]
    assert [turn.prompt for turn in talk.turns] == ["prompt 0", "prompt 1", "prompt 2", "now"]


def test_recall_takes_what_is_needed() -> None:
    talk = history(("a = 1", True), ("unrelated = 0", True), ("b = a + 1", True), ("b = a / 0", False))
    assert talk.recall("b") == "a = 1\n\nb = a + 1"
    assert talk.recall("nothing") == ""


def test_recall_is_bounded() -> None:
    assert history(("a = 1\n" + "#" * 10_000, True)).recall("a") == ""


def test_pictures() -> None:
    talk = history(
        ("fig.savefig('/tmp/a.png')", True),
        ('plt.savefig("/tmp/b.png", dpi=130)', True),
        ("fig.savefig('/tmp/c.png')", False),
    )
    assert talk.pictures() == ["/tmp/a.png", "/tmp/b.png"]


def test_run_limit_of_the_schema() -> None:
    assert history().run_limit == DEFAULT_RUN_LIMIT
    tools = [{"name": "mcp__sandbox__run_code", "input_schema": {"properties": {"timeout": {"maximum": 7}}}}]
    request = Request("m", (Message("user", "x"),), tools=("mcp__sandbox__run_code",), body={"tools": tools})
    assert Talk(request).run_limit == 7


def test_results_after_an_interrupt_belong_to_the_old_turn() -> None:
    chat = Chat(lambda name, arguments: {"content": "[success] True"})
    chat.messages = [
        {"role": "user", "content": "first"},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "t", "name": "mcp__sandbox__run_code", "input": {"code": "x"}}
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "content": "The user doesn't want to proceed",
                    "is_error": True,
                },
                {"type": "text", "text": "[Request interrupted by user for tool use]\n"},
                {"type": "text", "text": "second"},
            ],
        },
    ]
    talk = Talk(chat.request())
    assert [turn.prompt for turn in talk.turns] == ["first", "second"]
    assert talk.outcomes == []
    assert talk.turns[0].steps[0][1] is not None
