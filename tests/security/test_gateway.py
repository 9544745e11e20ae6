"""What hostile code can do with the gateway that shares its sandbox: nothing that reaches this machine.

The code, the servers and the gateway are one trust domain: code may end the gateway and answer in its place. It must
not get further than its own answers: no address of this machine is called for it, nothing of it is kept without bound.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import server_packages
from support.docker_fixture import docker as docker  # noqa: PLC0414
from support.sandboxes import PATIENCE

from sandbox_chat.mcp.base import McpError
from sandbox_chat.mcp.connection import Connection
from sandbox_chat.mcp.inside import inside_config
from sandbox_chat.sandbox import make_worker
from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Settings
from sandbox_chat.values import Servers

pytestmark = pytest.mark.slow
KINDS = ("local", "docker")

# Ends the gateway and its servers, but not their keeper, and answers at their port with the bytes of ``ANSWER``.
IMPOSTOR = """
import os, signal, socket, threading, time
def line(pid):
    try: return open(f"/proc/{pid}/cmdline").read()
    except OSError: return ""
for _ in range(50):
    found = [pid for pid in os.listdir("/proc") if pid.isdigit() and "gateway.daemon" in line(pid)]
    for pid in found:
        try: os.kill(int(pid), signal.SIGKILL)
        except OSError: pass
    try:
        listener = socket.create_server(("127.0.0.1", 50005))
        break
    except OSError:
        time.sleep(0.1)
def serve():
    while True:
        client, _ = listener.accept()
        threading.Thread(target=one, args=(client,), daemon=True).start()
def one(client):
    with client:
        asked = client.recv(65536)
        globals().setdefault("asked", []).append(asked)
        try:
            for part in ANSWER(): client.sendall(part)
        except OSError: pass
threading.Thread(target=serve, daemon=True).start()
"""


@contextmanager
def options(kind: str, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    if kind == "docker":
        yield {"sandbox": "docker", "docker_image": request.getfixturevalue("docker").image}
    else:
        yield {"sandbox": "local", "sandbox_warm": False, "sandbox_python": server_packages.python()}


@asynccontextmanager
async def with_gateway(
    kind: str, folder: Path, request: pytest.FixtureRequest, **values: Any
) -> AsyncIterator[tuple[SandboxWorker, Settings]]:
    """A worker whose sandbox has a gateway that answers."""
    with options(kind, request) as chosen:
        settings = Settings(
            data_dir=folder,
            start_timeout=PATIENCE,
            sandbox_mcp=Servers({"time": {}}),
            sandbox_mcp_timeout=120,
            mcp_start_timeout=30,
            **chosen,
            **values,
        )
        worker = make_worker(settings)
        assert worker is not None
        try:
            await worker.mcp_endpoint()
            yield worker, settings
        finally:
            await asyncio.to_thread(worker.close)


async def opened(worker: SandboxWorker, settings: Settings) -> str:
    """Connect as the program does; returns what it says."""
    connection = Connection(inside_config(settings, worker), settings)
    try:
        await connection.open()
    except McpError as error:
        return str(error)
    finally:
        await connection.close()
    return ""


@pytest.mark.parametrize("kind", KINDS)
async def test_code_does_not_reach_the_address_outside(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with with_gateway(kind, tmp_path, request) as (worker, _):
        port = (await worker.mcp_endpoint()).url.rsplit(":", 1)[1].split("/")[0]
        code = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=2)"
        done = await worker.run_code(code, timeout=PATIENCE)
        assert done.error is not None
        assert done.error.name == "ConnectionRefusedError"


@pytest.mark.parametrize("kind", KINDS)
async def test_code_cannot_take_hold_of_the_keepers_stream(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    code = """
import os
taken = []
for pid in os.listdir("/proc"):
    try:
        words = open(f"/proc/{pid}/cmdline").read()
        parent = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1]
    except OSError:
        continue
    if "gateway.relay" not in words and "sandbox_nest" not in words:
        continue
    found = True
    for what in ("mem", "maps", "environ"):
        try:
            open(f"/proc/{pid}/{what}", "rb").read(1); taken.append(what)
        except OSError: pass
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try: os.close(os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR)); taken.append(fd)
            except OSError: pass
    except OSError: pass
(found, taken)
"""
    async with with_gateway(kind, tmp_path, request) as (worker, _):
        done = await worker.run_code(code, timeout=PATIENCE)
        assert done.result_text == "(True, [])", done


@pytest.mark.parametrize("kind", KINDS)
async def test_a_redirect_leads_nowhere(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bait:
        bait.setblocking(False)
        where = f"http://127.0.0.1:{bait.getsockname()[1]}/admin"
        head = f"HTTP/1.1 307 Temporary Redirect\\r\\nLocation: {where}\\r\\nContent-Length: 0\\r\\n\\r\\n"
        code = f"ANSWER = lambda: [b'{head}']\n{IMPOSTOR}"
        async with with_gateway(kind, tmp_path, request) as (worker, settings):
            done = await worker.run_code(code, timeout=PATIENCE)
            assert done.ok, done
            assert "not followed" in await opened(worker, settings)
            asked = await worker.run_code("len(asked) > 0", timeout=PATIENCE)
            assert asked.result_text == "True"
        with pytest.raises(BlockingIOError):
            bait.accept()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "answer",
    [
        "HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\n\\r\\n",
        "HTTP/1.1 200 OK\\r\\nContent-Type: application/json; as=text/event-stream\\r\\n\\r\\n",
        "HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\n\\r\\ndata: ",
        "HTTP/1.1 200 OK\\r\\nX: ",
        "",
    ],
    ids=["endless-body", "endless-body-by-another-name", "endless-event", "endless-header", "nonsense"],
)
async def test_an_endless_answer_is_not_kept(
    answer: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    code = f"""
def ANSWER():
    yield b'{answer}'
    for _ in range(1 << 13): yield b'x' * 65536
{IMPOSTOR}"""
    async with with_gateway(kind, tmp_path, request, mcp_result_mb=1) as (worker, settings):
        assert (await worker.run_code(code, timeout=PATIENCE)).ok
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert await opened(worker, settings)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 100_000, f"{grown} kB"
        assert (await worker.run_code("1 + 1", timeout=PATIENCE)).result_text == "2"


async def test_a_forged_stream_ends_the_way_and_a_new_one_is_made(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The keeper replaced as a whole: what it says is not believed, and this program goes on."""
    fake = tmp_path / "gateway"
    fake.mkdir()
    for name, text in {
        "__init__.py": "",
        "relay.py": "import os, time\ndef main(reader, writer):\n"
        "    for _ in range(1 << 12): os.write(writer, os.urandom(1 << 16))\n    time.sleep(1000)\n",
    }.items():
        (fake / name).write_text(text)
    from sandbox_chat.sandbox import spawn

    real = spawn.gateway_folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spawn, "gateway_folder", lambda: fake)
        tmp_path.chmod(0o755)
        settings = Settings(
            data_dir=tmp_path,
            sandbox_warm=False,
            start_timeout=PATIENCE,
            sandbox_python=server_packages.python(),
            sandbox_mcp=Servers({"time": {}}),
        )
        worker = make_worker(settings)
        assert worker is not None
        try:
            await worker.run_code("kept = 1", timeout=PATIENCE)
            with pytest.raises(Exception, match="Failed to start MCP gateway"):
                await worker.mcp_endpoint()
            assert (await worker.run_code("kept", timeout=PATIENCE)).result_text == "1"
        finally:
            await asyncio.to_thread(worker.close)
    assert spawn.gateway_folder is real
