"""Every event survives the way through JSON; what is not an event is refused with ``ValueError``."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat import events
from sandbox_chat.event_json import from_dict, from_json, to_dict, to_json
from sandbox_chat.events import (
    EVENT_TYPES,
    Choice,
    ContextUse,
    Event,
    FileContent,
    ImageContent,
    ModelUse,
    Notice,
    ServerTool,
    TableContent,
    Text,
    TextContent,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    Usage,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
COUNT = st.integers(0, 10**12)
COST = st.none() | st.floats(0, 1e6)
USAGE = st.builds(Usage, COUNT, COUNT, COUNT, COUNT)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
CONTENT = st.one_of(
    st.builds(TextContent, TEXT),
    st.builds(ImageContent, TEXT, TEXT, st.integers(1, 9999), st.integers(1, 9999)),
    st.builds(
        TableContent,
        st.lists(TEXT, max_size=2).map(tuple),
        st.lists(st.lists(TEXT, max_size=2).map(tuple), max_size=2).map(tuple),
        COUNT,
        COUNT,
        st.booleans(),
    ),
    st.builds(FileContent, TEXT, TEXT, COUNT, TEXT),
)
BY_KIND: dict[str, st.SearchStrategy[Any]] = {
    "str": TEXT,
    "int": COUNT,
    "bool": st.booleans(),
    "datetime": st.datetimes(timezones=st.just(UTC)),
    "float": st.floats(0, 1e6),
    "float | None": COST,
    "Stream": st.sampled_from(["stdout", "stderr"]),
    "NoticeLevel": st.sampled_from(["info", "warning", "error"]),
    "Component": st.sampled_from(["agent", "sandbox"]),
    "ServerPlace": st.sampled_from(["host", "sandbox"]),
    "ServerState": st.sampled_from(["idle", "starting", "ready", "failed", "lost", "off"]),
    "tuple[ServerTool, ...]": st.lists(st.builds(ServerTool, TEXT, TEXT, TEXT), max_size=2).map(tuple),
    "Mapping[str, Any]": st.dictionaries(TEXT, JSON, max_size=3),
    "tuple[Content, ...]": st.lists(CONTENT, max_size=3).map(tuple),
    "tuple[Choice, ...]": st.lists(st.builds(Choice, TEXT, TEXT, TEXT), max_size=3).map(tuple),
    "tuple[str, ...]": st.lists(TEXT, max_size=2).map(tuple),
    "About": st.lists(st.tuples(TEXT, TEXT), max_size=2).map(tuple),
    "tuple[ModelUse, ...]": st.lists(st.builds(ModelUse, TEXT, USAGE, COST), max_size=2).map(tuple),
    "Usage": USAGE,
    "Styles": st.just(()),
    "ContextUse": st.builds(ContextUse, COUNT, COUNT),
}


def strategy(cls: type[Event]) -> st.SearchStrategy[Event]:
    return st.builds(cls, **{item.name: BY_KIND[str(item.type)] for item in dataclasses.fields(cls)})


EVENTS = st.one_of([strategy(cls) for cls in EVENT_TYPES.values()])


@given(EVENTS)
def test_every_event_survives_json(event: Event) -> None:
    line = to_json(event)
    assert "\n" not in line
    assert from_json(line) == event
    assert json.loads(line)["type"] == type(event).type
    assert from_dict(to_dict(event)) == event


@given(EVENTS, TEXT, JSON)
def test_unknown_fields_are_ignored(event: Event, name: str, value: Any) -> None:
    assert from_dict({f"later_{name}": value, **to_dict(event)}) == event


@given(EVENTS, st.data())
def test_a_wrong_value_is_a_value_error_or_still_an_event(event: Event, data: st.DataObject) -> None:
    record = to_dict(event)
    record[data.draw(st.sampled_from(sorted(set(record) - {"type"})))] = data.draw(JSON)
    try:
        back = from_dict(record)
    except ValueError:
        return
    assert type(back) is type(event)
    assert from_json(to_json(back)) == back


@given(EVENTS, st.data())
def test_a_missing_field_is_a_default_or_a_value_error(event: Event, data: st.DataObject) -> None:
    record = to_dict(event)
    name = data.draw(st.sampled_from(sorted(set(record) - {"type"})))
    del record[name]
    (item,) = [item for item in dataclasses.fields(event) if item.name == name]
    required = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
    if required:
        with pytest.raises(ValueError, match=f"not a valid {event.type} event"):
            from_dict(record)
    else:
        assert type(from_dict(record)) is type(event)


@given(st.text(max_size=60))
def test_any_line_is_an_event_or_a_value_error(line: str) -> None:
    try:
        from_json(line)
    except ValueError:
        return
    except RecursionError:
        pytest.fail("too deep")


def test_types_are_unique_and_named() -> None:
    assert len(EVENT_TYPES) == len({cls.type for cls in EVENT_TYPES.values()})
    assert all(cls.type for cls in EVENT_TYPES.values())
    subclasses = {cls.type for cls in Event.__subclasses__()}
    assert subclasses == set(EVENT_TYPES)


def test_unknown_types_are_none() -> None:
    assert from_dict({"type": "from_the_future", "seq": 1}) is None
    assert from_dict({}) is None


def test_what_is_no_object_is_refused() -> None:
    for line in ("[]", "3", "null", '"x"', ""):
        with pytest.raises(ValueError):
            from_json(line)


@pytest.mark.parametrize(
    "change",
    [
        {"duration_ms": "5"},
        {"duration_ms": True},
        {"is_error": 1},
        {"cost_usd": "free"},
        {"cost_usd": float("nan")},
        {"usage": [1]},
        {"usage": {"input": float("inf")}},
        {"models": [{"model": "m"}]},
        {"at": 5},
        {"at": "yesterday"},
        {"error": None},
    ],
)
def test_values_of_the_wrong_kind_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        from_dict({**to_dict(turn()), **change})


def test_a_time_without_zone_is_utc() -> None:
    event = from_dict({"type": "text", "text": "x", "at": "2026-01-02T03:04:05"})
    assert event is not None
    assert event.at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_lone_surrogates_are_escaped_so_that_the_line_is_utf8() -> None:
    line = to_json(Text(text="a\ud83cb"))
    line.encode("utf-8")
    assert json.loads(line)["text"] == "a\ud83cb"


def test_the_json_form_is_as_documented() -> None:
    event = ToolFinished(
        seq=7,
        at=datetime(2026, 1, 2, tzinfo=UTC),
        tool_use_id="t1",
        is_error=False,
        content=(TextContent("ok"), ImageContent("/a.png", "image/png", 3, 2)),
        duration_ms=12,
    )
    assert to_dict(event) == {
        "type": "tool_finished",
        "seq": 7,
        "at": "2026-01-02T00:00:00.000000+00:00",
        "tool_use_id": "t1",
        "is_error": False,
        "interrupted": False,
        "content": [
            {"type": "text", "text": "ok"},
            {"type": "image", "path": "/a.png", "mime": "image/png", "width": 3, "height": 2},
        ],
        "duration_ms": 12,
    }
    record = to_dict(turn())
    assert record["usage"] == {"input": 1, "output": 2, "cache_read": 3, "cache_creation": 4}
    assert record["context"] == {"used": 5, "max": 6}
    assert record["cost_usd"] is None
    assert record["models"] == [
        {"model": "m", "usage": to_dict(turn())["usage"], "cost_usd": 0.5, "complete": True}
    ]


def test_events_are_frozen_and_carry_a_time() -> None:
    event = Notice(level="info", text="x")
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.text = "y"  # type: ignore[misc]  # the point of the test
    assert event.at.tzinfo is UTC
    assert event.seq == 0


def test_deep_input_is_written_as_it_is() -> None:
    event = ToolStarted(tool_use_id="t", name="n", input={"a": [{"b": (1, 2)}]})
    assert to_dict(event)["input"] == {"a": [{"b": [1, 2]}]}


def turn() -> TurnFinished:
    usage = Usage(1, 2, 3, 4)
    return TurnFinished(
        turn_id="t",
        subtype="success",
        is_error=False,
        interrupted=False,
        num_turns=1,
        duration_ms=5,
        cost_usd=None,
        total_cost_usd=0.5,
        usage=usage,
        context=ContextUse(5, 6),
        models=(ModelUse("m", usage, 0.5),),
    )


def test_the_vocabulary_is_documented() -> None:
    for cls in EVENT_TYPES.values():
        assert cls.__doc__
        assert not cls.__doc__.startswith(cls.__name__ + "(")
    assert events.__doc__


def test_contents_of_a_later_version_are_read_as_their_text_or_left_out() -> None:
    parts = [{"type": "hologram", "text": "[hologram]"}, {"type": "smell"}, {"type": "text", "text": "t"}]
    event = from_dict(
        {
            **to_dict(ToolFinished(tool_use_id="a", is_error=False, content=(), duration_ms=1)),
            "content": parts,
        }
    )
    assert isinstance(event, ToolFinished)
    assert event.content == (TextContent("[hologram]"), TextContent("t"))


def test_programs_of_an_earlier_version_find_a_text_in_every_content() -> None:
    content = (TableContent(("a",), (("1",),), 3, 1), FileContent("/p.html", "text/html", 5, "plotly figure"))
    data = to_dict(ToolFinished(tool_use_id="a", is_error=False, content=content, duration_ms=1))
    assert [part["text"] for part in data["content"]] == ["[table of 3 × 1]", "[plotly figure: /p.html]"]


def test_colours_of_output_survive_json() -> None:
    event = ToolOutput(
        tool_use_id="u",
        stream="stdout",
        text="red plain",
        rewind=7,
        styles=((0, 3, "bold bright-red on-#102030"), (4, 5, "dim")),
    )
    assert from_json(to_json(event)) == event


@pytest.mark.parametrize(
    "styles",
    [
        [[0, 99, "red"]],
        [[-1, 2, "red"]],
        [[2, 2, "red"]],
        [[0, 3, "red"], [2, 4, "blue"]],
        [[0, 1, "red; rm"]],
        [[0, 1, "\x1b[31m"]],
        [[0, 1, ""]],
        [[0, 1]],
        "red",
        7,
    ],
)
def test_colours_that_are_not_of_the_text_are_refused(styles: object) -> None:
    record = to_dict(ToolOutput(tool_use_id="u", stream="stdout", text="text"))
    with pytest.raises(ValueError, match=r"tool_output|unpack"):
        from_dict({**record, "styles": styles})
    with pytest.raises(ValueError, match=r"tool_output|unpack"):
        from_dict({**record, "rewind": -1})
