"""A draft that is never lost: it is told to whoever keeps it, and put aside while older prompts are looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from textual.timer import Timer

from sandbox_chat.ui.history import History
from sandbox_chat.ui.tokens import Part
from sandbox_chat.ui.widgets.draft_area import DraftArea


class KeptArea(DraftArea):
    """A draft area with a history. ``keep`` is called with the parts of the draft ``keep_delay`` seconds after it changed.

    While older prompts are looked at, or something else stands here than the draft, what was told last stays.
    """

    def __init__(self, prompts: History, *, keep_delay: float = 0.5, **options: Any) -> None:
        super().__init__(**options)
        self.prompts = prompts
        self.keep: Callable[[Sequence[Part]], None] | None = None
        self._keep_delay = keep_delay
        self._keep_timer: Timer | None = None
        self._put_aside: list[Part] = []

    @property
    def elsewhere(self) -> bool:
        """True while something else than the draft stands here."""
        return self.prompts.recalling

    def edit(self, edit: Any) -> Any:
        """Perform an edit. An older prompt that is edited, by whatever key, is a draft."""
        self._leave_history()
        result = super().edit(edit)
        self._edited()
        return result

    def undo(self) -> None:
        """Undo the last edits."""
        super().undo()
        self._edited()

    def redo(self) -> None:
        """Do them again."""
        super().redo()
        self._edited()

    def load_text(self, text: str) -> None:
        """Replace the document."""
        super().load_text(text)
        self._edited()

    def _edited(self) -> None:
        if self.keep is None or self.elsewhere:
            return
        if not self.document_text:
            self.keep_now()
        elif self._keep_timer is None:
            self._keep_timer = self.set_timer(self._keep_delay, self.keep_now)

    def keep_now(self) -> None:
        """Let the draft be kept at once, unless something else stands here."""
        if self._keep_timer is not None:
            self._keep_timer.stop()
            self._keep_timer = None
        if self.keep is None or self.elsewhere:
            return
        if self.tokens.raw:  # it is being cleaned
            self._keep_timer = self.set_timer(self._keep_delay, self.keep_now)
        else:
            self.keep(self.parts)

    # -- history -----------------------------------------------------------------------------------------

    def action_cursor_up(self, select: bool = False) -> None:
        """Move up; on the first row, to the prompt before."""
        if select or not self.navigator.is_first_wrapped_line(self.selection.end):
            super().action_cursor_up(select)
            return
        if not self.prompts.recalling:
            self.keep_now()
            self._put_aside = self.parts
        if (text := self.prompts.back(self.text)) is not None:
            self.text = text

    def action_cursor_down(self, select: bool = False) -> None:
        """Move down; on the last row, to the prompt after, and at last to the draft."""
        if select or not self.navigator.is_last_wrapped_line(self.selection.end):
            super().action_cursor_down(select)
            return
        if (text := self.prompts.forward()) is None:
            return
        if self.prompts.recalling:
            self.text = text
        else:
            self.load_parts(self._put_aside)

    def to_history(self) -> None:
        """Put the draft into the history: the one that was put aside, or else what stands here."""
        if self.prompts.recalling:
            self._leave_history()
        else:
            self.prompts.add(self.text)

    def _leave_history(self) -> None:
        """What stands here is a draft of its own now; the one that was put aside goes into the history."""
        if self.prompts.recalling:
            draft = self.prompts.draft
            self.prompts.leave()
            self.prompts.add(draft)
