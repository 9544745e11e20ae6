"""The private parts of Textual that the interface uses, all in this file. Written against Textual 8.2.

* ``_ansi_sequences.ANSI_SEQUENCES_KEYS``: a terminal without the kitty keyboard protocol sends
  ``ESC CR`` for Alt+Enter, and Textual makes a plain Enter of it (Textualize/textual#6378). Enter
  sends the prompt here, so the sequence is given its own name. Remove when that issue is closed.
* ``_xterm_parser.XTermParser``: an escape character inside a bracketed paste makes Textual read what follows
  as keys, so that a paste would send, quit, or lose its order. What it is given passes ``PasteShield`` first.
  Remove when Textual reads a paste up to its end.
* ``getincrementaldecoder`` in a driver's module: a byte from the terminal that is no UTF-8 (a paste in another
  encoding) ends Textual's reading of keys with a traceback. Here it becomes a replacement character.
* ``App._handle_exception``: Textual answers an exception with a long traceback that shows local
  variables, credentials among them. Here the program ends with a sentence. Remove when Textual has
  a public hook for unhandled exceptions.
* ``App._driver.write``: bytes for the terminal that are not part of a frame (a kitty picture is sent once
  and then shown by plain characters). Writing to stderr directly could fall into the middle of a frame,
  which the driver's thread writes. Remove when Textual has a public way to write to the terminal.
* ``Compositor._visible_widgets``, ``_dirty_regions``, ``Screen._compositor``: when one row at the top and one at
  the bottom are to be painted, Textual renders every widget between them too and throws that away. Here only
  those that lie in what is to be painted are rendered. Remove when Textual paints each region by itself.
* ``Compositor._full_map``: a map that is made between two layouts (somebody asked where a widget is) knows of a widget that
  has just been shown, so that the next layout takes it for an old one and tells it no size: it stayed empty until
  the next change. Here each widget is told of a size that it was not told of. Remove when Textual does so.
* ``ChopsUpdate.chops``, ``Strip._render_cache``, ``Console._color_system``: the rows are written as ``compact.py``
  makes them. Remove when Textual writes only what changes between two pieces of a row.
* ``Screen.__update_timer``, ``_on_timer_update``: Textual's timer of frames, once it is late, lets up to two periods pass
  before the next frame: at 60 frames/s an echo came 33 ms after its key. ``FrameClock`` takes its place. Remove when a frame
  comes within one period.
* ``Screen._result_callbacks``, ``_push_result_callback``: the first screen of an application, which Textual makes by
  itself, lacks what ``App.switch_screen`` takes off a screen that it replaces, and fails on that. Remove when it does not.
* ``App._exception``, ``_exception_event``, ``_return_code``, ``_close_messages_no_wait``: what that method
  sets and calls; the first two are what a test harness reads to raise the exception in the test.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import logging
import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import partial
from typing import Any, cast
from weakref import WeakKeyDictionary

from rich.color import ColorSystem
from rich.console import Console
from textual import constants
from textual._compositor import ChopsUpdate, Compositor, ReflowResult
from textual.app import App
from textual.driver import Driver
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from sandbox_chat.ui.compact import compact
from sandbox_chat.ui.pasting import PasteShield

log = logging.getLogger(__name__)


class _ExtraKey(Enum):
    """Keys that Textual's table lacks."""

    ALT_ENTER = "alt+enter"


def teach_alt_enter() -> None:
    """Let Textual tell Alt+Enter from Enter in terminals that send ``ESC CR`` for it."""
    from textual import _ansi_sequences

    table = cast("dict[str, Any]", _ansi_sequences.ANSI_SEQUENCES_KEYS)
    table.setdefault("\x1b\r", (_ExtraKey.ALT_ENTER,))


def shield_pastes() -> None:
    """Let a paste be text and nothing but text, whatever is in it."""
    from textual import _xterm_parser

    parser = _xterm_parser.XTermParser
    read = parser.feed
    if read.__module__ == __name__:
        return
    shields: WeakKeyDictionary[Any, PasteShield] = WeakKeyDictionary()

    def feed(self: Any, data: str) -> Iterable[Message]:
        safe = shields.setdefault(self, PasteShield()).feed(data)
        return () if data and not safe else read(self, safe)

    parser.feed = feed  # type: ignore[method-assign]


def forgive_bytes(driver: type[Driver]) -> None:
    """Let a byte from the terminal that is no UTF-8 be a replacement character, and not the end of all keys."""
    module: Any = sys.modules[driver.__module__]
    if hasattr(module, "getincrementaldecoder"):
        module.getincrementaldecoder = lambda name: partial(codecs.getincrementaldecoder(name), "replace")


def send(app: App[Any], data: str) -> None:
    """Write ``data`` to the terminal between two frames; nothing without a terminal."""
    driver = app._driver
    if driver is not None and data and not app.is_headless:
        if _held is not None:
            _held.append((app, data))
        else:
            driver.write(data)


_held: list[tuple[App[Any], str]] | None = None


@contextlib.contextmanager
def away() -> Iterator[None]:
    """While another program has the terminal: what ``send`` was given is written afterwards."""
    global _held  # noqa: PLW0603 - there is one terminal
    held: list[tuple[App[Any], str]] = []
    _held = held
    try:
        yield
    finally:
        _held = None
        for app, data in held:
            send(app, data)


def is_away() -> bool:
    """True while another program has the terminal; Ctrl+C is then meant for that one."""
    return _held is not None


class NarrowCompositor(Compositor):
    """Renders only the widgets that lie in what is to be painted, and tells each of its size."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[Widget, Size] = {}

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Lay out; see ``Compositor.reflow``. What has another size than it was told of counts as resized."""
        result = super().reflow(parent, size)
        sizes = {widget: geometry.region.size for widget, geometry in self._full_map.items()}
        untold = {widget for widget, now in sizes.items() if self._told.get(widget) != now}
        self._told = sizes
        return result._replace(resized=result.resized | untold)

    def render_partial_update(self) -> ChopsUpdate | None:
        """Paint the dirty regions; see ``Compositor.render_partial_update``."""
        widgets = self.visible_widgets
        _ = self.cuts  # are made of all widgets, and kept
        regions = tuple(self._dirty_regions)
        needed = {
            widget: (region, clip)
            for widget, (region, clip) in widgets.items()
            if any(region.overlaps(dirty) and clip.overlaps(dirty) for dirty in regions)
        }
        self._visible_widgets = needed
        try:
            update = super().render_partial_update()
        finally:
            if self._visible_widgets is needed:
                self._visible_widgets = widgets
        return update and _CompactUpdate(update.chops, update.spans, update.chop_ends)


class _CompactUpdate(ChopsUpdate):
    """Writes rows with few escape sequences."""

    def render_segments(self, console: Console) -> str:
        system = console._color_system or ColorSystem.TRUECOLOR
        for y, _, _ in self.spans:
            for strip in self.chops[y].values():
                if type(strip) is Strip and strip._render_cache is None:
                    strip._render_cache = compact(strip, system)
        return super().render_segments(console)


class FrameClock(Timer):
    """Paints a screen as soon as something changed, but never two frames within one period.

    Takes the place of the screen's timer of frames, of which Textual only calls ``resume`` and ``pause``.
    """

    GATHER = 0.001
    """Seconds for which what changes together is gathered into one frame."""

    def __init__(self, screen: Screen[Any], period: float = 1 / constants.MAX_FPS) -> None:
        super().__init__(screen, period, name="screen_update", pause=True)
        self._screen = screen
        self._due: asyncio.TimerHandle | None = None
        self._painted = float("-inf")

    def resume(self) -> None:
        """There is something to paint."""
        if self._due is None:
            loop = asyncio.get_running_loop()
            wait = max(self.GATHER, self._painted + self._interval - loop.time())
            self._due = loop.call_later(wait, self._paint)

    def pause(self) -> None:
        """It was painted."""
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def stop(self) -> None:
        """Paint no more until ``resume``."""
        self.pause()

    def _paint(self) -> None:
        self._due = None
        screen = self._screen
        if not screen.is_running or screen.app._exit:
            return
        self._painted = asyncio.get_running_loop().time()
        try:
            screen._on_timer_update()
        except Exception as error:  # as Textual's own timer does
            screen.app._handle_exception(error)


def paint_narrowly(screen: Screen[Any]) -> None:
    """Let ``screen``, which is not shown yet, render only what is to be painted, and that soon."""
    screen._compositor = NarrowCompositor()
    screen._Screen__update_timer = FrameClock(screen)  # type: ignore[attr-defined]  # a name of the class's own


def may_be_switched(screen: Screen[Any]) -> None:
    """Let ``screen`` be replaced by another one, also when it is the application's first."""
    if not screen._result_callbacks:
        screen._push_result_callback(screen, None)


class QuietFailure(App[int]):
    """An ``App`` that ends on an unhandled exception without printing a traceback.

    ``failure`` is the exception afterwards; the caller says what happened in a sentence.
    """

    failure: BaseException | None = None

    def _handle_exception(self, error: Exception) -> None:
        self._return_code = 1
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        if self.failure is None:
            self.failure = error
            log.error("the interface failed", exc_info=error)
        self._close_messages_no_wait()
