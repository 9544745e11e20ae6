"""Output is kept within its limit, and what was cut is counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.sandbox.collect import Collector


@given(st.lists(st.text(max_size=40), max_size=40), st.integers(3, 60))
def test_head_and_tail(parts: list[str], limit: int) -> None:
    collector = Collector(limit)
    for part in parts:
        collector.feed(part.encode("utf-8", "replace"))
    whole = "".join(part.encode("utf-8", "replace").decode() for part in parts)
    text = collector.text()
    if len(whole) <= limit:
        assert text == whole
        return
    head = limit * 2 // 3
    assert text.startswith(whole[:head])
    assert text.endswith(whole[len(whole) - (limit - head) :])
    assert f"{len(whole) - limit:,} characters cut out of {len(whole):,}" in text


@given(st.binary(max_size=200), st.integers(1, 7))
def test_characters_cut_in_the_middle(data: bytes, step: int) -> None:
    collector = Collector(1000)
    live = "".join(collector.feed(data[start : start + step]) for start in range(0, len(data), step))
    live += collector.feed(b"", final=True)
    assert live == collector.text() == data.decode("utf-8", "replace")


def test_memory_is_bounded() -> None:
    collector = Collector(1000)
    for _ in range(10_000):
        collector.feed(b"x" * 999)
    assert sum(map(len, collector._head)) + sum(map(len, collector._tail)) <= 2000
    assert collector.total == 9_990_000
