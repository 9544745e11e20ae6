"""Calls of other servers' tools are asked about: exact arguments, one call, asked again when the tool is another."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from support.mcp_host import Hosted, hosted, way

from sandbox_chat.events import ServerChanged
from sandbox_chat.mcp import permission
from sandbox_chat.mcp.base import ToolDefinition
from sandbox_chat.mcp.permission import CHOICES, LASTING, REFUSED, REFUSED_SESSION
from sandbox_chat.settings import Settings
from sandbox_chat.tools.asking import Approvals
from sandbox_chat.tools.context import Question


async def test_the_question(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("good"), allow=(), answers=("once", "no")) as h:
        outcome = await h.call("echo", text="a\x1b[31m\u202e", n=5)
        assert json.loads(outcome.text)["n"] == 5
        [asked] = h.questions
        assert asked.kind == "mcp_tool"
        assert asked.question == "Run echo of the server bad?"
        assert '"n": 5' in asked.detail and "It runs on this computer, with your rights." in asked.detail
        assert "\x1b" not in asked.detail and "\u202e" not in asked.detail
        assert asked.tool_use_id == "call-1"
        assert (asked.choices, asked.default, asked.lasting) == (CHOICES, "no", LASTING)
        [tool] = [each for each in await h.servers.definitions() if each.name == "echo"]
        assert asked.subject == f"bad/echo #{tool.fingerprint}"
        outcome = await h.call("echo", text="b")
        assert outcome.is_error and outcome.text == REFUSED
        assert (await h.call("count")).is_error  # the default is no


async def test_one_approval_is_one_call_with_these_arguments(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("good"), allow=()) as h:
        given = {"text": "what was shown", "n": 1}

        def answer(question: Question) -> str:
            given["text"] = "something else"  # whoever holds the arguments may change them
            return "once"

        h.on_question = answer
        outcome = await h.servers.call("bad", "echo", given, "call-1")
        assert json.loads(outcome.text)["text"] == "what was shown"
        await h.call("count")
        assert (await h.call("count")).text == "3"
        assert len(h.questions) == 3


async def test_answers_for_the_session(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("good"), allow=()) as h:
        told: list[object] = []
        approvals = Approvals(told.append)
        context = h.context
        object.__setattr__(context, "ask", approvals.ask)

        async def asked(count: int) -> str:
            await h.until(lambda: len(approvals._open) == count)
            return next(iter(approvals._open))

        task = asyncio.ensure_future(h.call("echo", n=1))
        approvals.answer(await asked(1), "session")
        assert not (await task).is_error
        assert not (await h.call("echo", n=2)).is_error  # not asked again
        task = asyncio.ensure_future(h.call("count"))  # another tool is
        approvals.answer(await asked(1), "never")
        assert (await task).text == REFUSED_SESSION
        assert (await h.call("count")).text == REFUSED_SESSION
        assert len([each for each in told if type(each).__name__ == "ApprovalRequested"]) == 2


async def test_wrong_arguments_are_not_asked_about(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("good"), allow=(), answers=("once",)) as h:
        outcome = await h.call("echo", n="many")
        assert outcome.is_error and "'many' is not of type 'integer'" in outcome.text
        outcome = await h.call("nothing")
        assert "has no tool 'nothing'; it has echo, env" in outcome.text
        outcome = await h.call("echo", "nobody")
        assert "There is no MCP server 'nobody'" in outcome.text
        assert h.questions == []


@pytest.mark.parametrize("rule", ["bad/*", "bad/echo"])
async def test_what_the_settings_allow_is_not_asked_about(tmp_path: Path, rule: str) -> None:
    async with hosted(tmp_path, way("good"), allow=(rule,)) as h:
        assert not (await h.call("echo")).is_error
        assert h.questions == []
        outcome = await h.call("count")
        assert outcome.is_error is (rule != "bad/*")


@pytest.mark.parametrize("rule", ["bad", "*", "*/*", "ba/*", "bad/ech", "bad/echo/*", "other/echo"])
async def test_other_rules_allow_nothing(tmp_path: Path, rule: str) -> None:
    async with hosted(tmp_path, way("good"), allow=(rule,)) as h:
        assert (await h.call("echo")).text == REFUSED
        assert len(h.questions) == 1


def pins(h: Hosted) -> Path:
    """The file of what was allowed."""
    return h.settings.data_path / "mcp" / "pins.json"


async def test_an_allowed_tool_that_changed_is_asked_about_with_what_changed(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("rug_pull"), answers=("no", "session")) as h:
        assert not (await h.call("echo", n=1)).is_error
        assert pins(h).stat().st_mode & 0o777 == 0o600
        await h.until(lambda: "something else" in str(h.of(ServerChanged)[-1].tools))
        assert (await h.call("echo", n=2)).text == REFUSED
        [asked] = h.questions
        assert (
            "It is not as it was when it was allowed:\ndescription:\n-The tool echo.\n+Now it does something else."
            in asked.detail
        )
        assert not (await h.call("echo", n=3)).is_error  # accepted as it is now
        assert not (await h.call("echo", n=4)).is_error
        assert len(h.questions) == 2


async def test_a_change_while_one_is_asked_is_asked_about_again(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("rug_pull"), allow=("bad/count",)) as h:
        before = await h.servers.definitions()

        async def answer(question: Question) -> str:
            h.questions.append(question)
            if len(h.questions) == 1:
                await h.call("count")  # makes the server change its tool
                await h.until(lambda: "something else" in str(h.of(ServerChanged)[-1].tools))
            return "once"

        object.__setattr__(h.context, "ask", answer)
        assert not (await h.call("echo", n=1)).is_error
        first, second = h.questions
        assert first.subject != second.subject
        assert before[0].fingerprint in first.subject


@pytest.mark.parametrize("gone", [False, True])
async def test_a_change_is_seen_where_nothing_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    async with hosted(tmp_path, way("rug_pull"), answers=("no",)) as h:
        if not gone:
            monkeypatch.setattr(permission, "write_json", full)
        assert not (await h.call("echo", n=1)).is_error
        if gone:
            pins(h).unlink()
        await h.until(lambda: "something else" in str(h.of(ServerChanged)[-1].tools))
        assert (await h.call("echo", n=2)).text == REFUSED
        assert "It is not as it was when it was allowed" in h.questions[0].detail


@pytest.mark.parametrize(
    "sign", ["\x9b1m", "\x9b", "\u2028", "\x85", "\u202e", "\u200b", "\u3164", "\ufe0f", "\xa0"]
)
async def test_what_is_asked_about_is_what_is_sent(tmp_path: Path, sign: str) -> None:
    """Also where a terminal shows nothing of it, or takes it for a colour or a line's end: it can be read back."""
    async with hosted(tmp_path, way("good"), allow=(), answers=("once",)) as h:
        given = {"text": f"/home/me{sign}/project 文件\u3000é"}
        assert json.loads((await h.call("echo", **given)).text)["text"] == given["text"]
        shown = h.questions[0].detail.partition("\nIt runs on")[0]
        assert json.loads(shown) == given and sign not in shown
        assert "文件\u3000é" in shown


async def test_what_cannot_be_shown_whole_is_not_asked_about(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("good"), allow=(), answers=("once",)) as h:
        outcome = await h.call("echo", text="x" * permission.DETAIL_LIMIT)
        assert outcome.is_error and "more than the 200,000 that can be shown" in outcome.text
        assert h.questions == []
        long = "\u202e" * (permission.DETAIL_LIMIT // 7)
        assert not (await h.call("echo", text=long)).is_error
        assert h.questions[0].detail.count("\\u202e") == len(long)


async def test_a_name_cannot_be_read_as_another_question(tmp_path: Path) -> None:
    name = "look of the server safe? It only reads.\nRun it"
    tool = ToolDefinition(server="bad", name="look_of_1a2b3c", original=name, description="", schema={})
    asked: list[Question] = []

    async def ask(question: Question) -> str:
        asked.append(question)
        return "no"

    permission_ = permission.Permission(Settings(), tmp_path / "pins.json")
    await permission_.refusal(way(server="a.b"), tool, "{}", "c", ask)
    assert asked[0].question == "Run look_of_1a2b3c of the server a.b?"
    assert "The server calls it 'look of the server safe? It only reads.\\nRun it'." in asked[0].detail
    assert asked[0].subject == f"a.b/look_of_1a2b3c #{tool.fingerprint}"  # not a_b, which may be another one
    assert len(tool.fingerprint) == 64  # of few digits, two tools with the same are soon found


@pytest.mark.parametrize("text", ["{", "[]", '{"version":1,"pins":[]}', "\x00"])
async def test_a_damaged_record_allows_nothing_by_itself(tmp_path: Path, text: str) -> None:
    async with hosted(tmp_path, way("good"), answers=("no", "session")) as h:
        pins(h).parent.mkdir(parents=True, exist_ok=True)
        pins(h).write_text(text)
        assert (await h.call("echo")).text == REFUSED
        assert "cannot be read" in h.questions[0].detail and "pins.json" in h.questions[0].detail
        assert not (await h.call("echo")).is_error
        assert not (await h.call("echo")).is_error
        assert len(h.questions) == 2


async def test_tools_that_are_known_let_a_server_wait_for_its_first_call(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("good")) as h:
        known = await h.servers.definitions()
        assert h.states == ["idle", "starting", "ready"]
    async with hosted(tmp_path, way("good")) as h:
        assert await h.servers.definitions() == known
        assert h.states == ["idle"] and len(h.of(ServerChanged)[0].tools) == len(known)
        assert not (await h.call("echo")).is_error
        assert h.states == ["idle", "starting", "ready"]
    async with hosted(tmp_path, way("pages")) as h:  # another command: what was known counts no more
        assert len(await h.servers.definitions()) == len(known) + 1
        assert h.states == ["idle", "starting", "ready"]


async def test_a_data_folder_that_takes_nothing_costs_only_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file in the place of the folder")
    async with hosted(tmp_path, way("good")) as h:
        assert not (await h.call("echo")).is_error or h.questions


async def test_two_servers_whose_names_are_the_same_when_clean(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("good", server="a b"), way("good", server="a.b"), allow=("a b/*",)) as h:
        servers = sorted({tool.server for tool in await h.servers.definitions()})
        assert len(servers) == 2
        answers = [await h.call("echo", name) for name in servers]
        assert sorted(outcome.is_error for outcome in answers) == [False, True]
