"""What a request may ask: strict JSON, fields by the description, headers, the body's bounds in size and time."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from sandbox_chat.serve import reading
from sandbox_chat.serve.asking import SAYS, SESSION, TASK_LIMIT, USER, Ask, read_ask, read_owner
from sandbox_chat.serve.errors import ERRORS, Refused
from sandbox_chat.serve.reading import check_type, read_body, wants_events

ID = "11111111-2222-4333-8444-555555555555"


def refused(raw: bytes) -> str:
    with pytest.raises(Refused) as found:
        read_ask(raw)
    assert "evil" not in found.value.message
    return found.value.code


def test_what_is_asked() -> None:
    raw = json.dumps({"userId": "ann@example.org", "task": "x\ud800 \u4f60", "session": ID}).encode()
    assert read_ask(raw) == Ask("ann@example.org", "x\ufffd \u4f60", ID)
    assert read_ask(b'{"userId": "a", "task": "x", "session": null}') == Ask("a", "x")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"\xff",
        b'{"userId": "a", "userId": "evil", "task": "x"}',
        b'{"userId": NaN}',
        b"[" * 200_000,
        b"1" * 10_000,
        '{"userId": "a", "task": "x"}'.encode("utf-16"),
    ],
)
def test_what_is_no_json(raw: bytes) -> None:
    assert refused(raw) in ("not_json", "invalid")


@pytest.mark.parametrize(
    "body",
    [
        [],
        "x",
        {},
        {"userId": "a"},
        {"task": "x"},
        {"userId": "", "task": "x"},
        {"userId": "../evil", "task": "x"},
        {"userId": "a/b", "task": "x"},
        {"userId": "a\r\nset-cookie: evil", "task": "x"},
        {"userId": "ann\n", "task": "x"},
        {"userId": "a" * 65, "task": "x"},
        {"userId": "ä", "task": "x"},
        {"userId": 5, "task": "x"},
        {"userId": "a", "task": ""},
        {"userId": "a", "task": " \n\t"},
        {"userId": "a", "task": "\u200b\u00ad\ufeff"},
        {"userId": "a", "task": "x" * (TASK_LIMIT + 1)},
        {"userId": "a", "task": ["x"]},
        {"userId": "a", "task": "x", "session": ""},
        {"userId": "a", "task": "x", "session": "../evil"},
        {"userId": "a", "task": "x", "session": ID + "\n"},
        {"userId": "a", "task": "x", "session": ID.upper().replace("1", "A")},
        {"userId": "a", "task": "x", "evil": 1},
    ],
)
def test_what_is_not_as_it_must_be(body: Any) -> None:
    assert refused(json.dumps(body).encode()) == "invalid"


@given(
    st.text(max_size=70) | st.from_regex(USER),
    st.text(max_size=5) | st.from_regex(SAYS),
    st.text(max_size=40) | st.from_regex(SESSION),
)
def test_it_is_what_the_description_says(user: str, task: str, session: str) -> None:
    right = (
        re.search(USER.replace("$", r"\Z"), user) is not None
        and re.search(SAYS, task) is not None
        and re.search(SESSION.replace("$", r"\Z"), session) is not None
    )
    try:
        read_ask(json.dumps({"userId": user, "task": task, "session": session}).encode())
        assert right
    except Refused:
        assert not right


def test_the_owner_in_a_query() -> None:
    assert read_owner({}) == "" and read_owner({"userId": ["ann"]}) == "ann"
    for query in ({"userId": [""]}, {"userId": ["a", "b"]}, {"userId": ["../x"]}, {"other": ["x"]}):
        with pytest.raises(Refused):
            read_owner(query)


@pytest.mark.parametrize(
    ("headers", "right"),
    [
        ({"content-type": "application/json"}, True),
        ({"content-type": 'Application/JSON; charset="UTF-8"'}, True),
        ({"content-type": "application/json; charset=latin-1"}, False),
        ({"content-type": "text/plain"}, False),
        ({"content-type": "application/json", "content-encoding": "gzip"}, False),
        ({}, False),
    ],
)
def test_the_type_of_a_body(headers: dict[str, str], right: bool) -> None:
    try:
        check_type(Headers(headers))
        assert right
    except Refused as problem:
        assert not right and problem.status == 415


@pytest.mark.parametrize(
    ("accept", "events"),
    [
        ("", False),
        ("*/*", False),
        ("text/event-stream", True),
        ("application/json, text/event-stream", True),
        ("text/event-stream;q=0", False),
        ("text/event-stream;q=0.5, application/json", False),
        ("TEXT/Event-Stream ; q=0.9", True),
        ("text/event-stream;q=x", False),
    ],
)
def test_what_a_client_takes(accept: str, events: bool) -> None:
    assert wants_events(accept) is events


class Body:
    """A body in parts; then the client waits."""

    def __init__(self, *parts: bytes, ends: bool = True) -> None:
        self.parts = list(parts)
        self.ends = ends

    async def receive(self) -> dict[str, Any]:
        if not self.parts:
            await asyncio.Event().wait()
        part = self.parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(self.parts) or not self.ends}


async def test_a_body_is_read_whole() -> None:
    assert await read_body(Headers({}), Body(b"ab", b"cd").receive, 4) == b"abcd"


@pytest.mark.parametrize("said", ["5", "99999999999999999999999999", None])
async def test_a_body_that_is_too_large(said: str | None) -> None:
    headers = Headers({"content-length": said} if said else {})
    body = Body(b"abc", b"de", b"rest")
    with pytest.raises(Refused) as found:
        await read_body(headers, body.receive, 4)
    assert found.value.code == "too_large" and body.parts == []


async def test_a_body_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PATIENCE", 0.05)
    with pytest.raises(Refused) as found:
        await read_body(Headers({}), Body(b"a", ends=False).receive, 4)
    assert found.value.code == "slow_body"


async def test_the_rest_of_a_large_body_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_REST", 0.05)
    with pytest.raises(Refused) as found:
        await read_body(Headers({"content-length": "100000000"}), Body(b"a", ends=False).receive, 4)
    assert found.value.code == "too_large"


def test_each_error_has_a_sentence() -> None:
    for code, (status, words) in ERRORS.items():
        assert 400 <= status < 600 and words.endswith(".")
        assert Refused(code).body == {"error": {"code": code, "message": words}}
