"""envd's process calls: ``process.Process``."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from .connect import ConnectError, Message, client_stream, deadline, server_stream, unary

PING = 90.0
"""Seconds between two signs of life on a silent stream when the client asks for none."""


class Running:
    """A started process and those who listen to it."""

    def __init__(self, process: asyncio.subprocess.Process, config: Message, tag: str | None) -> None:
        self.process = process
        self.config = config
        self.tag = tag
        self.listeners: list[asyncio.Queue[Message]] = []

    @property
    def pid(self) -> int:
        return self.process.pid

    def tell(self, event: Message) -> None:
        for listener in self.listeners:
            listener.put_nowait(event)

    def kill(self, number: int = signal.SIGKILL) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    async def follow(self) -> None:
        """Pass on all output, then the end."""

        async def pour(name: str, stream: asyncio.StreamReader | None) -> None:
            assert stream is not None
            while chunk := await stream.read(1 << 15):
                self.tell({"data": {name: base64.b64encode(chunk).decode()}})

        # As with the real thing, a child in the background that holds the output delays the end.
        await asyncio.gather(pour("stdout", self.process.stdout), pour("stderr", self.process.stderr))
        code = await self.process.wait()
        if code < 0:
            name = {9: "killed", 15: "terminated", 2: "interrupt"}.get(-code, signal.Signals(-code).name)
            end = {"exitCode": -1, "exited": False, "status": f"signal: {name}", "error": f"signal: {name}"}
        else:
            end = {"exitCode": code, "exited": True, "status": f"exit status {code}"}
            if code:
                end["error"] = f"exit status {code}"
        self.tell({"end": end})


class Processes:
    def __init__(self, home: str) -> None:
        self.home = home
        self.envs: dict[str, str] = {}
        self.running: dict[int, Running] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def routes(self) -> list[Route]:
        calls: dict[str, Any] = {
            "List": unary(self.list),
            "Start": server_stream(self.start),
            "Connect": server_stream(self.connect),
            "SendInput": unary(self.send_input),
            "StreamInput": client_stream(self.stream_input),
            "CloseStdin": unary(self.close_stdin),
            "SendSignal": unary(self.send_signal),
            "Update": unary(self.update),
        }
        return [Route(f"/process.Process/{name}", call, methods=["POST"]) for name, call in calls.items()]

    async def list(self, message: Message, request: Request) -> Message:
        return {
            "processes": [
                {"pid": r.pid, "config": r.config, **({"tag": r.tag} if r.tag else {})}
                for r in self.running.values()
            ]
        }

    async def start(self, message: Message, request: Request) -> AsyncIterator[Message]:
        if message.get("pty"):
            raise ConnectError("unimplemented", "the test cloud has no pseudo-terminals")
        config = message.get("process") or {}
        cwd = config.get("cwd") or self.home
        if not Path(cwd).is_dir():
            raise ConnectError("invalid_argument", f"cwd '{cwd}' does not exist")
        try:
            process = await asyncio.create_subprocess_exec(
                config.get("cmd", ""),
                *config.get("args", []),
                stdin=asyncio.subprocess.PIPE if message.get("stdin", True) else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=cwd,
                env={**environment(self.home), **self.envs, **config.get("envs", {})},
                start_new_session=True,
            )
        except OSError as error:
            raise ConnectError("invalid_argument", f"error starting process: {error}") from error
        running = Running(process, config, message.get("tag"))
        self.running[running.pid] = running
        events = self._listen(running)
        self._keep(self._until_end(running, deadline(request)))
        async for event in self._events(running, events, request):
            yield event

    async def connect(self, message: Message, request: Request) -> AsyncIterator[Message]:
        running = self._selected(message)
        async with asyncio.timeout(deadline(request)):
            async for event in self._events(running, self._listen(running), request):
                yield event

    async def _until_end(self, running: Running, seconds: float | None) -> None:
        """The call's time limit is the whole life of the process, whether anybody listens or not."""
        try:
            await asyncio.wait_for(running.follow(), seconds)
        except TimeoutError:
            running.kill()
            await running.process.wait()
            running.tell({"timeout": True})
        finally:
            self.running.pop(running.pid, None)

    def _listen(self, running: Running) -> asyncio.Queue[Message]:
        queue: asyncio.Queue[Message] = asyncio.Queue()
        running.listeners.append(queue)
        return queue

    async def _events(
        self, running: Running, queue: asyncio.Queue[Message], request: Request
    ) -> AsyncIterator[Message]:
        ping = float(request.headers.get("keepalive-ping-interval") or PING)
        try:
            yield {"event": {"start": {"pid": running.pid}}}
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), ping)
                except TimeoutError:
                    yield {"event": {"keepalive": {}}}
                    continue
                if "timeout" in event:
                    raise ConnectError("deadline_exceeded", "context deadline exceeded")
                yield {"event": event}
                if "end" in event:
                    return
        finally:
            running.listeners.remove(queue)

    async def send_input(self, message: Message, request: Request) -> Message:
        await self._feed(self._selected(message), message.get("input") or {})
        return {}

    async def stream_input(self, messages: AsyncIterator[Message], request: Request) -> Message:
        running: Running | None = None
        async for message in messages:
            if "start" in message:
                running = self._selected(message["start"])
            elif "data" in message:
                if running is None:
                    raise ConnectError("invalid_argument", "the stream has to begin with the process")
                await self._feed(running, message["data"].get("input") or {})
        return {}

    async def close_stdin(self, message: Message, request: Request) -> Message:
        stdin = self._selected(message).process.stdin
        if stdin is not None:
            stdin.close()
        return {}

    async def send_signal(self, message: Message, request: Request) -> Message:
        numbers = {
            "SIGNAL_SIGKILL": signal.SIGKILL,
            "SIGNAL_SIGTERM": signal.SIGTERM,
            9: signal.SIGKILL,
            15: signal.SIGTERM,
        }
        number = numbers.get(message.get("signal", ""))
        if number is None:
            raise ConnectError("invalid_argument", f"invalid signal: {message.get('signal')}")
        self._selected(message).kill(number)
        return {}

    async def update(self, message: Message, request: Request) -> Message:
        raise ConnectError("unimplemented", "the test cloud has no pseudo-terminals")

    async def _feed(self, running: Running, data: Message) -> None:
        stdin = running.process.stdin
        if stdin is None or "stdin" not in data:
            raise ConnectError("failed_precondition", "the process was started without an input")
        try:
            stdin.write(base64.b64decode(data["stdin"]))
            await stdin.drain()
        except (ConnectionError, RuntimeError) as error:
            raise ConnectError("internal", f"error writing to the input: {error}") from error

    def _selected(self, message: Message) -> Running:
        selector = message.get("process") or {}
        for running in self.running.values():
            if running.pid == selector.get("pid") or (selector.get("tag") and running.tag == selector["tag"]):
                return running
        raise ConnectError(
            "not_found", f"process with pid {selector.get('pid', selector.get('tag'))} not found"
        )

    def _keep(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def environment(home: str) -> dict[str, str]:
    """What a process of a sandbox starts with: nothing of the cloud's own."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": home,
        "LANG": "C.UTF-8",
        "USER": "user",
        "LOGNAME": "user",
        "SHELL": "/bin/bash",
        "E2B_SANDBOX": "true",
    }
