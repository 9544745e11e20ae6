"""Questions: one event when asked, one when answered, whatever ends them."""

from __future__ import annotations

import asyncio

import pytest

from sandbox_chat.events import ApprovalAnswered, ApprovalRequested, Choice, Event
from sandbox_chat.tools.asking import Approvals
from sandbox_chat.tools.context import Question

QUESTION = Question(
    kind="overwrite",
    question="Replace it?",
    detail="/here",
    choices=(Choice("replace", "r", "replace it"), Choice("no", "n", "leave it")),
    default="no",
    tool_use_id="u1",
)


async def test_an_answer_ends_the_waiting() -> None:
    events: list[Event] = []
    approvals = Approvals(events.append)
    task = asyncio.ensure_future(approvals.ask(QUESTION))
    await asyncio.sleep(0)
    [asked] = events
    assert isinstance(asked, ApprovalRequested)
    assert (asked.question, asked.detail, asked.tool_use_id) == ("Replace it?", "/here", "u1")
    approvals.answer("another", "replace")
    approvals.answer(asked.approval_id, "not offered")
    await asyncio.sleep(0)
    assert not task.done()
    approvals.answer(asked.approval_id, "replace")
    approvals.answer(asked.approval_id, "no")
    assert await task == "replace"
    assert events[1] == ApprovalAnswered(
        at=events[1].at, approval_id=asked.approval_id, choice="replace", by="user"
    )
    assert len(events) == 2


async def test_cancelling_withdraws_the_question() -> None:
    events: list[Event] = []
    task = asyncio.ensure_future(Approvals(events.append).ask(QUESTION))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert isinstance(events[-1], ApprovalAnswered)
    assert (events[-1].choice, events[-1].by) == ("", "cancelled")


async def test_two_questions_at_once() -> None:
    events: list[Event] = []
    approvals = Approvals(events.append)
    tasks = [asyncio.ensure_future(approvals.ask(QUESTION)) for _ in range(2)]
    await asyncio.sleep(0)
    first, second = (event.approval_id for event in events if isinstance(event, ApprovalRequested))
    approvals.answer(second, "no")
    approvals.answer(first, "replace", "option")
    assert await asyncio.gather(*tasks) == ["replace", "no"]
