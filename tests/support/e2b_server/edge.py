"""The way into the sandboxes: finds the sandbox of a request and passes it on, streaming both ways."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from .guest.asgi import Receive, Send, first, gone

if TYPE_CHECKING:
    from .cloud import Cloud
    from .faults import Fault

SERVICES = {"49983": "envd", "49999": "code"}
GATEWAY = "50005"
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host"}


class Cut(Exception):
    """Ends a connection in the middle of an answer (the server drops it when an application fails)."""


class Edge:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    @staticmethod
    def address(request: Request) -> tuple[str, str]:
        """Sandbox and port of a request: by the headers, else by the host's name."""
        name, port = request.headers.get("e2b-sandbox-id"), request.headers.get("e2b-sandbox-port")
        if name and port:
            return name, port
        found = re.match(r"(\d+)-([a-z0-9]+)\.", request.headers.get("host", ""))
        return (found[2], found[1]) if found else ("", "")

    @staticmethod
    def kind(port: str, path: str) -> str:
        if port == GATEWAY:
            return "mcp"
        if port == "49999":
            return "run" if path == "/execute" else "contexts"
        if path.startswith("/process."):
            return "commands"
        return "health" if path == "/health" else "files"

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        name, port = self.address(request)
        fault = self._cloud.faults.take(self.kind(port, scope["path"]))
        if fault is not None:
            if fault.delay:
                await asyncio.sleep(fault.delay)
            if fault.hang:
                await gone(receive)
                return
            if fault.after is None and not fault.cut and not fault.delay:
                await fault.answer()(scope, receive, send)
                return
        record = self._cloud.records.get(name)
        if record is None or record.guest is None or record.state != "running":
            body = {"sandboxId": name, "message": "The sandbox was not found", "code": 502}
            await JSONResponse(body, 502)(scope, receive, send)
            return
        if port == GATEWAY and record.guest.gateway_port:
            # The program inside sees the name by which it was called, as behind a real edge.
            limits = httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(timeout=None, trust_env=False, limits=limits) as client:
                where = f"127.0.0.1:{record.guest.gateway_port}"
                await self._passed(where, client, request, send, fault)
            return
        if port not in SERVICES:
            body = {
                "sandboxId": name,
                "message": "The sandbox is running but port is not open",
                "port": port,
                "code": 502,
            }
            await JSONResponse(body, 502)(scope, receive, send)
            return
        await self._passed(SERVICES[port], record.guest.client, request, send, fault)

    async def _passed(
        self,
        service: str,
        client: httpx.AsyncClient | None,
        request: Request,
        send: Send,
        fault: Fault | None,
    ) -> None:
        assert client is not None
        scope, receive = request.scope, request.receive
        read = asyncio.Event()

        async def body() -> AsyncIterator[bytes]:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Cut
                yield message.get("body", b"")
                if not message.get("more_body"):
                    read.set()
                    return

        async def left() -> None:
            await read.wait()
            await gone(receive)

        limit = fault.after if fault is not None and fault.after is not None else self._cloud.gateway_limit
        cut = fault is not None and fault.cut
        started = False

        async def tell(message: dict[str, Any]) -> None:
            nonlocal started
            started = True
            await send(message)

        async def forward() -> None:
            headers = [(k, v) for k, v in request.headers.items() if k not in HOP_BY_HOP]
            host, _, port = service.partition(":")
            if port:
                headers.append(("host", request.headers["host"]))
            url = httpx.URL(
                scheme="http",
                host=host,
                port=int(port) if port else None,
                raw_path=scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b""),
            )
            upstream = client.build_request(request.method, url, headers=headers, content=body())
            answer = await client.send(upstream, stream=True)
            try:
                start = {
                    "type": "http.response.start",
                    "status": answer.status_code,
                    "headers": [
                        (k.lower(), v)
                        for k, v in answer.headers.raw
                        if k.lower() not in (b"connection", b"transfer-encoding")
                    ],
                }
                chunks = answer.aiter_raw()
                if limit is not None:
                    # A gateway that gives up with an error of its own holds the answer back until it is whole.
                    whole = b"".join([chunk async for chunk in chunks])
                    await tell(start)
                    await tell({"type": "http.response.body", "body": whole})
                    return
                await tell(start)
                async for chunk in chunks:
                    if cut:
                        await tell(
                            {
                                "type": "http.response.body",
                                "body": chunk[: max(1, len(chunk) // 2)],
                                "more_body": True,
                            }
                        )
                        raise Cut
                    await tell({"type": "http.response.body", "body": chunk, "more_body": True})
                if cut:
                    raise Cut
                await tell({"type": "http.response.body", "body": b""})
            finally:
                await answer.aclose()

        try:
            async with asyncio.timeout(limit):
                await first(forward(), left())
        except TimeoutError:
            page = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
            status = fault.status if fault is not None else 502
            await Response(page, status, media_type="text/html")(scope, receive, send)
        except httpx.HTTPError:
            # The sandbox ended meanwhile.
            if started:
                raise Cut from None
            text = {"message": "The sandbox was not found", "code": 502}
            await send(
                {
                    "type": "http.response.start",
                    "status": 502,
                    "headers": [(b"content-type", b"application/json")],
                }
            )
            await send({"type": "http.response.body", "body": json.dumps(text).encode()})
