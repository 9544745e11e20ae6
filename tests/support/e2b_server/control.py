"""The control API: create, list, connect, time limit, pause, kill."""

from __future__ import annotations

import asyncio
import datetime
import urllib.parse
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from .edge import Cut
from .guest.asgi import gone

if TYPE_CHECKING:
    from .cloud import Cloud

Handler = Callable[[Request], Awaitable[Response]]
LONGEST = 24 * 3600
"""Seconds that a sandbox may be asked to live."""


def problem(status: int, message: str) -> Response:
    return JSONResponse({"code": status, "message": message}, status)


class Control:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        v2: list[Route] = []
        if cloud.api == "v2":
            v2 = [
                Route("/v2/sandboxes", self._guarded("create", self.create), methods=["POST"]),
                Route("/v2/sandboxes", self._guarded("list", self.list)),
                Route("/v2/sandboxes/{id}/connect", self._guarded("connect", self.connect), methods=["POST"]),
            ]
        else:
            v2 = [Route("/v2/{rest:path}", self.too_old, methods=["GET", "POST", "PUT", "DELETE"])]
        self.app = Starlette(
            routes=[
                *v2,
                Route("/sandboxes", self._guarded("create", self.create), methods=["POST"]),
                Route("/sandboxes", self._guarded("list", self.list)),
                Route("/sandboxes/{id}", self._guarded("info", self.info)),
                Route("/sandboxes/{id}", self._guarded("kill", self.kill), methods=["DELETE"]),
                Route("/sandboxes/{id}/connect", self._guarded("connect", self.connect), methods=["POST"]),
                Route("/sandboxes/{id}/timeout", self._guarded("timeout", self.timeout), methods=["POST"]),
                Route("/sandboxes/{id}/refreshes", self._guarded("timeout", self.refresh), methods=["POST"]),
                Route("/sandboxes/{id}/pause", self._guarded("pause", self.pause), methods=["POST"]),
                Route("/sandboxes/{id}/resume", self._guarded("resume", self.resume), methods=["POST"]),
                Route("/sandboxes/{id}/metrics", self._guarded("info", self.metrics)),
            ]
        )

    def _guarded(self, kind: str, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """The key is checked first, then the faults have their say."""

        async def endpoint(request: Request) -> Response:
            fault = self._cloud.faults.take(kind)
            cut = False
            if fault is not None:
                await asyncio.sleep(fault.delay)
                if fault.hang:
                    await request.body()
                    await gone(request.receive)
                    return Response(status_code=499)
                if fault.after is not None:
                    await asyncio.sleep(fault.after)
                cut = fault.cut
                if not cut and (not fault.delay or fault.after is not None):
                    return fault.answer()
            if request.headers.get("x-api-key") != self._cloud.key:
                return problem(
                    401, "Invalid API key, please visit https://e2b.dev/docs/api-key for more information."
                )
            answer = await handler(request)
            return Torn(answer) if cut else answer

        return endpoint

    async def too_old(self, request: Request) -> Response:
        return PlainTextResponse("Method Not Allowed", 405)

    async def create(self, request: Request) -> Response:
        wanted = await request.json()
        template = wanted.get("templateID")
        if not isinstance(template, str) or template not in self._cloud.templates:
            return problem(self._cloud.unknown_template, f"template '{template}' not found")
        seconds = wanted.get("timeout", 300 if request.url.path.startswith("/v2/") else 15)
        if not isinstance(seconds, int) or seconds < 0:
            return problem(400, "timeout has to be a whole number of seconds")
        if seconds > LONGEST:
            return problem(400, f"Timeout cannot be greater than {LONGEST // 3600} hours")
        record = await self._cloud.new_sandbox(template, seconds, wanted)
        return JSONResponse(record.created(self._cloud.envd, self._cloud.domain), 201)

    async def list(self, request: Request) -> Response:
        query = request.query_params
        found = sorted(self._cloud.records.values(), key=lambda r: (r.started_at, r.id))
        if request.url.path.startswith("/v2/"):
            states = query.get("state", "running,paused").split(",")
            if query.get("order") != "asc":
                found.reverse()
        else:
            states = ["running"]
        found = [r for r in found if r.state in states]
        # Names and values are quoted once more inside the value.
        wanted = query.get("metadata", "") if self._cloud.query else ""
        for name, value in urllib.parse.parse_qsl(wanted):
            name, value = urllib.parse.unquote(name), urllib.parse.unquote(value)
            found = [r for r in found if r.metadata.get(name) == value]
        if template := query.get("template"):
            found = [r for r in found if r.template == template]
        if after := query.get("startedAfter"):
            found = [r for r in found if r.started_at >= datetime.datetime.fromisoformat(after).timestamp()]
        headers = {}
        if request.url.path.startswith("/v2/"):
            start, limit = int(query.get("nextToken", "0")), int(query.get("limit", "100"))
            if start + limit < len(found):
                headers["X-Next-Token"] = str(start + limit)
            found = found[start : start + limit]
        return JSONResponse([r.listed(self._cloud.envd) for r in found], headers=headers)

    async def info(self, request: Request) -> Response:
        record = self._cloud.records.get(request.path_params["id"])
        if record is None:
            return self._missing(request)
        return JSONResponse(record.detail(self._cloud.envd, self._cloud.domain))

    async def kill(self, request: Request) -> Response:
        if not await self._cloud.end(request.path_params["id"]):
            return self._missing(request)
        return Response(status_code=204)

    async def connect(self, request: Request) -> Response:
        record = self._cloud.records.get(request.path_params["id"])
        if record is None:
            return self._missing(request)
        seconds = (await request.json()).get("timeout", 300)
        resumed = record.state == "paused"
        if resumed:
            self._cloud.resume(record, seconds)
        else:
            record.end_at = max(record.end_at, self._cloud.now() + seconds)
        return JSONResponse(record.created(self._cloud.envd, self._cloud.domain), 201 if resumed else 200)

    async def timeout(self, request: Request) -> Response:
        record = self._cloud.records.get(request.path_params["id"])
        if record is None or record.state != "running":
            return self._missing(request)
        seconds = (await request.json())["timeout"]
        if seconds > LONGEST:
            return problem(400, f"Timeout cannot be greater than {LONGEST // 3600} hours")
        record.end_at = self._cloud.now() + seconds
        return Response(status_code=204)

    async def refresh(self, request: Request) -> Response:
        record = self._cloud.records.get(request.path_params["id"])
        if record is None or record.state != "running":
            return self._missing(request)
        record.end_at = max(record.end_at, self._cloud.now() + (await request.json()).get("duration", 60))
        return Response(status_code=204)

    async def pause(self, request: Request) -> Response:
        record = self._cloud.records.get(request.path_params["id"])
        if record is None:
            return self._missing(request)
        if record.state == "paused":
            return problem(409, f"Sandbox {record.id} is already paused")
        self._cloud.pause(record)
        return Response(status_code=204)

    async def resume(self, request: Request) -> Response:
        record = self._cloud.records.get(request.path_params["id"])
        if record is None:
            return self._missing(request)
        if record.state == "running":
            return problem(409, f"Sandbox {record.id} is already running")
        self._cloud.resume(record, (await request.json()).get("timeout", 15))
        return JSONResponse(record.created(self._cloud.envd, self._cloud.domain), 201)

    async def metrics(self, request: Request) -> Response:
        return (
            JSONResponse([]) if request.path_params["id"] in self._cloud.records else self._missing(request)
        )

    @staticmethod
    def _missing(request: Request) -> Response:
        return problem(
            404, f"sandbox \"{request.path_params['id']}\" doesn't exist or you don't have access to it"
        )


class Torn(Response):
    """An answer of which only the first half arrives."""

    def __init__(self, whole: Response) -> None:
        super().__init__(status_code=whole.status_code)
        self._whole = whole

    async def __call__(self, scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        body = bytes(self._whole.body) or b'{"code": 200}'
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        status = 200 if self._whole.status_code == 204 else self._whole.status_code
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
        raise Cut
