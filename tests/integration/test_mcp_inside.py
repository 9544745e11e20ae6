"""MCP servers inside the sandbox, of every kind of it: reached from outside by one address with a token, and by the agent."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from support import server_packages
from support.docker_fixture import docker as docker  # noqa: PLC0414
from support.e2b_server import Cloud
from support.engines import engine
from support.sandboxes import PATIENCE, alive, descendants, until
from support.scripted import call, text, tool_results

from sandbox_chat.events import ServerChanged, ToolFinished
from sandbox_chat.mcp.base import McpError
from sandbox_chat.mcp.connection import Connection
from sandbox_chat.mcp.inside import inside_config
from sandbox_chat.sandbox import make_worker
from sandbox_chat.sandbox.base import SandboxError
from sandbox_chat.sandbox.spawn import Started
from sandbox_chat.sandbox.warm import Warm
from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Settings
from sandbox_chat.values import Servers

pytestmark = pytest.mark.slow

KINDS = ("local", "warm", "docker", "e2b")
TIME = Servers({"time": {}})
QUESTION = {"timezone": "Asia/Shanghai"}
# A server of our own that is one script without a library, put into the sandbox by its command.
ECHO = """
import json, os, sys
for line in sys.stdin:
    word = json.loads(line)
    if "id" not in word:
        continue
    tools = [{"name": "pid", "inputSchema": {"type": "object"}}, {"name": "die", "inputSchema": {"type": "object"}}]
    answer = {"tools": tools}
    if word["method"] == "initialize":
        answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}}
    elif word["method"] == "tools/call":
        if word["params"]["name"] == "die":
            os._exit(1)
        answer = {"content": [{"type": "text", "text": str(os.getpid())}]}
    elif word["method"] != "tools/list":
        answer = {}
    print(json.dumps({"jsonrpc": "2.0", "id": word["id"], "result": answer}), flush=True)
"""


def echo(name: str = "echo") -> Servers:
    """The server of one script."""
    script = ECHO.replace("'", "'\\''")
    return Servers({name: {"runCmd": f"exec python3 -c '{script}'"}})


@contextmanager
def options(kind: str, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Settings of a kind of sandbox in which the server ``time`` is installed."""
    if kind == "docker":
        yield {"sandbox": "docker", "docker_image": request.getfixturevalue("docker").image}
    elif kind == "e2b":
        with Cloud(mcp=True, servers=server_packages.packages()) as cloud:
            if not cloud.isolated:
                pytest.skip("not run: the test cloud needs namespaces of its own here")
            yield cloud.settings()
    else:
        yield {"sandbox": "local", "sandbox_warm": kind == "warm", "sandbox_python": server_packages.python()}


@asynccontextmanager
async def connected(worker: SandboxWorker, settings: Settings) -> AsyncIterator[Connection]:
    """A connection to the servers inside, by the real client."""
    connection = Connection(inside_config(settings, worker), settings)
    await connection.open()
    try:
        yield connection
    finally:
        await connection.close()


def settings_of(folder: Path, **values: Any) -> Settings:
    common: dict[str, Any] = {"sandbox_warm": False, "start_timeout": PATIENCE, "sandbox_mcp_timeout": 120}
    return Settings(data_dir=folder, **{**common, **values})


@asynccontextmanager
async def working(settings: Settings) -> AsyncIterator[SandboxWorker]:
    """A worker, closed at the end."""
    worker = make_worker(settings)
    assert worker is not None
    try:
        worker.warm()
        yield worker
    finally:
        await asyncio.to_thread(worker.close)


@pytest.fixture(autouse=True)
def really_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the warm parent instead of starting cold while there is none."""

    def spawn(self: Warm) -> Started:
        assert self.wait(PATIENCE), self.state
        started = ready(self)
        assert started is not None, self.state
        return started

    ready = Warm.spawn
    monkeypatch.setattr(Warm, "spawn", spawn)


async def post(url: str, headers: dict[str, str]) -> int:
    """The status of the answer to a first request."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
        return (await client.post(url, json=body, headers={**accept, **headers})).status_code


@pytest.mark.parametrize("kind", KINDS)
def test_the_agent_calls_a_server_in_the_sandbox(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with options(kind, request) as chosen:
        steps = (call("mcp__gateway__get_current_time", **QUESTION), text("There it is late."))
        with engine(
            tmp_path, *steps, sandbox_mcp=TIME, sandbox_mcp_timeout=120, start_timeout=PATIENCE, **chosen
        ) as e:
            e.until(lambda: [each for each in e.of(ServerChanged) if each.tools], "the tools of the server")
            assert not e.ask("What time is it in Shanghai?").is_error
            [done] = e.of(ToolFinished)
            assert not done.is_error, done.content
            assert "Asia/Shanghai" in str(done.content)
            [result] = tool_results(e.server)
            assert "+08:00" in str(result)
            [place] = {(each.name, each.place) for each in e.of(ServerChanged)}
            assert place == ("gateway", "sandbox")


@pytest.mark.parametrize("kind", KINDS)
def test_the_agent_goes_on_after_its_sandbox_was_lost(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    ask = call("mcp__gateway__get_current_time", **QUESTION)
    end = call("run_code", code=f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})")
    with options(kind, request) as chosen:
        values = {"sandbox_mcp": TIME, "sandbox_mcp_timeout": 120, "start_timeout": PATIENCE, **chosen}
        with engine(tmp_path, ask, end, ask, ask, text("So."), **values) as e:
            e.until(lambda: [each for each in e.of(ServerChanged) if each.tools], "the tools of the server")
            assert not e.ask("What time is it in Shanghai?").is_error
            first, lost, _, last = e.of(ToolFinished)  # the call in between may fail, with a sentence
            assert not first.is_error, first.content
            assert lost.is_error
            assert not last.is_error, last.content


@pytest.mark.parametrize("kind", KINDS)
async def test_only_the_token_opens_it(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with options(kind, request) as chosen:
        settings = settings_of(tmp_path, sandbox_mcp=TIME, **chosen)
        async with working(settings) as worker:
            address = await worker.mcp_endpoint()
            headers = {name: value.reveal() for name, value in address.headers.items()}
            right = {"Authorization": f"Bearer {address.token.reveal()}"}
            assert await post(address.url, {**headers, **right}) == 200
            for wrong in (
                {},
                {"Authorization": "Bearer x"},
                {"Authorization": f"Bearer {address.token.reveal()[:-1]}x"},
            ):
                assert await post(address.url, {**headers, **wrong}) == 401
            assert (await worker.mcp_endpoint()) == address  # it is not started a second time


@pytest.mark.parametrize("kind", ["local", "warm", "docker"])
async def test_code_and_servers_live_side_by_side(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with options(kind, request) as chosen:
        settings = settings_of(tmp_path, sandbox_mcp=Servers({**TIME, **echo()}), **chosen)
        async with working(settings) as worker, connected(worker, settings) as connection:
            assert {tool.original for tool in connection.tools} == {
                "get_current_time",
                "convert_time",
                "pid",
                "die",
            }
            await worker.run_code("kept = 41", timeout=PATIENCE)
            running = asyncio.ensure_future(worker.run_code("import time; time.sleep(600)", timeout=700))
            first = await connection.call("pid", {})  # while code runs
            with pytest.raises(McpError):
                await connection.call("die", {})
            second = await connection.call("pid", {})  # a server that is started in the middle of a run
            assert first != second
            worker.interrupt()
            assert (await running).stopped == "interrupted"
            assert await connection.call("pid", {}) == second  # the interrupt was for the code alone
            assert (await worker.run_code("kept + 1", timeout=PATIENCE)).result_text == "42"
            path = await worker.write_file("note.txt", b"x" * 100_000)
            assert await worker.read_file(path, max_bytes=200_000) == b"x" * 100_000


@pytest.mark.parametrize("kind", ["local", "warm"])
async def test_the_end_of_the_sandbox_ends_all_servers(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    before = {process.pid for process in descendants(os.getpid())}
    with options(kind, request) as chosen:
        settings = settings_of(tmp_path, sandbox_mcp=TIME, **chosen)
        async with working(settings) as worker:
            await worker.mcp_endpoint()
            started = [each for each in descendants(os.getpid()) if each.pid not in before]
            assert any("mcp-server-time" in " ".join(each.cmdline()) for each in started)
        assert until(lambda: not alive(started)), alive(started)


async def test_the_end_of_a_cloud_sandbox_ends_all_servers(tmp_path: Path) -> None:
    before = {process.pid for process in descendants(os.getpid())}
    with Cloud(mcp=True, servers=server_packages.packages(), prestart=0) as cloud:
        if not cloud.isolated:
            pytest.skip("not run: the test cloud needs namespaces of its own here")
        settings = settings_of(tmp_path, sandbox_mcp=TIME, **cloud.settings())
        async with working(settings) as worker:
            address = await worker.mcp_endpoint()
            started = [each for each in descendants(os.getpid()) if each.pid not in before]
            assert any("mcp-server-time" in " ".join(each.cmdline()) for each in started)
        assert until(lambda: not alive(started)), alive(started)
        assert not cloud.sandboxes
        headers = {name: value.reveal() for name, value in address.headers.items()}
        assert await post(address.url, headers) == 502


async def test_a_container_takes_its_servers_with_it(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with options("docker", request) as chosen:
        settings = settings_of(tmp_path, sandbox_mcp=TIME, **chosen)
        daemon = request.getfixturevalue("docker")
        async with working(settings) as worker:
            await worker.mcp_endpoint()
            names = set(daemon.containers())
            assert any("mcp-server-time" in daemon.call("top", name) for name in names)
            holders = [each for each in descendants(os.getpid()) if "exec" in each.cmdline()]
            assert holders
        assert not daemon.wait_gone(names)
        assert until(lambda: not alive(holders))


KILLED = """
import asyncio, json, sys
from pathlib import Path
from sandbox_chat.sandbox import make_worker
from sandbox_chat.settings import Settings
from sandbox_chat.values import Servers
chosen = json.loads(sys.argv[1])
chosen = {name: Path(value) if name in ("data_dir", "sandbox_python") else value for name, value in chosen.items()}
async def main():
    worker = make_worker(Settings(sandbox_mcp=Servers({"time": {}}), sandbox_mcp_timeout=120, start_timeout=60, **chosen))
    await worker.mcp_endpoint()
    print("ready", flush=True)
    await asyncio.sleep(1000)
asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["local", "docker"])
def test_nothing_outlives_a_program_that_is_killed(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with options(kind, request) as chosen:
        values = {**chosen, "data_dir": tmp_path, "sandbox_warm": False}
        command = [sys.executable, "-c", KILLED, json.dumps(values, default=str)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as program:
            try:
                assert program.stdout is not None
                assert program.stdout.readline() == b"ready\n"
                started = descendants(program.pid)
                names: set[str] = set()
                if kind == "docker":
                    names = set(request.getfixturevalue("docker").containers(program.pid))
                    assert names
                assert kind == "docker" or any(
                    "mcp-server-time" in " ".join(each.cmdline()) for each in started
                )
            finally:
                program.kill()
        assert until(lambda: not alive(started)), alive(started)
        if names:
            assert not request.getfixturevalue("docker").wait_gone(names)


@pytest.mark.parametrize("kind", ["local", "docker"])
async def test_a_sandbox_that_was_lost_in_between(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with options(kind, request) as chosen:
        settings = settings_of(tmp_path, sandbox_mcp=TIME, **chosen)
        async with working(settings) as worker:
            async with connected(worker, settings) as connection:
                assert not (await connection.call("get_current_time", QUESTION)).is_error
                dead = await worker.run_code(
                    f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})", timeout=PATIENCE
                )
                assert dead.stopped == "died"
                with pytest.raises(McpError):
                    await connection.call("get_current_time", QUESTION)
            async with connected(worker, settings) as connection:
                assert not (await connection.call("get_current_time", QUESTION)).is_error
            assert worker.generation == 2


@pytest.mark.parametrize("kind", ["local", "docker"])
async def test_code_that_kills_everything_takes_the_servers_but_they_come_back(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with options(kind, request) as chosen:
        settings = settings_of(tmp_path, sandbox_mcp=TIME, **chosen)
        async with working(settings) as worker:
            await worker.run_code("kept = 1", timeout=PATIENCE)
            async with connected(worker, settings) as connection:
                await worker.run_code("import os, signal; os.kill(-1, signal.SIGKILL)", timeout=PATIENCE)
                with pytest.raises(McpError):
                    await connection.call("get_current_time", QUESTION)
            async with connected(worker, settings) as connection:
                assert not (await connection.call("get_current_time", QUESTION)).is_error
            assert (await worker.run_code("kept", timeout=PATIENCE)).result_text == "1"


@pytest.mark.parametrize("kind", ["local", "docker", "e2b"])
async def test_a_server_that_is_not_installed(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    states: list[tuple[str, str]] = []
    with options(kind, request) as chosen:
        settings = settings_of(tmp_path, sandbox_mcp=Servers({"arxiv": {}}), **chosen)
        worker = make_worker(settings, lambda state, said: states.append((state, said)))
        assert worker is not None
        try:
            with pytest.raises(
                SandboxError, match=r"Failed to start MCP gateway: .*arxiv: .* is not installed"
            ) as caught:
                await worker.mcp_endpoint()
            said = str(caught.value)
            if kind == "local":
                assert f"{server_packages.python()} -m pip install" in said
            elif kind == "docker":
                assert "--server" in said
            assert until(
                lambda: any(state == "lost" for state, _ in states)
            )  # nothing was done in it: it is ended
            if kind != "e2b":
                assert (await worker.run_code("1 + 1", timeout=PATIENCE)).result_text == "2"
        finally:
            await asyncio.to_thread(worker.close)


async def test_a_failure_leaves_a_sandbox_that_is_in_use(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path, sandbox_python=server_packages.python(), sandbox_mcp=Servers({"x": {"runCmd": "exit 3"}})
    )
    async with working(settings) as worker:
        await worker.run_code("kept = 1", timeout=PATIENCE)
        with pytest.raises(SandboxError, match="The server x did not start"):
            await worker.mcp_endpoint()
        done = await worker.run_code(
            "import os\n(kept, [n for n in os.listdir('/proc') if n.isdigit()])", timeout=PATIENCE
        )
        assert done.result_text.startswith("(1, ['1', ")
        assert not done.fresh


async def test_a_python_without_the_library(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    [packages] = (tmp_path / "bare").glob("lib/python*/site-packages")
    for entry in server_packages.packages().iterdir():  # all but what the gateway needs
        if not entry.name.startswith(("mcp", "uvicorn", "starlette")):
            copy = shutil.copytree if entry.is_dir() else shutil.copy
            copy(entry, packages / entry.name)
    python = tmp_path / "bare/bin/python"
    settings = settings_of(tmp_path, sandbox_python=python, sandbox_mcp=TIME)
    async with working(settings) as worker:
        with pytest.raises(SandboxError, match="lacks mcp, uvicorn, starlette") as caught:
            await worker.mcp_endpoint()
    assert f"{python} -m pip install mcp uvicorn starlette" in str(caught.value)


async def test_a_start_that_hangs_is_given_up_and_leaves_nothing(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path,
        sandbox_python=server_packages.python(),
        sandbox_mcp=Servers({"slow": {"runCmd": "sleep 1000"}}),
        sandbox_mcp_timeout=6,
    )
    async with working(settings) as worker:
        await worker.run_code("kept = 1", timeout=PATIENCE)
        with pytest.raises(SandboxError, match=r"Not ready within .* s: slow"):
            await worker.mcp_endpoint()
        done = await worker.run_code("import os; os.popen('ps ax -o args').read()", timeout=PATIENCE)
        assert "sleep 1000" not in done.result_text


async def test_waiting_can_be_given_up_and_the_sandbox_goes_on(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path,
        sandbox_python=server_packages.python(),
        sandbox_mcp=Servers({"slow": {"runCmd": "sleep 1000"}}),
    )
    async with working(settings) as worker:
        await worker.run_code("kept = 1", timeout=PATIENCE)
        waiting = asyncio.ensure_future(worker.mcp_endpoint())
        await asyncio.sleep(1.0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await worker.run_code("kept", timeout=PATIENCE)).result_text == "1"
        again = asyncio.ensure_future(worker.mcp_endpoint())
        await asyncio.sleep(0.5)
        await asyncio.to_thread(worker.close)
        with pytest.raises(SandboxError):
            await again


# -- the cloud -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("hosts", [False, True])
async def test_a_cloud_is_reached_by_headers_or_by_name(hosts: bool, tmp_path: Path) -> None:
    with Cloud(mcp=True, servers=server_packages.packages(), hosts=hosts) as cloud:
        if not cloud.isolated:
            pytest.skip("not run: the test cloud needs namespaces of its own here")
        settings = settings_of(tmp_path, sandbox_mcp=TIME, **cloud.settings())
        async with working(settings) as worker, connected(worker, settings) as connection:
            assert not (await connection.call("get_current_time", QUESTION)).is_error
            [record] = cloud.sandboxes.values()
            assert record.template == "mcp-gateway"
            assert record.request["mcp"] == {"time": {}}
            address = await worker.mcp_endpoint()
            assert ("Host" in address.headers) == hosts


async def test_a_gateway_of_the_cloud_that_ended_is_started_again(tmp_path: Path) -> None:
    with Cloud(mcp=True, servers=server_packages.packages()) as cloud:
        if not cloud.isolated:
            pytest.skip("not run: the test cloud needs namespaces of its own here")
        settings = settings_of(tmp_path, sandbox_mcp=TIME, **cloud.settings())
        async with working(settings) as worker:
            await worker.run_code("kept = 1", timeout=PATIENCE)
            first = await worker.mcp_endpoint()
            for process in descendants(os.getpid()):
                if "gateway.daemon" in process.cmdline():
                    process.kill()
            async with connected(worker, settings) as connection:
                assert not (await connection.call("get_current_time", QUESTION)).is_error
            assert (await worker.mcp_endpoint()).token != first.token
            assert (await worker.run_code("kept", timeout=PATIENCE)).result_text == "1"


async def test_a_cloud_sandbox_whose_gateway_does_not_come_up_is_ended(tmp_path: Path) -> None:
    with Cloud(mcp=True) as cloud:
        if not cloud.isolated:
            pytest.skip("not run: the test cloud needs namespaces of its own here")
        servers = Servers({"own": {"runCmd": "echo this is why >&2; exit 3"}})
        settings = settings_of(tmp_path, sandbox_mcp=servers, **cloud.settings())
        async with working(settings) as worker:
            with pytest.raises(SandboxError, match=r"^Failed to start MCP gateway: [\s\S]*this is why"):
                await worker.mcp_endpoint()
            assert not cloud.sandboxes
            assert len(cloud.ended) == 1


async def test_another_process_uses_the_same_endpoint(tmp_path: Path) -> None:
    from e2b_code_interpreter import AsyncSandbox

    with Cloud(mcp=True, servers=server_packages.packages()) as cloud:
        if not cloud.isolated:
            pytest.skip("not run: the test cloud needs namespaces of its own here")
        settings = settings_of(tmp_path, sandbox_mcp=TIME, **cloud.settings())
        async with working(settings) as worker:
            address = await worker.mcp_endpoint()
            [name] = cloud.sandboxes
            other = await AsyncSandbox.connect(name, **cloud.client())
            assert await other.get_mcp_token() == address.token.reveal()
            assert other.get_mcp_url() == f"https://50005-{name}.{cloud.domain}/mcp"
            headers = {key: value.reveal() for key, value in address.headers.items()}
            right = {"Authorization": f"Bearer {address.token.reveal()}", **headers}
            await other.pause()
            await AsyncSandbox.connect(name, **cloud.client())
            assert await post(address.url, right) == 200


async def test_the_real_client_makes_one_too() -> None:
    from e2b_code_interpreter import AsyncSandbox

    with Cloud(mcp=True, servers=server_packages.packages()) as cloud:
        if not cloud.isolated:
            pytest.skip("not run: the test cloud needs namespaces of its own here")
        made = await AsyncSandbox.create(mcp={"time": {}}, **cloud.client())
        token = await made.get_mcp_token()
        assert token
        headers = {
            "E2b-Sandbox-Id": made.sandbox_id,
            "E2b-Sandbox-Port": "50005",
            "Authorization": f"Bearer {token}",
        }
        assert await post(f"{cloud.sandbox_url}/mcp", headers) == 200
        with pytest.raises(Exception, match="Failed to start MCP gateway"):
            await AsyncSandbox.create(mcp={"nobody-knows": {}}, **cloud.client())
        assert list(cloud.sandboxes) == [made.sandbox_id]
        await made.kill()


@pytest.mark.parametrize(
    ("values", "template"),
    [
        ({}, "mcp-gateway"),
        ({"e2b_template": "base"}, "base"),
        ({"origins": {"e2b_template": "the command line"}}, "code-interpreter-v1"),
        ({"cube_mcp_template_id": "base", "cube_template_id": "mcp-gateway"}, "base"),
        ({"cube_mcp_template_id": "none-such", "cube_template_id": "mcp-gateway"}, "mcp-gateway"),
    ],
)
async def test_the_template(values: dict[str, Any], template: str, tmp_path: Path) -> None:
    with Cloud(mcp=True, servers=server_packages.packages()) as cloud:
        if not cloud.isolated:
            pytest.skip("not run: the test cloud needs namespaces of its own here")
        settings = settings_of(tmp_path, sandbox_mcp=TIME, **cloud.settings(), **values)
        async with working(settings) as worker:
            await worker.mcp_endpoint()
            [record] = cloud.sandboxes.values()
            assert record.template == template


async def test_no_template(tmp_path: Path) -> None:
    with Cloud() as cloud:
        settings = settings_of(tmp_path, sandbox_mcp=TIME, cube_template_id="other", **cloud.settings())
        async with working(settings) as worker:
            with pytest.raises(SandboxError, match="no template 'mcp-gateway' and no template 'other'"):
                await worker.mcp_endpoint()
