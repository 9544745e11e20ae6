"""Answers of the user that hold for the rest of a session, so that the same is not asked twice. Pure.

An answer holds for exactly one kind of question about one subject: the kind ``overwrite`` for one file of the user's,
a tool of another server for that tool. It never holds for a kind as a whole, for a folder, or for another session:
what one says yes to is what one has seen. It is not carried over to a session that is resumed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Remembered:
    """An answer that holds: to which kind of question, about what, which choice, and the question that it was given to."""

    kind: str
    subject: str
    choice: str
    approval_id: str


class Policy:
    """The answers that hold in one session."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], Remembered] = {}

    @property
    def answers(self) -> tuple[Remembered, ...]:
        """All of them, oldest first."""
        return tuple(self._answers.values())

    def answer(self, kind: str, subject: str) -> str:
        """Return the choice that holds for a question; empty when it must be asked."""
        found = self._answers.get((kind, subject))
        return found.choice if found is not None and subject else ""

    def remember(self, kind: str, subject: str, choice: str, approval_id: str) -> None:
        """Let an answer hold from now on. One about nothing in particular is not remembered."""
        if subject:
            self._answers[kind, subject] = Remembered(kind, subject, choice, approval_id)

    def forget(self, approval_id: str) -> bool:
        """Let the answer that was given to a question hold no longer. Returns whether it did."""
        found = next((key for key, each in self._answers.items() if each.approval_id == approval_id), None)
        if found is None:
            return False
        del self._answers[found]
        return True
