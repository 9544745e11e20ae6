"""The name of a pane, with a number at its right."""

from __future__ import annotations

from sandbox_chat.ui.widgets.line import Line, Part


class Header(Line):
    """The name of a pane with a number at its right."""

    DEFAULT_CSS = """
    Header { color: $muted; background: $background; }
    """

    def __init__(self, title: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.title = title
        self.count = ""

    def parts(self) -> tuple[list[Part], list[Part]]:
        """Return title and number."""
        return [Part(self.title, "bold")], [Part(self.count)] if self.count else []
