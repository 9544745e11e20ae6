"""The commands of the line-by-line chat that change how the agent works, or lead into another session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sandbox_chat import events as ev
from sandbox_chat.last_prompt import is_order
from sandbox_chat.settings import EFFORTS, Settings
from sandbox_chat.text import clean_line
from sandbox_chat.values import thinking as read_thinking
from sandbox_chat.words import tr

if TYPE_CHECKING:
    from sandbox_chat.engine import Engine

DEFAULT = "default"
"""Typed for what the agent's program takes by itself."""
LISTED = 50
"""Turns that ``/rewind`` names, the latest ones."""
SHORT = 100
"""Characters of a prompt in that list."""


class Says(Protocol):
    """Writes lines."""

    def say(self, line: str) -> None:
        """Write one line."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The session that is to be opened next: its id, ``None`` for a new one. ``again``: a prompt that can be sent there.

    ``fork``: a copy of it. ``words`` say what has happened.
    """

    session_id: str | None
    fork: bool = False
    again: str = ""
    words: str = ""


class Controls:
    """What the user changes of the agent and the session. The chat tells the events and sends the prompts."""

    settings: Settings
    lines: Says
    engine: Engine | None
    past: list[ev.Event]
    opening: Opening | None
    again: str

    def _next(self) -> Iterator[ev.Event]:
        """Tell events as they come, one after the other; the chat does."""
        raise NotImplementedError

    def _turn(self, prompt: str) -> None:
        """Send a prompt and tell its turn; the chat does."""
        raise NotImplementedError

    def _follow(self, turn_id: str) -> None:
        """Tell what comes up to the end of a turn; the chat does."""
        raise NotImplementedError

    # -- model, effort, thinking -------------------------------------------------------------------------

    def _model(self, name: str) -> None:
        assert self.engine is not None
        if self.settings.demo:
            self.lines.say(tr("linear.demo_model"))
        elif name:
            self.engine.set_model(name)
            self.lines.say(tr("linear.model_set", model=name))
        else:
            self.lines.say(tr("linear.no_model"))

    def _effort(self, typed: str) -> None:
        word = typed.lower()
        if not self._choosable("effort", typed):
            return
        if word not in (*EFFORTS, DEFAULT):
            self.lines.say(tr("controls.effort_wrong"))
            return
        assert self.engine is not None
        self.engine.set_controls(effort="" if word == DEFAULT else word)
        self.lines.say(tr("controls.effort_set", value=self._named(word)))

    def _thinking(self, typed: str) -> None:
        if not self._choosable("thinking", typed):
            return
        try:
            word = "" if typed.lower() == DEFAULT else read_thinking(typed)
        except ValueError:
            self.lines.say(tr("controls.thinking_wrong"))
            return
        assert self.engine is not None
        self.engine.set_controls(thinking=word)
        self.lines.say(tr("controls.thinking_set", value=self._named(word)))

    def _choosable(self, what: str, typed: str) -> bool:
        """Say what is in force when nothing was typed, and that the demo has nothing to choose."""
        if self.settings.demo:
            self.lines.say(tr("controls.demo"))
        elif not typed:
            present = getattr(self._changed() or self.settings, what)
            self.lines.say(tr("controls.present", value=self._named(present)))
            self.lines.say(tr(f"controls.{what}_wrong"))
        return bool(typed) and not self.settings.demo

    def _changed(self) -> ev.ControlsChanged | None:
        """Return the controls in force where they are not those of the settings; an earlier run's are told anew if they go on."""
        told = (
            event
            for event in reversed(self.past)
            if isinstance(event, ev.ControlsChanged | ev.SessionStarted)
        )
        last = next(told, None)
        return last if isinstance(last, ev.ControlsChanged) else None

    def _say_kept(self, kept: ev.ControlsChanged) -> None:
        """Say what a resumed session keeps that is not as in the settings."""
        settings = self.settings
        if kept.model != settings.model:
            self.lines.say(tr("linear.model_set", model=self._named(kept.model)))
        if kept.effort != settings.effort:
            self.lines.say(tr("controls.effort_set", value=self._named(kept.effort)))
        if kept.thinking != settings.thinking:
            self.lines.say(tr("controls.thinking_set", value=self._named(kept.thinking)))

    @staticmethod
    def _named(value: str) -> str:
        return tr("controls.model_default") if value in ("", DEFAULT) else value

    # -- what the agent remembers ------------------------------------------------------------------------

    def _forget(self) -> None:
        """Let the agent forget what was said."""
        assert self.engine is not None
        if not self._started():
            self.lines.say(tr("linear.no_history"))
            return
        self.engine.clear()
        for event in self._next():
            if isinstance(event, ev.Cleared) or (isinstance(event, ev.Notice) and event.level == "error"):
                return

    def _compact(self, wish: str) -> None:
        """Let the agent replace what it remembers by a summary."""
        assert self.engine is not None
        if any(isinstance(event, ev.TurnFinished) and event.cost_usd != 0 for event in self.past) or (
            self.settings.demo and self._started()
        ):
            self._follow(self.engine.compact(wish))
        else:
            self.lines.say(tr("controls.compact_nothing"))

    def _retry(self) -> None:
        """Send the last prompt again, or the one that a branch was made for."""
        assert self.engine is not None
        said = [turn.prompt for turn in self._started() if not is_order(turn.prompt)]
        prompt = self.again or (said[-1] if said else "")
        if prompt:
            self._turn(prompt)
        else:
            self.lines.say(tr("controls.retry_nothing"))

    # -- branches ----------------------------------------------------------------------------------------

    def _fork(self, typed: str) -> None:
        """Go on in a branch that begins after a turn, or after the last one."""
        ended = {event.turn_id for event in self.past if isinstance(event, ev.TurnFinished)}
        turns = [turn for turn in self._started() if turn.turn_id in ended]
        if not turns:
            self.lines.say(tr("controls.fork_nothing"))
        elif not typed:
            self._branch(turns[-1].turn_id, Opening(None, words=tr("controls.forked")), remember=False)
        elif (place := self._place(typed)) is not None:
            turn_id = self._started()[place].turn_id
            self._branch(turn_id, Opening(None, words=tr("controls.forked")), remember=True)

    def _rewind(self, typed: str) -> None:
        """Go back to the prompt of a turn, in a branch that begins before it; without a number, list the turns."""
        turns = self._started()
        if not turns:
            self.lines.say(tr("controls.fork_nothing"))
            return
        if not typed:
            for number, turn in list(enumerate(turns, 1))[-LISTED:]:
                self.lines.say(f"  {number} {clean_line(turn.prompt, SHORT)}")
            self.lines.say(tr("linear.rewind_how"))
            return
        place = self._place(typed)
        if place is None:
            return
        prompt = turns[place].prompt
        words = tr("linear.rewound", number=place + 1, prompt=clean_line(prompt, SHORT))
        opening = Opening(None, again=prompt, words=words)
        ended = {event.turn_id for event in self.past if isinstance(event, ev.TurnFinished)}
        before = [turn for turn in turns[:place] if turn.turn_id in ended]
        if before:
            self._branch(before[-1].turn_id, opening, remember=False)
        else:
            self.opening = opening

    def _branch(self, after: str, opening: Opening, *, remember: bool) -> None:
        """Make the branch after a turn; it is opened next."""
        from sandbox_chat.engine_branch import branch
        from sandbox_chat.journal.errors import SessionError

        assert self.engine is not None
        try:
            made = branch(self.settings, self.engine.session_id, after_turn=after, remember=remember)
        except (SessionError, OSError) as error:
            self.lines.say(tr("linear.error", text=error))
            return
        self.opening = Opening(made, again=opening.again, words=opening.words)

    def _started(self) -> list[ev.TurnStarted]:
        return [event for event in self.past if isinstance(event, ev.TurnStarted)]

    def _place(self, typed: str) -> int | None:
        """Return the place of the turn whose number was typed; say so when there is none."""
        last = len(self._started())
        if typed.isascii() and typed.isdigit() and 1 <= int(typed[:9]) <= last:
            return int(typed[:9]) - 1
        self.lines.say(tr("controls.fork_wrong", number=clean_line(typed, 20), last=last))
        return None
