"""The pump: few flushes, in order, the first at once."""

from __future__ import annotations

import threading

from sandbox_chat.events import Event, TextDelta
from sandbox_chat.ui.pump import BURST, Pump


class Loop:
    """A loop by hand: collects what the pump asks of it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.woken = 0
        self.later: list[float] = []
        self.batches: list[list[Event]] = []
        self.pump = Pump(self.batches.append, interval=0.05, clock=lambda: self.now)

    def attach(self) -> None:
        self.pump.attach(self.wake, self.later.append)

    def wake(self) -> None:
        self.woken += 1


def piece(text: str) -> TextDelta:
    return TextDelta(text=text)


def texts(batches: list[list[Event]]) -> list[str]:
    return [event.text for batch in batches for event in batch if isinstance(event, TextDelta)]


def test_the_first_event_goes_through_at_once() -> None:
    loop = Loop()
    loop.attach()
    loop.pump.put(piece("a"))
    assert loop.woken == 1
    loop.pump.flush()
    assert texts(loop.batches) == ["a"]


def test_events_within_the_interval_are_gathered_into_one_flush() -> None:
    loop = Loop()
    loop.attach()
    loop.pump.put(piece("a"))
    loop.pump.flush()
    loop.now = 0.01
    for text in "bcd":
        loop.pump.put(piece(text))
    assert loop.woken == 2, "one wake-up for the three"
    loop.pump.flush()
    assert len(loop.batches) == 1, "too early"
    assert [round(wait, 3) for wait in loop.later] == [0.04]
    loop.now = 0.051
    loop.pump.flush()
    assert [len(batch) for batch in loop.batches] == [1, 3]


def test_what_came_before_the_loop_is_not_lost() -> None:
    loop = Loop()
    loop.pump.put(piece("a"))
    assert loop.woken == 0
    loop.attach()
    assert loop.woken == 1
    loop.pump.flush()
    assert texts(loop.batches) == ["a"]


def test_a_long_replay_is_cut_into_bursts() -> None:
    loop = Loop()
    loop.attach()
    for number in range(BURST + 10):
        loop.pump.put(piece(str(number)))
    loop.pump.flush()
    assert len(loop.batches[0]) == BURST
    assert loop.later == [0.0]
    loop.pump.drain()
    assert texts(loop.batches) == [str(number) for number in range(BURST + 10)]
    loop.pump.put(piece("after"))
    assert loop.woken == 2


def test_order_is_kept_from_many_threads_and_nothing_is_lost() -> None:
    loop = Loop()
    loop.attach()

    def talk(name: int) -> None:
        for number in range(300):
            loop.pump.put(piece(f"{name}:{number}"))

    threads = [threading.Thread(target=talk, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        loop.pump.drain()
    for _ in range(1200 // BURST + 1):
        loop.pump.drain()
    found = texts(loop.batches)
    assert len(found) == 1200
    for name in range(4):
        mine = [text for text in found if text.startswith(f"{name}:")]
        assert mine == [f"{name}:{number}" for number in range(300)]


def test_detached_it_only_keeps() -> None:
    loop = Loop()
    loop.attach()
    loop.pump.detach()
    loop.pump.put(piece("a"))
    assert loop.woken == 0
    loop.pump.drain()
    assert texts(loop.batches) == ["a"]
