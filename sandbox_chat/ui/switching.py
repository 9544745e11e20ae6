"""Going over to another session without leaving the program."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import App

from sandbox_chat.events import Event
from sandbox_chat.settings import Settings
from sandbox_chat.ui.controller import Chat, EngineFactory, EngineLike
from sandbox_chat.ui.gate import Gate
from sandbox_chat.ui.keeping import Keeping
from sandbox_chat.ui.private import may_be_switched
from sandbox_chat.ui.tokens import Part
from sandbox_chat.words import tr, tr_count

if TYPE_CHECKING:
    from sandbox_chat.ui.drafts import Drafts
    from sandbox_chat.ui.images import Images
    from sandbox_chat.ui.pump import Pump
    from sandbox_chat.ui.screens.chat import ChatScreen

CLOSE_EXTRA = 3.0
"""Seconds beyond the setting ``close_timeout`` after which an engine that is left is not waited for."""
SAID = 8.0
"""Seconds that a sentence about a session stands."""
SEEK = 0.1
"""Seconds after which is looked again whether the past of a session is there."""
PATIENCE = 60.0
"""Seconds that it is waited for before a turn is given up."""


class Switching(App[Any]):
    """The part of the application that changes the session. ``former`` are engines that were left and still close."""

    settings: Settings
    chat: Chat
    pump: Pump
    drafts: Drafts
    keeping: Keeping
    images: Images
    _make_engine: EngineFactory
    _gate: Gate | None = None
    _past: int
    _leaving: bool
    _switching = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.former: dict[str, EngineLike] = {}
        self._closings: set[asyncio.Task[None]] = set()

    def new_chat(self) -> Chat:
        """Make a chat without an engine, and all that belongs to one chat alone; it is ``chat`` from now on."""
        raise NotImplementedError

    def new_chat_screen(self) -> ChatScreen:
        """Make a screen for ``chat``."""
        raise NotImplementedError

    def _replayed(self, event: Event) -> None:
        raise NotImplementedError

    def _shown_chat(self) -> ChatScreen:
        screen: Any = self.screen_stack[0]
        return screen  # type: ignore[no-any-return]  # the chat is always the first one

    def make_engine(
        self, settings: Settings, session_id: str | None, **opening: bool
    ) -> tuple[EngineLike, Gate]:
        """Make an engine and the way of its events. Blocking; raises what the engine refuses with."""
        gate = Gate(self.pump.put, self._replayed)
        engine = self._make_engine(settings, gate.put, resume=session_id, replay=gate.replay, **opening)
        return engine, gate

    # -- going over --------------------------------------------------------------------------------------

    def open_session(self, session_id: str | None, turn: int | None = None) -> None:
        """Leave the present session and go on with another one; ``None`` begins a new one. Returns at once.

        ``turn`` (from 1) is scrolled to. While a turn runs, or when one began meanwhile, the user is asked. A session that cannot be opened,
        because another program has it or it is gone, is said, and the present one goes on. The draft stays; prompts
        that wait stay with the session that is left, and come back with it.
        """
        if not self._switching and not self._leaving and self.chat.engine is not None:
            self._switching = True
            self.run_worker(self._switch(session_id, turn, self.chat.engine), group="session")

    async def _switch(self, session_id: str | None, turn: int | None, present: EngineLike) -> None:
        try:
            unused = session_id is None and not self.chat.state.turns and not self.chat.busy
            if unused or session_id == present.session_id:
                await self._uncover()
                self._go_to(turn)
                return
            asked = self._at_work
            if asked and not await self._sure():
                return
            try:
                if session_id in self.former:  # it was left a moment ago, and still closes
                    await self._end(self.former[session_id])
                engine, gate = await asyncio.to_thread(self.make_engine, self.settings, session_id)
            except Exception as error:
                self._refused(error)
                return
            goes = False
            try:  # a turn may have begun meanwhile
                goes = not self._leaving and (asked or not self._at_work or await self._sure())
                goes = goes and not self._leaving  # it may have been left while it was asked
            finally:
                if not goes:
                    await asyncio.to_thread(engine.close)
            if not goes:
                return
            await self._replace(engine, gate, session_id)
            self._go_to(turn)
        finally:
            self._switching = False

    @property
    def _at_work(self) -> bool:
        return self.chat.busy or bool(self.chat.state.attaching)

    async def _sure(self) -> bool:
        from sandbox_chat.ui.screens.confirm import ConfirmScreen

        question = ConfirmScreen(tr("sessions.busy"), tr("sessions.busy_detail"), tr("sessions.busy_yes"))
        answer: bool | None = await self.push_screen_wait(question)
        return answer is True

    def _refused(self, error: Exception) -> None:
        from sandbox_chat.journal.errors import SessionInUse

        words = (
            tr("sessions.in_use") if isinstance(error, SessionInUse) else str(error) or type(error).__name__
        )
        self.notify(words, severity="error", timeout=SAID, markup=False)

    async def _replace(self, engine: EngineLike, gate: Gate, session_id: str | None) -> None:
        left, kept = self._shown_chat(), self.keeping
        waiting = len(self.chat.queue)
        self.chat.leave()
        old, before, draft = self.chat.engine, left.composer, self._take_draft_of(left)
        kept.freeze()
        if self._gate is not None:
            self._gate.shut()
        self._gate = gate
        self.pump.clear()
        self._past = 0
        self.new_chat()
        self.chat.attach(engine)
        if old is not None:
            self._let_go(old)
        await self._uncover()
        may_be_switched(left)
        screen = self.new_chat_screen()
        screen.arrangement = left.arrangement
        await self.switch_screen(screen)
        screen.composer.keep = self.drafts.save
        self.images.connect(screen.transcript)
        screen.composer.follow(before)
        if draft:
            screen.composer.offer(draft)
        engine.start()
        screen.update_state()
        screen.composer.focus()
        await asyncio.to_thread(kept.close)
        self.run_worker(screen.take_left(self.keeping, session_id), exit_on_error=False)
        if waiting:
            screen.status.say(tr_count("sessions.waiting_stay", waiting), SAID)

    @staticmethod
    def _take_draft_of(screen: ChatScreen) -> Sequence[Part]:
        """Return what is being written, not what stands in the composer in its place, and let nobody keep it any more."""
        screen.leave_edit(keep=True)
        composer = screen.composer
        composer.keep_now()
        composer.completion.cancel()
        parts: Sequence[Part] = composer.parts
        if composer.prompts.recalling:  # an older prompt stands there
            text = composer.unsent
            composer.prompts.leave()
            parts = [Part("text", text)] if text else []
        composer.keep = None
        return parts

    async def _uncover(self) -> None:
        """Close what lies over the chat."""
        while len(self.screen_stack) > 1:
            await self.pop_screen()

    # -- the way to a turn -------------------------------------------------------------------------------

    def _go_to(self, turn: int | None) -> None:
        """Scroll to a turn as soon as the session's past is there."""
        if turn is not None and turn > 0:
            self._seek(turn, self.chat, time.monotonic() + PATIENCE)

    def _seek(self, turn: int, chat: Chat, until: float) -> None:
        if chat is not self.chat or self._leaving:
            return
        if self._past_is_here:
            self._shown_chat().show_turn(turn)
        elif time.monotonic() < until:
            self.set_timer(SEEK, partial(self._seek, turn, chat, until))

    @property
    def _past_is_here(self) -> bool:
        live = self._gate is None or self._gate.live
        drawn = self._shown_chat().transcript.layout_width > 0
        return live and self.pump.empty and not self.chat.state.partial and drawn

    # -- what is left ------------------------------------------------------------------------------------

    def _let_go(self, engine: EngineLike) -> None:
        self.former[engine.session_id] = engine
        task = asyncio.ensure_future(self._end(engine))
        self._closings.add(task)
        task.add_done_callback(self._closings.discard)

    async def _end(self, engine: EngineLike) -> None:
        """Close an engine that was left, within its deadline."""
        limit = self.settings.close_timeout + CLOSE_EXTRA
        with contextlib.suppress(Exception):  # whatever fails there is no matter of the present session
            await asyncio.wait_for(asyncio.to_thread(engine.close), limit)
        if self.former.get(engine.session_id) is engine:
            del self.former[engine.session_id]

    async def close_former(self) -> None:
        """Wait for the engines that were left; each has its own deadline."""
        if self._closings:
            await asyncio.wait(set(self._closings))
