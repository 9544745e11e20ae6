"""The application: starts the engine after the first frame, hands its events to the screen, and ends it all."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.binding import BindingType
from textual.command import Provider
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input

from sandbox_chat.events import Event, utc_now
from sandbox_chat.settings import ConfigError, Settings, config_path
from sandbox_chat.ui import face
from sandbox_chat.ui.actions import bindings_of, key_of, keys_of
from sandbox_chat.ui.caret import CaretApp
from sandbox_chat.ui.controller import Chat, EngineFactory, EngineLike
from sandbox_chat.ui.drafts import Drafts
from sandbox_chat.ui.earlier import EarlierTurns
from sandbox_chat.ui.glyphs import is_ascii
from sandbox_chat.ui.guard import GuardedApp
from sandbox_chat.ui.history import History
from sandbox_chat.ui.images import Images
from sandbox_chat.ui.keeping import Keeping
from sandbox_chat.ui.opening import OpensSessions
from sandbox_chat.ui.outward import Outward
from sandbox_chat.ui.plain_bar import choose_bars
from sandbox_chat.ui.private import QuietFailure, forgive_bytes, is_away, send, shield_pastes, teach_alt_enter
from sandbox_chat.ui.pump import Pump
from sandbox_chat.ui.queue import Prompt
from sandbox_chat.ui.rest import Collector
from sandbox_chat.ui.screens.chat import ChatScreen
from sandbox_chat.ui.switching import Switching
from sandbox_chat.ui.themes import after, name_of, themes
from sandbox_chat.ui.tokens import Part
from sandbox_chat.words import tr

if TYPE_CHECKING:
    from sandbox_chat.ui.pictures import TerminalInfo

LEAVE_WINDOW = 2.0
"""Seconds within which a second Ctrl+C leaves."""

REST = 1.0
"""Seconds between two moments in which the collector of garbage may work."""

CLOSE_EXTRA = 3.0
"""Seconds beyond the setting ``close_timeout`` after which the interface ends without the engine's word."""


def commands() -> type[Provider]:
    """Return the provider of the command palette; imported when the palette opens."""
    from sandbox_chat.ui.commands import Commands

    return Commands


def terminal_gone() -> bool:
    """True when the terminal was closed under the program."""
    import termios

    try:
        assert sys.__stdin__ is not None
        termios.tcgetattr(sys.__stdin__.fileno())
    except (termios.error, OSError) as error:
        return error.args[0] in (errno.EIO, errno.EBADF)
    except (ValueError, AssertionError):  # closed, or there never was one
        return True
    return False


class ChatApp(Switching, OpensSessions, GuardedApp, CaretApp, QuietFailure, inherit_bindings=False):
    """The terminal application. Returns its exit code.

    ``make_engine`` makes the engine; it is called after the first frame, or with ``ask`` when the welcome
    screen is done. What it raises ends the application and is in ``refused`` afterwards. ``opening``: how the
    session ``resume`` is opened, ``fork`` or ``read_only``.
    ``typed`` are keys that were pressed before the application could take them.
    """

    TITLE = "sandbox-chat"
    CSS_PATH = "app.tcss"
    COMMANDS = {commands}  # noqa: RUF012 - Textual's own declaration
    COMMAND_PALETTE_BINDING = "ctrl+p"

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("app")]

    class Flush(Message):
        """Events of the engine are there."""

    def __init__(
        self,
        settings: Settings,
        make_engine: EngineFactory,
        *,
        resume: str | None = None,
        opening: Mapping[str, bool] | None = None,
        ask: bool = False,
        info: TerminalInfo | None = None,
        typed: str = "",
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        keymap = face.take(settings, os.environ)
        # Textual makes greys of colours where none are wanted, but leaves them out if told that they are ANSI's.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        if self.no_color:
            images = "off" if settings.images == "off" else "ascii"
            settings = dataclasses.replace(settings, theme="terminal", images=images)
        self.settings = settings
        self.prompts = History(settings.data_path / "history", self._not_kept)
        self.drafts = Drafts(settings.data_path / "drafts", self._not_kept)
        self.new_chat()
        self.images = Images(settings, info)
        self.outward = Outward(settings, partial(send, self), info.name if info is not None else "")
        self.pump = Pump(self._deliver)
        self.signal_code = 0
        self.unsent = ""
        self.refused: Exception | None = None
        self._make_engine = make_engine
        self._resume = resume
        self.opening = dict(opening or {})
        self._ask = ask
        self._typed = typed
        self._clock = clock
        self._past = 0
        self._collector = Collector()
        self._leaving = False
        self._leave_asked = float("-inf")
        self._signals: list[int] = []
        for theme in themes():
            self.register_theme(theme)
        self.theme = name_of(settings.theme, info, os.environ)
        self.set_keymap(keymap)
        self.set_class(is_ascii(), "-ascii")
        choose_bars()
        if settings.reduced_motion:
            self.animation_level = "none"
        teach_alt_enter()
        shield_pastes()
        forgive_bytes(self.driver_class)

    # -- beginning ---------------------------------------------------------------------------------------

    def _new_engine(self, settings: Settings) -> EngineLike:
        engine, self._gate = self.make_engine(settings, self._resume, **self.opening)
        return engine

    def _replayed(self, event: Event) -> None:
        self._past += 1
        self.pump.put(event)

    def get_default_screen(self) -> Screen[Any]:
        """Return the chat's screen."""
        return self.new_chat_screen()

    def new_chat(self) -> Chat:
        """Make a chat without an engine, and all that belongs to one chat alone; it is ``chat`` from now on."""
        self.chat = Chat(restored=self._restore)
        self.keeping = Keeping(self.chat, self.settings.data_path / "waiting", self._not_kept)
        self._earlier = EarlierTurns(self.chat, self.call_later, self._earlier_came)
        return self.chat

    def new_chat_screen(self) -> ChatScreen:
        """Make a screen for ``chat``."""
        return ChatScreen(self.settings, self.chat, self.prompts, self.images, self._clock)

    @property
    def chat_screen(self) -> ChatScreen:
        """The chat's screen, also when another one lies over it."""
        screen = self.screen_stack[0]
        assert isinstance(screen, ChatScreen)
        return screen

    def on_mount(self) -> None:
        """Take signals, then start the engine once the first frame is out."""
        self._take_signals()
        self.pump.attach(self._wake, self._later)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.run_worker(asyncio.to_thread(self.prompts.load), exit_on_error=False)
        self.chat_screen.composer.keep = self.drafts.save
        self.run_worker(self._take_draft(), exit_on_error=False)
        self.images.connect(self.chat_screen.transcript)
        if self._ask:
            self._welcome()
            return
        if self._typed:
            self.chat_screen.composer.take_early(self._typed)
        if self.opening or self._resume is not None:
            self.run_worker(self._open(), exit_on_error=False)
            return
        try:
            engine = self._new_engine(self.settings)
        except Exception as error:
            self._refuse(error)
            return
        self.attach_engine(engine)

    async def _take_draft(self) -> None:
        """Offer the prompt that was not sent when the program last ended without a chance to keep it."""

        def offer(parts: Sequence[Part]) -> bool:
            composer = self.chat_screen.composer
            taken = composer.offer(parts)
            composer.keep_now()
            return taken

        if await self.drafts.bring(offer, self.prompts):
            self._say(tr("composer.draft_back"))

    def _not_kept(self, problem: str) -> None:
        """The history or the draft cannot be read or written; called on the thread that found out."""
        with contextlib.suppress(RuntimeError):  # the program has ended
            self.call_later(partial(self.notify, problem, severity="warning", timeout=10, markup=False))

    def _welcome(self) -> None:
        from sandbox_chat.ui.screens.welcome import WelcomeScreen

        def begin(settings: Settings) -> None:
            try:
                engine = self._new_engine(settings)
            except ConfigError:
                raise  # the screen says it, and asks again
            except Exception as error:
                self.refused = error
                self.exit(2)
                return
            self._use(settings)
            self.chat.attach(engine)
            screen.dismiss(None)
            self._start()

        screen = WelcomeScreen(self.settings, begin, config_path(os.environ))
        self.push_screen(screen)

    def _use(self, settings: Settings) -> None:
        self.settings = settings
        self.images.settings = settings
        self.chat_screen.use(settings)

    def _start(self) -> None:
        assert self.chat.engine is not None
        if self.chat_screen.composer.at_work:
            self.chat.typing()
        if not self.opening:  # what waits in a session stays there when it is copied or only looked at
            left = self.chat_screen.take_left(self.keeping, self._resume)
            self.run_worker(left, exit_on_error=False)
        self.chat.engine.start()
        self.chat_screen.update_state()
        self._collector.begin()
        self.set_interval(REST, self._rest)

    def _rest(self) -> None:
        now = time.monotonic()
        if self.chat.busy:
            self._collector.stir(now)
        self._collector.rest(now)

    # -- events ------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        self.post_message(self.Flush())

    def _later(self, seconds: float) -> None:
        if seconds > 0:
            self.set_timer(seconds, self.pump.flush)
        else:
            self._wake()  # a timer of no length never rings; what was typed meanwhile comes first

    def on_chat_app_flush(self) -> None:
        """Deliver what the engine said."""
        self.pump.flush()

    def _deliver(self, batch: list[Event]) -> None:
        past = min(self._past, len(batch))
        self._past -= past
        self._collector.stir(time.monotonic())
        if self._shown:
            self._earlier.take(batch, past, self.chat_screen.transcript)
            self.chat_screen.deliver(batch, past)
            self.outward.take(batch[past:], self.chat)
        else:
            self.chat.state.apply_all(batch)  # the screen is gone already: only the last words are read

    def _earlier_came(self) -> None:
        if self._shown:
            self.chat_screen.update_state()

    @property
    def _shown(self) -> bool:
        stack = self.screen_stack
        return bool(stack) and stack[0].is_attached and stack[0].is_running

    def _restore(self, prompt: Prompt) -> bool:
        return self.chat_screen.give_back(prompt)

    # -- actions -----------------------------------------------------------------------------------------

    def action_help(self) -> None:
        """Show the keys of where the user is."""
        from sandbox_chat.ui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen.of(self.screen))

    def action_command_palette(self) -> None:
        """Open the commands."""
        from textual.command import CommandPalette

        if not CommandPalette.is_open(self):
            self.push_screen(CommandPalette(placeholder=tr("app.search_commands"), id="--command-palette"))

    def action_toggle_theme(self) -> None:
        """Take the next theme."""
        if self.no_color:
            self._say(tr("app.no_color"))
            return
        self.theme = after(self.theme)
        self._say(tr(f"app.{self.theme}"))

    def action_ask_leave(self) -> None:
        """Leave when asked twice."""
        now = time.monotonic()
        if now - self._leave_asked < LEAVE_WINDOW:
            self.action_leave()
            return
        self._leave_asked = now
        self._say(tr("app.once_more", key=key_of("app.ask_leave")))

    def _say(self, words: str) -> None:
        if isinstance(self.screen, ChatScreen):
            self.chat_screen.status.say(words, LEAVE_WINDOW)
        else:
            self.notify(words, markup=False, timeout=LEAVE_WINDOW)

    async def on_event(self, event: events.Event) -> None:
        """Any other key between the two that leave says that the first was not meant to begin it."""
        if isinstance(event, events.InputEvent):
            self._collector.stir(time.monotonic())
            self.outward.used(self._clock(), self.chat.state.title)
        if isinstance(event, events.Key) and event.key not in keys_of("app.ask_leave"):
            self._leave_asked = float("-inf")
        await super().on_event(event)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Let no cursor blink: what moves on this screen is alive."""
        if isinstance(event.widget, Input):
            event.widget.cursor_blink = False

    def on_app_focus(self) -> None:
        """The terminal's window has the focus."""
        self.outward.focus(True, self.chat.state.title)

    def on_app_blur(self) -> None:
        """The terminal's window has the focus no longer."""
        self.outward.focus(False, self.chat.state.title)

    def on_composer_leave_asked(self) -> None:
        """Ctrl+C on an empty prompt."""
        self.action_ask_leave()

    async def action_quit(self) -> None:
        """Textual's own name for leaving."""
        self.action_leave()

    # -- the end -----------------------------------------------------------------------------------------

    def action_leave(self) -> None:
        """Close the session and end."""
        if self._leaving:
            return
        self._leaving = True
        with contextlib.suppress(Exception):  # what is unsent is kept if it can be; leaving goes on
            self.chat.leave()
            self.chat_screen.leave_edit(keep=True)
            self.keeping.freeze()
            composer = self.chat_screen.composer
            composer.keep_now()
            self.unsent = composer.unsent
            self.prompts.add(self.unsent)
        if self.chat.engine is None:
            self.exit(self.signal_code)
            return
        self.chat_screen.show_closing()
        self.run_worker(self._close(self.chat.engine), exit_on_error=False)

    async def _close(self, engine: EngineLike) -> None:
        limit = self.settings.close_timeout + CLOSE_EXTRA
        with contextlib.suppress(Exception):  # whatever fails here, the way out stays open
            await asyncio.wait_for(asyncio.to_thread(engine.close), limit)
        await self.close_former()
        self.pump.drain()
        self.exit(self.signal_code)

    def on_resize(self, event: events.Resize) -> None:
        """Another size may come with another font."""
        self.images.resized(event)

    def on_unmount(self) -> None:
        """Let go of the loop's signals."""
        self.pump.detach()
        self._collector.end()
        loop = asyncio.get_running_loop()
        for number in self._signals:
            loop.remove_signal_handler(number)
        self._signals.clear()

    def _take_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
                loop.add_signal_handler(number, self._signalled, number)
                self._signals.append(number)

    def _signalled(self, number: int) -> None:
        """A signal asks to end: the same way out, and a deadline should the terminal be gone."""
        if number == signal.SIGINT and is_away():
            return
        self.signal_code = 128 + number
        limit = self.settings.close_timeout + 2 * CLOSE_EXTRA
        guard = threading.Timer(limit, os._exit, (self.signal_code,))
        guard.daemon = True
        guard.start()
        if terminal_gone():
            # Textual cannot be waited for: its writer has ended, and the next frames block the loop.
            threading.Thread(target=self._vanish, name="vanish").start()
            return
        self.action_leave()

    def _vanish(self) -> None:
        """Close the session and end at once, with nobody to say anything to."""
        with contextlib.suppress(Exception):  # whatever fails here, the way out stays open
            if self.chat.engine is not None:
                self.chat.engine.close()
            for engine in list(self.former.values()):
                engine.close()
            self.prompts.close()
            self.keeping.close()
        os._exit(self.signal_code)
