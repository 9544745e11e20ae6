"""Several pictures, one at a time: a line that says which, and the picture below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message

from sandbox_chat.events import ImageContent
from sandbox_chat.text import clean_line
from sandbox_chat.ui.actions import bindings_of, key_of
from sandbox_chat.ui.glyphs import glyph, own
from sandbox_chat.ui.widgets.line import Line, Part
from sandbox_chat.words import tr

from .alternative import image_name
from .painter import Painter
from .view import PictureView


class PagerLine(Line):
    """Which picture it is, and the ways to the others."""

    DEFAULT_CSS = """
    PagerLine { color: $muted; }
    """

    @property
    def pager(self) -> PicturePager:
        """The widget that it belongs to."""
        assert isinstance(self.parent, PicturePager)
        return self.parent

    def action_turn(self, by: int) -> None:
        """Go to another picture."""
        self.pager.action_turn(by)

    def action_large(self) -> None:
        """Ask for the large view."""
        self.pager.action_large()

    def parts(self) -> tuple[list[Part], list[Part]]:
        """Return place and name at the left, the key at the right."""
        pager = self.pager
        image = pager.image
        if image is None:
            return [], []
        left: list[Part] = []
        if pager.count > 1:
            place = tr("pictures.place", number=pager.number + 1, count=pager.count)
            left = [
                Part(f"{place} ", ""),
                Part(f"{glyph('before')} ", "$primary", "turn(-1)"),
                Part(f"{glyph('next')}  ", "$primary", "turn(1)"),
            ]
        size = f"{image.width}×{image.height}" if image.width and image.height else ""
        name = clean_line(image_name(image.path))
        zoom = tr("pictures.zoom", key=key_of("pager.large"))
        return [*left, Part(own(" · ".join(fact for fact in (name, size) if fact)), "", shrink=8, drop=2)], [
            Part(own(zoom), "$muted", "large", drop=1)
        ]


class PicturePager(Vertical, can_focus=True):
    """Shows one of the pictures given to ``show``. Posts ``Large`` when the user wants to see it large."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("pager")]

    DEFAULT_CSS = """
    PicturePager { height: 1fr; }
    PicturePager:focus PagerLine { background: $panel; }
    """

    class Large(Message):
        """The picture at ``path`` is to be shown large."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def __init__(self, painter: Painter, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._painter = painter
        self._images: tuple[ImageContent, ...] = ()
        self.number = 0

    def compose(self) -> ComposeResult:
        """Lay out line and picture."""
        yield PagerLine()
        yield PictureView(self._painter)

    def on_mount(self) -> None:
        """Show what was set before."""
        self._draw()

    @property
    def count(self) -> int:
        """Number of pictures."""
        return len(self._images)

    @property
    def image(self) -> ImageContent | None:
        """The picture that is shown."""
        return self._images[self.number] if self._images else None

    def show(self, images: Sequence[ImageContent]) -> None:
        """Show the last of some pictures, or stay at the one that is shown if it is among them."""
        before = self.image
        self._images = tuple(images)
        here = [number for number, image in enumerate(self._images) if image == before]
        self.number = here[-1] if here else max(0, len(self._images) - 1)
        self._draw()

    def action_turn(self, by: int) -> None:
        """Go to another picture, round and round."""
        if self._images:
            self.number = (self.number + by) % len(self._images)
            self._draw()

    def action_large(self) -> None:
        """Ask for the large view."""
        if self.image is not None:
            self.post_message(self.Large(self.image.path))

    def on_click(self, event: events.Click) -> None:
        """A click on the picture shows it large."""
        if isinstance(event.widget, PictureView):
            event.stop()
            self.action_large()

    def _draw(self) -> None:
        path = self.image.path if self.image is not None else ""
        for view in self.query(PictureView):  # none yet before it is laid out
            if view.path != path:
                view.show(path)
        for line in self.query(PagerLine):
            line.refresh()
