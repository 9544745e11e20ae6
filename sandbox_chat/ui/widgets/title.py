"""The title line: program, session, the words *demo* or *unsafe*, sandbox, model."""

from __future__ import annotations

from sandbox_chat.settings import Settings
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.widgets.line import Line, Part

DEMO_WORDS = "demo, no model"
UNSAFE_WORDS = "UNSAFE: code runs on this machine"

SANDBOX_WORDS = {
    "none": ("○", "not started", "$muted"),
    "starting": ("◌", "starting", "$warning"),
    "ready": ("●", "ready", "$success"),
    "busy": ("●", "running", "$primary"),
    "lost": ("✗", "lost", "$error"),
    "closed": ("○", "closed", "$muted"),
}
"""Sign, word and colour of the sandbox's states."""


class TitleBar(Line):
    """The first row of the screen."""

    DEFAULT_CSS = """
    TitleBar { padding: 0 1; background: $surface; color: $foreground; }
    """

    def __init__(self, settings: Settings, state: ChatState, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.settings = settings
        self.state = state

    def parts(self) -> tuple[list[Part], list[Part]]:
        """Return the parts of the line from settings and state."""
        state, settings = self.state, self.settings
        kind = state.sandbox_kind or settings.sandbox
        words: list[Part] = []
        if state.demo or settings.demo:
            words.append(Part(DEMO_WORDS, "bold $accent"))
        if kind == "unsafe-local":
            words.append(Part(UNSAFE_WORDS, "bold $error"))
        left = [Part("sandbox-chat", "bold $primary", drop=3 if words else 0)]
        for part in words:
            left += [Part(" · "), part]
        if state.title:
            left.append(Part(f" · {state.title}", "", drop=5, shrink=12))
        right: list[Part] = []
        if kind == "off":
            right.append(Part("no sandbox", "$muted", drop=1))
        else:
            sign, word, colour = SANDBOX_WORDS.get(state.sandbox, ("○", state.sandbox, "$muted"))
            label = "unsafe-local" if kind == "unsafe-local" else f"{kind} sandbox"
            right += [
                Part(f"{label} ", "$muted", drop=4),
                Part(f"{sign} ", colour, drop=1),
                Part(word, "$muted", drop=2),
            ]
        model = state.model or settings.model
        if not (state.demo or settings.demo):
            right.append(
                Part(f"   {model or 'default model'} ▾", "", "screen.change_model", drop=6, shrink=14)
            )
        return left, right
