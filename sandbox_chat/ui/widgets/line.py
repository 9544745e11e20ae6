"""A widget of one row made of parts: some at the left, some at the right, the least important ones dropped first."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.widget import Widget

from sandbox_chat.ui.formats import fit, fit_end


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of text in a line. ``style`` is a Textual style, ``action`` runs on a click.

    When there is no room, parts with the highest ``drop`` go first; a part with ``drop`` 0 stays and
    is cut if it must be. ``shrink`` marks a part that may be cut before others are dropped, down to
    ``shrink`` cells. ``tail``: its end is what stays when it is cut, as of a path.
    """

    text: str
    style: str = ""
    action: str = ""
    drop: int = 0
    shrink: int = 0
    tail: bool = False

    @property
    def width(self) -> int:
        """Width in cells."""
        return cell_len(self.text)

    def cut(self, width: int) -> Part:
        """Return the part in at most so many cells."""
        return replace(self, text=(fit_end if self.tail else fit)(self.text, width))


def arrange(left: list[Part], right: list[Part], width: int) -> tuple[list[Part], list[Part]]:
    """Return the parts that fit into ``width`` cells, cut or dropped by their importance."""
    left, right = list(left), list(right)

    def excess() -> int:
        gap = 1 if left and right else 0
        return sum(p.width for p in left) + sum(p.width for p in right) + gap - width

    for side in (left, right):
        for index, part in enumerate(side):
            if part.shrink and (over := excess()) > 0:
                room = max(part.shrink, part.width - over)
                side[index] = part.cut(room)
    while excess() > 0:
        droppable = [(p.drop, s, i) for s in (left, right) for i, p in enumerate(s) if p.drop > 0]
        if not droppable:
            break
        _, side, index = max(droppable, key=lambda item: item[0])
        del side[index]
    for side in (left, right):
        for index in range(len(side) - 1, -1, -1):
            if (over := excess()) > 0:
                side[index] = side[index].cut(max(0, side[index].width - over))
    return left, right


class Line(Widget):
    """One row. Subclasses say what is in it by ``parts``; ``changed`` draws it again when that differs."""

    DEFAULT_CSS = """
    Line { height: 1; width: 1fr; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._places: list[tuple[int, int, str]] = []
        self._drawn: object = None

    def parts(self) -> tuple[list[Part], list[Part]]:
        """Return the parts at the left and at the right."""
        return [], []

    def changed(self) -> None:
        """Draw the row again if its parts are not those that were drawn last."""
        if self.parts() != self._drawn:
            self.refresh()

    def render(self) -> Content:
        """Draw the row."""
        self._drawn = parts = self.parts()
        width = self.content_size.width
        left, right = arrange(*parts, width)
        used = sum(p.width for p in left) + sum(p.width for p in right)
        pieces: list[tuple[str, str]] = []
        self._places = []
        x = 0
        for part in (*left, Part(" " * max(0, width - used)), *right):
            pieces.append((part.text, part.style))
            if part.action:
                self._places.append((x, x + part.width, part.action))
            x += part.width
        return Content.assemble(*pieces)

    async def on_click(self, event: events.Click) -> None:
        """Run the action of the part that was clicked."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        for start, end, action in self._places:
            if start <= offset.x < end:
                event.stop()
                await self.run_action(action)
                return
