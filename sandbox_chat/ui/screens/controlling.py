"""What the chat's screen does for the controls: model, effort, thinking, memory of the agent, sandbox, MCP servers, skills."""

from __future__ import annotations

from sandbox_chat.settings import EFFORTS, Settings
from sandbox_chat.text import clean_line
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.screens.choose import ChooseScreen, Offer
from sandbox_chat.ui.screens.panes import PaneScreen
from sandbox_chat.values import thinking as read_thinking
from sandbox_chat.words import tr

LONG = 6.0
"""Seconds that a sentence is shown."""
DEFAULT = "default"
"""Typed for what the agent's program takes by itself."""


def read_model(typed: str) -> str:
    """Return the name of a model; ``default`` is the agent's own. Raises ``ValueError`` with a sentence."""
    if not typed or " " in typed.strip():
        raise ValueError(tr("controls.model_wrong"))
    return "" if typed.strip() == DEFAULT else typed.strip()


def read_effort(typed: str) -> str:
    """Return an effort as in the settings. Raises ``ValueError`` with a sentence."""
    word = typed.strip().lower()
    if word in (DEFAULT, tr("controls.model_default")):
        return ""
    if word not in EFFORTS:
        raise ValueError(tr("controls.effort_wrong"))
    return word


def read_thinking_word(typed: str) -> str:
    """Return what the model may think, as in the settings. Raises ``ValueError`` with a sentence."""
    if typed.strip().lower() in (DEFAULT, tr("controls.model_default")):
        return ""
    try:
        return read_thinking(typed)
    except ValueError:
        raise ValueError(tr("controls.thinking_wrong")) from None


class Controlling(PaneScreen):
    """The part of the chat's screen that changes how the agent works."""

    chat: Chat
    settings: Settings

    def update_state(self) -> None:
        """Let every part show the present state; the screen does."""
        raise NotImplementedError

    # -- model, effort, thinking ---------------------------------------------------------------------------

    def action_change_model(self) -> None:
        """Ask for another model: one of those that the agent's program knows, or any other name."""
        if not self._controllable():
            return
        engine = self.chat.engine
        default = Offer("", tr("controls.model_default"), tr("controls.model_default_about"))
        known = [Offer(name, name, about) for name, about in (engine.models if engine is not None else ())]
        present = self.chat.model(self.settings)
        if present and present not in {offer.value for offer in known}:
            known.insert(0, Offer(present, present))
        screen = ChooseScreen(
            tr("controls.model"),
            [default, *known],
            present=present,
            check=read_model,
            placeholder=tr("controls.model_type"),
        )
        self.app.push_screen(screen, self._use_model)

    def take_model(self, typed: str) -> None:
        """Take what stands after ``/model``."""
        if self._controllable():
            try:
                self._use_model(read_model(typed))
            except ValueError as wrong:
                self._back(f"/model {typed}", str(wrong))

    def _use_model(self, name: str | None) -> None:
        self.composer.focus()
        if name is not None and name != self.chat.model(self.settings):
            self.chat.set_model(name)
            shown = clean_line(name) or tr("controls.model_default")
            self.status.say(tr("controls.model_set", value=shown), LONG)
            self.update_state()

    def action_effort(self) -> None:
        """Ask how hard the model is to try."""
        if not self._controllable():
            return
        offers = [
            Offer("", tr("controls.model_default"), tr("controls.effort_default_about")),
            *(Offer(word, word, tr(f"controls.effort_{word}")) for word in EFFORTS),
        ]
        screen = ChooseScreen(tr("controls.effort"), offers, present=self.chat.effort(self.settings))
        self.app.push_screen(screen, self._use_effort)

    def take_effort(self, typed: str) -> None:
        """Take what stands after ``/effort``."""
        if self._controllable():
            try:
                self._use_effort(read_effort(typed))
            except ValueError as wrong:
                self._back(f"/effort {typed}", str(wrong))

    def _use_effort(self, word: str | None) -> None:
        self.composer.focus()
        if word is not None and word != self.chat.effort(self.settings):
            self.chat.set_controls(effort=word)
            self.status.say(tr("controls.effort_set", value=word or tr("controls.model_default")), LONG)

    def action_thinking(self) -> None:
        """Ask how much the model may think."""
        if not self._controllable():
            return
        offers = [
            Offer("", tr("controls.model_default"), tr("controls.thinking_default_about")),
            *(Offer(word, word, tr(f"controls.thinking_{word}")) for word in ("on", "off")),
        ]
        present = self.chat.thinking(self.settings)
        if present.isdigit():
            offers.append(Offer(present, present))
        screen = ChooseScreen(
            tr("controls.thinking"),
            offers,
            present=present,
            check=read_thinking_word,
            placeholder=tr("controls.thinking_type"),
        )
        self.app.push_screen(screen, self._use_thinking)

    def take_thinking(self, typed: str) -> None:
        """Take what stands after ``/thinking``."""
        if self._controllable():
            try:
                self._use_thinking(read_thinking_word(typed))
            except ValueError as wrong:
                self._back(f"/thinking {typed}", str(wrong))

    def _use_thinking(self, word: str | None) -> None:
        self.composer.focus()
        if word is not None and word != self.chat.thinking(self.settings):
            self.chat.set_controls(thinking=word)
            self.status.say(tr("controls.thinking_set", value=word or tr("controls.model_default")), LONG)

    # -- what the agent remembers ----------------------------------------------------------------------------

    def action_clear_context(self) -> None:
        """Let the agent forget what was said; transcript, record and sandbox stay."""
        if self._alive_session():
            assert self.chat.engine is not None
            if self.chat.busy:
                self.status.say(tr("controls.clear_soon"), LONG)
            self.chat.engine.clear()

    def action_compact(self) -> None:
        """Let the agent replace what it remembers by a summary."""
        self.take_compact("")

    def take_compact(self, wish: str) -> None:
        """Compact; ``wish`` says what matters in the summary."""
        if not self._alive_session():
            return
        assert self.chat.engine is not None
        if self.chat.busy:
            self._back(f"/compact {wish}".strip(), tr("controls.compact_busy"))
        elif not any(turn.used_tokens for turn in self.chat.state.turns):
            self.status.say(tr("controls.compact_nothing"), LONG)
        else:
            self.chat.engine.compact(wish)

    def action_retry(self) -> None:
        """Send the last prompt again."""
        if not self._alive_session():
            return
        chat = self.chat
        if chat.busy:
            self.status.say(tr("controls.retry_busy"), LONG)
        elif not chat.retry():
            self.status.say(tr("controls.retry_nothing"), LONG)
        self.transcript.end()
        self.update_state()

    # -- the sandbox -----------------------------------------------------------------------------------------

    def action_sandbox(self) -> None:
        """Show the sandbox, and offer to start it afresh."""
        from sandbox_chat.ui.screens.sandbox import SandboxScreen

        self.app.push_screen(SandboxScreen(self.settings, self.chat), self._sandbox_left)

    def _sandbox_left(self, restart: bool | None) -> None:
        self.composer.focus()
        if restart and self.chat.engine is not None:
            self.chat.engine.restart_sandbox()
            self.status.say(tr("controls.sandbox_restarting"), LONG)

    # -- MCP servers -----------------------------------------------------------------------------------------

    def action_servers(self) -> None:
        """Show the MCP servers and their tools."""
        from sandbox_chat.ui.screens.servers import ServersScreen

        self.app.push_screen(ServersScreen(self.chat))

    # -- skills ----------------------------------------------------------------------------------------------

    def action_skills(self) -> None:
        """Show the user's skills and the drafts that the agent handed in."""
        from sandbox_chat.ui.screens.skills import SkillsScreen

        self.app.push_screen(SkillsScreen(self.settings))

    # -- helpers ---------------------------------------------------------------------------------------------

    def _alive_session(self) -> bool:
        """Say so, and return false, where there is no session that takes commands."""
        if self.chat.engine is None or self.chat.state.finished or self.chat.read_only:
            self.status.say(tr("controls.no_session" if self.chat.engine is None else "controls.over"), LONG)
            return False
        return True

    def _controllable(self) -> bool:
        if self.chat.state.demo or self.settings.demo:
            self.status.say(tr("controls.demo"), LONG)
            return False
        return self._alive_session()

    def _back(self, command: str, words: str) -> None:
        """Say what is wrong with a command, and put it back."""
        self.status.say(words, LONG)
        self.composer.write_command(command)
