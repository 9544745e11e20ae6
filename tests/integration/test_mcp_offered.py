"""What the agent's program sees of the other servers: in-process servers, their tools, the results of calls."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import pytest
from mcp import Client
from support.mcp_host import hosted, way

from sandbox_chat.events import ServerChanged
from sandbox_chat.mcp import managed
from sandbox_chat.mcp.base import ServerConfig
from sandbox_chat.mcp.host import Servers
from sandbox_chat.settings import Settings


async def test_an_in_process_server_for_each(tmp_path: Path) -> None:
    configs = (way("good"), way("names", server="odd one"))
    async with hosted(tmp_path, *configs, allow=("bad/*", "odd one/*")) as h:
        servers = h.servers.attach(h.context)
        assert list(servers) == ["bad", "odd_one"]
        async with Client(servers["bad"]) as client:
            listed = (await client.list_tools()).tools
            assert {tool.name for tool in listed} >= {"echo", "env", "parts"}
            assert all(tool.input_schema["type"] == "object" for tool in listed)
            result = await client.call_tool("echo", {"n": 5})
            assert "5" in result.model_dump_json() and not result.is_error
            kinds = [part.type for part in (await client.call_tool("picture", {})).content]
            assert "image" in kinds
            assert (await client.call_tool("nothing", {})).is_error
        async with Client(servers["odd_one"]) as client:
            assert len((await client.list_tools()).tools) == 10
        assert [name for _, name, _ in h.started][:2] == ["mcp__bad__echo", "mcp__bad__picture"]
        assert len(h.finished) == len(h.started) == 3


async def test_many_at_once_start_it_once(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("good")) as h:
        outcomes = await asyncio.gather(*(h.call("echo", n=number) for number in range(30)))
        assert [outcome.text for outcome in outcomes] == [f'{{"n": {number}}}' for number in range(30)]
        assert h.states == ["idle", "starting", "ready"]


async def test_tools_of_a_late_server_are_told_of_when_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managed, "LIST_WAIT", 0.01)
    changed: list[str] = []
    async with hosted(tmp_path, way("good"), begin=False) as h:
        h.servers.on_tools = changed.append
        h.servers.begin()
        assert await h.servers.definitions() == []
        await h.until(lambda: changed)
        assert changed == ["bad"] and h.states[-1] == "ready"
        assert len(await h.servers.definitions()) == 8


async def test_switching_is_told_to_the_agent(tmp_path: Path) -> None:
    changed: list[str] = []
    async with hosted(tmp_path, way("good")) as h:
        h.servers.on_tools = changed.append
        await h.servers.definitions()
        await h.servers.switch("bad", False)
        assert changed == ["bad"] and await h.servers.definitions() == []
        await h.servers.switch("bad", False)
        await h.servers.switch("bad", True)
        assert changed == ["bad", "bad"] and len(await h.servers.definitions()) == 8


async def test_one_that_failed_comes_with_a_restart(tmp_path: Path) -> None:
    marker = tmp_path / "fixed"
    script = f'test -e {marker} || exit 1; exec "$0" "$@"'
    good = way("good")
    config = type(good)(name="bad", command=("/bin/sh", "-c", script, *good.command), env=good.env)
    changed: list[str] = []
    async with hosted(tmp_path, config) as h:
        h.servers.on_tools = changed.append
        assert await h.servers.definitions() == []
        marker.touch()
        await h.servers.restart("bad")
        assert h.states[-1] == "ready" and changed == ["bad"]
        assert not (await h.call("echo")).is_error


async def test_tools_that_change_during_the_start_are_listed_again(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("changing_early")) as h:
        assert len(await h.servers.definitions()) == 8
        await h.until(lambda: len(h.of(ServerChanged)[-1].tools) == 9)
        assert h.of(ServerChanged)[-1].tools[-1].name == "later"


def waits_for(flag: Path) -> ServerConfig:
    """A good server that starts when there is a file."""
    script = 'while [ ! -e "$0" ]; do sleep 0.05; done; exec "$@"'
    good = way("good")
    return dataclasses.replace(good, command=("/bin/sh", "-c", script, str(flag), *good.command))


async def test_a_restart_does_not_take_the_start_from_those_who_wait_for_it(tmp_path: Path) -> None:
    flag = tmp_path / "go"
    async with hosted(tmp_path, waits_for(flag)) as h:
        call = asyncio.ensure_future(h.call("echo", n=1))
        listed = asyncio.ensure_future(h.servers.definitions())
        await asyncio.sleep(0.3)
        restarts = [asyncio.ensure_future(h.servers.restart("bad")) for _ in range(2)]
        await asyncio.sleep(0.3)
        assert not call.done() and not listed.done()
        flag.touch()
        assert (await call).text == '{"n": 1}'
        assert len(await listed) == 8
        await asyncio.gather(*restarts)
        assert h.states[-1] == "ready"


async def test_switching_off_ends_the_wait_for_a_start_with_a_sentence(tmp_path: Path) -> None:
    changed: list[str] = []
    flag = tmp_path / "go"
    async with hosted(tmp_path, waits_for(flag)) as h:
        h.servers.on_tools = changed.append
        call = asyncio.ensure_future(h.call("echo", n=1))
        listed = asyncio.ensure_future(h.servers.definitions())
        await asyncio.sleep(0.3)
        await h.servers.switch("bad", False)
        outcome = await call
        assert outcome.is_error and not outcome.interrupted and "is switched off" in outcome.text
        assert await listed == []
        flag.touch()
        await h.servers.switch("bad", True)
        await h.until(lambda: changed)  # it knows what the agent was told
        assert len(await h.servers.definitions()) == 8


async def test_a_caller_that_is_cancelled_while_it_waits_stays_so(tmp_path: Path) -> None:
    async with hosted(tmp_path, waits_for(tmp_path / "never")) as h:
        call = asyncio.ensure_future(h.servers.definitions())
        await asyncio.sleep(0.3)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(call, 5)
        late = asyncio.ensure_future(h.call("echo", n=1))
        await asyncio.sleep(0.1)
        await h.servers.close(2.0)
        assert "is closed with the session" in (await asyncio.wait_for(late, 5)).text


async def test_what_is_told_of_a_server(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("good")) as h:
        await h.servers.definitions()
        last = h.of(ServerChanged)[-1]
        assert (last.name, last.place, last.transport, last.state) == ("bad", "host", "stdio", "ready")
        assert last.log == str(tmp_path / "logs" / "bad.log") and Path(last.log).exists()
        assert last.tools[0].name == "echo" and last.tools[0].description == "The tool echo."


async def test_servers_that_were_never_begun_are_closed(tmp_path: Path) -> None:
    servers = Servers([way("good")], Settings(data_dir=tmp_path), lambda event: None, tmp_path)
    await servers.close(1.0)
    await servers.close(1.0)
