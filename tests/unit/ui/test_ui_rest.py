"""The collector works while the user rests."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from sandbox_chat.ui import rest
from sandbox_chat.ui.rest import QUIET, WHOLE_EVERY, Collector


class Thing:
    """Something that holds itself."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    found.begin()
    try:
        yield found
    finally:
        found.end()


def test_nothing_is_collected_while_something_goes_on(collector: Collector) -> None:
    assert not gc.isenabled()
    collector.stir(100.0)
    seen = weakref.ref(Thing())
    assert not collector.rest(100.0 + QUIET / 2)
    assert seen() is not None
    assert collector.rest(100.0 + QUIET)
    assert seen() is None


def test_it_works_once_for_each_rest(collector: Collector) -> None:
    collector.stir(0.0)
    assert collector.rest(10.0)
    assert not collector.rest(20.0)
    collector.stir(21.0)
    assert collector.rest(30.0)


def test_a_long_turn_does_not_keep_its_garbage(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "YOUNG", 1_000)
    collector.stir(0.0)
    seen = weakref.ref(Thing())
    kept = [[] for _ in range(5_000)]
    assert collector.rest(0.1)
    assert seen() is None
    assert kept


def test_what_was_looked_at_is_looked_at_again_now_and_then(collector: Collector) -> None:
    thing = Thing()
    seen = weakref.ref(thing)
    collector.stir(0.0)
    collector.rest(10.0)  # it lives, and is out of sight now
    del thing
    for number in range(1, WHOLE_EVERY + 1):
        collector.stir(100.0 * number)
        collector.rest(100.0 * number + 50)
    assert seen() is None


def test_in_the_end_python_collects_by_itself() -> None:
    collector = Collector()
    collector.begin()
    collector.end()
    assert gc.isenabled()
