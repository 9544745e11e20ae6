"""The frames: whatever is packed comes out again, however the stream is cut; nonsense is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.guest.protocol import HEADER, FrameReader, ProtocolError, pack

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
messages = st.dictionaries(st.text(), plain, max_size=4)


@given(st.lists(st.tuples(messages, st.binary(max_size=300)), max_size=5), st.data())
def test_frames_survive_any_cutting(frames: list[tuple[dict[str, Any], bytes]], data: st.DataObject) -> None:
    stream = b"".join(pack(message, blob) for message, blob in frames)
    reader = FrameReader()
    found = []
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += reader.feed(stream[start:end])
    assert found == frames


@given(st.binary(max_size=400))
def test_any_bytes_give_frames_or_an_error(data: bytes) -> None:
    reader = FrameReader(max_json=1000, max_blob=1000)
    try:
        for message, blob in reader.feed(data):
            assert isinstance(message, dict)
            assert isinstance(blob, bytes)
    except ProtocolError:
        return


@pytest.mark.parametrize(
    "data",
    [
        HEADER.pack(0xFFFFFFFF, 0),
        HEADER.pack(2, 0xFFFFFFFF) + b"{}",
        HEADER.pack(2, 0) + b"[]",
        HEADER.pack(3, 0) + b"{,}",
        HEADER.pack(4, 0) + b"\xff\xfe{}",
        HEADER.pack(200_000, 0) + b"[" * 200_000,
    ],
)
def test_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        FrameReader().feed(data)


def test_announced_lengths_take_no_memory_before_the_bytes_come() -> None:
    reader = FrameReader()
    assert reader.feed(HEADER.pack(10, 60 << 20)) == []
    assert len(reader._buffer) == HEADER.size


def test_lone_surrogates_travel() -> None:
    [(message, _)] = FrameReader().feed(pack({"text": "a\udc80b"}))
    assert message == {"text": "a\udc80b"}


def test_a_frame_that_is_too_large_is_not_sent() -> None:
    with pytest.raises(ProtocolError):
        pack({"text": "x" * (17 << 20)})


def test_body_is_compact_ascii() -> None:
    frame = pack({"a": "ü"})
    assert json.loads(frame[HEADER.size :]) == {"a": "ü"}
    assert frame.isascii()


def test_byte_by_byte() -> None:
    reader = FrameReader()
    frames = [frame for byte in pack({"a": 1}, b"xyz") * 2 for frame in reader.feed(bytes([byte]))]
    assert frames == [({"a": 1}, b"xyz")] * 2
