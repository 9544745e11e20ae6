"""Questions to the user: asked by an event, answered by a command, from any part of the program."""

from __future__ import annotations

import asyncio
import logging
import uuid

from sandbox_chat.events import ApprovalAnswered, ApprovalForgotten, ApprovalRequested, Sink
from sandbox_chat.text import clean
from sandbox_chat.tools.context import Question
from sandbox_chat.tools.policy import Policy

log = logging.getLogger(__name__)


class Approvals:
    """The questions that are open. ``emit`` takes the events. All methods belong to one loop.

    ``policy`` holds the answers that were given for the rest of the session.
    """

    def __init__(self, emit: Sink) -> None:
        self.policy = Policy()
        self._emit = emit
        self._open: dict[str, tuple[Question, asyncio.Future[tuple[str, str]]]] = {}

    async def ask(self, question: Question) -> str:
        """Ask, and wait without limit for the name of the chosen answer. Cancelling withdraws the question.

        An answer that holds for the session is returned at once.
        """
        if known := self.policy.answer(question.kind, question.subject):
            return known
        approval_id = uuid.uuid4().hex[:12]
        answer: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
        self._open[approval_id] = (question, answer)
        self._emit(
            ApprovalRequested(
                approval_id=approval_id,
                kind=question.kind,
                question=clean(question.question),
                detail=clean(question.detail),
                choices=question.choices,
                default=question.default,
                tool_use_id=question.tool_use_id,
                subject=clean(question.subject),
                lasting=question.lasting,
            )
        )
        choice, by = "", "cancelled"
        try:
            choice, by = await answer
        finally:
            del self._open[approval_id]
            self._emit(ApprovalAnswered(approval_id=approval_id, choice=choice, by=by))
        return choice

    def answer(self, approval_id: str, choice: str, by: str = "user") -> None:
        """Answer a question. One that is not open any more, and a choice that was not offered, change nothing.

        A choice that holds for the session answers every open question about the same.
        """
        question, answer = self._open.get(approval_id, (None, None))
        if question is None or answer is None or answer.done():
            return
        if choice not in {each.name for each in question.choices}:
            log.warning("an answer that was not offered was ignored")
            return
        answer.set_result((choice, by))
        if choice not in question.lasting or not question.subject:
            return
        self.policy.remember(question.kind, question.subject, choice, approval_id)
        for other, waits in self._open.values():
            if not waits.done() and (other.kind, other.subject) == (question.kind, question.subject):
                waits.set_result((choice, "remembered"))

    def forget(self, approval_id: str) -> None:
        """Let the answer that was given to a question hold no longer: the same is asked again the next time."""
        if self.policy.forget(approval_id):
            self._emit(ApprovalForgotten(approval_id=approval_id))
