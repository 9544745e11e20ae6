"""Version 1 and version 2 of the ``mcp`` library on both sides of the gateway."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import MCPError
from support import old_mcp, server_packages
from support.gateways import TOKEN, Gateway, a_gateway, quick

from sandbox_chat import gateway as package

pytestmark = pytest.mark.slow
COPY = "import sys; sys.path.insert(0, {folder!r}); from gateway.cli import main; sys.exit(main())"
ODD = [
    {"name": "echo"},
    {"name": "bad", "inputSchema": 7},
    {"name": "worse", "inputSchema": {"type": "object"}, "annotations": 7},
]


def copied(gateway: Gateway, python: Path) -> None:
    """Have the gateway run from a copy of its folder by another interpreter."""
    source = Path(package.__file__).parent
    shutil.copytree(source, gateway.folder / "gateway", ignore=shutil.ignore_patterns("__pycache__"))
    gateway.program = (str(python), "-c", COPY.format(folder=str(gateway.folder)))


@pytest.fixture(scope="module", params=["gateway with version 2", "gateway with version 1"])
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway in this environment, and a copy of its folder in one with the old library."""
    with a_gateway(tmp_path_factory.mktemp("gateway")) as gateway:
        if request.param.endswith("1"):
            copied(gateway, old_mcp.python())
        gateway.started({"a": {"runCmd": quick()}, "odd": {"runCmd": quick("--tools", json.dumps(ODD))}})
        yield gateway


def test_the_old_client(gateway: Gateway) -> None:
    done = subprocess.run(
        [str(old_mcp.python()), old_mcp.__file__, gateway.url, TOKEN], capture_output=True, text=True, timeout=120, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    assert seen["server"] == ["mcp-gateway", "2025-11-25"]
    assert seen["tools"]["odd_echo"] == {"type": "object"}
    assert "worse" in seen["tools"]
    assert "bad" not in seen["tools"]
    assert seen["echo"]["content"] == [{"type": "text", "text": "ü" * 10}]
    assert [part["type"] for part in seen["picture"]["content"]] == ["image", "resource"]
    assert seen["picture"]["content"][0]["annotations"] == {"priority": 0.5}
    assert seen["picture"]["_meta"] == {"own": [1, None]}
    assert seen["structured"]["structuredContent"] == {"a": [1, 2.5, None], "é": "ü"}
    assert seen["fault"]["isError"] is True
    assert seen["params"] == {"name": "params", "arguments": {"a": [None]}}
    assert seen["big"] == 3_000_000
    assert seen["progress"] == [[step, 3, f"at {step}"] for step in range(3)]
    assert seen["errors"][0] == [-32011, "no such luck", {"why": "test"}]
    assert seen["errors"][1][1] == "Unknown tool: nothing"
    assert "exit code 7" in seen["errors"][2][1]
    assert seen["after"] == "again"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_new_client(gateway: Gateway, mode: str) -> None:
    async with gateway.client(mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert {"echo", "odd_echo", "worse"} <= set(tools)
        assert await gateway.text(client, "echo", {"text": "x" * 2_000_000}) == "x" * 2_000_000
        result = await client.call_tool("structured", {})
        assert result.structured_content == {"a": [1, 2.5, None], "é": "ü"}
        params = json.loads(
            (await client.call_tool("params", {}, meta={"own": {"x": None}})).content[0].text  # type: ignore[union-attr,typeddict-unknown-key]
        )
        assert params["_meta"] == {"own": {"x": None}}
        with pytest.raises(MCPError, match="no such luck"):
            await client.call_tool("refusal", {})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_cancelling(gateway: Gateway, mode: str) -> None:
    before = gateway.log.count("slow was cancelled")
    async with gateway.client(mode) as client:
        call = asyncio.ensure_future(client.call_tool("slow", {"steps": 600, "pause": 0.05}))
        await asyncio.sleep(0.5)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        for _ in range(200):
            if gateway.log.count("slow was cancelled") > before:
                return
            await asyncio.sleep(0.05)
    pytest.fail("the server was not told")


def test_token_and_health(gateway: Gateway) -> None:
    refused = httpx2.post(gateway.url, headers={"Authorization": "Bearer wrong"}, json={})
    assert (refused.status_code, refused.headers["WWW-Authenticate"][:6]) == (401, "Bearer")
    assert httpx2.get(gateway.url.replace("/mcp", "/health")).json()["servers"] == 2
    basic = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    host = httpx2.post(gateway.url, headers={**basic, "Host": "evil.example"}, json={})
    assert host.status_code == 421
    many = httpx2.post(gateway.url, headers=basic, content=b" " * (65 << 20))
    assert many.status_code == 413


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_real_server_by_its_name(tmp_path: Path, mode: str) -> None:
    with a_gateway(tmp_path) as gateway:
        copied(gateway, server_packages.python())
        gateway.started({"time": {"timezone": "Asia/Shanghai"}})
        async with gateway.client(mode) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(listed) == {"get_current_time", "convert_time"}
            assert "Asia/Shanghai" in json.dumps(listed["get_current_time"].input_schema)
            told = json.loads(await gateway.text(client, "get_current_time", {"timezone": "Europe/Berlin"}))
            assert told["timezone"] == "Europe/Berlin"


def test_a_server_that_is_not_installed_and_cannot_be_fetched(tmp_path: Path) -> None:
    with a_gateway(tmp_path) as gateway:
        copied(gateway, server_packages.python())
        (tmp_path / "empty").mkdir()
        gateway.environment["PATH"] = str(tmp_path / "empty")
        done = gateway.start({"arxiv": {}, "memory": {}, "time": {}})
        assert done.returncode == 2
        assert "pip install arxiv-mcp-server 'mcp<2'" in done.stderr
        assert "npm install -g @modelcontextprotocol/server-memory" in done.stderr
        assert "time:" not in done.stderr
        assert not gateway.processes()
