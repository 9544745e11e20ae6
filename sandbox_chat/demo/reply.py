"""The Messages API as it is answered: replies, errors, faults, and their form on the wire."""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from sandbox_chat.demo.wire import Request, Usage, input_usage, text_tokens

JSON_PIECE = 24
"""Characters of a tool call's arguments in one event of a stream."""
_WORD = re.compile(r"\s*\S{1,12}|\s+")


@dataclass(frozen=True, slots=True)
class Text:
    """A block of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A block of thinking."""

    text: str
    signature: str = "c2lnbmF0dXJl"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call. ``name`` is the tool's full name; ``id`` is made when empty.

    ``raw`` is sent instead of the JSON of ``input`` when it is set: for faulty arguments.
    """

    name: str
    input: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    raw: str | None = None


Block = Text | Thinking | ToolUse


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong with a reply. Positions count the characters of text, thinking and arguments sent.

    ``drop``: the connection is closed before any byte. ``first_stall``: seconds before the first byte.
    ``stall_at`` and ``stall``: stop there for so many seconds. ``hold_at`` and ``hold``: stop there until
    the event is set. ``cut_at``: the connection is closed there. ``error_at``: an error event with
    ``error_type`` and ``error_message`` ends the stream there. A position past the end acts at the end.
    """

    drop: bool = False
    first_stall: float = 0.0
    stall_at: int | None = None
    stall: float = 0.0
    hold_at: int | None = None
    hold: threading.Event | None = None
    cut_at: int | None = None
    error_at: int | None = None
    error_type: str = "overloaded_error"
    error_message: str = "Overloaded"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer.

    ``stop_reason`` follows from the blocks when empty; ``usage`` is estimated when ``None``; ``pace`` is
    the time in seconds between two pieces of a stream; ``piece`` is the length of a piece in
    characters (0: by words). ``model`` is the requested one when empty.
    """

    blocks: tuple[Block, ...] = ()
    stop_reason: str = ""
    usage: Usage | None = None
    pace: float = 0.0
    piece: int = 0
    model: str = ""
    faults: Faults = Faults()


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """A refusal: an HTTP status with an error body (or ``body`` as it is) and extra headers, after ``delay`` seconds."""

    status: int
    type: str = ""
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    body: bytes | None = None


class Responder(Protocol):
    """What decides on the answers. ``record`` asks the server to keep every request for inspection."""

    record: bool

    def reply(self, request: Request) -> Reply | ErrorReply:
        """Answer one request. Called on the server's thread; must return quickly."""


ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def error_type(status: int) -> str:
    """Name of the error type that goes with an HTTP status."""
    return ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")


def error_body(kind: str, message: str) -> dict[str, Any]:
    """The JSON form of an error."""
    return {"type": "error", "error": {"type": kind, "message": message}}


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream. ``chars``: how many characters of content it carries."""

    event: Mapping[str, Any]
    chars: int = 0

    def encode(self) -> bytes:
        """The event in server-sent form."""
        # ASCII, so that a lone surrogate of a script reaches the other side as JSON can carry it.
        return f"event: {self.event['type']}\ndata: {json.dumps(self.event)}\n\n".encode("ascii")


def complete(reply: Reply, request: Request) -> Reply:
    """Return ``reply`` with ids, stop reason, model and usage filled in."""
    blocks = tuple(
        replace(block, id="toolu_" + uuid.uuid4().hex[:24])
        if isinstance(block, ToolUse) and not block.id
        else block
        for block in reply.blocks
    )
    called = any(isinstance(block, ToolUse) for block in blocks)
    usage = reply.usage
    if usage is None:
        usage = replace(
            input_usage(request.body), output_tokens=max(1, sum(text_tokens(_payload(b)) for b in blocks))
        )
    return replace(
        reply,
        blocks=blocks,
        stop_reason=reply.stop_reason or ("tool_use" if called else "end_turn"),
        usage=usage,
        model=reply.model or request.model,
    )


def whole(reply: Reply) -> dict[str, Any]:
    """The JSON form of a completed reply that is not streamed."""
    assert reply.usage is not None
    content: list[dict[str, Any]] = []
    for block in reply.blocks:
        match block:
            case Text(text):
                content.append({"type": "text", "text": text})
            case Thinking(text, signature):
                content.append({"type": "thinking", "thinking": text, "signature": signature})
            case ToolUse():
                content.append(
                    {"type": "tool_use", "id": block.id, "name": block.name, "input": dict(block.input)}
                )
    return {
        **_message_head(reply),
        "content": content,
        "stop_reason": reply.stop_reason,
        "usage": asdict(reply.usage),
    }


def frames(reply: Reply) -> Iterator[Frame]:
    """The events of a completed reply that is streamed, in order."""
    assert reply.usage is not None
    head = _message_head(reply)
    head["usage"] = {**asdict(reply.usage), "output_tokens": 1}
    yield Frame({"type": "message_start", "message": head})
    yield Frame({"type": "ping"})
    for index, block in enumerate(reply.blocks):
        start, delta, key = _stream_form(block)
        yield Frame({"type": "content_block_start", "index": index, "content_block": start})
        for piece in _pieces(_payload(block), reply.piece, by_words=not isinstance(block, ToolUse)):
            yield Frame(
                {"type": "content_block_delta", "index": index, "delta": {"type": delta, key: piece}},
                len(piece),
            )
        if isinstance(block, Thinking):
            sign = {"type": "signature_delta", "signature": block.signature}
            yield Frame({"type": "content_block_delta", "index": index, "delta": sign})
        yield Frame({"type": "content_block_stop", "index": index})
    yield Frame(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reply.stop_reason, "stop_sequence": None},
            "usage": asdict(reply.usage),
        }
    )
    yield Frame({"type": "message_stop"})


def _message_head(reply: Reply) -> dict[str, Any]:
    return {
        "id": "msg_" + uuid.uuid4().hex[:24],
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _payload(block: Block) -> str:
    if isinstance(block, ToolUse):
        return block.raw if block.raw is not None else json.dumps(block.input, ensure_ascii=False)
    return block.text


def _stream_form(block: Block) -> tuple[dict[str, Any], str, str]:
    """The empty block of a ``content_block_start``, the type of its deltas, and the delta's key."""
    match block:
        case Text():
            return {"type": "text", "text": ""}, "text_delta", "text"
        case Thinking():
            return {"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking"
        case ToolUse():
            start = {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
            return start, "input_json_delta", "partial_json"


def _pieces(text: str, length: int, *, by_words: bool) -> Iterator[str]:
    if length <= 0 and by_words:
        yield from _WORD.findall(text)
        return
    length = length if length > 0 else JSON_PIECE
    for start in range(0, len(text), length):
        yield text[start : start + length]
