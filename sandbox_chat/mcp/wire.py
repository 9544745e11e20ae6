"""Lines of JSON-RPC as a server writes them, read so that no line costs more than itself."""

from __future__ import annotations

import json
import re
from typing import Any, TypeGuard

from mcp.types.jsonrpc import (
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)

from sandbox_chat.gateway.json_text import whole_characters

OWN = -32099
"""Code of an error that is made here in the place of an answer. Its message is a sentence."""
DEPTH = 100
"""How deep lists and objects may lie in each other; what lies deeper becomes ``null``."""
ENDS = 400
"""Bytes at the start and at the end of a line that was not kept in which its id is looked for."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_ID = r'"id"\s*:\s*(?:(\d{1,15})|"(\d{1,15})")'
_FIRST = re.compile(rf'\s*\{{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?{_ID}\s*,')
_LAST = re.compile(rf'{_ID}\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}}\s*\Z')


def read_message(line: bytes) -> JSONRPCMessage | None:
    """Return the message of a line; ``None`` when it is none. Raises nothing.

    Broken and half characters are replaced, and what is nested too deep is left out. An answer that is not one of the protocol
    comes as an error with its id.
    """
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    text = whole_characters(line.decode("utf-8", "replace"))
    try:
        found = json.loads(shallow(text))
    except (ValueError, RecursionError):
        return None
    return _message(found) if isinstance(found, dict) else None


def _message(found: dict[str, Any]) -> JSONRPCMessage | None:
    number, method, params = found.get("id"), found.get("method"), found.get("params")
    params = params if isinstance(params, dict) else None
    if isinstance(method, str):
        if not _is_id(number):
            return JSONRPCNotification(jsonrpc="2.0", method=method, params=params)
        return JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params=params)
    if not _is_id(number):
        return None
    result, error = found.get("result"), found.get("error")
    if isinstance(result, dict):
        return JSONRPCResponse(jsonrpc="2.0", id=number, result=result)
    if error is not None:
        words = error.get("message") if isinstance(error, dict) else error
        return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=0, message=str(words)))
    return own_error(number, "It answered with something that is no answer of the protocol.")


def _is_id(value: Any) -> TypeGuard[RequestId]:
    return isinstance(value, int | str) and not isinstance(value, bool)


def own_error(number: RequestId, sentence: str) -> JSONRPCError:
    """Return an error that is made here as the answer to a request."""
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=OWN, message=sentence))


def shallow(text: str) -> str:
    """Return JSON text with ``null`` in the place of every list and object that lies deeper than ``DEPTH``."""
    pieces: list[str] = []
    depth = start = 0
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in "[{":
            depth += 1
            if depth == DEPTH + 1:
                pieces.append(text[start : token.start()])
        elif sign in "]}":
            if depth == DEPTH + 1:
                pieces.append("null")
                start = token.end()
            depth -= 1
    if depth > DEPTH:
        return ""  # cut within: no whole JSON
    pieces.append(text[start:])
    return "".join(pieces)


def answered(head: bytes, tail: bytes) -> int | None:
    """Return the id that a line answers of which only both ends were kept, ``None`` when they do not tell."""
    for pattern, piece in ((_FIRST, head), (_LAST, tail)):
        found = pattern.search(piece.decode("utf-8", "replace"))
        if found is not None and (pattern is _LAST or found.start() == 0):
            return int(found[1] or found[2])
    return None
