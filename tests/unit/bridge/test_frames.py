"""Frames of code mode: whatever cuts they come in they are the same, and what is none is refused before it is kept."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox_chat.bridge import frames
from sandbox_chat.bridge.frames import HEADER, BadFrame, TooLarge, pack, receive

LONGEST = 100_000
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)
few = settings(max_examples=30)
objects = st.dictionaries(st.text(), values, max_size=5)


def fed(data: bytes, cuts: list[int] | None = None, *, end: bool = True) -> asyncio.StreamReader:
    """A reader that gets data in pieces."""
    reader = asyncio.StreamReader()
    edges = sorted({min(cut, len(data)) for cut in cuts or []} | {0, len(data)})
    for start, stop in itertools.pairwise(edges):
        reader.feed_data(data[start:stop])
    if end:
        reader.feed_eof()
    return reader


def framed(value: object) -> bytes:
    """A request as code writes it."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return HEADER.pack(len(data)) + data


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[tuple[asyncio.StreamReader, socket.socket]]:
    """A reader at one end of a real connection, and the other end."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=ours)
    try:
        yield reader, theirs
    finally:
        writer.close()
        theirs.close()


# -- what is a request -------------------------------------------------------------------------------------


@few
@given(objects, st.lists(st.integers(0, 2000), max_size=20))
def test_a_request_in_any_cuts_is_the_same(message: dict[str, Any], cuts: list[int]) -> None:
    async def got() -> dict[str, Any]:
        return await receive(fed(framed(message), cuts), LONGEST)

    assert asyncio.run(got()) == message


@few
@given(objects, st.lists(st.integers(0, 500), max_size=8))
def test_the_same_over_a_socket(message: dict[str, Any], cuts: list[int]) -> None:
    async def got() -> dict[str, Any]:
        async with connected() as (reader, sock):
            data = framed(message)
            waiting = asyncio.ensure_future(receive(reader, 1 << 20))
            edges = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
            for start, stop in itertools.pairwise(edges):
                await asyncio.get_running_loop().sock_sendall(sock, data[start:stop])
                await asyncio.sleep(0)
            return await waiting

    assert asyncio.run(got()) == message


async def test_only_one_request_is_read() -> None:
    reader = fed(framed({"a": 1}) + b"more")
    assert await receive(reader, LONGEST) == {"a": 1}
    assert await reader.read() == b"more"


@few
@given(objects)
def test_what_is_packed_can_be_received(answer: dict[str, Any]) -> None:
    """Both directions have the same form."""
    data = pack(answer, 1 << 30)
    assert HEADER.unpack(data[:4]) == (len(data) - 4,)

    async def got() -> dict[str, Any]:
        return await receive(fed(data), 1 << 30)

    assert asyncio.run(got()) == answer


# -- what is none ------------------------------------------------------------------------------------------


@given(st.binary(max_size=300))
def test_garbage_is_refused_or_an_object(data: bytes) -> None:
    async def got() -> None:
        with contextlib.suppress(BadFrame):
            assert isinstance(await receive(fed(data), 200), dict)

    asyncio.run(got())


@few
@given(objects, st.integers(0))
def test_a_request_that_ends_early(message: dict[str, Any], cut: int) -> None:
    whole = framed(message)
    end = cut % len(whole)

    async def got() -> None:
        with pytest.raises(BadFrame, match=r"^a request ended in the middle$"):
            await receive(fed(whole[:end]), LONGEST)

    asyncio.run(got())


@given(st.integers(101, 0xFFFFFFFF))
def test_a_length_that_is_too_long_is_refused_before_anything_is_read(length: int) -> None:
    async def got() -> None:
        with pytest.raises(TooLarge) as caught:
            await receive(fed(HEADER.pack(length), end=False), 100)
        assert f"a request of {length:,} bytes is longer than the 100 " in str(caught.value)
        assert "SANDBOX_CHAT_CODE_MODE_REQUEST_MB" in str(caught.value)

    asyncio.run(got())


@pytest.mark.parametrize("size", [99, 100, 101])
async def test_the_longest_request(size: int) -> None:
    data = b'{"a":"' + b"x" * (size - 8) + b'"}'
    assert len(data) == size
    if size <= 100:
        assert len((await receive(fed(framed(data)), 100))["a"]) == size - 8
    else:
        with pytest.raises(TooLarge):
            await receive(fed(framed(data)), 100)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "was not JSON"),
        (b"not json", "was not JSON"),
        (b"\xff\xfe", "was not JSON"),
        (b'{"a": 1', "was not JSON"),
        (b"[" * 90_000, "was not JSON"),
        (b'{"a":' * 15_000, "was not JSON"),
        (b"9" * 5000, "was not JSON"),
        (b"[1, 2]", "was not a JSON object"),
        (b'"text"', "was not a JSON object"),
        (b"7", "was not a JSON object"),
        (b"null", "was not a JSON object"),
    ],
)
async def test_what_is_no_object(data: bytes, why: str) -> None:
    with pytest.raises(BadFrame, match=f"^a request {why}$") as caught:
        await receive(fed(framed(data)), LONGEST)
    assert not isinstance(caught.value, TooLarge)


@pytest.mark.parametrize("sent", [b"", b"\0\0", framed({"a": "b"})[:-1]])
async def test_a_request_that_does_not_come(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same whether nothing comes or the last sign is missing."""
    monkeypatch.setattr(frames, "PATIENCE", 0.02)
    async with connected() as (reader, sock):
        sock.send(sent)
        with pytest.raises(BadFrame, match=r"^a request did not come in whole in time$"):
            await receive(reader, LONGEST)


async def test_a_connection_that_breaks() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(framed({"a": 1})[:-1])
    reader.set_exception(ConnectionResetError("gone"))
    with pytest.raises(BadFrame, match="ended in the middle"):
        await receive(reader, LONGEST)


# -- answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_the_longest_answer(more: int) -> None:
    answer = {"ok": True, "value": "é" * 500}
    size = len(pack(answer, 1 << 20)) - HEADER.size
    assert size == 21 + 2 * 500 + 1  # bytes of UTF-8 and not signs, without spaces
    if more >= 0:
        assert len(pack(answer, size + more)) == size + HEADER.size
        return
    with pytest.raises(TooLarge) as caught:
        pack(answer, size + more)
    words = str(caught.value)
    assert f"The result has {size:,} bytes, more than the {size + more:,} " in words
    assert "SANDBOX_CHAT_CODE_MODE_RESULT_MB" in words
    assert words.endswith("Ask for less at a time.")


def test_what_is_no_json_becomes_text() -> None:
    data = pack({"value": {1}, "broken": "\ud800"}, 1000)
    assert json.loads(data[HEADER.size :]) == {"value": "{1}", "broken": "?"}
