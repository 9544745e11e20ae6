"""Asks for one of several things; what is typed narrows them down, or is the answer itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from sandbox_chat.text import clean_line
from sandbox_chat.ui.actions import bindings_of
from sandbox_chat.ui.widgets.entry import Entry
from sandbox_chat.ui.widgets.pick_list import Pick, PickList
from sandbox_chat.words import tr

LENGTH = 200
"""Characters that can be typed."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that can be chosen: what it stands for, its text, and a word about it."""

    value: str
    text: str
    detail: str = ""


class ChooseScreen(ModalScreen[str | None]):
    """Shows ``offers`` under a ``title``, ``present`` the chosen one. The result is a value; ``None``: nothing is changed.

    ``check`` lets what is typed be the answer: it returns the value that it is, and raises ``ValueError`` with a
    sentence when it is none. Without it only an offer can be chosen.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("choose")]

    DEFAULT_CSS = """
    ChooseScreen { align: center middle; background: $background 60%; }
    #choose-box { width: 76; max-width: 94%; height: auto; max-height: 100%; padding: 1 2; background: $panel; }
    #choose-box Static { width: 1fr; }
    #choose-box Input { margin: 1 0 0 0; width: 1fr; }
    #choose-box PickList { padding: 0; }
    #choose-wrong { color: $error; height: auto; }
    #choose-keys { margin-top: 1; }
    #choose-box:ansi { border: solid $border; }
    .-ascii #choose-box { border: ascii $border; }
    """

    def __init__(
        self,
        title: str,
        offers: Sequence[Offer],
        *,
        present: str | None = None,
        check: Callable[[str], str] | None = None,
        placeholder: str = "",
    ) -> None:
        super().__init__()
        self._title = title
        self._offers = list(offers)
        self._present = present
        self._check = check
        self._placeholder = placeholder
        self._shown: list[Offer] = []

    def compose(self) -> ComposeResult:
        """Lay out the question."""
        with Vertical(id="choose-box"):
            yield Static(Content.styled(self._title, "bold"))
            entry = Entry(max_length=LENGTH, id="choose-entry", compact=True, placeholder=self._placeholder)
            entry.cursor_blink = False
            yield entry
            yield PickList(id="choose-list")
            yield Static(id="choose-wrong")
            yield Static(Content.styled(tr("controls.choose_keys"), "$muted"), id="choose-keys")

    def on_mount(self) -> None:
        """Show all there is."""
        self.query_one("#choose-wrong").display = False
        self._show("")
        for place, offer in enumerate(self._shown):
            if offer.value == self._present:
                self.picks.move(place)

    @property
    def picks(self) -> PickList:
        """The list of what can be chosen."""
        return self.query_one(PickList)

    def _show(self, typed: str) -> None:
        words = typed.casefold().split()
        self._shown = [
            offer
            for offer in self._offers
            if all(word in f"{offer.value} {offer.text} {offer.detail}".casefold() for word in words)
        ]
        exact = any(typed in (offer.value, offer.text) for offer in self._shown)
        if self._check is not None and typed and not exact:
            self._shown.append(Offer(typed, tr("controls.use", value=clean_line(typed))))
        if self._shown:
            picks = [Pick(offer.text, offer.detail) for offer in self._shown]
            self.picks.show(tr("controls.present", value=self._now) if self._now else "", picks)
        else:
            self.picks.hide()

    @property
    def _now(self) -> str:
        return next((offer.text for offer in self._offers if offer.value == self._present), "")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrow the list down."""
        event.stop()
        self.query_one("#choose-wrong").display = False
        self._show(event.value.strip())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take what is chosen."""
        event.stop()
        self.action_take()

    def on_pick_list_clicked(self) -> None:
        """Take what was clicked."""
        self.action_take()

    def action_step(self, by: int) -> None:
        """Choose another one."""
        self.picks.move(by)

    def action_take(self) -> None:
        """Take what is chosen, if it can be."""
        if not self._shown:
            return
        value = self._shown[self.picks.chosen].value
        if self._check is not None and value not in {offer.value for offer in self._offers}:
            try:
                value = self._check(value)
            except ValueError as wrong:
                said = self.query_one("#choose-wrong", Static)
                said.update(Content(str(wrong)))
                said.display = True
                return
        self.dismiss(value)

    def action_cancel(self) -> None:
        """Change nothing."""
        self.dismiss(None)
