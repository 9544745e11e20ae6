"""A picture over the whole screen: enlarged, moved, opened, saved; and the ways to the session's other pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from sandbox_chat.text import clean_line
from sandbox_chat.ui.actions import bindings_of, key_of
from sandbox_chat.ui.formats import fit_end
from sandbox_chat.ui.glyphs import own
from sandbox_chat.ui.pictures.view import PictureView
from sandbox_chat.ui.widgets.line import Line, Part
from sandbox_chat.words import tr

PATH_ROOM = 16
"""Cells that the path has at least."""
KEYS_ROOM = 52
"""Cells that are left to size and keys where there are as many."""


class Caption(Line):
    """Path and size of the picture, how much it is enlarged, and the keys."""

    def parts(self) -> tuple[list[Part], list[Part]]:
        """Return what it is, and the keys."""
        screen = self.screen
        assert isinstance(screen, PictureScreen)
        view = screen.view
        facts = []
        if all(view.pixels):
            facts.append("{}×{}".format(*view.pixels))
        if view.factor != 1:
            facts.append(tr("pictures.factor", factor=f"{view.factor:g}"))
        if screen.count > 1:
            facts.append(tr("pictures.place", number=screen.number + 1, count=screen.count))
        path = clean_line(screen.path, 1000)
        room = max(PATH_ROOM, self.content_size.width - KEYS_ROOM)
        left = [
            Part(fit_end(path, room), "bold", shrink=PATH_ROOM, tail=True)
        ]  # its end says which file it is
        left += [Part(own(f" · {fact}"), "$muted", drop=1) for fact in facts]
        turn = tr("pictures.turn", before=key_of("picture.before"), next=key_of("picture.next"))
        zoom = tr("pictures.zooming", larger=key_of("picture.larger"), smaller=key_of("picture.smaller"))
        keys = [
            (zoom, "screen.zoom(1)", 3),
            *([(turn, "screen.turn(1)", 4)] if screen.count > 1 else []),
            (tr("pictures.open", key=key_of("picture.open")), "screen.open", 5),
            (tr("pictures.save", key=key_of("picture.save")), "screen.save", 6),
            (tr("pictures.copy", key=key_of("picture.copy")), "screen.copy", 7),
            (tr("pictures.back", key=key_of("picture.back")), "screen.back", 2),
        ]
        return left, [Part(f"  {own(text)}", "", action, drop=drop) for text, action, drop in keys]


class PictureScreen(Screen[None]):
    """Shows one of the pictures at ``paths`` as large as the terminal allows, at first the one with this ``number``.

    ``viewer`` opens it in the system's viewer, ``save`` and ``copy`` copy the file and its path; they get the path and
    tell the outcome themselves.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("picture")]

    def __init__(
        self,
        paths: Sequence[str],
        number: int,
        view: PictureView,
        *,
        viewer: Callable[[Path], None],
        save: Callable[[Path], None],
        copy: Callable[[Path], None],
    ) -> None:
        super().__init__()
        self.paths = tuple(paths)
        self.number = number
        self.view = view
        self._viewer = viewer
        self._save = save
        self._copy = copy

    @property
    def path(self) -> str:
        """The picture that is shown."""
        return self.paths[self.number]

    @property
    def count(self) -> int:
        """Number of pictures."""
        return len(self.paths)

    def compose(self) -> ComposeResult:
        """Lay out picture and caption."""
        yield self.view
        yield Caption()

    def on_mount(self) -> None:
        """Show the picture."""
        self.view.show(self.path)

    def on_picture_view_drawn(self) -> None:
        """Say what is seen now."""
        self.query_one(Caption).changed()

    def action_back(self) -> None:
        """Return to the chat."""
        self.dismiss(None)

    def action_open(self) -> None:
        """Open the picture in the system's viewer."""
        self._viewer(Path(self.path))

    def action_save(self) -> None:
        """Copy the picture into the folder for downloads."""
        self._save(Path(self.path))

    def action_copy(self) -> None:
        """Copy the path of the picture's file."""
        self._copy(Path(self.path))

    def action_turn(self, by: int) -> None:
        """Go to another picture, round and round."""
        if self.count > 1:
            self.number = (self.number + by) % self.count
            self.view.show(self.path)

    def action_zoom(self, steps: int) -> None:
        """Show a smaller part larger, or more of it."""
        self.view.zoom(steps)

    def action_whole(self) -> None:
        """Show the whole picture."""
        self.view.zoom(-99)

    def action_pan(self, across: int, down: int) -> None:
        """Move over an enlarged picture; else left and right go to the others."""
        if not self.view.pan(across, down) and across:
            self.action_turn(across)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Enlarge with the wheel."""
        event.stop()
        self.view.zoom(1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Make smaller with the wheel."""
        event.stop()
        self.view.zoom(-1)
