"""Code mode in a whole chat: the real agent, sandbox and servers; what the model gets, and what is recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.engines import Running, engine
from support.mcp_host import config_file, way
from support.scripted import call, text, tool_results

from sandbox_chat.events import (
    ApprovalRequested,
    Event,
    NestedFinished,
    NestedStarted,
    Notice,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from sandbox_chat.settings import ConfigError

ECHO = "print(call_mcp_tool('bad__echo', {'text': 'hi'}))"


def names(running: Running) -> list[str]:
    """The tools that the model was offered."""
    return [tool["name"] for tool in running.server.requests[0].body["tools"]]


def test_only_what_is_printed_goes_to_the_model(tmp_path: Path) -> None:
    code = "rows = [call_mcp_tool('bad__echo', {'text': str(n)}) for n in range(20)]\nprint(len(rows))"
    with engine(
        tmp_path,
        call("run_code", code=code),
        text("20 rows."),
        mcp_config=config_file(tmp_path, way("good")),
        code_mode="on",
        code_mode_policy=("bad=free",),
        pii="off",
    ) as e:
        assert e.ask("how many?").subtype == "success"
        assert not any("bad" in name for name in names(e))
        (result,) = tool_results(e.server)
        assert "[stdout]\n20" in result.text
        assert "hi" not in result.text
        kinds = [type(event) for event in e.events]
        started, finished = kinds.index(ToolStarted), kinds.index(ToolFinished)
        assert [kinds.index(NestedStarted), kinds.index(NestedFinished)] == sorted(
            (kinds.index(NestedStarted), kinds.index(NestedFinished))
        )
        assert started < kinds.index(NestedStarted) < finished
        assert kinds.count(NestedStarted) == kinds.count(NestedFinished) == 20
        outer = e.of(ToolStarted)[0].tool_use_id
        assert {event.tool_use_id for event in e.of(NestedStarted)} == {outer}
        system = json.dumps(e.server.requests[0].body["system"])
        assert "list_mcp_tools" in system


def test_both_ways_may_be_offered(tmp_path: Path) -> None:
    with engine(
        tmp_path,
        call("run_code", code=ECHO),
        call("mcp__bad__echo", text="direct"),
        text("Done."),
        mcp_config=config_file(tmp_path, way("good")),
        mcp_allow=("bad/*",),
        code_mode="both",
        pii="off",
    ) as e:
        assert e.ask("try both").subtype == "success"
        assert "mcp__bad__echo" in names(e)
        assert "'text': 'hi'" in tool_results(e.server)[0].text
        assert "direct" in tool_results(e.server)[1].text


def test_the_user_answers_for_a_call_of_code(tmp_path: Path) -> None:
    def answer(running: Running, event: Event) -> None:
        if isinstance(event, ApprovalRequested):
            running.engine.answer(event.approval_id, "once")

    with engine(
        tmp_path,
        call("run_code", code=ECHO),
        text("Done."),
        mcp_config=config_file(tmp_path, way("good")),
        code_mode="on",
        pii="off",
        asks=True,
        on_event=answer,
    ) as e:
        assert e.ask("echo").subtype == "success"
        (question,) = e.of(ApprovalRequested)
        assert question.tool_use_id == e.of(ToolStarted)[0].tool_use_id
        assert '"text": "hi"' in question.detail
        assert "'text': 'hi'" in tool_results(e.server)[0].text


def test_esc_ends_the_nested_call_too(tmp_path: Path) -> None:
    with engine(
        tmp_path,
        call("run_code", code="call_mcp_tool('bad__slow', {'seconds': 100})"),
        text("Done."),
        mcp_config=config_file(tmp_path, way("good")),
        code_mode="on",
        code_mode_policy=("*=free",),
        pii="off",
    ) as e:
        turn = e.engine.send("wait")
        e.until(lambda: e.of(NestedStarted), "the nested call")
        e.engine.interrupt()
        assert e.finished(turn).interrupted
        (ended,) = e.until(lambda: e.of(NestedFinished), "its end")
        assert ended.interrupted
        assert ended.duration_ms < 60_000
        kinds = [event.type for event in e.events]
        assert kinds.index("nested_finished") < kinds.index("turn_finished")


def test_personal_data_does_not_reach_the_model(tmp_path: Path) -> None:
    code = (
        "made = call_mcp_tool('bad__echo', {'text': 'write to ' + 'ann' + '@example.com'})\n"
        "print(made['text'])\n"
        "import base64\n"
        "print('ben' + '@example.org')\n"
        "print(base64.b64encode(b'xx' + b'ben' + b'@example.org').decode())\n"
        "print('gro.elpmaxe' + '@neb')\n"
    )
    with engine(
        tmp_path,
        call("run_code", code=code),
        text("Done."),
        mcp_config=config_file(tmp_path, way("good")),
        code_mode="on",
        code_mode_policy=("*=free",),
    ) as e:
        assert e.ask("who?").subtype == "success"
        said = tool_results(e.server)[0].text
        assert "@example" not in said
        assert "neb" not in said
        assert said.count("<EMAIL:") == 4
        whole = (tmp_path / "data" / "sessions" / e.engine.session_id / "events.jsonl").read_text()
        assert "ann@example.com" not in whole
        assert "ben@example.org" not in whole
        token = said.partition("write to ")[2].split()[0]
        assert e.engine.privacy is not None
        assert e.engine.privacy.vault.reveal(token) == "ann@example.com"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"code_mode": "on", "sandbox": "off"}, "--sandbox off"),
        ({"code_mode": "on", "code_mode_policy": ("bad",)}, "server=ask|read-only|free"),
        ({"code_mode": "on", "code_mode_policy": ("other=free",)}, "no MCP server 'other'"),
    ],
)
def test_what_cannot_be_is_refused_at_the_start(
    tmp_path: Path, values: dict[str, object], words: str
) -> None:
    with (
        pytest.raises(ConfigError, match=words.replace("|", r"\|")),
        engine(tmp_path, mcp_config=config_file(tmp_path, way("good")), **values),
    ):
        pass


def test_a_draft_of_a_skill_is_no_skill(tmp_path: Path) -> None:
    code = (
        "print(save_skill('double', 'def double(x):\\n    return 2 * x\\n', 'Doubles a number.'))\n"
        "try:\n    from skills import double\n    print('loaded')\nexcept ImportError as error:\n    print('refused', error)\n"
    )
    with engine(tmp_path, call("run_code", code=code), text("Done."), code_mode="on", pii="off") as e:
        assert e.ask("keep it").subtype == "success"
        said = tool_results(e.server)[0].text
        assert "The draft of the skill double is kept." in said
        assert "refused" in said
        assert "loaded" not in said
        assert any("sandbox-chat skills promote double" in event.text for event in e.of(Notice))
        assert e.of(TurnFinished)[-1].subtype == "success"


DRAFT = "print(save_skill('double', 'def double(x):\\n    return 2 * x\\n', 'Doubles a number.'))"
USE = "from skills import double\nprint(double.double(21))"


@pytest.mark.parametrize("choice", ["promote", "discard", "keep"])
def test_the_user_is_asked_about_a_draft(tmp_path: Path, choice: str) -> None:
    def answer(running: Running, event: Event) -> None:
        if isinstance(event, ApprovalRequested):
            running.engine.answer(event.approval_id, choice)

    words = {
        "promote": "is promoted, version 1",
        "discard": "is deleted",
        "keep": "sandbox-chat skills promote double",
    }
    with engine(
        tmp_path,
        call("run_code", code=DRAFT),
        text("Handed in."),
        call("run_code", code=USE),
        text("Used."),
        code_mode="on",
        pii="off",
        asks=True,
        on_event=answer,
    ) as e:
        assert e.ask("keep it").subtype == "success"
        e.until(lambda: any(words[choice] in event.text for event in e.of(Notice)))
        (asked,) = e.of(ApprovalRequested)
        assert asked.question == "Promote the skill double, which the agent handed in?"
        assert f"From {e.engine.session_id}" in asked.detail
        assert "+def double(x):" in asked.detail
        assert asked.default == "keep"
        assert e.ask("use it").subtype == "success"
        assert ("[stdout]\n42" in tool_results(e.server)[-1].text) is (choice == "promote")


def test_a_draft_that_is_too_long_is_not_promoted_by_an_answer(tmp_path: Path) -> None:
    code = "print(save_skill('long', 'x = 1  # ' + 'a' * 30000 + '\\n', 'Long.'))"
    with engine(
        tmp_path, call("run_code", code=code), text("Done."), code_mode="on", pii="off", asks=True
    ) as e:
        assert e.ask("keep it").subtype == "success"
        (asked,) = e.until(lambda: e.of(ApprovalRequested))
        assert [each.name for each in asked.choices] == ["discard", "keep"]  # Esc is the last one
        assert "sandbox-chat skills diff long" in asked.detail


def test_a_draft_that_was_replaced_is_asked_about_as_it_is_now(tmp_path: Path) -> None:
    second = DRAFT.replace("2 * x", "3 * x")
    with engine(
        tmp_path,
        call("run_code", code=DRAFT),
        call("run_code", code=second),
        text("Done."),
        call("run_code", code=USE),
        text("Used."),
        code_mode="on",
        pii="off",
        asks=True,
    ) as e:
        assert e.ask("keep it").subtype == "success"
        first, last = e.until(lambda: len(e.of(ApprovalRequested)) == 2 and e.of(ApprovalRequested))
        e.engine.answer(first.approval_id, "promote")  # it was withdrawn
        e.engine.answer(last.approval_id, "promote")
        e.until(lambda: any("is promoted" in event.text for event in e.of(Notice)))
        assert e.ask("use it").subtype == "success"
        assert "[stdout]\n63" in tool_results(e.server)[-1].text


def test_personal_data_in_a_draft_is_not_recorded(tmp_path: Path) -> None:
    code = "print(save_skill('mail', 'TO = ' + repr('ann.lee' + '@' + 'example.org') + '\\n', 'Mails.'))"
    with engine(tmp_path, call("run_code", code=code), text("Done."), code_mode="on", asks=True) as e:
        assert e.ask("keep it").subtype == "success"
        (asked,) = e.until(lambda: e.of(ApprovalRequested))
        assert "+TO = '<EMAIL:" in asked.detail
        whole = (tmp_path / "data" / "sessions" / e.engine.session_id / "events.jsonl").read_text()
        assert "ann.lee@example.org" not in whole
