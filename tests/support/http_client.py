"""Plain HTTP against the scripted endpoint, without the agent SDK: for tests of the wire itself."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from sandbox_chat.demo.server import MessagesServer

HELLO: dict[str, Any] = {
    "model": "demo",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "hello there"}],
}


def connect(server: MessagesServer, timeout: float = 10) -> http.client.HTTPConnection:
    """A connection to the server."""
    address = urlsplit(server.url)
    assert address.hostname
    return http.client.HTTPConnection(address.hostname, address.port, timeout=timeout)


def post(
    server: MessagesServer,
    body: Any,
    *,
    path: str = "/v1/messages?beta=true",
    headers: dict[str, str] | None = None,
    method: str = "POST",
) -> tuple[int, dict[str, str], bytes]:
    """Send one request; return status, headers (lower case) and the whole body."""
    connection = connect(server)
    try:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"authorization": f"Bearer {server.token}"} if headers is None else headers
        connection.request(method, path, raw, {"content-type": "application/json", **sent})
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


def events(raw: bytes) -> list[dict[str, Any]]:
    """The events of a stream; checks that each is named as its data says."""
    found = []
    for part in raw.decode().split("\n\n"):
        if not part.strip():
            continue
        name, data = part.split("\n", 1)
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        found.append(event)
    return found
