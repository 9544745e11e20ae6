"""What the block parser makes of a text: leaves in their order, each with the containers that it stands in.

A leaf's containers are objects shared by all leaves in them, so that structure is identity: two leaves are in
the same list item when their paths hold the same ``Container``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

LeafKind = Literal["paragraph", "heading", "code", "table", "rule", "html", "empty"]
ContainerKind = Literal["quote", "list", "item", "footnote"]
Align = Literal["left", "center", "right"]


@dataclass(slots=True, eq=False)
class Container:
    """A block that holds others. ``parent`` is ``None`` at the top level."""

    kind: ContainerKind
    parent: Container | None = None
    ordered: bool = False
    """List: numbered."""
    start: int = 1
    """List: its first number. Item: its own number."""
    delimiter: str = ""
    """List and item: ``-``, ``*``, ``+``, ``.`` or ``)``."""
    loose: bool = False
    """List: blank lines stand between its parts, as CommonMark says; known only when the list has ended."""
    task: str = ""
    """Item: ``open`` or ``done`` for ``[ ]`` and ``[x]``, which are then not part of its text."""
    label: str = ""
    """Footnote: its name."""


@dataclass(slots=True, eq=False)
class Leaf:
    """A block that holds text.

    ``text`` is inline Markdown (paragraph, heading), code without its fence and indent, or HTML to the letter; a
    leaf of kind ``empty`` stands for an item or quote without anything in it. It only grows while ``closed`` is
    false; the unfinished last line of the document may be taken back and read in another way.
    """

    kind: LeafKind
    path: tuple[Container, ...] = ()
    """Containers from the outermost to the innermost."""
    text: str = ""
    level: int = 0
    """Heading: 1 to 6."""
    info: str = ""
    """Code: what stands behind the fence's opening, whole. ``language`` is its first word."""
    fenced: bool = False
    """Code: between fences, not indented."""
    closed: bool = False
    """Nothing will be added any more."""
    gap: bool = False
    """A blank line stands before it in the source."""
    line: int = 0
    """Line of the source at which it begins, from 0."""
    aligns: tuple[Align, ...] = ()
    """Table: one for each column."""
    cells: list[tuple[str, ...]] = field(default_factory=list)
    """Table: rows of inline Markdown, the head first; as many cells as columns. Grows by whole rows."""

    @property
    def language(self) -> str:
        """The language of code, empty when none is named."""
        words = self.info.split()
        return words[0] if words else ""
