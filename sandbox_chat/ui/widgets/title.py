"""The title line: program, session, the words *demo* or *unsafe*, MCP servers that failed, sandbox, model."""

from __future__ import annotations

from sandbox_chat.settings import Settings
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.server_views import trouble
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.widgets.line import Line, Part
from sandbox_chat.words import tr

SANDBOX_WORDS = {
    "none": ("off", "$muted"),
    "starting": ("starting", "$warning"),
    "ready": ("on", "$success"),
    "busy": ("on", "$primary"),
    "lost": ("failed", "$error"),
    "closed": ("off", "$muted"),
}
"""Sign and colour of the sandbox's states."""


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
            words.append(Part(tr("title.demo"), "bold $accent"))
        if kind == "unsafe-local":
            words.append(Part(tr("title.unsafe"), "bold $error"))
        left = [Part("sandbox-chat", "bold $primary", drop=3 if words else 0)]
        for part in words:
            left += [Part(f" {glyph('dot')} "), part]
        if state.title:
            left.append(Part(f" {glyph('dot')} {state.title}", "", drop=5, shrink=12))
        right: list[Part] = []
        if (found := trouble(state.servers)) is not None:
            right.append(Part(f"{found.sign} {found.words}   ", found.colour, "screen.servers", drop=3))
        if kind == "off":
            right.append(Part(tr("title.no_sandbox"), "$muted", drop=1))
        else:
            sign, colour = SANDBOX_WORDS.get(state.sandbox, ("off", "$muted"))
            known = state.sandbox in SANDBOX_WORDS
            word = tr(f"title.sandbox_{state.sandbox}") if known else state.sandbox
            label = "unsafe-local" if kind == "unsafe-local" else tr("title.sandbox", kind=kind)
            right += [
                Part(f"{label} ", "$muted", drop=4),
                Part(f"{glyph(sign)} ", colour, drop=1),
                Part(word, "$muted", drop=2),
            ]
        model = state.model if state.session_id else settings.model
        if not (state.demo or settings.demo):
            name = f"   {model or tr('title.default_model')} {glyph('menu')}"
            right.append(Part(name, "", "screen.change_model", drop=6, shrink=14))
        return left, right
