"""A session as JSON: its events as the journal has them, with the files that they name.

``events`` are the events in order; the ``path`` of a picture or a file is its name in ``files``, which holds each once,
in base64; or it is relative to the document, when they lie beside it. Pieces of a text that is scrubbed are put
together, because a credential may stand across them.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from sandbox_chat.event_json import to_dict
from sandbox_chat.events import (
    Event,
    NestedFinished,
    Retry,
    SessionFinished,
    SessionStarted,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolInputDelta,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from sandbox_chat.journal.export.scrub import Scrubber
from sandbox_chat.journal.export.work import PICTURES, Work
from sandbox_chat.kept import Kept

FORMAT = 1
"""Version of this form."""
_OWN = frozenset(
    {"type", "seq", "at", "tool_use_id", "turn_id", "approval_id", "attach_id", "session_id", "anchor"}
)
"""Fields of events that hold nothing from outside, or ids that must stay what they are."""


_SESSION = ("created", "updated", "turns", "model", "sandbox", "demo", "total_cost_usd")
"""What is said of the session, beside its id and its title."""


def write(work: Work) -> None:
    """Write the whole document, an event at a time."""
    out = work.target.out
    summary = work.summary
    head = {
        "format": FORMAT,
        "program": "sandbox-chat",
        "session": {
            **work.scrub.data({name: value for name, value in summary.to_dict().items() if name in _SESSION}),
            "id": summary.id,
            "title": work.title,
        },
    }
    out.write(_dump(head)[:-1] + ',"events":[')
    files: dict[str, tuple[str, str]] = {}
    for number, data in enumerate(_events(work, files)):
        out.write(",\n" if number else "\n")
        out.write(_dump(data))
    out.write('\n],"files":{')
    if not work.beside:
        first = True
        for path, (name, mime) in files.items():
            content = work.read(path)
            if content is None:
                continue
            text = base64.b64encode(_scrubbed(work.scrub, content, mime)).decode("ascii")
            out.write(f"{'' if first else ','}\n{_dump(name)}:{_dump({'mime': mime, 'base64': text})}")
            first = False
    left_out = list(work.left_out_words())
    out.write(f'\n}},"left_out":{_dump(left_out)}}}\n')


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _events(work: Work, files: dict[str, tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Yield the events as JSON data; ``files`` receives the files that they name: name and kind by path."""
    past: Iterable[Event] = work.events()
    if work.scrub.active:
        past = whole(past)
    for event in past:
        work.turns += isinstance(event, TurnStarted)
        work.calls += isinstance(event, ToolStarted)
        data = to_dict(event)
        for shown in data.get("content", ()):
            if shown["type"] in ("image", "file"):  # it gets another place, and its words name the old one
                shown["path"] = ""
                if "text" in shown:
                    shown["text"] = f"[{shown['title']}]"
        if work.scrub.active:
            data = {name: value if name in _OWN else work.scrub.data(value) for name, value in data.items()}
        if isinstance(event, ToolFinished | NestedFinished):
            for part, shown in zip(event.content, data["content"], strict=True):
                if shown["type"] in ("image", "file"):
                    _place(work, part, shown, files)
                elif shown["type"] == "text" and shown["text"] != getattr(part, "text", ""):
                    shown.pop("titles", None)  # they were places in the text as it was
        yield _finite(data)


def _place(work: Work, part: Any, shown: dict[str, Any], files: dict[str, tuple[str, str]]) -> None:
    """Give a picture or a file its place in the document."""
    picture = part.mime in PICTURES
    name = PurePosixPath(Path(part.path).name)
    ending = PICTURES.get(part.mime) or {"text/plain": "txt", "text/html": "html"}.get(part.mime, "bin")
    if work.scrub.active and not picture and part.mime != "text/plain":
        work.left_out("page")
        return
    if work.beside:
        if (data := work.read(part.path)) is not None:
            shown["path"] = work.target.add(_scrubbed(work.scrub, data, part.mime), ending)
            work.pictures += picture
        return
    shown["path"] = files.setdefault(part.path, (f"files/{name.stem}.{ending}", part.mime))[0]
    work.pictures += picture


def _scrubbed(scrub: Scrubber, data: bytes, mime: str) -> bytes:
    if scrub.active and mime == "text/plain":
        return scrub(data.decode("utf-8", "replace")).encode("utf-8", "replace")
    return data


def _finite(value: Any) -> Any:
    """Return JSON data without the numbers that JSON has no words for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return value


def whole(past: Iterable[Event]) -> Iterator[Event]:
    """Yield events with pieces put together: no text stands in two of them.

    Pieces whose whole comes in a later event are left out. Background output stays apart from other output.
    """
    text: list[TextDelta] = []
    thinking: list[ThinkingDelta] = []
    inputs: dict[str, list[ToolInputDelta]] = {}
    outputs: dict[tuple[str, str, bool], tuple[Kept, ToolOutput]] = {}

    def ended(*, texts: bool = True, late: bool = False) -> Iterator[Event]:
        if texts:
            for pieces in (thinking, text):
                if pieces:
                    yield dataclasses.replace(pieces[-1], text="".join(piece.text for piece in pieces))
                pieces.clear()
        for key in [key for key in outputs if key[2] is late or texts]:
            kept, last = outputs.pop(key)
            yield dataclasses.replace(last, text=kept.text, rewind=0, styles=())

    for event in past:
        match event:
            case TextDelta():
                text.append(event)
            case ThinkingDelta():
                thinking.append(event)
            case ToolInputDelta():
                inputs.setdefault(event.tool_use_id, []).append(event)
            case ToolOutput():
                key = (event.tool_use_id, event.stream, event.late)
                kept, _ = outputs.get(key) or (Kept(), event)
                kept.add(event.stream, event.text, event.rewind)
                outputs[key] = (kept, event)
            case Text():
                text.clear()
                yield from ended()
                yield event
            case Retry():
                text.clear()
                thinking.clear()
                inputs.clear()
                yield from ended()
                yield event
            case ToolStarted():
                inputs.pop(event.tool_use_id, None)
                yield from ended()
                yield event
            case ToolFinished():
                yield from ended(texts=False)
                yield event
            case TurnStarted() | TurnFinished() | SessionStarted() | SessionFinished():
                for pieces in inputs.values():
                    yield dataclasses.replace(pieces[-1], text="".join(piece.text for piece in pieces))
                inputs.clear()
                yield from ended()
                yield event
            case _:
                yield event
    yield from ended()
