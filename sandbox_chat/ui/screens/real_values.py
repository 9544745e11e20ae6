"""Shows what the tokens of personal data stand for: in the item in use, and all of the session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from sandbox_chat.text import bound, clean, clean_line
from sandbox_chat.ui.actions import bindings_of, key_of
from sandbox_chat.ui.transcript.cells import TAB, Row, Run
from sandbox_chat.ui.widgets.key_line import KeyLine
from sandbox_chat.ui.widgets.text_view import TextView
from sandbox_chat.words import tr

SHOWN = 100_000
"""Characters of the item."""
VALUES = 1000
"""Tokens that are listed, those that came last."""
LONGEST = 300
"""Characters of a value in the list."""


class RealValuesScreen(ModalScreen[None]):
    """Lies over the chat until it is closed; ``values`` says what each token stands for. Nothing of it is kept."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("values")]

    DEFAULT_CSS = """
    RealValuesScreen { align: center middle; background: $background 60%; }
    #values-box { width: 110; max-width: 94%; height: auto; max-height: 94%; padding: 1 2; background: $panel; }
    #values-box Static { width: 1fr; height: auto; }
    #values-text { height: auto; max-height: 1fr; min-height: 3; margin: 1 0; background: $panel; }
    #values-box:ansi { border: solid $border; }
    .-ascii #values-box { border: ascii $border; }
    """

    def __init__(self, text: str, values: Mapping[str, str]) -> None:
        super().__init__()
        self._lines = lines_of(text, values)

    def compose(self) -> ComposeResult:
        """Lay out the text."""
        keys = [
            (f"{key_of('values.close')} {tr('values.key_close')}", "screen.close"),
            (f"{key_of('details.copy')} {tr('values.key_copy')}", "screen.copy"),
        ]
        with Vertical(id="values-box"):
            yield Static(Content.styled(tr("values.title"), "bold"))
            yield Static(Content.styled(tr("values.about"), "$muted"))
            yield TextView(id="values-text")
            yield KeyLine(keys)

    def on_mount(self) -> None:
        """Show it."""
        view = self.query_one(TextView)
        view.show(self._lines)
        view.focus()

    def action_copy(self) -> None:
        """Copy all of it."""
        self.query_one(TextView).action_copy()

    def action_close(self) -> None:
        """Go back to the chat."""
        self.dismiss(None)


def lines_of(text: str, values: Mapping[str, str]) -> list[Row]:
    """Return the item with its values, if there are any in it, and the list of all."""
    out: list[Row] = []
    if any(token in text for token in values):
        pattern = re.compile("|".join(re.escape(token) for token in values))
        out = [_revealed(line, pattern, values) for line in bound(text, SHOWN).rstrip("\n").split("\n")]
        out += [[], [Run(tr("values.all"), ("muted",))]]
    listed = list(values.items())[-VALUES:]
    if len(listed) < len(values):
        out.append([Run(tr("values.more", count=f"{len(values) - len(listed):,}"), ("muted",))])
    width = max((len(token) for token, _ in listed), default=0)
    return out + [
        [Run(token.ljust(width + 2), ("muted",)), Run(clean_line(value, LONGEST), ("strong",))]
        for token, value in listed
    ]


def _revealed(line: str, pattern: re.Pattern[str], values: Mapping[str, str]) -> Row:
    runs: list[Run] = []
    at = 0
    for match in pattern.finditer(line):
        runs += [Run(_plain(line[at : match.start()])), Run(_plain(values[match.group()]), ("strong",))]
        at = match.end()
    return [run for run in (*runs, Run(_plain(line[at:]))) if run.text]


def _plain(text: str) -> str:
    return clean(text).replace("\t", TAB).replace("\n", " ")
