"""A transcript in a small application of its own, for tests that look at nothing else."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Input

from sandbox_chat.ui.themes import themes
from sandbox_chat.ui.transcript import TranscriptView


class ViewApp(App[None]):
    """A transcript, and something else that can have the focus if ``other`` is true.

    ``messages`` are (kind, what) of everything that the transcript asked for, ``found`` is the newest (number, count).
    """

    def __init__(self, *, other: bool = False) -> None:
        super().__init__()
        self.messages: list[tuple[str, str]] = []
        self.found: tuple[int, int] = (-1, -1)
        self._other = other

    def compose(self) -> ComposeResult:
        """Lay out the transcript."""
        yield TranscriptView()
        if self._other:
            yield Input()

    def on_mount(self) -> None:
        """Take our own theme."""
        for theme in themes():
            self.register_theme(theme)
        self.theme = themes()[0].name

    @property
    def view(self) -> TranscriptView:
        """The transcript."""
        return self.query_one(TranscriptView)

    def on_transcript_view_tool_selected(self, event: TranscriptView.ToolSelected) -> None:
        """Note it."""
        self.messages.append(("tool", event.tool_use_id))

    def on_transcript_view_picture_opened(self, event: TranscriptView.PictureOpened) -> None:
        """Note it."""
        self.messages.append(("picture", event.path))

    def on_transcript_view_link_opened(self, event: TranscriptView.LinkOpened) -> None:
        """Note it."""
        self.messages.append(("link", event.href))

    def on_transcript_view_command_asked(self, event: TranscriptView.CommandAsked) -> None:
        """Note it."""
        self.messages.append((event.command, event.block.text))

    def on_transcript_view_found(self, event: TranscriptView.Found) -> None:
        """Note it."""
        self.found = (event.number, event.count)


def rows_shown(view: TranscriptView) -> list[str]:
    """Return what stands on the screen, without the gutter and the bar."""
    return [view.render_line(y).text[2:-2].rstrip() for y in range(view.size.height)]
