"""MCP servers that misbehave, one way each: the next thing still works, the user is told, nothing is left running."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from support.engines import Running, engine
from support.mcp_host import SECRET, Hosted, config_file, gone, hosted, nothing_left, way
from support.scripted import call, text, tool_results

from sandbox_chat.events import (
    ApprovalAnswered,
    ApprovalRequested,
    Event,
    FileContent,
    ImageContent,
    Notice,
    ServerChanged,
    TableContent,
    TextContent,
    ToolFinished,
    ToolStarted,
)
from sandbox_chat.mcp import managed
from sandbox_chat.mcp.base import ServerConfig
from sandbox_chat.settings import Secret


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """Every test ends with as many processes as it began with."""
    with nothing_left():
        yield


def names(h: Hosted) -> list[str]:
    """The tools that the user is told of at last."""
    return [tool.name for tool in h.of(ServerChanged)[-1].tools]


async def works(h: Hosted, n: int = 1) -> None:
    """A call of ``echo`` is answered."""
    outcome = await h.call("echo", n=n)
    assert (outcome.text, outcome.is_error) == (json.dumps({"n": n}), False)


# -- at the start --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("dies_at_start", "ended with status 1 before it was ready. It says: ModuleNotFoundError"),
        ("dies_at_initialize", "ended with status 2 before it was ready. It says: RuntimeError: no database"),
        ("closes_stdout", "closed its standard output before it was ready"),
        ("refuses", "refused to begin (not today)"),
        ("odd_handshake", "its first answer is none of the protocol"),
        ("old_protocol", "Unsupported protocol version"),
    ],
)
async def test_one_that_does_not_start(tmp_path: Path, name: str, words: str) -> None:
    async with hosted(
        tmp_path, way(name), way("good", server="other"), allow=("*/*", "other/*", "bad/*")
    ) as h:
        found = await h.servers.definitions()
        assert {tool.server for tool in found} == {"other"}
        last = next(event for event in reversed(h.of(ServerChanged)) if event.name == "bad")
        assert last.state == "failed" and words in last.text
        assert h.notices.count(words) == 1 and "is tried again" in h.notices
        outcome = await h.call("echo")
        assert outcome.is_error and words in outcome.text
        assert h.notices.count(words) == 1  # told once
        assert (await h.call("echo", "other", n=1)).text == '{"n": 1}'


@pytest.mark.parametrize("name", ["hangs", "silent_after_initialize", "does_not_read", "floods_at_start"])
async def test_one_that_hangs_at_the_start_is_given_up(tmp_path: Path, name: str) -> None:
    async with hosted(tmp_path, way(name), mcp_start_timeout=1.5) as h:
        assert await h.servers.definitions() == []
        assert h.states == ["idle", "starting", "failed"]
        assert "was not ready within 1.5 s" in h.notices


async def test_one_that_is_late_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed, "LIST_WAIT", 0.01)
    async with hosted(tmp_path, way("hangs")) as h:
        assert await h.servers.definitions() == [] == await h.servers.definitions()
        assert h.notices.count("The MCP server bad is still starting") == 1


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    config = way()
    for command, words in (
        (("no-such-program-x", "y"), "the program no-such-program-x is not there"),
        ((str(tmp_path),), "is not there"),
    ):
        missing = type(config)(name="bad", command=command)
        async with hosted(tmp_path, missing) as h:
            assert await h.servers.definitions() == []
            assert words in h.notices
    (tmp_path / "script").write_text("no program\n")
    (tmp_path / "script").chmod(0o755)
    broken = type(config)(name="bad", command=(str(tmp_path / "script"),))
    async with hosted(tmp_path, broken) as h:
        assert await h.servers.definitions() == []
        assert "cannot be started: Exec format error" in h.notices
    async with hosted(tmp_path, way("good", cwd=tmp_path / "nowhere")) as h:
        assert await h.servers.definitions() == []
        assert "cannot be run (No such file or directory" in h.notices


@pytest.mark.parametrize("name", ["banner", "invalid_banner", "huge_stderr"])
async def test_noise_at_the_start_is_passed_over(tmp_path: Path, name: str) -> None:
    async with hosted(tmp_path, way(name), mcp_log_mb=0.1) as h:
        await works(h)
        assert h.notices == ""
    size = sum(path.stat().st_size for path in (tmp_path / "logs").iterdir())
    assert size <= 110_000


# -- its tools -----------------------------------------------------------------------------------------


async def test_the_same_name_twice(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("same_name")) as h:
        assert [tool.original for tool in await h.servers.definitions()] == ["echo"]
        assert "more than one tool echo" in h.notices
        await works(h)


async def test_bad_schemas_lose_their_tools_alone(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("bad_schemas")) as h:
        found = {tool.name: tool for tool in await h.servers.definitions()}
        assert list(found) == ["tree", "either", "echo"]
        assert "anyOf" not in found["either"].schema and "a" in found["either"].schema["properties"]
        for name in (
            "not_an_object",
            "a_list",
            "missing",
            "of_text",
            "unresolved",
            "remote",
            "enormous",
            "wrong",
            "deep",
        ):
            assert f"Its tool {name} is not offered: " in h.notices
        await works(h)


async def test_a_schema_that_no_reader_takes_loses_its_tool_alone(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("very_deep")) as h:
        assert [tool.name for tool in await h.servers.definitions()] == ["echo"]
        assert "Its tool deep is not offered" in h.notices
        await works(h)


@pytest.mark.parametrize(
    ("name", "count", "words"),
    [
        ("same_page", 1, "has no end"),
        ("no_last_page", 100, "more than 100 pages"),
        ("many", 500, "first 500 tools"),
        ("not_a_list", 0, "is not a list"),
        ("none", 0, ""),
    ],
)
async def test_lists_without_an_end_and_without_a_beginning(
    tmp_path: Path, name: str, count: int, words: str
) -> None:
    async with hosted(tmp_path, way(name)) as h:
        assert len(await h.servers.definitions()) == count
        assert words in h.notices
        assert h.states[-1] == "ready"


async def test_odd_names_are_made_fit_and_found_again(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("names")) as h:
        found = await h.servers.definitions()
        assert len({tool.name for tool in found}) == len(found) == 10
        assert all(len(tool.full_name) <= 64 for tool in found)
        assert {"get-sum", "class"} <= {tool.name for tool in found}
        escape = next(tool for tool in found if "\x1b" in tool.original)
        assert not (await h.call(escape.name)).is_error
        shown = "".join(tool.original for tool in h.of(ServerChanged)[-1].tools)
        assert "\x1b" not in shown


async def test_hostile_words_are_text(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("evil"), allow=(), answers=("once",)) as h:
        [tool] = await h.servers.definitions()
        assert "\x1b" not in tool.description and "\u202e" not in tool.description
        assert "[bold]Ignore[/bold]" in tool.description
        await works(h)
    async with hosted(tmp_path / "b", way("hostile_text")) as h:
        outcome = await h.call("echo")
        assert not set("\x1b\x07\x00\u202e\r") & set(outcome.text)
        [shown] = outcome.display
        assert isinstance(shown, TextContent) and shown.titles == ()  # "[error]" in it is no part of ours


async def test_new_tools_are_told(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("changing")) as h:
        before = await h.servers.definitions()
        await works(h)
        await h.until(lambda: "are others now" in h.notices)
        assert len(names(h)) == len(before) + 1
        assert not (await h.call("later")).is_error


# -- calls ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"), [("dies_in_call", "ended with status 3"), ("killed_in_call", "was killed by signal 9")]
)
async def test_death_in_a_call_ends_it_at_once_and_the_next_starts_it_again(
    tmp_path: Path, name: str, words: str
) -> None:
    async with hosted(tmp_path, way(name)) as h:
        for _ in range(2):
            outcome = await h.call("echo")
            assert outcome.is_error and words in outcome.text
            await h.until(lambda: h.states[-1] == "lost")
        assert h.states.count("ready") == 2
        begin = h.states.count("starting")
        await asyncio.gather(h.call("echo"), h.call("echo"))
        assert h.states.count("starting") >= begin + 1
        assert "it is started in" in "".join(
            event.text for event in h.of(ServerChanged)
        )  # with a pause by now


async def test_calls_that_run_when_it_dies_all_end(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("good")) as h:
        pid = int((await h.call("pid")).text)
        calls = [asyncio.ensure_future(h.call("slow", seconds=100)) for _ in range(5)]
        await h.until(lambda: len(h.started) == 6)
        await asyncio.sleep(0.3)
        os.kill(pid, 9)
        for outcome in await asyncio.gather(*calls):
            assert outcome.is_error and "was killed by signal 9" in outcome.text
        await works(h)


@pytest.mark.parametrize("name", ["never_answers", "wrong_id"])
async def test_no_answer_is_waited_for_in_bounds(tmp_path: Path, name: str) -> None:
    async with hosted(tmp_path, way(name), mcp_call_timeout=1.0) as h:
        outcome = await h.call("echo")
        assert outcome.is_error and "did not answer within 1 s" in outcome.text


async def test_a_call_that_is_stopped_is_taken_back_at_the_server(tmp_path: Path) -> None:
    told = tmp_path / "cancelled"
    async with hosted(tmp_path, way("good", env={"BAD_CANCELLED": str(told)})) as h:
        task = asyncio.ensure_future(h.call("slow", seconds=100))
        await h.until(lambda: h.context.running and h.states[-1] == "ready")
        await asyncio.sleep(0.3)
        begin = time.monotonic()
        for each in h.context.running:
            each.cancel()
        assert (await task).interrupted
        assert time.monotonic() - begin < 5
        await h.until(told.exists)
        await works(h)


async def test_a_result_that_is_too_large_is_refused_and_the_next_one_taken(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("large"), mcp_result_mb=1.0) as h:
        outcome = await h.call("echo")
        assert outcome.is_error
        assert "has 20.0 MB, more than the 1 MB that are taken (SANDBOX_CHAT_MCP_RESULT_MB)" in outcome.text
        assert h.states[-1] == "ready"
    async with hosted(tmp_path / "b", way("large"), mcp_result_mb=50.0) as h:
        outcome = await h.call("echo")
        assert not outcome.is_error and len(outcome.text) <= h.settings.text_limit
        assert len(h.files[0]) == 20_000_000
        [shown, kept] = outcome.display
        assert (
            isinstance(shown, TextContent)
            and "The whole result (20,000,000 bytes) is in /files/1" in shown.text
        )
        assert isinstance(kept, FileContent)


async def test_many_pictures_are_bounded(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("large_pictures")) as h:
        outcome = await h.call("echo")
        assert len([part for part in outcome.display if isinstance(part, ImageContent)]) == 12
        assert len(outcome.model) == 1 + h.settings.images_per_call


async def test_parts_that_are_no_text_are_kept_and_told(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("good")) as h:
        outcome = await h.call("parts")
        for words in (
            "before",
            "a.txt: file:///x/a.txt",
            "the note",
            "hologram",
            "not base64",
            "sound (audio/wav",
        ):
            assert words in outcome.text
        assert len(h.pictures) == 1 and len(h.files) == 2
        assert len(outcome.model) == 2


async def test_broken_characters(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("invalid_utf8")) as h:
        assert (await h.call("echo")).text == "a\ufffd\ufffdb"
    async with hosted(tmp_path / "b", way("good")) as h:
        outcome = await h.call("echo", text="\ud800")
        assert outcome.is_error and "broken characters" in outcome.text
        await works(h)


async def test_errors_and_what_looks_like_one(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("error")) as h:
        outcome = await h.call("echo")
        assert (outcome.is_error, outcome.text) == (True, "the table does not exist")
    async with hosted(tmp_path / "b", way("error_as_text")) as h:
        outcome = await h.call("echo")
        assert (outcome.is_error, outcome.text) == (False, "Error: the table does not exist")
    async with hosted(tmp_path / "c", way("not_a_result")) as h:
        assert (await h.call("echo")).text == "just text"


@pytest.mark.parametrize("name", ["json_text", "structured"])
async def test_lists_of_objects_are_tables_too(tmp_path: Path, name: str) -> None:
    async with hosted(tmp_path, way(name)) as h:
        outcome = await h.call("echo")
        [table] = [part for part in outcome.display if isinstance(part, TableContent)]
        assert (len(table.columns), table.row_count) == (2, 2)
        assert outcome.text


async def test_its_own_secrets_are_kept_out_of_results_errors_and_log(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("echoes_secret")) as h:
        outcome = await h.call("echo")
        assert outcome.text == "connected with [secret] as admin"
    leaking = way()
    config = type(leaking)(
        name="bad", command=("/bin/sh", "-c", 'echo "token $BAD_TOKEN is wrong" >&2; exit 1'), env=leaking.env
    )
    async with hosted(tmp_path / "b", config) as h:
        assert await h.servers.definitions() == []
        assert "token [secret] is wrong" in h.notices
    log = (tmp_path / "b" / "logs" / "bad.log").read_text()
    assert "token [secret] is wrong" in log and SECRET not in log


async def test_credentials_in_its_arguments_are_kept_out_too(tmp_path: Path) -> None:
    script = 'echo "started with $*" >&2; exit 1'
    config = ServerConfig(
        name="bad",
        command=("/bin/sh", "-c", script, "sh", f"--token={SECRET}", "db://u:p4ssw0rd@h/d"),
        hidden=(Secret(SECRET),),
    )
    async with hosted(tmp_path, config) as h:
        assert await h.servers.definitions() == []
        log = (tmp_path / "logs" / "bad.log").read_text()
        for words in (log, h.notices):
            assert "started with --token=[secret] db://u:[secret]@h/d" in words
            assert SECRET not in words and "p4ssw0rd" not in words


async def test_only_few_variables_reach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary")
    monkeypatch.setenv("MY_OWN", "canary")
    async with hosted(tmp_path, way("good")) as h:
        env = json.loads((await h.call("env")).text)
    known = {"HOME", "PATH", "SHELL", "TERM", "USER", "LOGNAME", "LANG", "LC_CTYPE", "BAD_TOKEN"}
    assert set(env) <= known
    assert "canary" not in json.dumps(env)


# -- what it does by itself ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["stderr_flood", "stdout_flood", "notification_flood", "request_flood", "changed_flood"],
)
async def test_floods_are_read_slowly_and_calls_go_on(tmp_path: Path, name: str) -> None:
    async with hosted(tmp_path, way(name), mcp_log_mb=0.2) as h:
        await h.until(lambda: h.states[-1] == "ready")
        cpu, begin = time.process_time(), time.monotonic()
        for number in range(3):
            await works(h, number)
            await asyncio.sleep(0.3)
        assert time.process_time() - cpu < 0.8 * (time.monotonic() - begin)  # not busy all the time
    size = sum(path.stat().st_size for path in (tmp_path / "logs").iterdir())
    assert size <= 220_000


async def test_a_line_without_an_end_is_given_up(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("endless_line"), mcp_result_mb=0.1) as h:
        assert (await h.call("echo")).is_error
        assert "a line without an end" in h.notices + h.of(ServerChanged)[-1].text


async def test_what_it_asks_for_is_refused_and_told(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("asks")) as h:
        await works(h)
        await h.until(lambda: h.notices.count("is not offered to servers") == 4)
        assert "sampling/createMessage" in h.notices and "elicitation/create" in h.notices
        assert "\x1b" not in h.notices


# -- its end -------------------------------------------------------------------------------------------


async def test_one_that_ignores_the_end_is_killed(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("ignores_the_end")) as h:
        pid = int((await h.call("pid")).text)
        await h.servers.close(0.5)
        assert gone(pid, 0.5)


async def test_what_it_started_ends_with_it(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("good")) as h:
        child = int((await h.call("child")).text)  # in a session of its own
        assert psutil.pid_exists(child)
        await h.servers.restart("bad")
        assert gone(child, 2.0)
        child = int((await h.call("child")).text)
        os.kill(int((await h.call("pid")).text), 9)
        assert gone(child)


async def test_one_that_was_installed_anew_is_found_where_it_lies_now(tmp_path: Path) -> None:
    gone_by_now = way("good", renewed=lambda: way("good"))
    gone_by_now = dataclasses.replace(gone_by_now, command=("/nowhere/program",))
    async with hosted(tmp_path, gone_by_now, allow=("bad/*",)) as h:
        await works(h)


async def test_restart_switch_off_and_on(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("good")) as h:
        first = int((await h.call("pid")).text)
        await h.servers.restart("bad")
        second = int((await h.call("pid")).text)
        assert first != second and gone(first)
        await h.servers.switch("bad", False)
        assert gone(second) and await h.servers.definitions() == []
        outcome = await h.call("echo")
        assert outcome.is_error and "is switched off" in outcome.text
        await h.servers.switch("bad", True)
        await works(h)
        await h.servers.restart("nobody")
        await h.servers.switch("nobody", True)
    states = h.states
    assert states[-4:] == ["off", "idle", "starting", "ready"]


async def test_closing_in_the_middle_of_everything(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("good"), way("hangs", server="b"), way("does_not_read", server="c")) as h:
        await h.until(lambda: "ready" in h.states)
        call_task = asyncio.ensure_future(h.call("slow", seconds=100))
        waits = asyncio.ensure_future(h.call("echo", "b"))
        await asyncio.sleep(0.3)
        await h.servers.close(1.0)
        for outcome in await asyncio.gather(call_task, waits):
            assert outcome.is_error
        assert (await h.call("echo")).is_error


# -- in a chat with the real agent ---------------------------------------------------------------------


def answering(choice: str = "once") -> Callable[[Running, Event], None]:
    """Answers each question about a call."""

    def take(running: Running, event: Event) -> None:
        if isinstance(event, ApprovalRequested):
            running.engine.answer(event.approval_id, choice)

    return take


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("good", '{"n": 1}'),
        ("dies_in_call", "ended with status 3"),
        ("never_answers", "did not answer within 2 s"),
        ("large", "more than the 1 MB"),
        ("invalid_utf8", "a\ufffd\ufffdb"),
        ("bad_schemas", '{"n": 1}'),
        ("very_deep", '{"n": 1}'),
        ("same_page", '{"n": 1}'),
        ("notification_flood", '{"n": 1}'),
        ("stderr_flood", '{"n": 1}'),
        ("asks", '{"n": 1}'),
        ("error", "the table does not exist"),
        ("hostile_text", "[error]"),
        ("echoes_secret", "connected with [secret]"),
        ("dies_at_start", "No such tool available"),
        ("silent_after_initialize", "No such tool available"),
    ],
)
def test_the_chat_goes_on(tmp_path: Path, name: str, words: str) -> None:
    servers = config_file(tmp_path, way(name), way("good", server="other"))
    steps = (
        call("mcp__bad__echo", n=1),
        call("mcp__other__echo", n=2),
        text("Done."),
        text("Still here."),
    )
    limits = {"mcp_call_timeout": 2.0, "mcp_start_timeout": 3.0, "mcp_result_mb": 1.0}
    with engine(tmp_path, *steps, on_event=answering(), sandbox="off", mcp_config=servers, **limits) as e:
        assert not e.ask("go").is_error
        assert not e.ask("and now?").is_error
        first, second = e.of(ToolFinished)[:2]
        assert words in "".join(part.text for part in first.content if isinstance(part, TextContent))
        results = tool_results(e.server, 2)
        assert words in results[0].text
        assert results[-1].text == '{"n": 2}' and not second.is_error
        if name in ("dies_at_start", "silent_after_initialize"):
            assert any("is tried again" in event.text for event in e.of(Notice))
        assert SECRET not in str(e.server.requests[-1].body)


@pytest.mark.slow
def test_tools_that_come_later_are_offered_with_the_next_turn(tmp_path: Path) -> None:
    servers = config_file(tmp_path, way("changing"))
    steps = (call("mcp__bad__echo", n=1), text("Done."), call("mcp__bad__later"), text("Again."))
    with engine(tmp_path, *steps, on_event=answering(), sandbox="off", mcp_config=servers) as e:
        e.ask("go")
        e.until(lambda: any(len(event.tools) == 9 for event in e.of(ServerChanged)))
        e.ask("go on")
        offered = {tool["name"] for tool in e.server.requests[-1].body["tools"]}
        assert "mcp__bad__later" in offered
        assert not e.of(ToolFinished)[-1].is_error


@pytest.mark.slow
def test_a_turn_that_is_interrupted_takes_the_call_and_the_question_back(tmp_path: Path) -> None:
    told = tmp_path / "cancelled"
    servers = config_file(tmp_path, way("good", env={"BAD_CANCELLED": str(told)}))
    steps = (
        call("mcp__bad__slow", seconds=100),
        call("mcp__bad__echo", n=1),
        call("mcp__bad__echo", n=2),
        text("Done."),
    )
    with engine(tmp_path, *steps, sandbox="off", mcp_config=servers, mcp_allow=("bad/slow",)) as e:
        turn = e.engine.send("go")
        e.until(lambda: [event for event in e.of(ServerChanged) if event.state == "ready"])
        e.until(lambda: e.of(ToolStarted))
        time.sleep(0.5)
        e.engine.interrupt()
        assert e.finished(turn).interrupted
        assert e.of(ToolFinished)[0].interrupted
        e.until(told.exists)
        turn = e.engine.send("again")
        e.until(lambda: e.of(ApprovalRequested))
        e.engine.interrupt()
        assert e.finished(turn).interrupted
        assert e.of(ApprovalAnswered)[-1].by == "cancelled"
        turn = e.engine.send("once more")
        e.until(lambda: len(e.of(ApprovalRequested)) == 2)
        e.engine.answer(e.of(ApprovalRequested)[-1].approval_id, "once")
        assert not e.finished(turn).is_error
        assert tool_results(e.server)[-1].text == '{"n": 2}'
