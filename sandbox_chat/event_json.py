"""The JSON form of events, written and read.

Unknown ``type`` and unknown fields are ignored when reading, so that older programs can read newer
journals.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, get_args

from sandbox_chat.events import (
    EVENT_TYPES,
    Choice,
    Component,
    Content,
    ContextUse,
    Event,
    FileContent,
    ImageContent,
    ModelUse,
    NoticeLevel,
    ServerPlace,
    ServerState,
    ServerTool,
    Stream,
    TableContent,
    TextContent,
    ToolOutput,
    Usage,
)
from sandbox_chat.sgr import valid_styles


def to_dict(event: Event) -> dict[str, Any]:
    """Return the JSON form of ``event`` as plain dictionaries and lists."""
    out: dict[str, Any] = {
        "type": event.type,
        "seq": event.seq,
        "at": event.at.isoformat(timespec="microseconds"),
    }
    for item in dataclasses.fields(event):
        if item.name in out:
            continue
        out[item.name] = _plain(getattr(event, item.name))
    return out


def to_json(event: Event) -> str:
    """Return the JSON form of ``event`` as one line without a newline. Lone surrogates are escaped."""
    return (
        json.dumps(to_dict(event), ensure_ascii=False, separators=(",", ":"))
        .encode("utf-8", "backslashreplace")
        .decode("utf-8")
    )


def content_dict(part: Content) -> dict[str, Any]:
    """Return the JSON form of a part of a result."""
    if isinstance(part, TextContent):
        said = {} if part.titles is None else {"titles": list(part.titles)}
        return {"type": "text", "text": part.text, **said}
    if isinstance(part, ImageContent):
        return {"type": "image", **dataclasses.asdict(part)}
    # ``text`` is for programs of an earlier version, which take what they do not know for text.
    if isinstance(part, TableContent):
        words = f"[table of {part.row_count} × {part.column_count}]"
        return {"type": "table", "text": words, **dataclasses.asdict(part)}
    return {"type": "file", "text": f"[{part.title}: {part.path}]", **dataclasses.asdict(part)}


def _plain(value: Any) -> Any:
    if isinstance(value, TextContent | ImageContent | TableContent | FileContent):
        return content_dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


def from_dict(data: Mapping[str, Any]) -> Event | None:
    """Rebuild an event from its JSON form; ``None`` for a type that this version does not know.

    Raises ``ValueError`` when a known type lacks a field or holds a value of the wrong kind.
    """
    cls = EVENT_TYPES.get(str(data.get("type")))
    if cls is None:
        return None
    values: dict[str, Any] = {}
    try:
        for item in dataclasses.fields(cls):
            if item.name in data:
                values[item.name] = _revive(item.name, str(item.type), data[item.name])
        event = cls(**values)
        if isinstance(event, ToolOutput):
            _check_output(event)
        return event
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"not a valid {cls.type} event: {error}") from error


def _check_output(event: ToolOutput) -> None:
    if event.rewind < 0:
        raise TypeError("rewind is negative")
    if event.styles and not valid_styles(event.styles, len(event.text)):
        raise TypeError("styles are not those of the text")


def from_json(line: str) -> Event | None:
    """Rebuild an event from a line of JSON. Raises ``ValueError`` when the line is not a valid event."""
    data = json.loads(line)
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    return from_dict(data)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: _is_number(value) and not value < 0,
    "float | None": lambda value: value is None or _is_number(value),
    "Mapping[str, Any]": lambda value: isinstance(value, dict),
    "Stream": lambda value: value in get_args(Stream),
    "NoticeLevel": lambda value: value in get_args(NoticeLevel),
    "Component": lambda value: value in get_args(Component),
    "ServerPlace": lambda value: value in get_args(ServerPlace),
    "ServerState": lambda value: value in get_args(ServerState),
}
"""What a field of the annotation may hold in JSON. Fields that are missing here are rebuilt by ``_revive``."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _revive(name: str, kind: str, value: Any) -> Any:
    if kind in _KINDS:
        if not _KINDS[kind](value):
            raise TypeError(f"{name} is not of type {kind}")
        return value
    if name == "at":
        time = datetime.fromisoformat(value)
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    if name == "usage":
        return _usage(value)
    if name == "context":
        return ContextUse(used=int(value["used"]), max=int(value["max"]))
    if name == "models":
        return tuple(_model_use(part) for part in value)
    if name == "content":
        return tuple(found for part in value if (found := _content(part)) is not None)
    if name == "styles":
        return tuple((int(start), int(end), str(words)) for start, end, words in value)
    if name == "about":
        return tuple((str(key), str(text)) for key, text in value)
    if name == "lasting":
        return tuple(str(part) for part in value)
    if name == "tools":
        return tuple(
            ServerTool(str(part["name"]), str(part["original"]), str(part.get("description", "")))
            for part in value
        )
    if name == "choices":
        return tuple(Choice(str(part["name"]), str(part["key"]), str(part["label"])) for part in value)
    return value


def _usage(value: Mapping[str, Any]) -> Usage:
    return Usage(**{f.name: int(value.get(f.name, 0)) for f in dataclasses.fields(Usage)})


def _model_use(part: Mapping[str, Any]) -> ModelUse:
    cost = _revive("cost_usd", "float | None", part["cost_usd"])
    return ModelUse(
        str(part["model"]),
        _usage(part["usage"]),
        cost,
        part.get("complete") is not False,
    )


def _content(part: Mapping[str, Any]) -> Content | None:
    match part["type"]:
        case "image":
            return ImageContent(str(part["path"]), str(part["mime"]), int(part["width"]), int(part["height"]))
        case "table":
            return TableContent(
                tuple(str(name) for name in part["columns"]),
                tuple(tuple(str(cell) for cell in row) for row in part["rows"]),
                int(part["row_count"]),
                int(part["column_count"]),
                part.get("result") is True,
            )
        case "file":
            return FileContent(str(part["path"]), str(part["mime"]), int(part["size"]), str(part["title"]))
        case "text":
            titles = part.get("titles")
            return TextContent(
                str(part["text"]), None if titles is None else tuple(int(place) for place in titles)
            )
    return TextContent(part["text"]) if isinstance(part.get("text"), str) else None
