"""What stands to the left of a leaf and above it: quote bars, bullets, numbers, task boxes, empty rows."""

from __future__ import annotations

from typing import NamedTuple

from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.transcript.cells import Run, fit, width_of

from .tree import Container, Leaf

LEAST = 8
"""Width of the text below which nesting no longer moves it to the right."""

_FEWEST = 4
"""Width of the text that the mark of an item leaves at least."""
_LABEL = 14
_BULLETS = ("bullet", "bullet-2", "bullet-3")


class Margin(NamedTuple):
    """Runs before the first row and before the others, of the same width, and the width that is left for the text."""

    first: tuple[Run, ...]
    rest: tuple[Run, ...]
    room: int


def shared(before: tuple[Container, ...], path: tuple[Container, ...]) -> int:
    """Return how many containers two leaves that follow each other have in common."""
    count = 0
    for old, new in zip(before, path, strict=False):
        if old is not new:
            break
        count += 1
    return count


def rows_between(before: Leaf, leaf: Leaf, common: int) -> int:
    """Return the number of empty rows between two leaves that have ``common`` containers in common.

    Items, lists and code inside of something keep the distance that they have in the source.
    """
    path = leaf.path
    if not common:
        notes = [where.path[0].kind if where.path else "" for where in (before, leaf)]
        return int(leaf.gap) if notes == ["footnote", "footnote"] else 1
    is_list = common < len(path) and path[common].kind == "list"
    if path[common - 1].kind == "list" or is_list or (leaf.kind == "code" and common == len(path)):
        return int(leaf.gap)
    return 1


def margin(path: tuple[Container, ...], common: int, width: int) -> Margin:
    """Return the margin at ``width`` of a leaf in ``path``; what lies deeper than ``common`` begins with this leaf."""
    first: list[Run] = []
    rest: list[Run] = []
    used = depth = 0
    for index, container in enumerate(path):
        kind, new = container.kind, index >= common
        if kind == "list":
            depth += 1
            continue
        if kind == "quote":
            if width - used - 2 >= LEAST:
                bar = Run(f"{glyph('quote')} ", ("quote-bar",))
                first.append(bar)
                rest.append(bar)
                used += 2
            continue
        if kind == "footnote":
            mark = fit(f"[{container.label}]", _LABEL) + " "
            run = Run(mark, ("muted",))
        else:
            mark = _mark(container, depth)
            run = Run(mark, ("bullet",))
        size = width_of(mark)
        if width - used - size >= (_FEWEST if new else LEAST):
            blank = Run(" " * size)
            first.append(run if new else blank)
            rest.append(blank)
            used += size
    return Margin(tuple(first), tuple(rest), max(width - used, 1))


def _mark(item: Container, depth: int) -> str:
    """Return an item's mark; its width depends on the item alone, so that a list may be drawn in parts."""
    if item.task:
        return f"{glyph('task-' + item.task)} ".rjust(4 if item.ordered else 2)
    if item.ordered:
        number = str(item.start)
        return f"{number}. ".rjust(max(4, len(number) + 2))
    return f"{glyph(_BULLETS[min(depth - 1, len(_BULLETS) - 1)])} "
