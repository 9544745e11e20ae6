"""A whole chat in tests: the real engine, CLI and sandbox against a scripted endpoint, its events recorded.

with engine(tmp_path, call("run_code", code="1+1"), text("2")) as e:
    finished = e.ask("add")
    e.of(ToolFinished)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from support.scripted import MessagesServer, serve

from sandbox_chat.engine import Engine
from sandbox_chat.events import Event, TurnFinished
from sandbox_chat.settings import Secret, Settings

E = TypeVar("E", bound=Event)
PATIENCE = 120.0
"""Seconds that anything may take on a busy machine before a test gives up."""


class Running:
    """An engine that runs and what it said. ``on_event`` is called with each event, on the engine's threads."""

    def __init__(self, server: MessagesServer, on_event: Callable[[Running, Event], None] | None) -> None:
        self.server = server
        self.began = time.time()
        self.events: list[Event] = []
        self.engine: Engine
        self._on_event = on_event
        self._changed = threading.Condition()

    def take(self, event: Event) -> None:
        """Take an event."""
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()
        if self._on_event is not None:
            self._on_event(self, event)

    def of(self, kind: type[E]) -> list[E]:
        """The events of a type, in order."""
        with self._changed:
            return [event for event in self.events if isinstance(event, kind)]

    def until(self, condition: Callable[[], Any], what: str = "it", patience: float = PATIENCE) -> Any:
        """Wait until ``condition`` gives something true, and return that."""
        with self._changed:
            found = self._changed.wait_for(condition, patience)
        assert found, f"waited in vain for {what}"
        return found

    def ask(self, prompt: str) -> TurnFinished:
        """Send a prompt and wait for the end of its turn."""
        return self.finished(self.engine.send(prompt))

    def finished(self, turn_id: str) -> TurnFinished:
        """Wait for the end of a turn."""
        found: TurnFinished = self.until(
            lambda: next((each for each in self.of(TurnFinished) if each.turn_id == turn_id), None),
            "the end of the turn",
        )
        return found


@contextmanager
def engine(
    folder: Path,
    *steps: Any,
    function: Any = None,
    asks: bool = False,
    resume: str | None = None,
    fork: bool = False,
    replay: Callable[[Event], None] | None = None,
    on_event: Callable[[Running, Event], None] | None = None,
    **settings: Any,
) -> Iterator[Running]:
    """A started engine; closed at the end."""
    with serve(*steps, function=function) as server:
        running = Running(server, on_event)
        values: dict[str, Any] = {
            "anthropic_base_url": server.url,
            "anthropic_auth_token": Secret(server.token),
            "model": "scripted-model-1",
            "request_retries": 0,
            "data_dir": folder / "data",
            "downloads_dir": folder / "downloads",
            **settings,
        }
        running.engine = Engine(
            Settings(**values), running.take, asks=asks, resume=resume, replay=replay, fork=fork
        )
        running.engine.start()
        try:
            yield running
        finally:
            running.engine.close()
