"""The way from code in a cloud's sandbox to the host's tools: a process there whose standard streams are held here.

Nothing in the cloud can reach this computer. So a command is started in the sandbox that listens at a file, and what
connects there is carried over the command's input and output. The output is text in the cloud's client, so it comes
in base64, a line for each piece.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import shlex
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandbox_chat.guest import calls
from sandbox_chat.sandbox import e2b_errors, spawn
from sandbox_chat.sandbox.base import SandboxError
from sandbox_chat.sandbox.bridge_link import BridgeLink
from sandbox_chat.sandbox.e2b_client import Cloud

log = logging.getLogger(__name__)

LONGEST_LINE = 1 << 18
"""Characters of one line of the command's output."""
_PIECE = 1 << 18
_FILES = ("__init__", "channels", "bridge")
# Writes the gateway's package to a new folder and is the way to the host; its source comes first on its input.
LOADER = """
import json, os, sys, tempfile
def take(count):
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part:
            os._exit(0)
        data += part
    return data
box = json.loads(take(int.from_bytes(take(4), "big")))
folder = tempfile.mkdtemp(prefix=".tools-")
os.mkdir(folder + "/gateway")
for name, text in box["files"].items():
    with open(folder + "/gateway/" + name + ".py", "w", encoding="utf-8") as file:
        file.write(text)
sys.path.insert(0, folder)
from gateway.bridge import main_as_text
main_as_text(box["path"])
"""


def offer(path: str, token: str) -> str:
    """Return the code of the cell that lets the kernel's code use the way at ``path``; it leaves no name of the user's behind."""
    source = Path(calls.__file__).read_text("utf-8") + f"\ninstall({path!r}, {token!r})\n"
    name = "_sandbox_chat_calls"
    return (
        f"exec(compile({source!r}, '<sandbox-chat>', 'exec'), "
        f"__import__('sys').modules.setdefault({name!r}, type(__import__('sys'))({name!r})).__dict__)"
    )


def open_way(cloud: Cloud, path: str, serve: Callable[[socket.socket], None]) -> BridgeLink:
    """Start what listens at ``path`` in the sandbox of ``cloud``. Returns at once; ``ready`` tells whether it worked."""
    ours, theirs = socket.socketpair()
    held = _Held(cloud, theirs, path)
    end = ours.detach()
    way = BridgeLink(end, end, serve, on_close=held.stop)
    held.start()
    return way


class _Held:
    """The command, driven by an event loop in a thread of its own, as that of the runs stands still between them."""

    def __init__(self, cloud: Cloud, sock: socket.socket, path: str) -> None:
        self._cloud, self._sock, self._path = cloud, sock, path
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._stopped = self._ending = False
        self._rest = ""
        self._thread = threading.Thread(target=self._run, name="cloud-bridge", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End it. Any thread."""
        self._stopped = True
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None and not self._ending:  # else the command would not be ended
            self._task.cancel()

    def _run(self) -> None:
        try:
            if not self._stopped:
                self._task = self._loop.create_task(self._hold())
                with contextlib.suppress(asyncio.CancelledError):
                    self._loop.run_until_complete(self._task)
        finally:
            self._sock.close()
            with contextlib.suppress(Exception):
                self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _hold(self) -> None:
        self._sock.setblocking(False)
        settings = self._cloud.settings
        try:
            box = self._cloud.twin()
            handle = await box.commands.run(
                f"exec python3 -s -X utf8 -c {shlex.quote(LOADER)}",
                background=True,
                stdin=True,
                timeout=0,
                on_stdout=self._take,
                request_timeout=settings.e2b_request_timeout,
                retain_output=False,
            )
            ends: list[asyncio.Future[None]] = []
            try:
                await handle.send_stdin(_box(self._path))
                ends = [asyncio.ensure_future(self._give(handle)), asyncio.ensure_future(handle.wait())]
                done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                for each in done:
                    if isinstance(problem := each.exception(), SandboxError):
                        raise problem
            finally:
                self._ending = True
                for each in ends:
                    each.cancel()
                await asyncio.gather(*ends, return_exceptions=True)
                with contextlib.suppress(Exception):
                    async with asyncio.timeout(2.0):
                        await handle.kill()
        except Exception as error:
            log.warning("the way to the host's tools ended: %s", e2b_errors.said(error, settings))

    async def _give(self, handle: Any) -> None:
        while data := await self._loop.sock_recv(self._sock, _PIECE):
            await handle.send_stdin(data)

    async def _take(self, text: str) -> None:
        lines = (self._rest + text).split("\n")
        self._rest = lines.pop()
        if len(self._rest) > LONGEST_LINE:
            raise SandboxError("The cloud's sandbox sent what makes no sense.")
        for line in lines:
            try:
                data = base64.b64decode(line, validate=True)
            except ValueError:
                raise SandboxError("The cloud's sandbox sent what makes no sense.") from None
            await self._loop.sock_sendall(self._sock, data)


def _box(path: str) -> bytes:
    """Return what the loader waits for."""
    folder = spawn.gateway_folder()
    files = {name: (folder / f"{name}.py").read_text("utf-8") for name in _FILES}
    data = json.dumps({"files": files, "path": path}, separators=(",", ":")).encode("ascii")
    return len(data).to_bytes(4, "big") + data
