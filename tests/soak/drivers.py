"""Two ways to drive a whole chat, told alike: the engine alone, and the terminal application over it.

Both run the real SDK, CLI and local sandbox against an ``Endpoint``. ``Seen`` is what they said.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

from support.faulty import Endpoint, tags

from sandbox_chat.engine import Engine
from sandbox_chat.events import Event, Progress, Sink, TurnFinished, TurnStarted
from sandbox_chat.settings import Secret, Settings

MODEL = "claude-sonnet-4-5"
"""A model whose price is known, so that costs are added up."""
PATIENCE = 120.0
"""Seconds that starting and closing may take on a busy machine."""


def settings(endpoint: Endpoint, folder: Path, **changes: Any) -> Settings:
    """Settings of a chat with its data in ``folder``, patient with the endpoint."""
    values: dict[str, Any] = {
        "anthropic_base_url": endpoint.url,
        "anthropic_auth_token": Secret(endpoint.token),
        "model": MODEL,
        "request_retries": 2,
        "request_timeout": 60.0,
        "data_dir": folder / "data",
        "downloads_dir": folder / "downloads",
        "language": "en",
        "theme": "dark",
        "images": "half",
        "glyphs": "unicode",
        **changes,
    }
    return Settings(**values)


class Seen:
    """What a chat said, by prompt. ``keep`` keeps all events; without it only the last turns are known."""

    def __init__(self, *, keep: bool) -> None:
        self.events: list[Event] = []
        self.count = 0
        self.ended = 0
        self.changed = threading.Condition()
        self._keep = keep
        self._tag_of: dict[str, str] = {}
        self._finished: dict[str, TurnFinished] = {}
        self._moments: set[str] = set()

    def take(self, event: Event) -> None:
        """Take an event; on the engine's threads."""
        with self.changed:
            self.count += 1
            if self._keep and not isinstance(event, Progress):
                self.events.append(event)
            if isinstance(event, TurnStarted):
                for tag in tags(event.prompt)[:1]:
                    self._tag_of[event.turn_id] = tag
                    self._finished.pop(tag, None)  # it was sent again
                self._moments.clear()
            elif isinstance(event, TurnFinished):
                self.ended += 1
                tag = self._tag_of.pop(event.turn_id, "")
                self._finished[tag] = event
                while not self._keep and len(self._finished) > 3:
                    del self._finished[next(iter(self._finished))]
            self._moments.add(event.type)
            self.changed.notify_all()

    def finished(self, tag: str) -> TurnFinished | None:
        """How the turn of a prompt ended; ``None`` while it has not."""
        with self.changed:
            return self._finished.get(tag)

    def has(self, kind: str) -> bool:
        """True when an event of that type came since the newest turn began."""
        with self.changed:
            return kind in self._moments

    def wait(self, condition: Callable[[], object], seconds: float) -> bool:
        """Wait until ``condition`` holds; false after so many seconds. It is looked at after each event."""
        end = time.monotonic() + seconds
        with self.changed:
            while not condition():
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self.changed.wait(min(left, 0.05))
            return True


class Driver(Protocol):
    """A chat that is driven from the thread of the test."""

    seen: Seen
    again: Counter[str]
    """How often the user let a prompt go on that had failed and was waiting, by tag."""

    @property
    def engine(self) -> Engine:
        """The engine, once it was started."""

    def start(self) -> None:
        """Start the chat; returns when prompts can be sent."""

    def send(self, *prompts: str) -> None:
        """Send prompts, one right after the other."""

    def interrupt(self) -> None:
        """Press Esc."""

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size, if there is one."""

    def go_on(self) -> None:
        """Let prompts go on that are held after an interruption or a failure, if any are."""

    def given_back(self) -> str | None:
        """What stands in the composer, which is then cleared; ``None`` where there is none."""

    def loops(self) -> list[asyncio.AbstractEventLoop]:
        """The loops that run."""

    def close(self) -> None:
        """End the chat as a user does."""


class EngineDriver:
    """The engine without a face."""

    def __init__(self, chosen: Settings, *, keep: bool, resume: str | None = None) -> None:
        self.seen = Seen(keep=keep)
        self.again: Counter[str] = Counter()
        self.engine = Engine(chosen, self.seen.take, resume=resume)

    def start(self) -> None:
        """See ``Driver``."""
        self.engine.start()

    def send(self, *prompts: str) -> None:
        """See ``Driver``."""
        for prompt in prompts:
            self.engine.send(prompt)

    def interrupt(self) -> None:
        """See ``Driver``."""
        self.engine.interrupt()

    def resize(self, columns: int, rows: int) -> None:
        """There is no terminal."""

    def go_on(self) -> None:
        """The engine holds nothing."""

    def given_back(self) -> str | None:
        """There is no composer."""
        return None

    def loops(self) -> list[asyncio.AbstractEventLoop]:
        """See ``Driver``."""
        loop = self.engine._loop
        return [loop] if loop is not None else []

    def close(self) -> None:
        """See ``Driver``."""
        self.engine.close()


class AppDriver:
    """The terminal application, without a terminal, on a thread of its own."""

    def __init__(
        self, chosen: Settings, *, keep: bool, resume: str | None = None, size: tuple[int, int] = (120, 40)
    ) -> None:
        from sandbox_chat.ui.app import ChatApp

        self.seen = Seen(keep=keep)
        self.again: Counter[str] = Counter()
        self.app: Any = ChatApp(chosen, self._make, resume=resume)
        self.failure: BaseException | None = None
        self._back: list[str] = []  # what was given back while the next prompt was typed
        self.rows: list[str] = []
        """The rows of the transcript as it was at the end, in a width of its own."""
        self._size = size
        self._orders: asyncio.Queue[tuple[Callable[[], Coroutine[Any, Any, Any]], Any] | None]
        self._loop: asyncio.AbstractEventLoop
        self._ready = threading.Event()
        self._pilot: Any = None
        self._thread = threading.Thread(target=self._live, name="application")

    @property
    def engine(self) -> Engine:
        """See ``Driver``."""
        engine: Engine = self.app.chat.engine
        return engine

    def _make(self, chosen: Settings, sink: Sink, **opening: Any) -> Engine:
        def both(event: Event) -> None:
            sink(event)
            self.seen.take(event)

        return Engine(chosen, both, asks=True, tail_first=True, **opening)

    def _live(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:
            self.failure = error
        finally:
            self._ready.set()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._orders = asyncio.Queue()
        async with self.app.run_test(size=self._size) as pilot:
            self._pilot = pilot
            while self.app.chat.engine is None:
                await pilot.pause(0.02)
            self._watch_queue(self.app.chat.queue)
            self._ready.set()
            while (order := await self._orders.get()) is not None:
                work, told = order
                try:
                    result = await work()
                except BaseException as error:
                    self._tell(told, error=error)
                else:
                    self._tell(told, result)

    def _watch_queue(self, queue: Any) -> None:
        """Note which failed prompts are among those that the user lets go on."""
        go_on = queue.go_on

        def noted(**options: Any) -> None:
            for prompt in queue:
                self.again.update(tag for tag in tags(prompt.text)[:1] if self.seen.finished(tag) is not None)
            go_on(**options)

        queue.go_on = noted

    @staticmethod
    def _tell(told: dict[str, Any], result: Any = None, error: BaseException | None = None) -> None:
        told.update(result=result, error=error)
        told["done"].set()

    def _do(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        told: dict[str, Any] = {"done": threading.Event()}
        self._loop.call_soon_threadsafe(self._orders.put_nowait, (work, told))
        assert told["done"].wait(PATIENCE), f"the application does not answer ({self.failure!r})"
        if told["error"] is not None:
            raise told["error"]
        return told["result"]

    async def _until(self, condition: Callable[[], object], seconds: float = 10.0) -> None:
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:
            await asyncio.sleep(0.01)

    def start(self) -> None:
        """See ``Driver``."""
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        if self.failure is not None:
            raise self.failure

    def send(self, *prompts: str) -> None:
        """Paste each prompt and press Enter."""
        from textual import events

        async def work() -> None:
            composer = self.app.chat_screen.composer
            for prompt in prompts:
                composer.focus()
                while (
                    composer.draft != prompt
                ):  # a user sees what was given back meanwhile, and puts it aside
                    if composer.draft:
                        self._back.append(composer.draft.replace(prompt, "", 1))
                        composer.action_clear_draft()
                    composer.post_message(events.Paste(prompt))
                    await self._until(lambda prompt=prompt: prompt in composer.draft)
                await self._pilot.press("enter")
                await self._until(lambda: not composer.draft)  # a paste that follows at once is one with it

        self._do(work)

    def interrupt(self) -> None:
        """See ``Driver``."""

        async def work() -> None:
            await self._pilot.press("escape")

        self._do(work)

    def resize(self, columns: int, rows: int) -> None:
        """See ``Driver``."""

        async def work() -> None:
            await self._pilot.resize_terminal(columns, rows)

        self._do(work)

    def go_on(self) -> None:
        """See ``Driver``."""

        async def work() -> None:
            chat = self.app.chat
            if chat.held and not chat.busy:
                self.app.chat_screen.action_resume_waiting()

        self._do(work)

    def given_back(self) -> str | None:
        """See ``Driver``."""

        async def work() -> str:
            if self._back:
                return self._back.pop(0)
            composer = self.app.chat_screen.composer
            text: str = composer.draft
            if text:
                composer.action_clear_draft()
            return text

        found: str = self._do(work)
        return found

    def replayed(self, turns: int) -> list[str]:
        """The rows of the transcript once it holds so many turns of the past, in a width of its own."""

        async def work() -> list[str]:
            await self._until(lambda: len(self.app.chat.state.turns) >= turns, PATIENCE)
            return rows_of(self.app.chat_screen.transcript.blocks)

        found: list[str] = self._do(work)
        return found

    def loops(self) -> list[asyncio.AbstractEventLoop]:
        """See ``Driver``."""
        loop = self.engine._loop
        return [self._loop, *([loop] if loop is not None else [])]

    def close(self) -> None:
        """Leave as a user does."""
        if not self._thread.is_alive():
            return

        async def work() -> None:
            transcript = self.app.chat_screen.transcript
            await asyncio.to_thread(self.engine.close)
            await self._until(lambda: self.app.chat.state.finished)
            self.rows = rows_of(transcript.blocks)
            self.app.action_leave()

        with contextlib.suppress(AssertionError):
            self._do(work)
        self._loop.call_soon_threadsafe(self._orders.put_nowait, None)
        self._thread.join(PATIENCE)
        self.app.prompts.close()
        self.app.drafts.close(keep=False)


def rows_of(blocks: Any, width: int = 50) -> list[str]:
    """The rows of a transcript's blocks in a width, as text."""
    return [row.text.rstrip() for block in blocks for row in block.rows(width)]
