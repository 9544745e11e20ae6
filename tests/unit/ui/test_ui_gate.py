"""The way of an engine's events: shut, it lets nothing through, whoever is just about to."""

from __future__ import annotations

import threading

from sandbox_chat.events import Event, Notice
from sandbox_chat.ui.gate import Gate
from sandbox_chat.ui.pump import Pump

WORD = Notice(level="info", text="x")


def test_nothing_passes_once_it_is_shut() -> None:
    came: list[Event] = []
    past: list[Event] = []
    gate = Gate(came.append, past.append)
    gate.replay(WORD)
    assert not gate.live
    gate.put(WORD)
    assert gate.live
    gate.shut()
    gate.put(WORD)
    gate.replay(WORD)
    assert (len(came), len(past)) == (1, 1)


def test_shutting_waits_for_what_is_on_its_way() -> None:
    entered, go = threading.Event(), threading.Event()
    order: list[str] = []

    def slow(event: Event) -> None:
        entered.set()
        assert go.wait(10)
        order.append("put")

    gate = Gate(slow, slow)
    thread = threading.Thread(target=gate.put, args=(WORD,))
    thread.start()
    assert entered.wait(10)
    shut = threading.Thread(target=lambda: (gate.shut(), order.append("shut")))
    shut.start()
    go.set()
    thread.join(10)
    shut.join(10)
    assert order == ["put", "shut"]


def test_a_pump_that_is_cleared_delivers_what_comes_afterwards() -> None:
    delivered: list[list[Event]] = []
    pump = Pump(delivered.append, clock=lambda: 0.0)
    wakes: list[int] = []
    pump.attach(lambda: wakes.append(1), lambda seconds: None)
    pump.put(WORD)
    assert not pump.empty
    pump.clear()
    assert pump.empty
    pump.drain()
    assert delivered == []
    pump.put(WORD)
    pump.drain()
    assert delivered == [[WORD]]
    assert len(wakes) == 2
