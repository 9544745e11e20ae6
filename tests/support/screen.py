"""A chat's screen for tests: an engine that plays events, a clock that stands still, and ways to wait.

engine = PlayedEngine.factory()
app = chat_app(tmp_path, engine)
async with app.run_test(size=WIDE) as pilot:
    await settled(pilot, lambda: app.chat.state.phase == "idle")
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sandbox_chat import events as ev
from sandbox_chat.settings import Settings
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.transcript import Feed, Scene

WIDE = (140, 40)
NARROW = (80, 24)
LEAST = (12, 8)
"""Columns and rows from which on a transcript has room."""
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

HOSTILE = ("[/", "[bold]", "-x-][/dim]", "[@click=app.quit]x[/]", "$error 10%", "[red]a[/red]\\[b]")
"""Text that would be markup if anything parsed it."""

CODE = (
    "import numpy as np\n"
    "import matplotlib.pyplot as plt\n\n"
    "t = np.linspace(0, 10, 500)\n"
    "y = np.exp(-t / 3) * np.sin(4 * t)  # damped\n"
    "plt.plot(t, y)\n"
    "plt.show()\n"
    'print(f"half-life {3 * np.log(2):.2f} s")\n'
)


def clock() -> datetime:
    """A time that stands still."""
    return START + timedelta(seconds=10)


class PlayedEngine:
    """An engine without an agent: tests say what happens. It stamps events as the real one does."""

    def __init__(
        self,
        settings: Settings,
        sink: ev.Sink,
        *,
        resume: str | None = None,
        replay: ev.Sink | None = None,
    ) -> None:
        self.settings = settings
        self.sink = sink
        self.replay = replay
        self.session_id = resume or "0123-session"
        self.resumed = resume is not None
        self.seq = 0
        self.prompts: list[str] = []
        self.interrupts = 0
        self.attached: list[tuple[str, str]] = []
        self.answers: list[tuple[str, str]] = []
        self.forgotten: list[str] = []
        self.models: tuple[tuple[str, str], ...] = ()
        self.chosen_models: list[str] = []
        self.restarts = 0
        self.server_restarts: list[str] = []
        self.server_switches: list[tuple[str, bool]] = []
        self.steers: list[str] = []
        self.controls: list[ev.ControlsChanged] = []
        self.clears = 0
        self.titles: list[str] = []
        self.budgets: list[float] = []
        self.prestarts = 0
        self.closes = 0
        self.started = 0
        self.past: Sequence[ev.Event] = ()
        self.older_past: Sequence[ev.Event] = ()
        self.read_only = False
        self.ready = True
        self.close_takes = 0.0
        self.problem = ""
        self.values: dict[str, str] | None = None

    def real_values(self) -> dict[str, str] | None:
        return self.values

    def emit(self, *events: ev.Event) -> None:
        """Let events happen."""
        for event in events:
            self.seq += 1
            self.sink(dataclasses.replace(event, seq=self.seq))

    @property
    def has_older(self) -> bool:
        return bool(self.older_past)

    def older(self) -> Sequence[ev.Event]:
        return self.older_past

    def start(self) -> None:
        self.started += 1
        if self.replay is not None:
            for event in self.past:
                self.replay(event)
        self.emit(
            ev.SessionStarted(
                at=START,
                session_id=self.session_id,
                model=self.settings.model,
                sandbox=self.settings.sandbox,
                demo=self.settings.demo,
            )
        )
        if self.ready:
            self.emit(ev.Status(at=START, component="agent", state="ready"))

    def send(self, prompt: str) -> str:
        self.prompts.append(prompt)
        turn_id = f"t{len(self.prompts)}"
        self.emit(ev.TurnStarted(at=START, turn_id=turn_id, prompt=prompt))
        return turn_id

    def finish(self, turn: int | None = None, **changes: Any) -> None:
        """End a turn: the newest one by default."""
        self.emit(turn_finished(f"t{turn or len(self.prompts)}", **changes))

    def interrupt(self) -> None:
        self.interrupts += 1

    def steer(self, prompt: str) -> str:
        self.steers.append(prompt)
        self.emit(ev.Steered(at=START, turn_id=f"t{len(self.prompts)}", prompt=prompt))
        return f"steered-{len(self.steers)}"

    def set_model(self, name: str) -> None:
        self.chosen_models.append(name)

    def set_controls(
        self, *, model: str | None = None, effort: str | None = None, thinking: str | None = None
    ) -> None:
        changed = ev.ControlsChanged(
            at=START, model=model or "", effort=effort or "", thinking=thinking or ""
        )
        self.controls.append(changed)
        self.emit(changed)

    def restart_sandbox(self) -> None:
        self.restarts += 1

    def restart_server(self, name: str) -> None:
        self.server_restarts.append(name)

    def switch_server(self, name: str, on: bool) -> None:
        self.server_switches.append((name, on))

    def clear(self) -> None:
        self.clears += 1
        self.emit(ev.Cleared(at=START, agent_id=f"agent-{self.clears}"))

    def compact(self, wish: str = "") -> str:
        return self.send(f"/compact {wish}".strip())

    def set_budget(self, limit: float) -> None:
        self.budgets.append(limit)
        self.emit(ev.BudgetChanged(at=START, limit_usd=limit))

    def rename(self, title: str) -> None:
        self.titles.append(title)
        self.emit(ev.SessionRenamed(at=START, title=title))

    def attach(self, path: str, target: str = "") -> str:
        self.attached.append((path, target))
        return f"attach-{len(self.attached)}"

    def answer(self, approval_id: str, choice: str, by: str = "user") -> None:
        self.answers.append((approval_id, choice))
        self.emit(ev.ApprovalAnswered(at=START, approval_id=approval_id, choice=choice, by=by))

    def forget_answer(self, approval_id: str) -> None:
        self.forgotten.append(approval_id)
        self.emit(ev.ApprovalForgotten(at=START, approval_id=approval_id))

    def prestart_sandbox(self) -> None:
        self.prestarts += 1

    def close(self, timeout: float | None = None) -> None:
        del timeout
        self.closes += 1
        time.sleep(self.close_takes)


def turn_finished(turn_id: str, **changes: Any) -> ev.TurnFinished:
    """A turn that ended well, unless ``changes`` say otherwise."""
    values: dict[str, Any] = {
        "at": START + timedelta(seconds=9),
        "turn_id": turn_id,
        "subtype": "success",
        "is_error": False,
        "interrupted": False,
        "num_turns": 2,
        "duration_ms": 9000,
        "cost_usd": 0.0123,
        "total_cost_usd": 0.0123,
        "usage": ev.Usage(3100, 412, 12_000, 900),
        "context": ev.ContextUse(24_000, 200_000),
        "models": (ev.ModelUse("claude-sonnet-5", ev.Usage(3100, 412, 12_000, 900), 0.0123),),
        **changes,
    }
    return ev.TurnFinished(**values)


def tool_started(tool_id: str = "u1", name: str = "mcp__sandbox__run_code", **given: Any) -> ev.ToolStarted:
    """A call begins, three seconds after the start."""
    return ev.ToolStarted(
        at=START + timedelta(seconds=3), tool_use_id=tool_id, name=name, input=given or {"code": CODE}
    )


def tool_finished(tool_id: str = "u1", *content: ev.Content, **changes: Any) -> ev.ToolFinished:
    """A call ends, after 420 ms."""
    values: dict[str, Any] = {
        "at": START + timedelta(seconds=4),
        "tool_use_id": tool_id,
        "is_error": False,
        "content": content or (ev.TextContent("half-life 2.08 s"),),
        "duration_ms": 420,
        **changes,
    }
    return ev.ToolFinished(**values)


def chat_app(
    folder: Path,
    made: list[PlayedEngine] | None = None,
    *,
    ask: bool = False,
    resume: str | None = None,
    set_up: Callable[[PlayedEngine], None] | None = None,
    typed: str = "",
    **settings: Any,
) -> Any:
    """An application over a ``PlayedEngine``, which is appended to ``made`` when it is made."""
    from sandbox_chat.ui.app import ChatApp

    def make(
        chosen: Settings, sink: ev.Sink, *, resume: str | None = None, replay: ev.Sink | None = None
    ) -> PlayedEngine:
        engine = PlayedEngine(chosen, sink, resume=resume, replay=replay)
        if set_up is not None:
            set_up(engine)
        if made is not None:
            made.append(engine)
        return engine

    values: dict[str, Any] = {
        "data_dir": folder / "data",
        "images": "half",
        "reduced_motion": True,
        "theme": "dark",
        "language": "en",
        "glyphs": "unicode",
        **settings,
    }
    if not ask:
        values.setdefault("demo", True)
    return ChatApp(Settings(**values), make, ask=ask, resume=resume, typed=typed, clock=clock)


async def settled(pilot: Any, condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until ``condition`` holds, and until a transcript that is there has drawn all that it was fed."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        await pilot.pause(0.02)
    await pilot.pause()
    while not drawn(pilot.app):
        assert time.monotonic() < end, "it was not drawn in time"
        await pilot.pause(0.02)


def drawn(app: Any) -> bool:
    """Whether the transcript of the chat that is seen shows what it was fed, where the terminal has room for one."""
    if app.size.width < LEAST[0] or app.size.height < LEAST[1]:
        return True
    return all(view.drawn for view in app.screen.query("TranscriptView") if view.display)


def screen_text(app: Any) -> str:
    """What stands on the screen, as text."""
    width, height = app.size
    rows = []
    for strip in app.screen._compositor.render_strips(app.size):
        rows.append("".join(segment.text for segment in strip).rstrip())
    assert len(rows) <= height
    assert width
    return "\n".join(rows)


def shown(
    events: Sequence[ev.Event], sizes: Sequence[int], *, expanded: bool = False
) -> tuple[list[str], ChatState]:
    """Return the transcript's rows and the state after ``events`` came in batches of these sizes, in turn.

    The transcript is drawn after each batch, as it is live, and at the end in a width of its own.
    """
    feed, state = Feed(Scene(motion=False, now=clock)), ChatState()
    place = number = 0
    while place < len(events):
        size = sizes[number % len(sizes)]
        for event in events[place : place + size]:
            feed.apply(event)
            state.apply(event)
        place += size
        number += 1
        for block in feed.blocks:
            if expanded and not block.expanded:
                block.expand()
            block.rows(70)
    return [row.text.rstrip() for block in feed.blocks for row in block.rows(50)], state
