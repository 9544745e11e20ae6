"""Asks what a session may cost."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from sandbox_chat.plain import cost_text, whole_percent
from sandbox_chat.prices import read_budget
from sandbox_chat.ui.actions import bindings_of
from sandbox_chat.ui.widgets.entry import Entry
from sandbox_chat.words import tr, tr_count

LENGTH = 20
"""Characters of a sum that can be typed."""


class BudgetScreen(ModalScreen[float | None]):
    """Takes a session's budget in dollars; ``None`` means that nothing is changed.

    ``limit`` is the present one (0: none), ``spent`` what the session is known to have cost, ``unknown`` says that there
    is more which is not known, ``waiting`` counts the prompts that wait for it.
    """

    DEFAULT_CSS = """
    #budget-box { width: 60; max-width: 94%; height: auto; max-height: 100%; padding: 1 2; background: $panel; }
    #budget-box Input { margin: 1 0 0 0; width: 1fr; }
    #budget-wrong { height: auto; color: $error; }
    #budget-box:ansi { border: solid $border; }
    .-ascii #budget-box { border: ascii $border; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("budget")]

    def __init__(self, limit: float, spent: float, *, unknown: bool, waiting: int) -> None:
        super().__init__()
        self._limit = limit
        self._spent = spent
        self._unknown = unknown
        self._waiting = waiting

    def compose(self) -> ComposeResult:
        """Lay out the question."""
        with Vertical(id="budget-box"):
            yield Static(Content.styled(tr("budget.title"), "bold"))
            yield Static(Content(self._so_far()))
            if self._waiting:
                yield Static(Content.styled(tr_count("budget.waits", self._waiting), "$warning"))
            amount = Entry(
                value=suggested(self._limit, self._spent), max_length=LENGTH, id="budget-amount", compact=True
            )
            amount.cursor_blink = False
            yield amount
            yield Static(Content.styled(tr("budget.label"), "$muted"))
            yield Static(id="budget-wrong")
            yield Static(Content.styled(tr("budget.keys"), "$muted"))

    def _so_far(self) -> str:
        spent = cost_text(self._spent)
        if self._limit > 0:
            percent = whole_percent(self._spent / self._limit)
            said = tr("budget.spent_of", spent=spent, limit=cost_text(self._limit), percent=percent)
        else:
            said = tr("budget.spent", spent=spent)
        return f"{said} {tr('budget.unknown')}" if self._unknown else said

    def on_input_changed(self, event: Input.Changed) -> None:
        """What was wrong is being mended."""
        event.stop()
        self.query_one("#budget-wrong", Static).update("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Use the sum, if it is one."""
        event.stop()
        try:
            limit = read_budget(event.value)
        except ValueError:
            self.query_one("#budget-wrong", Static).update(Content(tr("budget.wrong")))
            return
        if 0 < limit <= self._spent and limit != self._limit:
            self._limit = limit  # said once: the same sum once more is taken
            said = tr("budget.low", spent=cost_text(self._spent))
            self.query_one("#budget-wrong", Static).update(Content(said))
            return
        self.dismiss(limit)

    def action_cancel(self) -> None:
        """Change nothing."""
        self.dismiss(None)


def suggested(limit: float, spent: float) -> str:
    """Return the sum to begin with: the present limit, or its double until that is more than what is spent."""
    if limit <= 0:
        return ""
    while limit <= spent:
        limit *= 2
    return f"{limit:.10f}".rstrip("0").rstrip(".")
