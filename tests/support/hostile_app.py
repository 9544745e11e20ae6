"""The chat's screen, driven at a real terminal with hostile text in every place. Writes what it saw to a file.

Arguments: a folder, and ``clean``, ``raw`` or ``blind``. ``clean``: text comes through the functions of ``text.py``, as from an engine.
``raw``: it does not, as if a border had been forgotten; then only the last look at each row stands in the way.
``blind``: that look is taken away too, so that a test can see that it would notice.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from rich.segment import Segment
from support.hostile import TEXTS
from support.screen import START, PlayedEngine, chat_app, turn_finished
from textual.color import Color

from sandbox_chat import events as ev
from sandbox_chat.ansi import Output
from sandbox_chat.journal import Journal
from sandbox_chat.text import ModelText, from_arguments, from_model, from_name, from_output
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.guard import Guard

KINDS = (
    "{}", "# {}", "```python\n{}\n```", "```{}\ncode\n```", "`{}`", "| {} | b |\n|---|---|\n| {} | c |", "[{}](http://e)", "[t]({})",
    "<http://e/{}>", "![{}]({})", "> {}", "- [ ] {}", "<div>{}</div>", "t[^1]\n\n[^1]: {}", "[r]: http://e '{}'\n\n[r]", "**{}** _{}_ ~~{}~~",
    "$${}$$",
)  # fmt: skip
"""Places of Markdown that text stands in."""


class Noting(Guard):
    """The last look at each row; notes the rows that it had to change."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[str] = []

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        before = self.stopped
        safe = super().apply(segments, background)
        if self.stopped != before:
            self.rows.append("".join(segment.text for segment in segments))
        return safe


class Blind(Guard):
    """A last look that sees nothing: what a widget draws goes out as it is."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return segments


class Place:
    """The app while it is driven, and what was seen."""

    def __init__(self, app: Any, engine: PlayedEngine, folder: Path, *, raw: bool) -> None:
        self.app = app
        self.engine = engine
        self.folder = folder
        self.raw = raw
        self.clickable: set[str] = set()
        self.seen: list[str] = []
        self.failed = ""
        self.times: dict[str, float] = {}

    def model(self, text: str) -> str:
        return text if self.raw else from_model(text)

    def name(self, text: str) -> str:
        return text if self.raw else from_name(text)

    def output(self, text: str) -> str:
        return text if self.raw else from_output(text)

    def values(self, value: Any) -> Any:
        return value if self.raw else from_arguments(value)

    def emit(self, *events: ev.Event) -> None:
        self.engine.emit(*events)

    async def look(self, seconds: float = 0.12) -> None:
        """Wait for a frame and note what stands on the screen, and what a click would do."""
        await asyncio.sleep(seconds)
        with contextlib.suppress(Exception):
            strips = self.app.screen._compositor.render_strips(self.app.size)
            self.seen.append("\n".join(strip.text.rstrip() for strip in strips))
            for strip in strips:
                for segment in strip:
                    if segment.style is not None:
                        self.clickable.update(
                            f"{key}={value}" for key, value in segment.style.meta.items() if key != "offset"
                        )

    async def page_through(self) -> None:
        """See the whole transcript, from its start to its end."""
        view = self.app.chat_screen.transcript
        view.action_scroll_start()
        for _ in range(400):
            await self.look(0.03)
            before = view.scroll_y
            view.action_scroll_pages(1)
            if view.scroll_y == before:
                return


async def transcript(at: Place) -> None:
    """Prompts, answers, thinking, notices."""
    for number, text in enumerate(TEXTS):
        at.emit(ev.TurnStarted(at=START, turn_id=f"h{number}", prompt=at.model(text)))
        pieces = ModelText()
        for place in range(0, len(text[:60]), 7):
            piece = text[:60][place : place + 7]
            at.emit(ev.ThinkingDelta(text=piece if at.raw else pieces.feed(piece)))
        at.emit(ev.Notice(level="warning", text=at.model(text)))
        at.emit(ev.Retry(reason=at.name(text), attempt=1, delay_ms=10))
        at.emit(turn_finished(f"h{number}", is_error=True, subtype="error", error=at.model(text)))
    await at.look()
    for number, kind in enumerate(KINDS):
        at.emit(ev.TurnStarted(at=START, turn_id=f"k{number}", prompt=f"kind {number}"))
        texts = [text for text in TEXTS if "\n" not in text][number % 2 :: 2]
        whole = "\n\n".join(kind.replace("{}", text) for text in texts)
        pieces = ModelText()
        for place in range(0, len(whole), 511):
            piece = whole[place : place + 511]
            at.emit(ev.TextDelta(text=piece if at.raw else pieces.feed(piece)))
        await at.look(0.05)
        at.emit(ev.Text(text=at.model(whole)), turn_finished(f"k{number}"))
    await at.page_through()


async def calls(at: Place) -> None:
    """Tool calls: names, arguments, output, results, pictures, tables, files, questions, transfers."""
    at.emit(ev.TurnStarted(at=START, turn_id="c", prompt="calls"))
    for number, text in enumerate(TEXTS):
        call = f"c{number}"
        name = at.name(f"mcp__{text}__{text}" if number % 5 == 0 else text) or "tool"
        for piece in ('{"code": "', json.dumps(text)[1:-1], '"'):
            at.emit(ev.ToolInputDelta(tool_use_id=call, name=name, text=at.model(piece)))
        given = {"code": text} if number % 2 else {"path": text, text: [text], "content": text}
        at.emit(ev.ToolStarted(at=START, tool_use_id=call, name=name, input=at.values(given)))
        output = Output()
        output.feed(text)
        output.finish()
        piece_of = output.take()
        for late in (False, True):
            for stream in ("stdout", "stderr"):
                at.emit(
                    ev.ToolOutput(
                        tool_use_id=call,
                        stream=stream,
                        text=text if at.raw else piece_of.text,
                        styles=() if at.raw else piece_of.styles,
                        late=late,
                    )
                )
        at.emit(ev.Progress(subject=call, label=at.name(text), done=1, total=10))
        if number % 9 == 0:
            await at.look(0.03)
        shown = at.output(text)
        content: tuple[ev.Content, ...] = (
            ev.TextContent(
                f"[success] False\n[stdout]\n{shown}\n[error]\n{shown}\n[traceback]\n{shown}: {shown}"
            ),
            ev.TableContent((at.name(text), "b"), ((at.name(text), at.name(text)),) * 2, 2, 2),
        )
        if number % 7 == 0:
            content += (
                ev.ImageContent(at.name(text) or "x", "image/png", 40, 20),
                ev.FileContent(at.name(text) or "x", "text/html", 7, at.name(text)),
            )
        at.emit(ev.ToolFinished(tool_use_id=call, is_error=number % 3 != 0, content=content, duration_ms=5))
        if number % 6 == 0:
            ask = ev.ApprovalRequested(
                approval_id=call,
                kind="overwrite",
                question=at.name(text),
                detail=at.model(text),
                choices=(ev.Choice("yes", "y", at.name(text)), ev.Choice("no", "n", "no")),
                default="no",
                tool_use_id=call if number % 4 else "",
            )
            at.emit(ask)
            await at.look(0.05)
            at.emit(ev.ApprovalAnswered(approval_id=call, choice="yes", by="user"))
        at.emit(
            ev.Attached(
                attach_id=call,
                name=at.name(text),
                path=at.name(text),
                size=3,
                error=at.name(text) if number % 2 else "",
            )
        )
    at.emit(turn_finished("c", models=(ev.ModelUse(at.name(TEXTS[1]), ev.Usage(1, 1), 0.1),)))
    view = at.app.chat_screen.transcript
    for block in view.blocks[-6 * len(TEXTS) :: 2]:
        block.expand()
        view.transcript.changed.add(view.transcript.index(block))
    view.feed([])
    await at.page_through()


async def tools_pane(at: Place) -> None:
    """Each call in the pane, in each of its views."""
    from sandbox_chat.ui.widgets import tool_pane

    pane = at.app.chat_screen.query_one(tool_pane.ToolPane)
    for number in range(0, len(TEXTS), 6):
        pane.select(f"c{number}")
        for view in tool_pane.VIEWS:
            pane.show_view(view)
            await at.look(0.02)


async def prompt_line(at: Place) -> None:
    """Paste, history, what waits, completion, search."""
    from sandbox_chat.ui.widgets.find import FindBar

    screen = at.app.chat_screen
    composer = screen.composer
    for text in TEXTS:
        composer.insert_text(text)
        await asyncio.sleep(0.01)
        at.app.prompts.add(composer.text if not at.raw else text)
        composer.action_clear_draft()
    for number in range(len(TEXTS)):
        composer.action_cursor_up()
        if number % 4 == 0:
            await at.look(0.02)
    composer.action_clear_draft()
    for name in at.folder.iterdir():
        composer.insert_text("@" + name.name[:1])
        await at.look(0.1)
        composer.action_clear_draft()
    at.emit(ev.TurnStarted(at=START, turn_id="w", prompt="busy"))
    for text in TEXTS[:20]:
        at.app.chat.submit(at.model(text))
    await at.look()
    screen.action_queue()
    for prompt in list(at.app.chat.queue):
        await at.look(0.02)
        at.app.chat.remove(prompt.id)
    at.emit(turn_finished("w"))
    screen.action_find()
    for text in TEXTS[::6]:
        screen.query_one("#find-input").value = text if at.raw else from_name(text)
        await at.look(0.02)
    screen.query_one(FindBar).action_leave()


def hostile_server(at: Place, text: str, state: ev.ServerState, *, name: str = "") -> ev.ServerChanged:
    """A server of which everything that is told is hostile."""
    called = at.name(text) or "x"
    return ev.ServerChanged(
        at=START,
        name=name or called,
        place="host",
        state=state,
        transport=called,
        tools=(ev.ServerTool(called, f"{called}2", at.model(text)),),
        text=at.model(text),
        log=called,
    )


def dialogs(at: Place, text: str) -> list[Any]:
    """Every dialog that shows outside text, with ``text`` in it."""
    from sandbox_chat.ui.screens.budget import BudgetScreen
    from sandbox_chat.ui.screens.choose import ChooseScreen, Offer
    from sandbox_chat.ui.screens.confirm import ConfirmScreen
    from sandbox_chat.ui.screens.in_use import InUseScreen
    from sandbox_chat.ui.screens.link import LinkScreen
    from sandbox_chat.ui.screens.page import PageScreen
    from sandbox_chat.ui.screens.rename import RenameScreen
    from sandbox_chat.ui.screens.sandbox import SandboxScreen
    from sandbox_chat.ui.screens.servers import ServersScreen

    name = at.name(text)
    pages = [ev.FileContent(name or "x", "text/html", 7, name)]
    served = Chat()
    states: tuple[ev.ServerState, ...] = ("failed", "ready")
    for state in states:
        served.state.apply(hostile_server(at, text, state, name=f"{state} {name}"))
    return [
        LinkScreen("http://e/" + text),
        PageScreen(pages, hosts=lambda _: [], chosen=lambda *_: None),
        ChooseScreen(name, [Offer(name, name, name), Offer("b", at.model(text))], present=name, check=str, placeholder=name),
        RenameScreen(name),
        ConfirmScreen(name, at.model(text), name),
        InUseScreen(name),
        BudgetScreen(1.0, 0.5, unknown=True, waiting=2),
        SandboxScreen(at.app.settings, at.app.chat),
        ServersScreen(served),
    ]  # fmt: skip


def past_sessions(at: Place) -> Path:
    """A data folder whose sessions have hostile titles, prompts, models and hits."""
    folder = at.folder / "past"
    for number, text in enumerate(TEXTS[::12]):
        journal = Journal.create(folder / "sessions", f"{number:04d}-hostile")
        for seq, event in enumerate(
            (
                ev.SessionStarted(
                    session_id=journal.session_id, model=at.name(text), sandbox="local", demo=True
                ),
                ev.TurnStarted(turn_id="t", prompt=at.model(text)),
                ev.Text(text="needle " + at.model(text)),
                turn_finished("t", models=(ev.ModelUse(at.name(text), ev.Usage(1, 1), 0.1),)),
            ),
            1,
        ):
            journal.append(dataclasses.replace(event, at=START, seq=seq))
        journal.close()
    return folder


async def sessions(at: Place) -> None:
    """The list of sessions, and what a search finds in them."""
    from sandbox_chat.ui.screens.sessions import SessionsScreen

    screen = SessionsScreen(past_sessions(at))
    await at.app.push_screen(screen)
    await at.look(0.5)
    screen.query_one("Input").value = "needle"
    for _ in range(50):
        await at.look(0.1)
        if at.seen[-1].count("needle") > 2:  # the search, and what it found
            break
    else:
        raise AssertionError("nothing was found in the past sessions")
    screen.dismiss()
    await asyncio.sleep(0.1)


async def about(at: Place) -> None:
    """Toasts, tooltips, title, dialogs, palette, status."""
    from textual.content import Content

    app = at.app
    for number, text in enumerate(TEXTS):
        app.notify(at.model(text), title=at.name(text), markup=False, timeout=0.2)
        app.chat_screen.transcript.tooltip = Content(at.model(text))
        at.emit(ev.Status(at=START, component="sandbox", state="starting", text=at.name(text)))
        at.emit(hostile_server(at, text, "failed", name="s"), hostile_server(at, text, "idle"))
        if number % 8 == 0:
            await at.look(0.05)
    for text in TEXTS[:60:6]:
        for screen in dialogs(at, text):
            await app.push_screen(screen)
            await at.look(0.03)
            screen.dismiss()
            await asyncio.sleep(0.02)
    for show in (app.action_help, app.action_command_palette):
        show()
        await at.look(0.4)
        app.screen.dismiss()
        await asyncio.sleep(0.3)


STEPS = (transcript, calls, tools_pane, prompt_line, about, sessions)


async def drive(at: Place) -> None:
    """Go through all places, and end."""
    await asyncio.sleep(0.5)
    for step in (about,) if isinstance(at.app.guard, Blind) else STEPS:
        begun = time.monotonic()
        try:
            await step(at)
        except Exception as error:  # the test is to say which step, and of what
            at.failed += f"{step.__name__}: {''.join(traceback.format_exception(error))}"
        at.times[step.__name__] = round(time.monotonic() - begun, 1)
    at.app.exit(0)


def main() -> None:
    """Run at the terminal."""
    folder, mode = Path(sys.argv[1]), sys.argv[2]
    made: list[PlayedEngine] = []
    app = chat_app(folder, made, model="claude-sonnet-5", notify="osc777")  # so that a bare bell is a fault
    app.guard = Blind() if mode == "blind" else Noting()

    async def begin() -> None:
        while not made:
            await asyncio.sleep(0.05)
        place.engine = made[0]
        await drive(place)

    place = Place(app, made, folder, raw=mode != "clean")  # type: ignore[arg-type]  # comes with the first frame
    app.call_later(lambda: app.run_worker(begin(), exit_on_error=False))
    app.run()
    report = {
        "failed": place.failed,
        "times": place.times,
        "failure": "".join(traceback.format_exception(app.failure)) if app.failure else "",
        "stopped": getattr(app.guard, "rows", [])[:20],
        "clickable": sorted(place.clickable),
        "screens": place.seen,
    }
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8", errors="surrogateescape")


if __name__ == "__main__":
    main()
