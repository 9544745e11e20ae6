"""The host's end of code mode: takes the connections of code in the sandbox, and answers what it asks for.

The code may be anybody's: each connection says the session's token first, may ask for one thing, and is heard only while
a run of code is under way. What it may call is decided here and by the user.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sandbox_chat.bridge import finding, values
from sandbox_chat.bridge.frames import BadFrame, TooLarge, pack, receive
from sandbox_chat.bridge.policy import Policy
from sandbox_chat.bridge.run import OverLimit, Run
from sandbox_chat.events import ImageContent, NestedFinished, NestedStarted, Sink, TextContent
from sandbox_chat.guest.calls import python_name
from sandbox_chat.mcp.base import McpError, ToolDefinition
from sandbox_chat.mcp.host import Refused, Servers, Terms
from sandbox_chat.sandbox import base
from sandbox_chat.settings import Secret, Settings
from sandbox_chat.text import bound, clean
from sandbox_chat.tools.context import Ask

if TYPE_CHECKING:
    from sandbox_chat.bridge.private import Private
    from sandbox_chat.bridge.shelf import Shelf

log = logging.getLogger(__name__)

CONNECTIONS = 256
"""Connections at the same time; more are closed at once."""
NO_RUN = "No run of code may make calls now: only code that the agent runs may, as long as it runs."
BAD_TOKEN = "This connection does not know the session's token."  # noqa: S105 - a sentence
STOPPED = "The call was stopped."
ASKED_BY_CODE = "This is called by code in the sandbox that the agent wrote."
READING = 30.0
"""Seconds that code may take to read an answer."""
LONGEST_NAME = 1000
"""Characters of a name or a query that are looked at."""
LOGGED = 50
"""Refusals that are logged one by one for each run."""

Answer = dict[str, Any]


class CodeBridge:
    """Code mode of a session. All on one loop but ``serve``.

    ``servers`` are those whose tools may be called, ``emit`` takes the events, ``ask`` asks the user,
    ``save_picture`` saves a picture of a result. ``private`` hides personal data, ``shelf`` holds the skills; either may be missing.
    """

    def __init__(
        self,
        servers: Servers | None,
        settings: Settings,
        emit: Sink,
        ask: Ask,
        *,
        save_picture: Callable[[bytes, str], ImageContent],
        private: Private | None = None,
        shelf: Shelf | None = None,
    ) -> None:
        self._servers = servers
        self._settings = settings
        self._emit = emit
        self._ask = ask
        self._save_picture = save_picture
        self._private = private
        self._shelf = shelf
        self._policy = Policy(settings)
        self._token = Secret(secrets.token_urlsafe(32))
        self._run: Run | None = None
        self._turn = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._refused = 0

    @contextlib.asynccontextmanager
    async def run(self, call_id: str) -> AsyncIterator[base.Bridge]:
        """Let the code of one run make calls, as long as this lasts; a further run waits for its end."""
        async with self._turn:
            self._loop = asyncio.get_running_loop()
            run = self._run = Run(call_id, self._settings)
            self._refused = 0
            try:
                yield base.Bridge(token=self._token, serve=self.serve, waited=run.waited)
            finally:
                self._run = None
                await run.end()
                for task in list(self._open):  # also what is half heard, and who does not read
                    task.cancel()

    def without_token(self, text: str) -> str:
        """Return a text for the model without the token, which code can find."""
        return text.replace(self._token.reveal(), "[token]")

    def serve(self, sock: socket.socket) -> None:
        """Take a connection. Any thread; returns at once."""
        loop = self._loop
        try:
            if loop is None:
                raise RuntimeError
            loop.call_soon_threadsafe(self._begin, sock)
        except RuntimeError:  # the session is over
            sock.close()

    # -- one connection --------------------------------------------------------------------------------

    def _begin(self, sock: socket.socket) -> None:
        if len(self._open) >= CONNECTIONS:
            self._refuse("too many connections")
            sock.close()
            return
        task = asyncio.ensure_future(self._follow(sock, self._run))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _follow(self, sock: socket.socket, run: Run | None) -> None:
        """Serve a connection that was made during ``run``, which it belongs to."""
        reader, writer = await asyncio.open_connection(sock=sock)
        try:
            answer = await self._heard(reader, run)
            writer.write(answer if isinstance(answer, bytes) else self._packed(answer))
            async with asyncio.timeout(READING):
                await writer.drain()
        except (OSError, BadFrame):  # a timeout is one too
            writer.transport.abort()
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            writer.close()

    def _packed(self, answer: Answer) -> bytes:
        longest = int(self._settings.code_mode_result_mb * 1_000_000)
        try:
            return pack(answer, longest)
        except TooLarge as problem:
            self._refuse(str(problem))
            return pack(_failure("limit", str(problem)), longest)

    async def _heard(self, reader: asyncio.StreamReader, run: Run | None) -> Answer | bytes:
        """Read one request and do what it asks for, unless its connection is closed before."""
        try:
            request = await receive(reader, int(self._settings.code_mode_request_mb * 1_000_000))
        except BadFrame as problem:
            self._refuse(str(problem))
            return _failure("limit" if isinstance(problem, TooLarge) else "failed", str(problem))
        token = request.pop("token", None)
        if not isinstance(token, str) or not hmac.compare_digest(
            token.encode("utf-8", "replace"), self._token.reveal().encode()
        ):
            self._refuse("a wrong token")
            return _failure("denied", BAD_TOKEN)
        if run is None or run.over or run is not self._run:
            self._refuse("a call outside of a run")
            return _failure("stopped", NO_RUN)
        work = asyncio.ensure_future(self._answer(run, request))
        gone = asyncio.ensure_future(reader.read(1))
        run.tasks.add(work)
        work.add_done_callback(run.tasks.discard)
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():  # the code does not wait for it any more
                work.cancel()
            return await work
        except asyncio.CancelledError:
            return _failure("stopped", STOPPED)
        finally:
            work.cancel()
            gone.cancel()

    async def _answer(self, run: Run, request: Mapping[str, Any]) -> Answer | bytes:
        try:
            match request.get("op"):
                case "call":
                    return await self._call(run, request)
                case "list" | "search" | "details" | "server":
                    return await self._found(run, request)
                case "skills" | "skill" | "skill_text" | "draft" if self._shelf is not None:
                    return await self._shelf.answer(request, run.call_id)
            self._refuse("a request that is none")
            return _failure("failed", "The host does not know this request.")
        except OverLimit as problem:
            self._refuse(str(problem))
            return _failure("limit", str(problem))
        except McpError as problem:
            return _failure("failed", str(problem))
        except Exception as error:
            log.exception("a request of code failed")
            return _failure("failed", f"{type(error).__name__}: {clean(self._settings.scrub(str(error)))}")

    # -- finding ---------------------------------------------------------------------------------------

    async def _tools(self, run: Run) -> Sequence[ToolDefinition]:
        """Return all tools; servers that have to be started for that take their time, which is not the code's."""
        if self._servers is None:
            return []
        with run.waiting():
            return await self._servers.definitions()

    async def _found(self, run: Run, request: Mapping[str, Any]) -> Answer:
        """Answer what asks for tools; what a server says of itself may hold personal data too."""
        short = {
            key: value[:LONGEST_NAME] if isinstance(value, str) else value for key, value in request.items()
        }
        answer = await self._find(run, short)
        return await self._private.safe_value(answer, strict=False) if self._private is not None else answer

    async def _find(self, run: Run, request: Mapping[str, Any]) -> Answer:
        tools = await self._tools(run)
        op = request["op"]
        if op == "details":
            tool = finding.find(tools, str(request.get("name")))
            return (
                _value(finding.details(tool))
                if tool is not None
                else self._unknown(request.get("name"), tools)
            )
        if op == "server":
            wanted = str(request.get("name"))
            found = [tool for tool in tools if wanted in (tool.server, python_name(tool.server))]
            if not found:
                there = ", ".join(dict.fromkeys(python_name(tool.server) for tool in tools)) or "none"
                words = f"There is no MCP server {clean(bound(wanted, 80))!r}; there are {there}."
                return _failure("unknown", " ".join([words, *self._troubles()]))
            return _value({"server": found[0].server, "tools": finding.stubs(found)})
        query = request.get("query")
        if op == "search":
            limit = request.get("limit")
            most = limit if isinstance(limit, int) and 0 < limit < finding.MOST else finding.MOST
            return _value(finding.listed(finding.search(tools, str(query or ""), most), "summary"))
        detail = request.get("detail")
        if detail not in finding.DETAILS:
            return _failure("arguments", f"detail must be one of {', '.join(finding.DETAILS)}.")
        if query:
            tools = finding.search(tools, str(query))
        return _value(finding.listed(tools, str(detail)))

    def _unknown(self, name: Any, tools: Sequence[ToolDefinition]) -> Answer:
        near = finding.search(tools, str(name).replace("_", " "), 5)
        hint = f" Did you mean {', '.join(map(finding.name_of, near))}?" if near else ""
        words = f"There is no tool {clean(bound(str(name), 80))!r}.{hint} list_mcp_tools() lists all, as server__tool."
        return _failure("unknown", " ".join([words, *self._troubles()]))

    def _troubles(self) -> list[str]:
        return self._servers.troubles() if self._servers is not None else []

    # -- calling ---------------------------------------------------------------------------------------

    async def _call(self, run: Run, request: Mapping[str, Any]) -> Answer | bytes:
        arguments, timeout = request.get("arguments"), request.get("timeout")
        if not isinstance(arguments, dict):
            return _failure("arguments", "The arguments must be a dict.")
        if timeout is not None and (
            not isinstance(timeout, int | float) or isinstance(timeout, bool) or not timeout > 0  # NaN
        ):
            return _failure("arguments", "timeout must be a number of seconds above 0.")
        tools = await self._tools(run)
        name = str(request.get("name"))[:LONGEST_NAME]
        tool = finding.find(tools, name)
        if tool is None or self._servers is None:
            self._refuse("a tool that there is not")
            return self._unknown(name, tools)
        # Only what counts as a call stops the clock of the code.
        with run.waiting():
            return await self._counted(run, tool, arguments, self._limit(timeout))

    async def _counted(
        self, run: Run, tool: ToolDefinition, arguments: dict[str, Any], limit: float | None
    ) -> bytes:
        async with run.call() as number:
            return await self._told(run, number, tool, arguments, limit)

    async def _told(
        self, run: Run, number: int, tool: ToolDefinition, arguments: dict[str, Any], limit: float | None
    ) -> bytes:
        """Make a call and tell of its start and its end; returns the answer as it is sent."""
        call_id = f"{run.call_id}.{number}"
        private = self._private
        said: dict[str, Any] = await private.hidden(arguments) if private is not None else arguments
        shown = await asyncio.to_thread(_clean, said)
        self._emit(NestedStarted(tool_use_id=run.call_id, call_id=call_id, name=tool.full_name, input=shown))
        start = time.monotonic()
        content: tuple[Any, ...] = (TextContent(STOPPED),)
        answer = _failure("stopped", STOPPED)
        stopped = True
        try:
            answer = await self._made(run, tool, arguments, said, limit)
            longest = int(self._settings.code_mode_result_mb * 1_000_000)
            try:
                packed = await asyncio.to_thread(pack, answer, longest)
            except TooLarge as problem:
                self._refuse(str(problem))
                answer = _failure("limit", str(problem))
                packed = self._packed(answer)
            stopped = False
            if answer["ok"]:
                most = self._settings.code_mode_shown
                content = await asyncio.to_thread(values.shown, answer, self._save_picture, most)
            else:
                content = (
                    TextContent(clean(bound(str(answer["text"]), self._settings.code_mode_shown)), ()),
                )
            return packed
        finally:
            self._emit(
                NestedFinished(
                    tool_use_id=run.call_id,
                    call_id=call_id,
                    is_error=not answer["ok"],
                    content=content,
                    duration_ms=int((time.monotonic() - start) * 1000),
                    interrupted=stopped,
                )
            )

    async def _made(
        self,
        run: Run,
        tool: ToolDefinition,
        arguments: dict[str, Any],
        said: dict[str, Any],
        limit: float | None,
    ) -> Answer:
        servers, private = self._servers, self._private
        assert servers is not None
        config = servers.config(tool.server)
        shows = private.shows(config, tool) if private is not None and config is not None else ()
        note = ASKED_BY_CODE
        send = None
        if private is not None and shows:
            note += " " + private.note(shows)

            def send(frozen: dict[str, Any]) -> dict[str, Any]:
                return private.revealed(frozen, shows)

        terms = Terms(timeout=limit, shown=said, is_free=self._policy.is_free, send=send, note=note)
        try:
            result, tool = await servers.nested(
                tool.server, tool.name, arguments, call_id=run.call_id, ask=self._ask, terms=terms
            )
        except Refused as refusal:
            words = await self._hidden(str(refusal).removeprefix("[error] "), strict=bool(shows))
            self._refuse(values.short(words))
            if refusal.kind == "arguments":
                words += f" Expected: {finding.signature(tool)}."
            return _failure(refusal.kind, words)
        except McpError as error:
            kind = "timeout" if "did not answer within" in str(error) else "failed"
            return _failure(kind, await self._hidden(str(error), strict=bool(shows)))
        if result.is_error:
            words = servers.scrub(tool.server, values.text_of(result)) or "The tool failed and said nothing."
            return _failure("failed", await self._hidden(clean(words), strict=bool(shows)))
        answer = values.answer_of(result, has_schema=tool.output_schema is not None)
        return {"ok": True, **await self._without(answer, tool.server, strict=bool(shows))}

    def _limit(self, timeout: float | None) -> float | None:
        return float(min(timeout, self._settings.mcp_call_timeout)) if timeout is not None else None

    async def _hidden(self, text: str, *, strict: bool) -> str:
        return await self._private.safe(text, strict=strict) if self._private is not None else text

    async def _without(self, answer: Answer, server: str, *, strict: bool) -> Answer:
        """Return a result without the credentials of its server and, where they are to be hidden, personal data."""
        servers, private = self._servers, self._private
        assert servers is not None
        if _holds_text(answer):
            answer = await asyncio.to_thread(_mapped, answer, lambda text: servers.scrub(server, text))
        if private is not None:
            answer = await private.safe_value(answer, strict=strict)
        return answer

    def _refuse(self, why: str) -> None:
        """Log what was not done."""
        self._refused += 1
        if self._refused <= LOGGED:
            run = self._run.call_id if self._run is not None else "no run"
            log.warning("code mode refused (%s): %s", run, values.short(why))


def _value(value: Any) -> Answer:
    return {"ok": True, "value": value}


def _failure(kind: str, text: str) -> Answer:
    return {"ok": False, "kind": kind, "text": text}


def _holds_text(answer: Answer) -> bool:
    return "parts" in answer or isinstance(answer.get("value"), str | list | dict)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return JSON data with ``change`` done to every text in it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(name)): _mapped(each, change) for name, each in value.items()}
    return [_mapped(each, change) for each in value] if isinstance(value, list) else value


def _clean(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return arguments as they are shown and recorded: no broken characters, and not without end."""
    words = json.dumps(arguments, ensure_ascii=False, default=str).encode("utf-8", "replace").decode("utf-8")
    if len(words) > LONGEST_INPUT:
        return {"arguments": clean(bound(words, LONGEST_INPUT))}
    return {clean(str(name)): value for name, value in json.loads(words).items()}


LONGEST_INPUT = 20_000
"""Characters of the arguments of one call that are recorded."""
