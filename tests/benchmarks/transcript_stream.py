"""CPU time of a streamed answer: the transcript against Textual's own Markdown widget.

    python tests/benchmarks/transcript_stream.py [--size 100] [--kind mixed] [--no-textual] [--history 0]

Both run without a terminal at 120×40 and get the same pieces at the same pace (one each 5 ms). Printed are
CPU seconds of the whole process and the longest time that the loop stood still.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable

from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Markdown

from sandbox_chat import events as ev
from sandbox_chat.ui.transcript import TranscriptView

PROSE = (
    "Some **bold** text with `code`, a [link](https://example.org) and *emphasis* that is long enough to wrap. "
    * 3
)
KINDS = {
    "mixed": f"## Heading\n\n{PROSE}\n\n- first item\n- second item with `code`\n  - nested\n\n"
    "```python\ndef f(x):\n    return x ** 2  # square\n\nprint(f(3))\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n",
    "fence": "value = compute(1, 'two')  # a comment\n",
    "list": "- an item with **bold** text and some more words\n",
    "table": "| some | words | **here** | 12345 |\n",
    "paragraph": PROSE,
}
HEADS = {"fence": "```python\n", "table": "| a | b | c | d |\n|---|---|---|---|\n"}


def source(kind: str, size: int) -> str:
    body = KINDS[kind]
    return (HEADS.get(kind, "") + body * (size // len(body) + 1))[:size]


class Heartbeat:
    """Measures how long the loop stands still."""

    def __init__(self) -> None:
        self.lags: list[float] = []

    async def run(self) -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(0.005)
            self.lags.append(time.perf_counter() - begun - 0.005)


async def stream(text: str, write: Callable[[str], Awaitable[None] | None]) -> tuple[float, float, float]:
    """Write ``text`` in 2,000 pieces. Return CPU seconds, the longest stall and the 99th percentile."""
    step = max(1, len(text) // 2000)
    heart = Heartbeat()
    task = asyncio.create_task(heart.run())
    cpu, begun = time.process_time(), time.perf_counter()
    for number, at in enumerate(range(0, len(text), step)):
        done = write(text[at : at + step])
        if done is not None:
            await done
        ahead = begun + number * 0.005 - time.perf_counter()
        await asyncio.sleep(max(ahead, 0))
    await asyncio.sleep(0.2)
    task.cancel()
    lags = sorted(heart.lags)
    return time.process_time() - cpu, lags[-1], lags[int(len(lags) * 0.99)]


class Ours(App[None]):
    def compose(self) -> ComposeResult:
        yield TranscriptView()


class Theirs(App[None]):
    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Markdown()


async def ours(text: str, history: int) -> tuple[float, float, float]:
    app = Ours()
    async with app.run_test(size=(120, 40)) as pilot:
        view = app.query_one(TranscriptView)
        past: list[ev.Event] = []
        for number in range(history):
            past += [ev.TurnStarted(turn_id=str(number), prompt="question"), ev.Text(text=KINDS["mixed"])]
        view.feed(past)
        await pilot.pause(0.5)
        return await stream(text, lambda piece: view.feed([ev.TextDelta(text=piece)]))


async def theirs(text: str) -> tuple[float, float, float]:
    app = Theirs()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.5)
        writer = Markdown.get_stream(app.query_one(Markdown))
        result = await stream(text, writer.write)
        await writer.stop()
        return result


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=100, help="kilobytes")
    parser.add_argument("--kind", choices=KINDS, default="mixed")
    parser.add_argument("--history", type=int, default=0, help="earlier turns")
    parser.add_argument("--no-textual", action="store_true", help="measure only the transcript")
    options = parser.parse_args()
    text = source(options.kind, options.size * 1000)
    for name, run in (
        ("transcript", lambda: ours(text, options.history)),
        ("Textual Markdown", lambda: theirs(text)),
    ):
        if options.no_textual and name != "transcript":
            continue
        cpu, longest, high = asyncio.run(run())
        print(
            f"{name:17} {options.kind} {options.size} kB: {cpu:6.2f} s CPU, longest stall {longest * 1000:.0f} ms, p99 {high * 1000:.0f} ms"
        )


if __name__ == "__main__":
    main()
