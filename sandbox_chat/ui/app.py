"""The application: starts the engine after the first frame, hands its events to the screen, and ends it all."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.message import Message
from textual.screen import Screen

from sandbox_chat.events import Event, utc_now
from sandbox_chat.settings import ConfigError, Settings, config_path
from sandbox_chat.ui.actions import APP_ACTIONS
from sandbox_chat.ui.controller import Chat, EngineFactory, EngineLike
from sandbox_chat.ui.history import History
from sandbox_chat.ui.images import Images
from sandbox_chat.ui.private import QuietFailure, teach_alt_enter
from sandbox_chat.ui.pump import Pump
from sandbox_chat.ui.screens.chat import ChatScreen
from sandbox_chat.ui.themes import DARK, LIGHT, name_of, themes

if TYPE_CHECKING:
    from sandbox_chat.ui.pictures import TerminalInfo

LEAVE_WINDOW = 2.0
"""Seconds within which a second Ctrl+C leaves."""

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


class ChatApp(QuietFailure, inherit_bindings=False):
    """The terminal application. Returns its exit code.

    ``make_engine`` makes the engine; it is called after the first frame, or with ``ask`` when the welcome
    screen is done. What it raises ends the application and is in ``refused`` afterwards.
    ``typed`` are keys that were pressed before the application could take them.
    """

    TITLE = "sandbox-chat"
    CSS_PATH = "app.tcss"
    COMMANDS = {commands}  # noqa: RUF012 - Textual's own declaration
    COMMAND_PALETTE_BINDING = "ctrl+p"

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(
                item.keys, item.action.removeprefix("app."), item.title, show=False, priority=item.priority
            )
            for item in APP_ACTIONS
        ),
        Binding("question_mark", "help", "Show the keys", show=False),
        Binding("ctrl+c", "ask_leave", "Twice: quit", show=False),
    ]

    class Flush(Message):
        """Events of the engine are there."""

    def __init__(
        self,
        settings: Settings,
        make_engine: EngineFactory,
        *,
        resume: str | None = None,
        ask: bool = False,
        info: TerminalInfo | None = None,
        typed: str = "",
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__()
        self.settings = settings
        self.chat = Chat(restored=self._restore)
        self.prompts = History(settings.data_path / "history")
        self.images = Images(settings, info)
        self.pump = Pump(self._deliver)
        self.signal_code = 0
        self.refused: Exception | None = None
        self._make_engine = make_engine
        self._resume = resume
        self._ask = ask
        self._typed = typed
        self._clock = clock
        self._past = 0
        self._leaving = False
        self._leave_asked = float("-inf")
        self._signals: list[int] = []
        for theme in themes():
            self.register_theme(theme)
        self.theme = name_of(settings.theme)
        if settings.reduced_motion:
            self.animation_level = "none"
        teach_alt_enter()

    # -- beginning ---------------------------------------------------------------------------------------

    def _new_engine(self, settings: Settings) -> EngineLike:
        return self._make_engine(settings, self.pump.put, resume=self._resume, replay=self._replayed)

    def _replayed(self, event: Event) -> None:
        self._past += 1
        self.pump.put(event)

    def get_default_screen(self) -> Screen[Any]:
        """Return the chat's screen."""
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
        self.images.connect(self.chat_screen.transcript)
        if self._ask:
            self._welcome()
            return
        try:
            self.chat.attach(self._new_engine(self.settings))
        except Exception as error:
            self.refused = error
            self.exit(2)
            return
        if self._typed:
            self.chat_screen.composer.take_early(self._typed)
        self._start()

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
        if self.chat_screen.composer.text:
            self.chat.typing()
        self.chat.engine.start()
        self.chat_screen.update_state()
        # What exists now stays: the collector need not look at it again, its pauses are the longest stalls.
        # It was off until here (see start.py).
        gc.freeze()
        gc.enable()

    # -- events ------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        self.post_message(self.Flush())

    def _later(self, seconds: float) -> None:
        self.set_timer(seconds, self.pump.flush)

    def on_chat_app_flush(self) -> None:
        """Deliver what the engine said."""
        self.pump.flush()

    def _deliver(self, batch: list[Event]) -> None:
        past = min(self._past, len(batch))
        self._past -= past
        if self._shown:
            self.chat_screen.deliver(batch, past)
        else:
            self.chat.state.apply_all(batch)  # the screen is gone already: only the last words are read

    @property
    def _shown(self) -> bool:
        stack = self.screen_stack
        return bool(stack) and stack[0].is_attached and stack[0].is_running

    def _restore(self, prompt: str) -> None:
        self.chat_screen.restore(prompt)

    # -- actions -----------------------------------------------------------------------------------------

    def action_help(self) -> None:
        """Show the keys of where the user is."""
        from sandbox_chat.ui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen.of(self.screen))

    def action_palette(self) -> None:
        """Open the commands."""
        self.action_command_palette()

    def action_toggle_theme(self) -> None:
        """Switch between dark and light."""
        self.theme = LIGHT if self.theme == DARK else DARK

    def action_ask_leave(self) -> None:
        """Leave when asked twice."""
        now = time.monotonic()
        if now - self._leave_asked < LEAVE_WINDOW:
            self.action_leave()
            return
        self._leave_asked = now
        if isinstance(self.screen, ChatScreen):
            self.chat_screen.status.say("^C once more quits", LEAVE_WINDOW)
        else:
            self.notify("^C once more quits", markup=False, timeout=LEAVE_WINDOW)

    async def on_event(self, event: events.Event) -> None:
        """Any other key between two Ctrl+C says that the first was not meant to begin leaving."""
        if isinstance(event, events.Key) and event.key != "ctrl+c":
            self._leave_asked = float("-inf")
        await super().on_event(event)

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
            for prompt in (*self.chat.waiting, self.chat_screen.composer.text):
                self.prompts.add(prompt)
        if self.chat.engine is None:
            self.exit(self.signal_code)
            return
        self.chat_screen.show_closing()
        self.run_worker(self._close(self.chat.engine), exit_on_error=False)

    async def _close(self, engine: EngineLike) -> None:
        limit = self.settings.close_timeout + CLOSE_EXTRA
        with contextlib.suppress(Exception):  # whatever fails here, the way out stays open
            await asyncio.wait_for(asyncio.to_thread(engine.close), limit)
        self.pump.drain()
        self.exit(self.signal_code)

    def on_unmount(self) -> None:
        """Let go of the loop's signals."""
        self.pump.detach()
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
            self.prompts.close()
        os._exit(self.signal_code)
