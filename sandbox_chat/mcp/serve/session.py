"""One client's sandbox and the tools over it, as an MCP server that any transport can run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mcp import MCPError, types
from mcp.server import Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from pydantic import ValidationError

from sandbox_chat import sandbox
from sandbox_chat.ansi import Piece
from sandbox_chat.events import FileContent, ImageContent, Stream
from sandbox_chat.mcp.serve.files import Shelf
from sandbox_chat.sandbox.base import Capabilities, SandboxUnavailable
from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean, clean_line
from sandbox_chat.tools.calling import to_result
from sandbox_chat.tools.context import ImageBlock, Question, ToolContext, ToolOutcome
from sandbox_chat.tools.images import picture_saver
from sandbox_chat.tools.news import News
from sandbox_chat.tools.policy import Policy
from sandbox_chat.tools.server import make_server

log = logging.getLogger(__name__)

INSTRUCTIONS = (
    "Runs Python in an isolated sandbox of its own, whose variables, imports and files stay from call to call until "
    "the client disconnects. Files under /tmp are the sandbox's, not this computer's; download_file copies one out."
)
PROGRESS_EVERY = 1.0
"""Seconds between two progress notifications of a call, and before the first."""
ANSWER = "answer"
"""Name of the field that a question's form has."""

Request = ServerRequestContext[Any, Any]
current_request: ContextVar[Request | None] = ContextVar("current_request", default=None)
"""The request that is being answered, for what happens in its task."""


@dataclass(slots=True, eq=False)
class _Call:
    """A call that runs. ``words`` say what it is doing, for the client."""

    request: Request
    limit: float | None
    ticker: asyncio.Task[None] | None = None
    words: str = ""


class Session:
    """A sandbox and the MCP server of its tools. All methods belong to one loop; nothing is started before the first call.

    Raises ``SandboxUnavailable`` with a sentence when there can be no sandbox.
    """

    def __init__(self, settings: Settings, shelf: Shelf) -> None:
        self.id = uuid.uuid4().hex
        self.used = time.monotonic()
        """When it was last used (``time.monotonic()``)."""
        self._settings = settings
        self._worker = _make_worker(settings, self.id)
        self._shelf = shelf
        self._policy = Policy()
        self._calls: dict[str, _Call] = {}
        self._closed = False
        self.context = ToolContext(
            settings=settings,
            worker=self._worker,
            save_picture=picture_saver(shelf.save_picture),
            save_file=shelf.save_file,
            started=self._started,
            finished=self._finished,
            output=self._output,
            news=News(lambda _call, _stream, _piece: None),
            ask=self._ask,
            progress=self._progress,
            output_dir=shelf.folder,
        )
        self.server: Server[dict[str, Any]] = make_server(self.context, render=self._render)
        self.server.instructions = INSTRUCTIONS
        self.server.middleware.append(note_request)

    @property
    def busy(self) -> bool:
        """True while a call runs."""
        return bool(self._calls)

    async def close(self) -> None:
        """End the sandbox and remove the files, within ``settings.close_timeout`` seconds. Any number of times."""
        if self._closed:
            return
        self._closed = True
        for call in self._calls.values():
            if call.ticker is not None:
                call.ticker.cancel()
        # On a thread that the end of the program does not wait for.
        await asyncio.shield(_aside(lambda: self._worker.close(self._settings.close_timeout)))
        self._shelf.remove()

    # -- what is told of the calls ---------------------------------------------------------------------

    def _started(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> None:
        request = current_request.get()
        if request is None or call_id in self._calls:
            return
        limit = None
        if name.endswith("__run_code"):
            given = arguments.get("timeout")
            limit = float(given if isinstance(given, int) else self._settings.run_timeout)
        call = self._calls[call_id] = _Call(request, limit)
        if _progress_token(request) is not None:
            call.ticker = asyncio.ensure_future(self._tick(call))

    def _finished(self, call_id: str, outcome: ToolOutcome, duration_ms: int) -> None:
        call = self._calls.pop(call_id, None)
        if call is not None and call.ticker is not None:
            call.ticker.cancel()
        self.used = time.monotonic()
        self._shelf.trim()
        log.info("a call ended after %d ms, failed: %s", duration_ms, outcome.is_error)

    def _output(self, call_id: str, stream: Stream, piece: Piece, late: bool) -> None:
        del stream
        call = self._calls.get(call_id)
        if call is not None and not late and (line := piece.text.strip().rpartition("\n")[2]):
            call.words = clean_line(line)

    def _progress(self, subject: str, label: str, done: int, total: int, over: bool) -> None:
        call = self._calls.get(subject)
        if call is not None and not over:
            call.words = f"{label}: {done:,} of {total:,} bytes"

    async def _tick(self, call: _Call) -> None:
        """Tell the client again and again that the call runs, and what it writes."""
        begun = time.monotonic()
        while True:
            await asyncio.sleep(PROGRESS_EVERY)
            seconds = round(time.monotonic() - begun, 1)
            words = call.words or f"running for {seconds:.0f} s"
            try:
                await call.request.session.report_progress(seconds, call.limit, words)
            except Exception as error:  # the client has gone, or takes no more: its call goes on
                log.info("progress could not be told: %s", type(error).__name__)
                return

    def _render(self, outcome: ToolOutcome) -> types.CallToolResult:
        """Return an outcome as MCP's result, with the paths of what the client gets only as files."""
        result = to_result(outcome)
        given = sum(isinstance(block, ImageBlock) for block in outcome.model)
        pictures = [each for each in outcome.display if isinstance(each, ImageContent)]
        said = [f"picture: {each.path}" for each in pictures[given:] if each.path]
        said += [f"{each.title}: {each.path}" for each in outcome.display if isinstance(each, FileContent)]
        if said:
            head = "[files] On this computer, until this server ends or newer files take their room:"
            text = clean("\n".join([head, *said]))
            result.content.append(types.TextContent(type="text", text=text))
        return result

    # -- questions -------------------------------------------------------------------------------------

    async def _ask(self, question: Question) -> str:
        """Ask by the client's own form where it has one; else take the answer that destroys nothing."""
        if known := self._policy.answer(question.kind, question.subject):
            return known
        call = self._calls.get(question.tool_use_id)
        if call is None or not _can_ask(call.request):
            return question.default
        choices = {choice.name: choice.label for choice in question.choices}
        schema = {
            "type": "object",
            "properties": {
                ANSWER: {
                    "type": "string",
                    "title": "What to do",
                    "enum": list(choices),
                    "enumNames": list(choices.values()),
                    "default": question.default,
                }
            },
            "required": [ANSWER],
        }
        message = "\n".join(part for part in (question.question, question.detail) if part)
        try:
            result = await call.request.session.elicit_form(message, schema, call.request.request_id)
        except (MCPError, ValidationError, ValueError) as error:
            log.info("the client could not ask: %s", type(error).__name__)
            return question.default
        if result.action == "decline" and "no" in choices:
            return "no"
        answer = str((result.content or {}).get(ANSWER)) if result.action == "accept" else ""
        if answer not in choices:
            return question.default
        if answer in question.lasting:
            self._policy.remember(question.kind, question.subject, answer, uuid.uuid4().hex)
        return answer


def capabilities(settings: Settings) -> Capabilities:
    """Return what the sandboxes of these settings can do. Starts none. Raises ``SandboxUnavailable`` with a sentence."""
    worker = _make_worker(settings, "")
    worker.close(0.0)
    return worker.info.capabilities


def _make_worker(settings: Settings, name: str) -> SandboxWorker:
    worker = sandbox.make_worker(settings, session_id=name)
    if worker is None:
        raise SandboxUnavailable(
            "With the sandbox off there are no tools to serve. Use --sandbox local, docker or e2b."
        )
    return worker


async def note_request(ctx: Request, call_next: CallNext) -> HandlerResult:
    """Let what happens in a request's task know the request: a middleware of the server."""
    with noted(ctx):
        return await call_next(ctx)


@contextlib.contextmanager
def noted(request: Request) -> Iterator[None]:
    """Make ``request`` the current one."""
    token = current_request.set(request)
    try:
        yield
    finally:
        current_request.reset(token)


def _can_ask(request: Request) -> bool:
    wanted = types.ClientCapabilities(elicitation=types.ElicitationCapability())
    return request.session.can_send_request and request.session.check_client_capability(wanted)


def _progress_token(request: Request) -> Any:
    meta = (request.params or {}).get("_meta")
    return meta.get("progressToken") if isinstance(meta, Mapping) else None


def _aside(work: Callable[[], None]) -> asyncio.Future[None]:
    """Run blocking ``work`` on a daemon thread; the future ends with it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not done.done():
            done.set_result(None)

    def run() -> None:
        try:
            work()
        except Exception as error:
            log.warning("a sandbox did not end well: %s", type(error).__name__)
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=run, name="sandbox-close", daemon=True).start()
    return done
