"""A picture over the whole screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget

from sandbox_chat.text import clean_line
from sandbox_chat.ui.widgets.line import Line, Part


class Caption(Line):
    """Path of the picture and the keys."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = clean_line(path)

    def parts(self) -> tuple[list[Part], list[Part]]:
        """Return path and keys."""
        keys = [
            Part("o open in a viewer  ", "", "screen.open", drop=2),
            Part("s save a copy  ", "", "screen.save", drop=3),
            Part("esc back", "", "screen.back", drop=1),
        ]
        return [Part(self.path, "bold", shrink=12)], keys


class PictureScreen(Screen[None]):
    """Shows the picture at ``path`` as large as the terminal allows.

    ``viewer`` opens it in the system's viewer, ``save`` copies it; both get the path and tell the
    outcome themselves.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "back", "Back"),
        Binding("o", "open", "Open in a viewer"),
        Binding("s", "save", "Save a copy"),
    ]

    def __init__(
        self,
        path: str,
        picture: Widget,
        *,
        viewer: Callable[[Path], None],
        save: Callable[[Path], None],
    ) -> None:
        super().__init__()
        self.path = path
        self._picture = picture
        self._viewer = viewer
        self._save = save

    def compose(self) -> ComposeResult:
        """Lay out picture and caption."""
        yield self._picture
        yield Caption(self.path)

    def action_back(self) -> None:
        """Return to the chat."""
        self.dismiss(None)

    def action_open(self) -> None:
        """Open the picture in the system's viewer."""
        self._viewer(Path(self.path))

    def action_save(self) -> None:
        """Copy the picture into the folder for downloads."""
        self._save(Path(self.path))
