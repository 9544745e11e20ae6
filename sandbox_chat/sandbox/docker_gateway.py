"""The way to the gateway in a container: its keeper is started there by ``docker exec`` and speaks over its streams."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping

from sandbox_chat.sandbox import docker_program, spawn
from sandbox_chat.sandbox.base import GatewayFailed, SandboxError
from sandbox_chat.sandbox.bridge_link import BridgeLink
from sandbox_chat.sandbox.gateway_link import GatewayLink
from sandbox_chat.settings import Settings

END_WAIT = 3.0
"""Seconds that the keeper may take to end when its input has ended, before the program that holds it is killed."""
_MAX_SAID = 8000
ADVICE = (
    "The image {image} lacks {{missing}}, which the gateway for MCP servers needs. Make an image with them: sandbox-chat "
    "docker build (--server adds packages of servers), or install mcp, uvicorn, starlette and the servers in your own."
)
HINT = "In a container it must be in the image: sandbox-chat docker build --server PACKAGE makes one with it."
# Puts itself under the guest's filter of system calls, writes the gateway's package to a new folder, and is its keeper.
LOADER = """
import base64, json, os, sys, tempfile
def take(count):
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part:
            os._exit(0)
        data += part
    return data
box = json.loads(take(int.from_bytes(take(4), "big")))
space = {"__name__": "sandbox_nest"}
exec(compile(box["nest"], "<sandbox_nest>", "exec"), space)
program = box["filters"].get(os.uname().machine)
if program is None:
    sys.exit("this processor is not known: " + os.uname().machine)
space["filter_calls"](base64.b64decode(program))
folder = tempfile.mkdtemp(prefix=".servers-", dir=os.path.expanduser("~"))
os.mkdir(folder + "/gateway")
for name, text in box["files"].items():
    with open(folder + "/gateway/" + name, "w", encoding="utf-8") as file:
        file.write(text)
sys.path.insert(0, folder)
if box["path"]:
    from gateway.bridge import main
    main(0, 1, box["path"])
from gateway.relay import main
main(0, 1)
"""


def open_gateway(settings: Settings, container: str, filters: Mapping[str, str]) -> GatewayLink:
    """Start the keeper in a container that runs. ``filters`` are those of system calls by machine, in base64.

    Raises ``GatewayFailed`` when it cannot be.
    """
    held, reader, writer = _hold(settings, container)
    advice = ADVICE.format(image=docker_program.image(settings))
    return GatewayLink(
        reader,
        writer,
        on_close=held.end,
        explain=held.explain,
        advice=advice,
        hint=HINT,
        first=_box(filters),
    )


def open_way(
    settings: Settings,
    container: str,
    filters: Mapping[str, str],
    path: str,
    serve: Callable[[socket.socket], None],
) -> BridgeLink:
    """Start what listens at ``path`` in a container for code that calls the host's tools; see ``open_gateway``.

    Raises ``SandboxError`` when it cannot be.
    """
    try:
        held, reader, writer = _hold(settings, container)
    except GatewayFailed as problem:
        raise SandboxError(str(problem)) from None
    return BridgeLink(reader, writer, serve, on_close=held.end, first=_box(filters, path))


def _hold(settings: Settings, container: str) -> tuple[_Held, int, int]:
    """Start the loader in a container; return what holds it, and the ends of its stream."""
    program = docker_program.find(settings)
    command = [program, "exec", "--interactive", container, "python3", "-s", "-P", "-X", "utf8", "-c", LOADER]
    try:
        process = docker_program.hold(command)
    except OSError as error:
        raise GatewayFailed(f"{program} cannot be run: {error.strerror}.") from None
    held = _Held(process)
    into, out = process.stdin, process.stdout
    assert into is not None
    assert out is not None
    with into, out:
        return held, os.dup(out.fileno()), os.dup(into.fileno())


def _box(filters: Mapping[str, str], path: str = "") -> bytes:
    """Return what the loader waits for. With a ``path`` it is the way to the host that listens there, else the keeper."""
    files = {
        file.name: file.read_text("utf-8")
        for file in spawn.gateway_folder().iterdir()
        if file.suffix in (".py", ".json")
    }
    nest = (spawn.guest_folder() / "nest.py").read_text("utf-8")
    content = {"files": files, "nest": nest, "filters": dict(filters), "path": path}
    data = json.dumps(content, separators=(",", ":")).encode("ascii")
    return len(data).to_bytes(4, "big") + data


class _Held:
    """The program that holds the keeper's streams, and the end of what it said."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._said = bytearray()
        self._listener = threading.Thread(target=self._listen, name="container gateway", daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        err = self._process.stderr
        assert err is not None
        with err:
            while part := err.read(4096):
                self._said += part
                del self._said[:-_MAX_SAID]

    def end(self) -> None:
        """See the program off: it ends when the keeper does, whose input has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_WAIT)
        docker_program.end_group(self._process)
        self._process.wait()
        self._listener.join(END_WAIT)

    def explain(self) -> str:
        """Return what it said when it ended by itself."""
        return docker_program.shorten(bytes(self._said).decode("utf-8", "replace"))
