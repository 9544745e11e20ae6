"""One running MCP server: JSON-RPC lines over its standard input and output.

Messages are passed on as they are and not built anew from models of the protocol: a gateway must neither lose a field
that it does not know nor a list of tools because one of them is wrong, and has to do the same with every version of
the ``mcp`` library that a sandbox has.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .json_text import whole_characters
from .log import Lines, Log

OnProgress = Callable[[Mapping[str, Any]], Awaitable[None]]
LARGEST = 64 << 20
"""Bytes of the largest message that a server may send."""
_UNREAD = 64 << 20  # bytes that a server has not read, at which it gets no more
_SHOWN = 64 << 10  # bytes of a line that is no message which are looked at for the log
_QUEUE = 1000  # messages of progress of one call that wait
_AFTER_EXIT = 0.5  # s in which the last words of a server that has ended are read
_AFTER_EOF = 1.5  # s that a server has to end by itself, and again after SIGTERM
_METHOD_NOT_FOUND = -32601


class LinkClosed(Exception):
    """The server has ended, or cannot be spoken to. The message says how."""


class RemoteError(Exception):
    """The server answered with an error of the protocol."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass
class _Waiting:
    """A request that waits: what came for it, and whether progress is wanted."""

    items: asyncio.Queue[tuple[str, Any]] = field(default_factory=asyncio.Queue)
    progress: bool = False


class Link(asyncio.SubprocessProtocol):
    """A server's process. Made by ``open``; every method belongs to the event loop that made it."""

    def __init__(self, name: str, log: Log, on_tools_changed: Callable[[], None]) -> None:
        self.name = name
        self.closed = ""
        """Why the server cannot be spoken to any more; empty while it can."""
        self._log = log
        self._lines = Lines(log, name)
        self._on_tools_changed = on_tools_changed
        self._numbers = itertools.count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._parts: list[bytes] = []
        self._size = 0
        self._exited = asyncio.Event()
        self._silent = False
        self._ending = ""
        self._transport: asyncio.SubprocessTransport
        self._input: asyncio.WriteTransport

    @classmethod
    async def open(
        cls,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: str | None,
        log: Log,
        on_tools_changed: Callable[[], None],
    ) -> Link:
        """Start the server in a session of its own. Raises ``LinkClosed``."""
        loop = asyncio.get_running_loop()
        try:
            _, link = await loop.subprocess_exec(
                lambda: cls(name, log, on_tools_changed),
                *command,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )
        except OSError as error:
            raise LinkClosed(f"{command[0]}: {error.strerror or error}") from None
        except ValueError as error:
            raise LinkClosed(f"{command[0]}: {error}") from None
        return link

    # the process, as asyncio tells it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the process."""
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport
        pipe = transport.get_pipe_transport(0)
        assert isinstance(pipe, asyncio.WriteTransport)
        self._input = pipe

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what the server wrote."""
        if fd == 2:
            self._lines.feed(data)
            return
        first, *rest = data.split(b"\n")
        self._gather(first)
        for part in rest:
            line, self._parts, self._size = b"".join(self._parts), [], 0
            self._take(line)
            self._gather(part)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Note that the server closed its output."""
        if fd == 2:
            self._lines.end()
        elif fd == 1:
            self._silent = True
            if self._exited.is_set():
                self._fail(self._ending)
            else:  # the exit itself, with its code, usually follows at once
                asyncio.get_running_loop().call_later(_AFTER_EXIT, self._fail, "it closed its output")

    def process_exited(self) -> None:
        """Note that the server has ended, and end what it left in its session."""
        code = self._transport.get_returncode() or 0
        self._ending = f"it ended (signal {-code})" if code < 0 else f"it ended (exit code {code})"
        self._signal(signal.SIGKILL)
        self._exited.set()
        if self._silent:
            self._fail(self._ending)
        else:
            asyncio.get_running_loop().call_later(_AFTER_EXIT, self._fail, self._ending)

    # messages

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        """Send a request and return its result. With ``on_progress`` the server is asked for progress.

        A caller that is cancelled cancels the request. Raises ``RemoteError`` and ``LinkClosed``.
        """
        number = next(self._numbers)
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
        if on_progress is not None:
            params = {
                **(params or {}),
                "_meta": {**((params or {}).get("_meta") or {}), "progressToken": number},
            }
        if params is not None:
            message["params"] = params
        waiting = self._waiting[number] = _Waiting(progress=on_progress is not None)
        try:
            self._send(message)
            while True:
                kind, value = await waiting.items.get()
                if kind == "progress":
                    assert on_progress is not None
                    await on_progress(value)
                elif kind == "result":
                    assert isinstance(value, dict)
                    return value
                else:
                    raise value
        except asyncio.CancelledError:
            self.notify(
                "notifications/cancelled", {"requestId": number, "reason": "the client cancelled the call"}
            )
            raise
        finally:
            self._waiting.pop(number, None)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification, if the server still reads."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        with contextlib.suppress(LinkClosed):
            self._send(message)

    async def close(self) -> None:
        """End the server: its input is closed, then it is asked, then it is killed with its session."""
        self._fail("the gateway ends it")
        self._input.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            if await self._gone(_AFTER_EOF):
                break
            self._signal(number)
        await self._gone(_AFTER_EOF)
        self._transport.close()

    def kill(self) -> None:
        """End the server at once."""
        if not self._exited.is_set():
            self._signal(signal.SIGKILL)

    async def _gone(self, limit: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), limit)
        return self._exited.is_set()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), number)

    def _send(self, message: Mapping[str, Any]) -> None:
        if not self.closed and self._input.is_closing():
            self._fail("it closed its input")
        if self.closed:
            raise LinkClosed(self.closed)
        if self._input.get_write_buffer_size() > _UNREAD:
            raise LinkClosed("it does not read what it is sent")
        self._input.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def _gather(self, part: bytes) -> None:
        if not part or self.closed:
            return
        self._parts.append(part)
        self._size += len(part)
        if self._size > LARGEST:
            self._parts, self._size = [], 0
            self._fail(f"it sent a message of more than {LARGEST >> 20} MB, and was ended")
            self.kill()

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = json.loads(whole_characters(line.decode("utf-8", "replace")))
        except (ValueError, RecursionError):
            message = None
        items = message if isinstance(message, list) else [message]
        if not all(isinstance(item, dict) for item in items):
            self._log.line(self.name, f"(on standard output) {line[:_SHOWN].decode('utf-8', 'replace')}")
        for item in items:
            if not isinstance(item, dict):
                continue
            if isinstance(item.get("method"), str):
                self._take_call(item["method"], item)
            else:
                self._take_answer(item)

    def _take_answer(self, item: dict[str, Any]) -> None:
        number = item.get("id")
        if isinstance(number, str) and number.isdecimal() and len(number) < 20:
            number = int(number)
        waiting = self._waiting.get(number) if type(number) is int else None
        if waiting is None:
            return  # of a call that was cancelled, or of none
        error = item.get("error")
        if isinstance(error, dict):
            code = error.get("code")
            text = error.get("message")
            code = code if isinstance(code, int) and not isinstance(code, bool) else -32603
            text = text if isinstance(text, str) else "the server gave no message"
            waiting.items.put_nowait(("error", RemoteError(code, text, error.get("data"))))
        elif isinstance(item.get("result"), dict):
            waiting.items.put_nowait(("result", item["result"]))
        else:
            waiting.items.put_nowait(("error", RemoteError(-32603, "the server's answer holds no result")))

    def _take_call(self, method: str, item: dict[str, Any]) -> None:
        params = item.get("params")
        if "id" in item:
            answer: dict[str, Any] = {"jsonrpc": "2.0", "id": item["id"]}
            if method == "ping":
                answer["result"] = {}
            else:
                answer["error"] = {
                    "code": _METHOD_NOT_FOUND,
                    "message": f"the gateway does not offer {method[:80]}",
                }
            with contextlib.suppress(LinkClosed):
                self._send(answer)
        elif method == "notifications/progress" and isinstance(params, dict):
            token = params.get("progressToken")
            waiting = self._waiting.get(token) if type(token) is int else None
            if waiting is not None and waiting.progress and waiting.items.qsize() < _QUEUE:
                waiting.items.put_nowait(("progress", params))
        elif method == "notifications/tools/list_changed":
            self._on_tools_changed()

    def _fail(self, reason: str) -> None:
        if self.closed:
            return
        self.closed = reason
        for waiting in self._waiting.values():
            waiting.items.put_nowait(("error", LinkClosed(reason)))
