"""What is told of Markdown without laying it out."""

from __future__ import annotations

from .tree import Leaf

_WITH_LINKS = frozenset({"paragraph", "heading", "table"})


def may_link(leaf: Leaf) -> bool:
    """Tell whether a link definition may change what a leaf shows."""
    return leaf.kind in _WITH_LINKS and (
        "[" in leaf.text or any("[" in cell for row in leaf.cells for cell in row)
    )


def estimate(leaf: Leaf, width: int) -> int:
    """Guess the height of a leaf in rows."""
    if leaf.kind == "table":
        return len(leaf.cells) + 1
    if leaf.kind == "code":
        return max(1, leaf.text.count("\n") + (not leaf.text.endswith("\n")))
    room = max(width - 2 * len(leaf.path), 1)
    return leaf.text.count("\n") + len(leaf.text) // room + 1


def guess(text: str, width: int) -> int:
    """Guess the height of a document that is not parsed."""
    return text.count("\n") + len(text) // max(width, 1) + 1 if text else 0
