"""What the server counts, in Prometheus' form, in a registry of its own.

Counts add up at any time: tasks accepted = finished (all outcomes) + running + queued. All of it is counted on the server's
loop, and a scrape is answered there between two steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from sandbox_chat import __version__
from sandbox_chat.events import (
    Event,
    NestedFinished,
    NestedStarted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnSettled,
    Usage,
)
from sandbox_chat.serve.errors import ERRORS
from sandbox_chat.serve.task import Outcome

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
NAMES = 200
"""Names of tools that are counted apart; further ones, which a model may make up, count as ``other``."""
_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
_OPEN_CALLS = 1000


@dataclass(slots=True)
class _Counted:
    """What was counted of a turn: its settled figures may come later and differ."""

    turn_id: str
    usage: Usage
    cost: float


class Metrics:
    """The server's counters. ``running``, ``queued`` and ``sessions`` say what there is at the moment of a scrape."""

    def __init__(
        self, running: Callable[[], int], queued: Callable[[], int], sessions: Callable[[], int]
    ) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # a line more for each count, with no news
        self.registry = registry = CollectorRegistry()
        name = "sandbox_chat_"
        self.accepted = Counter(name + "tasks_accepted", "Tasks that were taken.", registry=registry)
        self.finished = Counter(
            name + "tasks_finished", "Tasks that ended, by how.", ["outcome"], registry=registry
        )
        self.refused = Counter(
            name + "tasks_refused",
            "Tasks that were not taken, by the error's code.",
            ["code"],
            registry=registry,
        )
        self.duration = Histogram(
            name + "task_duration_seconds",
            "Seconds that tasks ran.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.waiting = Histogram(
            name + "task_wait_seconds",
            "Seconds that tasks waited before they ran.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.tool_calls = Counter(
            name + "tool_calls",
            "Calls of tools that ended, by tool and how.",
            ["tool", "outcome"],
            registry=registry,
        )
        self.nested_calls = Counter(
            name + "nested_calls",
            "Calls of tools by code that ran in a call.",
            ["tool", "outcome"],
            registry=registry,
        )
        self.tokens = Counter(name + "tokens", "Tokens used, by kind.", ["kind"], registry=registry)
        self.cost = Counter(
            name + "cost_usd", "Dollars that turns cost, where that is known.", registry=registry
        )
        self.requests = Counter(
            name + "requests", "Requests that were answered.", ["route", "status"], registry=registry
        )
        for name_of, about, value in (
            ("tasks_running", "Tasks that run.", running),
            ("tasks_queued", "Tasks that wait.", queued),
            ("sessions", "Sessions that are kept alive.", sessions),
        ):
            Gauge(name + name_of, about, registry=registry).set_function(value)
        Info(name + "build", "The program.", registry=registry).info({"version": __version__})
        for outcome in get_args(Outcome):
            self.finished.labels(outcome)
        for code in ("queue_full", "draining"):
            assert code in ERRORS
            self.refused.labels(code)
        for kind in Usage.__slots__:
            self.tokens.labels(kind)
        self._names: set[str] = set()

    def text(self) -> bytes:
        """All of it as Prometheus reads it."""
        return generate_latest(self.registry)

    def tool(self, name: str) -> str:
        """Return the label for a tool."""
        if name not in self._names and len(self._names) >= NAMES:
            return "other"
        self._names.add(name)
        return name


class Tally:
    """Counts what happens in one session."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._calls: dict[str, str] = {}  # name of the tool by the id of a call that has not ended
        self._last = _Counted("", Usage(), 0.0)

    def take(self, event: Event) -> None:
        """Count one event."""
        match event:
            case ToolStarted() | NestedStarted():
                if len(self._calls) < _OPEN_CALLS:
                    key = event.call_id if isinstance(event, NestedStarted) else event.tool_use_id
                    self._calls[key] = self._metrics.tool(event.name)
            case NestedFinished():
                self._ended(self._metrics.nested_calls, event.call_id, event)
            case ToolFinished():
                self._ended(self._metrics.tool_calls, event.tool_use_id, event)
            case TurnFinished():
                self._last = _Counted(event.turn_id, Usage(), 0.0)
                self._spent(event.usage, event.cost_usd)
                self._calls.clear()
            case TurnSettled() if event.turn_id == self._last.turn_id:
                self._spent(event.usage, event.cost_usd)

    def _ended(self, counter: Counter, key: str, event: ToolFinished | NestedFinished) -> None:
        outcome = "interrupted" if event.interrupted else "error" if event.is_error else "ok"
        counter.labels(self._calls.pop(key, "other"), outcome).inc()

    def _spent(self, usage: Usage, cost: float | None) -> None:
        """Count what is more than what was counted of this turn."""
        for kind in Usage.__slots__:
            more = getattr(usage, kind) - getattr(self._last.usage, kind)
            self._metrics.tokens.labels(kind).inc(max(0, more))
        self._metrics.cost.inc(max(0.0, (cost or 0.0) - self._last.cost))
        self._last = _Counted(self._last.turn_id, usage, cost or 0.0)
