"""A journal with fewer lines that shows the same: pieces go whose whole comes right behind them.

While an answer is written its pieces are recorded one by one, and most of a long journal is pieces. What they became
is recorded too, so a replay need not read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from sandbox_chat.journal.lines import Line

_TEXT_PIECE = b'{"type":"text_delta",'
_CALL_PIECE = b'{"type":"tool_input_delta",'
_THOUGHT = b'{"type":"thinking_delta",'
_PIECES = (_TEXT_PIECE, _CALL_PIECE, _THOUGHT)
_TEXT = b'{"type":"text",'
_CALL = b'{"type":"tool_started",'
_CALL_ID = b'"tool_use_id":"'


def brief_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield ``lines`` without the pieces that a whole follows; thoughts, which have no whole, come in one piece."""
    held: list[Line] = []
    kind: tuple[bytes, bytes] | None = None
    for line in lines:
        this = _piece(line.raw)
        if this is not None and this == kind:
            held.append(line)
            continue
        if kind is not None:
            yield from _shortened(kind, held, line.raw)
        kind = this
        held = [] if this is None else [line]
        if this is None:
            yield line
    if kind is not None:
        yield from _shortened(kind, held, b"")


def _piece(raw: bytes) -> tuple[bytes, bytes] | None:
    """Return of what a line is a piece: its kind, and the call that it belongs to."""
    for kind in _PIECES:
        if raw.startswith(kind):
            if not raw.endswith(b'"}') or b"\0" in raw:
                return None  # damaged, perhaps: to be looked at
            return kind, _call_id(raw) if kind == _CALL_PIECE else b""
    return None


def _call_id(raw: bytes) -> bytes:
    return raw.partition(_CALL_ID)[2].partition(b'"')[0]


def _shortened(kind: tuple[bytes, bytes], held: list[Line], after: bytes) -> Iterable[Line]:
    """Return what is left of a run of pieces before the line ``after``."""
    if kind[0] == _TEXT_PIECE:
        return () if after.startswith(_TEXT) and _sound(after) else held
    if kind[0] == _CALL_PIECE:
        whole = after.startswith(_CALL) and _call_id(after) == kind[1] and _sound(after)
        return held[:1] if whole else held  # the first tells when the call began
    return _joined(held)


def _sound(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True


def _joined(held: list[Line]) -> list[Line]:
    """Return thoughts as one; blank ones at the beginning stay apart, for they show nothing."""
    try:
        pieces = [json.loads(line.raw) for line in held]
        first = next((n for n, piece in enumerate(pieces) if piece["text"].strip()), len(held))
        if first >= len(held) - 1:
            return held
        whole = {**pieces[first], "text": "".join(piece["text"] for piece in pieces[first:])}
        raw = json.dumps(whole, separators=(",", ":")).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return held
    return [*held[:first], Line(held[first].start, raw, sum(line.size + 1 for line in held[first:]) - 1)]
