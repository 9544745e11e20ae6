"""The last look at every row before it is drawn: nothing in a row's text acts on the terminal, whatever a widget does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.segment import Segment
from textual.app import App
from textual.color import Color
from textual.filter import LineFilter

# Control characters (newlines and tabs too: they move the cursor), bidi controls, and what cannot be encoded.
_ACTS = re.compile("[\\x00-\\x1f\\x7f-\\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\\ud800-\\udfff]")


class Guard(LineFilter):
    """A line filter that takes out what acts on a terminal.

    Text is cleaned where it comes in, so there should be nothing to take out; ``stopped`` counts the rows where there
    was. The width of a row stays the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stopped = 0

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the row's segments, the same list when all is well, as it is nearly always."""
        del background
        if _ACTS.search("".join([segment.text for segment in segments])) is None and not any(
            segment.style is not None and segment.style.link for segment in segments
        ):
            return segments
        self.stopped += 1
        return [self._safe(segment) for segment in segments]

    @staticmethod
    def _safe(segment: Segment) -> Segment:
        """Return a segment that only shows something. A target of a link goes to the terminal as it is, so there is none."""
        style = segment.style
        if style is not None and style.link:
            style = style.update_link(None)
        return Segment(_ACTS.sub(lambda match: "\ufffd" * cell_len(match[0]), segment.text), style)


class GuardedApp(App[Any]):
    """An ``App`` all of whose widgets draw through ``guard``."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.guard = Guard()
        super().__init__(*arguments, **options)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the filters of every row: the guard first."""
        return [self.guard, *super().get_line_filters()]
