"""One case of ``interface.py``, in a process of its own at a terminal that the caller plays.

    python tests/benchmarks/interface_case.py RESULT CASE [NAME=VALUE …]

Writes what it measured as JSON to the file ``RESULT``. Processor time is that of this process; of flushes it is
that of the loop's thread, so that other programs on the machine do not count.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.segment import Segment
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Markdown

from sandbox_chat import events as ev

PROSE = "Some **bold** text with `code`, a [link](https://example.org) and *emphasis* that is long enough to wrap. "
MIXED = (
    f"## Heading\n\n{PROSE * 3}\n\n- first item\n- second item with `code`\n  - nested\n\n"
    "1. step one\n2. step two\n\n> A quote that says something.\n\n"
    "```python\ndef f(x):\n    return x ** 2  # square\n\nprint(f(3))\n```\n\n"
    "| name | value |\n|---|---:|\n| alpha | 2 |\n| beta | 4 |\n\n"
)
BODIES = {
    "mixed": MIXED,
    "fence": "value = compute(1, 'two')  # a comment\n",
    "list": "- an item with **bold** text and some more words\n",
    "nested list": "- an item with **bold** text\n  - one below it\n    1. and one below that\n",
    "table": "| some | words | **here** | 12345 |\n",
    "paragraph": PROSE,
}
HEADS = {"fence": "```python\n", "table": "| a | b | c | d |\n|---|---|---|---|\n"}
PIECES = 2000
PAUSE = 0.005
FRAME = 0.05
"""Seconds between two paints of the bare application: as often as the transcript flushes."""


def source(kind: str, size: int) -> str:
    """Return ``size`` characters of one kind of Markdown."""
    body = BODIES[kind]
    return (HEADS.get(kind, "") + body * (size // len(body) + 1))[:size]


class Bare(Widget):
    """Rows that are ready and change all at once: the least that Textual needs for a screen that scrolls."""

    def on_mount(self) -> None:
        """Make the rows once."""
        self._at = 0
        self._rows = [
            Strip([Segment(f"{n:6} " + "some words " * 10)]).adjust_cell_length(120) for n in range(997)
        ]

    def step(self) -> None:
        """Scroll by one row."""
        self._at += 1
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return ready rows."""
        return [self._rows[(self._at + y) % len(self._rows)] for y in crop.line_range]


class OneApp(App[None]):
    """An application around one widget that runs ``job`` and ends."""

    def __init__(self, widget: Widget, job: Callable[[Any, Widget], Awaitable[None]]) -> None:
        super().__init__()
        self._widget, self._job = widget, job

    def compose(self) -> ComposeResult:
        """Show the widget."""
        yield self._widget

    def on_ready(self) -> None:
        """Begin."""
        self.run_worker(self._run())

    async def _run(self) -> None:
        await asyncio.sleep(0.7)
        gc.collect()
        gc.freeze()
        gc.disable()  # the application collects while the user rests
        await self._job(self, self._widget)
        self.exit()


async def paced(text: str, write: Callable[[str], Awaitable[None] | None]) -> dict[str, Any]:
    """Write ``text`` in pieces at their times. Return processor seconds, by tenths too, and the longest stall."""
    step = max(1, len(text) // PIECES)
    lags: list[float] = []

    async def heart() -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(0.005)
            lags.append(time.perf_counter() - begun - 0.005)

    task = asyncio.create_task(heart())
    marks = [time.process_time()]
    begun = time.perf_counter()
    places = list(range(0, len(text), step))
    for number, at in enumerate(places):
        done = write(text[at : at + step])
        if done is not None:
            await done
        await asyncio.sleep(max(begun + number * PAUSE - time.perf_counter(), 0))
        if (number + 1) * 10 // len(places) >= len(marks):
            marks.append(time.process_time())
    await asyncio.sleep(0.3)
    end = time.process_time()
    task.cancel()
    lags.sort()
    return {
        "cpu": end - marks[0],
        "tenths": [b - a for a, b in itertools.pairwise(marks)],
        "wall": time.perf_counter() - begun,
        "stall": lags[-1],
        "p99": lags[int(len(lags) * 0.99)],
        "rss": resident(),
    }


def resident() -> float:
    """Return resident memory in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def stream(who: str, kind: str = "mixed", size: int = 100_000) -> dict[str, Any]:
    """A streamed answer: ``ours``, ``markdown`` (Textual's own widget) or ``bare`` (repaints, shows nothing new)."""
    text = source(kind, size)
    result: dict[str, Any] = {}

    async def bare(_app: Any, widget: Any) -> None:
        last = 0.0

        def write(_piece: str) -> None:
            nonlocal last
            if (now := time.perf_counter()) - last >= FRAME:
                last = now
                widget.step()

        result.update(await paced(text, write))

    async def theirs(_app: Any, widget: Any) -> None:
        writer = Markdown.get_stream(widget.query_one(Markdown))
        result.update(await paced(text, writer.write))
        await writer.stop()

    async def ours(_app: Any, widget: Any) -> None:
        spent: list[float] = []
        flush = widget._flush

        def timed() -> None:
            begun = time.thread_time()
            flush()
            spent.append(time.thread_time() - begun)

        widget._flush = timed
        result.update(await paced(text, lambda piece: widget.feed([ev.TextDelta(text=piece)])))
        spent.sort()
        result.update(
            flushes=len(spent),
            flush_p95=spent[int(len(spent) * 0.95)] if spent else None,
            flush_max=spent[-1] if spent else None,
            flush_top=spent[-10:],
        )

    if who == "ours":
        from sandbox_chat.ui.transcript import TranscriptView

        OneApp(TranscriptView(), ours).run()
    elif who == "markdown":
        OneApp(VerticalScroll(Markdown()), theirs).run()
    else:
        OneApp(Bare(), bare).run()
    return result


def history(count: int) -> list[ev.Event]:
    """Return the events of so many messages, half of them answers; each tenth turn ran code."""
    out: list[ev.Event] = []
    for number in range(count // 2):
        out.append(
            ev.TurnStarted(turn_id=f"h{number}", prompt=f"Question {number}: what about the next one?")
        )
        if number % 10 == 0:
            out.append(
                ev.ToolStarted(tool_use_id=f"c{number}", name="mcp__sandbox__run_code", input={"code": "x = 1\nprint(x)\n" * 5})
            )  # fmt: skip
            out.append(
                ev.ToolFinished(
                    tool_use_id=f"c{number}", is_error=False, content=(ev.TextContent("[success] True\n[stdout]\n1\n"),), duration_ms=12
                )
            )  # fmt: skip
        out.append(ev.Text(text=f"Answer {number}.\n\n{MIXED}"))
        out.append(
            ev.TurnFinished(
                turn_id=f"h{number}", subtype="success", is_error=False, interrupted=False, num_turns=1, duration_ms=900,
                cost_usd=0.01, total_cost_usd=0.01 * number, usage=ev.Usage(1, 1, 1, 1), context=ev.ContextUse(1, 200_000),
            )
        )  # fmt: skip
    return out


def chat(messages: int = 0, seconds: float = 20.0, idle: float = 0.0) -> dict[str, Any]:
    """The whole application over a played engine with a past; a reply streams, or nothing happens for ``idle`` seconds."""
    from support.screen import PlayedEngine, chat_app

    past = history(messages)
    result: dict[str, Any] = {}

    def set_up(engine: PlayedEngine) -> None:
        engine.past = past

    made: list[PlayedEngine] = []
    with tempfile.TemporaryDirectory() as folder:
        app = chat_app(
            Path(folder), made, set_up=set_up, reduced_motion=False, demo=True,
            **({"resume": "0123-session"} if messages else {}),
        )  # fmt: skip
        app._clock = ev.utc_now

        async def job() -> None:
            while not made or app.pump._events or not app.chat.state.agent:
                await asyncio.sleep(0.05)
            await asyncio.sleep(1.5)
            past.clear()
            engine = made[0]
            engine.past = ()
            gc.collect()
            result.update(rss_before=resident(), widgets=len(list(app.screen.walk_children())))
            if idle:
                await asyncio.sleep(5)
                cpu = time.process_time()
                await asyncio.sleep(idle)
                result["idle"] = (time.process_time() - cpu) / idle
                app.exit()
                return
            lags: list[float] = []

            async def heart() -> None:
                while True:
                    begun = time.perf_counter()
                    await asyncio.sleep(0.01)
                    lags.append(time.perf_counter() - begun - 0.01)

            turn = engine.send("go on")
            done = threading.Event()
            text = source("mixed", int(seconds * 100) * 4)

            def talk() -> None:
                begun = time.perf_counter()
                for number in range(int(seconds * 100)):
                    engine.emit(ev.TextDelta(text=text[number * 4 : number * 4 + 4]))
                    time.sleep(max(0.0, begun + (number + 1) * 0.01 - time.perf_counter()))
                done.set()

            cpu = time.process_time()
            task = asyncio.create_task(heart())
            talker = threading.Thread(target=talk, daemon=True)
            talker.start()
            print("\x1b]777;typing\x07", end="", file=sys.__stderr__, flush=True)
            while not done.is_set():
                await asyncio.sleep(0.05)
            task.cancel()
            lags.sort()
            engine.finish()
            result.update(
                turn=turn, cpu=time.process_time() - cpu, p99=lags[int(len(lags) * 0.99)], stall=lags[-1], rss=resident(),
                peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
                widgets=len(list(app.screen.walk_children())),
            )  # fmt: skip
            app.exit()

        app.call_later(lambda: app.run_worker(job()))
        app.run()
    return result


def headless(messages: int = 0, pictures: int = 0, what: str = "resize") -> dict[str, Any]:
    """Processor time of the loop for a resize, or for a scroll step with pictures, in the whole application."""
    from support.screen import PlayedEngine, chat_app, settled

    past = history(messages)
    result: dict[str, Any] = {}

    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(pictures):
                past.append(ev.TurnStarted(turn_id=f"p{number}", prompt="plot"))
                path = picture(Path(folder), number)
                past.append(
                    ev.ToolStarted(
                        tool_use_id=f"p{number}", name="mcp__sandbox__run_code", input={"code": "plot()"}
                    )
                )
                past.append(
                    ev.ToolFinished(
                        tool_use_id=f"p{number}", is_error=False, content=(ev.ImageContent(str(path), "image/png", 1200, 800),), duration_ms=12
                    )
                )  # fmt: skip

            def set_up(engine: PlayedEngine) -> None:
                engine.past = past

            made: list[PlayedEngine] = []
            resume = {"resume": "0123-session"} if past else {}
            app = chat_app(Path(folder), made, set_up=set_up, **resume)
            async with app.run_test(size=(120, 40)) as pilot:
                await settled(pilot, lambda: made and not app.pump._events, 60)
                await pilot.pause(1.0)
                gc.collect()
                gc.freeze()
                if what == "resize":
                    result["steps"] = await resizes(pilot)
                else:
                    result["steps"] = await scrolls(app, pilot)

    asyncio.run(main())
    return result


def alone(messages: int = 0) -> dict[str, Any]:
    """Processor time of the loop for a resize of a transcript alone, without the panes beside it."""
    from sandbox_chat.ui.transcript import TranscriptView

    result: dict[str, Any] = {}

    class Alone(App[None]):
        def compose(self) -> ComposeResult:
            yield TranscriptView()

    async def main() -> None:
        app = Alone()
        async with app.run_test(size=(120, 40)) as pilot:
            view = app.query_one(TranscriptView)
            for event in history(messages):
                view.feed([event])
            await pilot.pause(2.0)
            gc.collect()
            gc.freeze()
            result["steps"] = await resizes(pilot)

    asyncio.run(main())
    return result


async def resizes(pilot: Any) -> list[float]:
    """Resize back and forth; return the loop's processor seconds of each, until all is painted.

    The pause lets the slices of work that can wait go by, which are not of the resize.
    """
    spent = []
    for number in range(14):
        begun = time.thread_time()
        await pilot.resize_terminal(110 if number % 2 else 130, 40)
        await pilot.pause()
        spent.append(time.thread_time() - begun)
        await pilot.pause(1.2)
    return spent[4:]


async def scrolls(app: Any, pilot: Any) -> list[float]:
    """Scroll through everything; return the loop's processor seconds of each step."""
    view = app.chat_screen.transcript
    view.action_scroll_start()
    await pilot.pause(1.0)
    spent = []
    for _ in range(400):
        begun = time.thread_time()
        view.action_scroll_rows(3)
        await pilot.pause()
        spent.append(time.thread_time() - begun)
    return spent


def picture(folder: Path, number: int) -> Path:
    """Draw a picture that differs from the others."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (1200, 800), (number * 2 % 255, 80, 160))
    draw = ImageDraw.Draw(image)
    for x in range(0, 1200, 40):
        draw.line((x, 0, 1200 - x, 800), fill=(255, number % 255, x % 255), width=3)
    path = folder / f"{number}.png"
    image.save(path, compress_level=1)
    return path


CASES: dict[str, Callable[..., dict[str, Any]]] = {
    "stream": stream,
    "chat": chat,
    "headless": headless,
    "alone": alone,
}


def main() -> None:
    """Run the case that the arguments name."""
    target, case, *given = sys.argv[1:]
    values: dict[str, Any] = {}
    for item in given:
        name, _, value = item.partition("=")
        values[name] = float(value) if "." in value else int(value) if value.isdigit() else value
    result = CASES[case](**values)
    Path(target).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
