"""What a client sees of a gateway that runs: tools, calls and results, by the real library's client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from mcp import MCPError
from support.gateways import TOKEN, Gateway, a_gateway, quick

SECRET = "value-of-a-credential-77"
ODD = [
    {"name": "odd name/ö", "inputSchema": {"type": "object"}},
    {"name": "listed", "inputSchema": ["no", "object"]},
    {"name": "no_schema"},
    {"name": "no_type", "inputSchema": {"properties": {"a": {"type": "string"}}}},
    {"name": "wrong_type", "inputSchema": {"type": "array"}},
    {"name": "bad_property", "inputSchema": {"type": "object", "properties": {"a": {"type": "text"}}}},
    {
        "name": "bad_results",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "required": 7},
    },
    {"name": "bad_extra", "description": "kept", "inputSchema": {"type": "object"}, "annotations": "none"},
    {"name": "twice", "description": "first", "inputSchema": {"type": "object"}},
    {"name": "twice", "description": "second", "inputSchema": {"type": "object"}},
    {"name": "", "inputSchema": {"type": "object"}},
    "no tool at all",
    {"name": "echo", "description": "of the odd one", "inputSchema": {"type": "object"}},
]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Four servers: ``b`` and ``a server`` have the same tools, ``odd`` has wrong ones, ``z`` has names of its own."""
    with a_gateway(tmp_path_factory.mktemp("gateway")) as gateway:
        gateway.started(
            {
                "b": {"runCmd": quick()},
                "a server": {"runCmd": quick("--banner"), "envs": {"CREDENTIAL": SECRET}},
                "odd": {"runCmd": quick("--tools", json.dumps(ODD))},
                "z": {"runCmd": quick("--prefix", "z."), "envs": {"OWN": "only-for-z"}},
            }
        )
        yield gateway


MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


@MODES
async def test_tools_of_all_servers_are_one_list(gateway: Gateway, mode: str) -> None:
    async with gateway.client(mode) as client:
        listed = await client.list_tools()
    tools = {tool.name: tool for tool in listed.tools}
    assert len(tools) == len(listed.tools)
    assert {"echo", "b_echo", "odd_echo", "z.echo"} <= set(tools)
    assert tools["odd_echo"].description == "of the odd one"
    assert "odd_name_" in tools
    assert tools["no_schema"].input_schema == {"type": "object"}
    assert tools["no_type"].input_schema["type"] == "object"
    assert tools["bad_results"].output_schema is None
    assert tools["bad_extra"].description == "kept"
    assert tools["twice"].description == "first"
    assert not {"listed", "wrong_type", "bad_property", ""} & set(tools)


@MODES
async def test_the_first_server_by_name_keeps_a_name(gateway: Gateway, mode: str) -> None:
    async with gateway.client(mode) as client:
        first = json.loads(await gateway.text(client, "environment"))["environment"]
        second = json.loads(await gateway.text(client, "b_environment"))["environment"]
    assert first["CREDENTIAL"] == SECRET
    assert "CREDENTIAL" not in second


@MODES
async def test_results_pass_unchanged(gateway: Gateway, mode: str) -> None:
    async with gateway.client(mode) as client:
        picture = (await client.call_tool("picture", {})).model_dump(by_alias=True, exclude_none=True)
        assert [part["type"] for part in picture["content"]] == ["image", "resource"]
        assert picture["content"][0]["annotations"] == {"priority": 0.5}
        assert picture["_meta"]["own"] == [1, None]
        structured = await client.call_tool("structured", {})
        assert structured.structured_content == {"a": [1, 2.5, None], "é": "ü"}
        fault = await client.call_tool("fault", {})
        assert fault.is_error
        assert fault.content[0].text == "that went wrong"  # type: ignore[union-attr]
        big = await gateway.text(client, "big", {"size": 5_000_000})
        assert len(big) == 5_000_000
        sent = "ü🙂" * 500_000
        assert await gateway.text(client, "echo", {"text": sent}) == sent


@MODES
async def test_errors_of_the_protocol_pass_with_code_and_data(gateway: Gateway, mode: str) -> None:
    async with gateway.client(mode) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("refusal", {})
        assert (refused.value.error.code, refused.value.error.message) == (-32011, "no such luck")
        assert refused.value.error.data == {"why": "test"}
        with pytest.raises(MCPError, match="Unknown tool: nothing"):
            await client.call_tool("nothing", {})


@MODES
async def test_arguments_and_meta_are_passed_on(gateway: Gateway, mode: str) -> None:
    arguments = {"a": [1, {"b": None}], "ö": "ü\u2028"}
    async with gateway.client(mode) as client:
        result = await client.call_tool("b_params", arguments, meta={"own.key": {"x": [None, 1.5]}})  # type: ignore[typeddict-unknown-key]
    got = json.loads(result.content[0].text)  # type: ignore[union-attr]
    assert got["name"] == "params"
    assert got["arguments"] == arguments
    assert got["_meta"] == {"own.key": {"x": [None, 1.5]}}


@MODES
async def test_progress_is_passed_back(gateway: Gateway, mode: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(value: float, total: float | None, message: str | None) -> None:
        seen.append((value, total, message))

    async with gateway.client(mode) as client:
        await client.call_tool("slow", {"steps": 4, "pause": 0.02}, progress_callback=note)
    assert seen == [(step, 4, f"at {step}") for step in range(4)]


@MODES
async def test_a_cancelled_call_is_cancelled_at_its_server(gateway: Gateway, mode: str) -> None:
    before = gateway.log.count("slow was cancelled")
    async with gateway.client(mode) as client:
        call = asyncio.ensure_future(client.call_tool("slow", {"steps": 600, "pause": 0.05}))
        await asyncio.sleep(0.5)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await gateway.text(client, "echo", {"text": "still"}) == "still"
        for _ in range(200):
            if gateway.log.count("slow was cancelled") > before:
                return
            await asyncio.sleep(0.05)
    pytest.fail("the server was not told")


@MODES
async def test_many_calls_at_a_time_do_not_mix(gateway: Gateway, mode: str) -> None:
    async with gateway.client(mode) as one, gateway.client(mode) as two:
        calls = [
            gateway.text(client, tool, {"text": f"{tool} {number}"})
            for number in range(20)
            for client, tool in ((one, "echo"), (two, "b_echo"), (two, "z.echo"))
        ]
        answers = await asyncio.gather(*calls)
    assert answers == [f"{tool} {number}" for number in range(20) for tool in ("echo", "b_echo", "z.echo")]


@MODES
async def test_a_crash_fails_the_call_and_the_next_one_starts_the_server(gateway: Gateway, mode: str) -> None:
    async with gateway.client(mode) as client:
        before = await gateway.text(client, "z.pid")
        waiting = asyncio.ensure_future(client.call_tool("z.slow", {"steps": 600}))
        await asyncio.sleep(0.3)
        with pytest.raises(MCPError, match=r"The server z is not there: it ended \(exit code 7\)"):
            await client.call_tool("z.crash", {})
        with pytest.raises(MCPError, match="exit code 7"):
            await waiting
        answers = await asyncio.gather(*(gateway.text(client, "z.pid") for _ in range(5)))
        assert len(set(answers)) == 1
        assert answers[0] != before
        os.kill(int(answers[0]), signal.SIGKILL)
        while psutil.pid_exists(int(answers[0])):
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.3)
        assert await gateway.text(client, "z.pid") not in (before, answers[0])
        assert await gateway.text(client, "echo", {"text": "others go on"}) == "others go on"


async def test_tools_that_a_server_adds_are_offered(gateway: Gateway) -> None:
    async with gateway.client() as client:
        await client.call_tool("z.more", {})
        for _ in range(100):
            listed = await client.list_tools(cache_mode="refresh")
            if any(tool.name == "z.extra" for tool in listed.tools):
                return
            await asyncio.sleep(0.05)
    pytest.fail("the new tool is not in the list")


def post(gateway: Gateway, headers: dict[str, str], **more: Any) -> httpx2.Response:
    """An ``initialize`` with these headers."""
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    basic = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    return httpx2.post(gateway.url, headers={**basic, **headers}, json=body, **more)


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}"]
)  # fmt: skip
def test_only_the_token_opens_it(gateway: Gateway, given: str) -> None:
    refused = post(gateway, {"Authorization": given} if given else {})
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")
    for method in ("GET", "DELETE", "PUT"):
        assert httpx2.request(method, gateway.url, headers={"Authorization": given}).status_code == 401


def test_the_right_token_opens_it(gateway: Gateway) -> None:
    answer = post(gateway, {"Authorization": f"bearer {TOKEN}"})
    assert answer.status_code == 200
    assert answer.headers["mcp-session-id"]


def test_two_authorization_headers_are_refused(gateway: Gateway) -> None:
    with httpx2.Client() as client:
        request = client.build_request(
            "POST", gateway.url, headers=[("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer x")]
        )
        assert client.send(request).status_code == 401


@pytest.mark.parametrize("name", ["Host", "Origin"])
def test_pages_of_a_browser_are_refused(gateway: Gateway, name: str) -> None:
    value = "evil.example" if name == "Host" else "http://evil.example"
    answer = post(gateway, {"Authorization": f"Bearer {TOKEN}", name: value})
    assert answer.status_code in (403, 421)


def test_health_needs_no_token(gateway: Gateway) -> None:
    health = httpx2.get(gateway.url.replace("/mcp", "/health"))
    assert health.status_code == 200
    said = health.json()
    assert said["status"] == "ok"
    assert said["servers"] == 4
    assert said["tools"] > 30
    assert httpx2.post(gateway.url.replace("/mcp", "/health")).status_code == 405
    assert httpx2.get(gateway.url.replace("/mcp", "/other")).status_code == 404


def test_a_request_that_is_too_large_is_not_read_on(gateway: Gateway) -> None:
    sent = 0

    def body() -> Iterator[bytes]:
        nonlocal sent
        while sent < 1 << 30:
            sent += 1 << 20
            yield b" " * (1 << 20)

    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Accept": "*/*"}
    with contextlib.suppress(httpx2.TransportError):
        assert httpx2.post(gateway.url, headers=headers, content=body()).status_code >= 400
    assert sent < 200 << 20
    assert httpx2.get(gateway.url.replace("/mcp", "/health")).status_code == 200


async def test_what_servers_write_is_in_the_log_without_secrets(gateway: Gateway) -> None:
    async with gateway.client() as client:
        text = f"first \x1b[31mred\x1b[0m {SECRET} {TOKEN}\nsecond\n" + "y" * 200_000 + "\nlast\n"
        await client.call_tool("say", {"text": text})
        for _ in range(100):
            if "[a server] last\n" in gateway.log:
                break
            await asyncio.sleep(0.05)
    log = gateway.log
    assert "[a server] first red *** ***\n[a server] second\n[a server] yyy" in log
    assert "y" * 10_000 not in log
    assert SECRET not in log
    assert TOKEN not in log
    assert "[a server] (on standard output) Welcome" in log


async def test_the_token_is_in_no_environment_and_no_argument(gateway: Gateway) -> None:
    processes = gateway.processes()
    assert len(processes) >= 6
    for process in processes:
        folder = Path(f"/proc/{process.pid}")
        environment = (folder / "environ").read_bytes()
        assert TOKEN.encode() not in environment
        assert b"GATEWAY_ACCESS_TOKEN" not in environment
        assert TOKEN.encode() not in (folder / "cmdline").read_bytes()
        assert SECRET.encode() not in (folder / "cmdline").read_bytes()
        assert (SECRET.encode() in environment) == (b"CREDENTIAL=" in environment)
    holders = [process for process in processes if "CREDENTIAL" in process.environ()]
    assert len(holders) == 1
    async with gateway.client() as client:
        seen = json.loads(await gateway.text(client, "environment"))
    assert not {"GATEWAY_ACCESS_TOKEN", "PYTHONPATH"} & set(seen["environment"])


async def test_a_server_inherits_no_descriptor_of_the_gateway(gateway: Gateway) -> None:
    async with gateway.client() as client:
        pid = int(await gateway.text(client, "b_pid"))
    opened = {int(item.name): str(item.readlink()) for item in Path(f"/proc/{pid}/fd").iterdir()}
    assert set(opened) == {0, 1, 2}
    assert all(target.startswith("pipe:") or "socket" in target for target in opened.values())
