"""The code interpreter: contexts, and code run in them with its output as lines of JSON.

Measured behaviour of the real server that is kept: keep-alive lines while nothing comes; the kernel is
interrupted when the client leaves (variables survive); code sent less than ``QUIET`` after that never
starts and hangs on keep-alives; a dead kernel gives ``ContextRestarting`` after a while and is replaced
without a word about the variables; what a thread prints after its code has ended is lost.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from .asgi import Stream
from .kernels import Kernel, Kernels

KEEPALIVE = 2.0
"""Seconds of silence after which a line is sent all the same."""

QUIET = 0.5
"""Seconds after a client left within which new code falls into the server's hole."""

INTERRUPT_PATIENCE = 3.0
"""Seconds that interrupted code has to end before it is interrupted again (a kernel that had not yet begun
with the code does not heed the first one)."""

FORMATS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
}


class Context:
    def __init__(self, cwd: str, language: str = "python", name: str = "") -> None:
        self.id = name or str(uuid.uuid4())
        self.cwd = cwd
        self.language = language
        self.lock = asyncio.Lock()
        self.kernel: Kernel | None = None
        self.left_at = -QUIET
        """When a client last left in the middle of a run (monotonic)."""

    @property
    def described(self) -> dict[str, str]:
        return {"id": self.id, "language": self.language, "cwd": self.cwd}


class Interpreter:
    def __init__(self, kernels: Kernels, home: str, *, quirks: bool, death_delay: float) -> None:
        self._kernels = kernels
        self._quirks = quirks
        self._death_delay = death_delay
        self._default = Context(home)
        self._contexts = {self._default.id: self._default}
        self._tasks: set[asyncio.Task[None]] = set()
        self.token = ""

    def routes(self) -> list[Route]:
        return [
            Route("/health", self.health),
            Route("/execute", self.execute, methods=["POST"]),
            Route("/contexts", self.list),
            Route("/contexts", self.create, methods=["POST"]),
            Route("/contexts/{id}", self.remove, methods=["DELETE"]),
            Route("/contexts/{id}/restart", self.restart, methods=["POST"]),
        ]

    async def health(self, request: Request) -> Response:
        return PlainTextResponse("OK")

    async def list(self, request: Request) -> Response:
        return JSONResponse([context.described for context in self._contexts.values()])

    async def create(self, request: Request) -> Response:
        wanted = await request.json()
        language = wanted.get("language") or "python"
        context = Context(wanted.get("cwd") or self._default.cwd, language)
        if language != "python":
            return PlainTextResponse(f"Kernel {language} not found", 500)
        if not Path(context.cwd).is_dir():
            return PlainTextResponse(f"Failed to create context: no such folder: {context.cwd}", 500)
        context.kernel = await self._kernels.take(context.cwd)
        self._contexts[context.id] = context
        return JSONResponse(context.described)

    async def remove(self, request: Request) -> Response:
        context = self._contexts.pop(request.path_params["id"], None)
        if context is None:
            return missing(request.path_params["id"])
        if context.kernel is not None:
            await context.kernel.stop()
        return Response(status_code=204)

    async def restart(self, request: Request) -> Response:
        context = self._contexts.get(request.path_params["id"])
        if context is None:
            return missing(request.path_params["id"])
        await self._replace(context)
        return Response(status_code=204)

    async def _replace(self, context: Context) -> None:
        """A new kernel; whoever waits for the old one is told that it died."""
        old, context.kernel = context.kernel, None
        if old is not None:
            await old.stop()
            old.messages.put_nowait({"header": {"msg_type": "died"}, "content": {}})
        context.kernel = await self._kernels.take(context.cwd)

    async def execute(self, request: Request) -> Response | Stream:
        if self.token and request.headers.get("x-access-token") != self.token:
            return PlainTextResponse("Access token is not valid", 401)
        wanted = await request.json()
        language = wanted.get("language") or "python"
        if wanted.get("context_id") and wanted.get("language"):
            return PlainTextResponse("Only one of context_id or language can be provided", 400)
        context = self._contexts.get(wanted["context_id"]) if wanted.get("context_id") else self._default
        if context is None:
            return missing(wanted["context_id"])
        if language != "python":
            return PlainTextResponse(f"Kernel {language} not found", 500)
        if self._quirks and time.monotonic() - context.left_at < QUIET:
            return Stream(self._hole(context), "application/x-ndjson")
        return Stream(
            self._run(context, wanted["code"], wanted.get("env_vars") or {}), "application/x-ndjson"
        )

    async def _hole(self, context: Context) -> AsyncIterator[bytes]:
        """The hang: signs of life, but the code never starts."""
        try:
            while True:
                yield line(type="keepalive")
                await asyncio.sleep(KEEPALIVE)
        finally:
            context.left_at = time.monotonic()

    async def _run(self, context: Context, code: str, envs: dict[str, str]) -> AsyncIterator[bytes]:
        came_at = time.monotonic()
        taken = asyncio.create_task(context.lock.acquire())
        handed_on = False
        try:
            while not (await asyncio.wait({taken}, timeout=KEEPALIVE))[0]:
                yield line(type="keepalive")
            if self._quirks and context.left_at > came_at:
                # It came before the server saw that the client of the code before had left.
                context.lock.release()
                handed_on = True
                async for text in self._hole(context):
                    yield text
            if context.kernel is None or not context.kernel.alive:
                if context.kernel is not None:
                    await context.kernel.stop()
                context.kernel = await self._kernels.take(context.cwd)
            kernel = context.kernel
            if envs:
                await kernel.quietly(f"__import__('os').environ.update({envs!r})")
            kernel.execute(code)
            try:
                async for text in self._lines(kernel, context):
                    yield text
            except (asyncio.CancelledError, GeneratorExit):
                # The client has gone: the lock is kept until the code has been interrupted.
                handed_on = True
                context.left_at = time.monotonic()
                self._keep(self._interrupted(context, kernel))
                raise
            if envs:
                await kernel.quietly(f"[__import__('os').environ.pop(k, None) for k in {list(envs)!r}]")
        finally:
            if not handed_on:
                if not taken.done():
                    taken.cancel()
                    await asyncio.gather(taken, return_exceptions=True)
                if taken.done() and not taken.cancelled():
                    context.lock.release()

    async def _interrupted(self, context: Context, kernel: Kernel) -> None:
        """Interrupt until it heeds, then let the next one in."""
        try:
            while kernel.alive:
                kernel.interrupt()
                try:
                    return await asyncio.wait_for(kernel.idle(), INTERRUPT_PATIENCE)
                except TimeoutError:
                    continue
        finally:
            context.lock.release()

    async def _lines(self, kernel: Kernel, context: Context) -> AsyncIterator[bytes]:
        while True:
            try:
                message = await asyncio.wait_for(kernel.messages.get(), KEEPALIVE)
            except TimeoutError:
                yield line(type="keepalive")
                continue
            kind, content = message["header"]["msg_type"], message["content"]
            if kind == "died":
                await asyncio.sleep(self._death_delay)
                if context.kernel is kernel:
                    await self._replace(context)
                yield line(
                    type="error",
                    name="ContextRestarting",
                    value="Context was restarted",
                    traceback="",
                )
                yield line(type="end_of_execution")
                return
            if kind == "status" and content["execution_state"] == "idle":
                yield line(type="end_of_execution")
                return
            if kind == "execute_input":
                yield line(type="number_of_executions", execution_count=content["execution_count"])
            elif kind == "stream":
                yield line(type=content["name"], text=content["text"], timestamp=time.time_ns())
            elif kind in ("execute_result", "display_data"):
                yield line(type="result", is_main_result=kind == "execute_result", **formats(content["data"]))
            elif kind == "error":
                yield line(
                    type="error",
                    name=content["ename"],
                    value=content["evalue"],
                    traceback="\n".join(content["traceback"]),
                )

    def _keep(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def formats(data: dict[str, Any]) -> dict[str, Any]:
    """A bundle by media type as the fields of a result; unknown types go to ``extra``."""
    known = {FORMATS[kind]: value for kind, value in data.items() if kind in FORMATS}
    extra = {kind: value for kind, value in data.items() if kind not in FORMATS}
    return {**known, **({"extra": extra} if extra else {})}


def line(**fields: Any) -> bytes:
    # ASCII only: a lone surrogate that a display carries must not break the stream.
    return json.dumps(fields).encode() + b"\n"


def missing(name: str) -> Response:
    return PlainTextResponse(f"Context {name} not found", 404)
