"""Reading a request's body: bounded in size and time; and what its headers say of it and of the answer."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import Receive

from sandbox_chat.serve.errors import Refused

PATIENCE = 30.0
"""Seconds in which a body must have come."""
_REST = 2.0
"""Seconds for which what is too large is read and thrown away, so that its sender gets to read the answer."""


def check_type(headers: Headers) -> None:
    """Raise ``Refused`` for a body that does not say that it is JSON as it is."""
    kind, *parameters = headers.get("content-type", "").lower().split(";")
    charsets = [
        value.strip().strip('"')
        for name, _, value in (each.partition("=") for each in parameters)
        if name.strip() == "charset"
    ]
    plain = headers.get("content-encoding", "identity").strip().lower() == "identity"
    if (
        kind.strip() != "application/json"
        or any(each not in ("utf-8", "utf8") for each in charsets)
        or not plain
    ):
        raise Refused("not_json_type", "Send the task with Content-Type: application/json")


async def read_body(headers: Headers, receive: Receive, limit: int) -> bytes:
    """Return the whole body. Raises ``Refused`` when it is larger than ``limit`` bytes or does not come in time."""
    said = headers.get("content-length", "")
    too_large = Refused("too_large", f"The body is larger than {limit:,} bytes, which http_body_kb allows.")
    if said.isascii() and said.isdigit() and int(said[:20]) > limit:
        await _throw_away(receive)
        raise too_large
    parts: list[bytes] = []
    size = 0
    more = True
    try:
        async with asyncio.timeout(PATIENCE):
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    raise Refused("slow_body")  # the client has gone: nobody gets this
                part = message.get("body", b"")
                size += len(part)
                if size > limit:
                    break
                parts.append(part)
                more = message.get("more_body", False)
    except TimeoutError:
        raise Refused("slow_body") from None
    if size > limit:
        parts.clear()
        await _throw_away(receive)
        raise too_large
    return b"".join(parts)


async def _throw_away(receive: Receive) -> None:
    try:
        async with asyncio.timeout(_REST):
            more = True
            while more:
                message = await receive()
                more = message["type"] == "http.request" and message.get("more_body", False)
    except TimeoutError:
        return


def wants_events(accept: str) -> bool:
    """True when the header ``Accept`` names ``text/event-stream`` and does not weigh it with 0 or below JSON."""
    weights = {"text/event-stream": 0.0, "application/json": 0.0}
    for part in accept.lower().split(","):
        kind, *parameters = (each.strip() for each in part.split(";"))
        weight = 1.0
        for each in parameters:
            if each.startswith("q="):
                try:
                    weight = float(each[2:])
                except ValueError:
                    weight = 0.0
        if kind in weights:
            weights[kind] = weight
    events = weights["text/event-stream"]
    return events > 0 and events >= weights["application/json"]
