"""Answers that hold for a session: for exactly one kind and one subject, until they are taken back."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from sandbox_chat.events import ApprovalAnswered, ApprovalForgotten, ApprovalRequested, Choice, Event
from sandbox_chat.tools.asking import Approvals
from sandbox_chat.tools.context import Question
from sandbox_chat.tools.policy import Policy

QUESTION = Question(
    kind="overwrite",
    question="Replace it?",
    detail="/d/a.png",
    choices=(
        Choice("once", "o", "replace it"),
        Choice("session", "s", "replace it this session"),
        Choice("never", "v", "never"),
        Choice("no", "n", "leave it"),
    ),
    default="no",
    tool_use_id="u1",
    subject="/d/a.png",
    lasting=("session", "never"),
)


def test_an_answer_holds_for_its_kind_and_subject_alone() -> None:
    policy = Policy()
    policy.remember("overwrite", "/d/a.png", "session", "q1")
    assert policy.answer("overwrite", "/d/a.png") == "session"
    for kind, subject in (
        ("overwrite", "/d/a.png "),
        ("overwrite", "/d"),
        ("overwrite", "/d/A.png"),
        ("overwrite", ""),
        ("attach", "/d/a.png"),
        ("", "/d/a.png"),
    ):
        assert policy.answer(kind, subject) == "", (kind, subject)


def test_what_is_about_nothing_is_not_remembered() -> None:
    policy = Policy()
    policy.remember("overwrite", "", "session", "q1")
    assert policy.answers == ()
    assert policy.answer("overwrite", "") == ""


def test_each_can_be_taken_back() -> None:
    policy = Policy()
    policy.remember("overwrite", "/a", "session", "q1")
    policy.remember("overwrite", "/b", "never", "q2")
    assert [each.approval_id for each in policy.answers] == ["q1", "q2"]
    assert policy.forget("q1")
    assert not policy.forget("q1")
    assert policy.answer("overwrite", "/a") == ""
    assert policy.answer("overwrite", "/b") == "never"


class Desk:
    """Questions whose events are kept."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.approvals = Approvals(self.events.append)

    def asked(self) -> list[ApprovalRequested]:
        return [event for event in self.events if isinstance(event, ApprovalRequested)]

    def answered(self) -> list[tuple[str, str]]:
        return [(event.choice, event.by) for event in self.events if isinstance(event, ApprovalAnswered)]

    async def begin(self, question: Question = QUESTION) -> asyncio.Task[str]:
        task = asyncio.ensure_future(self.approvals.ask(question))
        await asyncio.sleep(0)
        return task


async def test_for_this_session_is_asked_once() -> None:
    for choice in ("session", "never"):
        desk = Desk()
        task = await desk.begin()
        desk.approvals.answer(desk.asked()[0].approval_id, choice)
        assert await task == choice
        assert await desk.approvals.ask(QUESTION) == choice
        assert len(desk.asked()) == 1
        other = await desk.begin(replace(QUESTION, subject="/d/b.png"))
        assert len(desk.asked()) == 2, "another file is asked about"
        other.cancel()


async def test_once_and_no_are_asked_again() -> None:
    desk = Desk()
    for number, choice in enumerate(("once", "no", "once")):
        task = await desk.begin()
        desk.approvals.answer(desk.asked()[number].approval_id, choice)
        assert await task == choice
    assert desk.approvals.policy.answers == ()


async def test_several_that_wait_about_the_same_are_answered_at_once() -> None:
    desk = Desk()
    tasks = [await desk.begin() for _ in range(3)]
    other = await desk.begin(replace(QUESTION, subject="/d/b.png"))
    desk.approvals.answer(desk.asked()[1].approval_id, "never")
    assert await asyncio.gather(*tasks) == ["never"] * 3
    assert sorted(desk.answered()) == [("never", "remembered"), ("never", "remembered"), ("never", "user")]
    assert not other.done()
    desk.approvals.answer(desk.asked()[3].approval_id, "once")
    assert await other == "once"


async def test_what_is_taken_back_is_asked_again_and_told_once() -> None:
    desk = Desk()
    task = await desk.begin()
    approval_id = desk.asked()[0].approval_id
    desk.approvals.answer(approval_id, "session")
    await task
    desk.approvals.forget("another")
    desk.approvals.forget(approval_id)
    desk.approvals.forget(approval_id)
    told = [event.approval_id for event in desk.events if isinstance(event, ApprovalForgotten)]
    assert told == [approval_id]
    again = await desk.begin()
    assert len(desk.asked()) == 2
    again.cancel()


async def test_nothing_in_a_question_acts_or_hides() -> None:
    desk = Desk()
    hostile = "rm -rf /\x1b[2K\r\u202etxt.exe\u2066\x00\u200b"
    task = await desk.begin(replace(QUESTION, question=hostile, detail=hostile, subject=hostile))
    [asked] = desk.asked()
    for text in (asked.question, asked.detail, asked.subject):
        assert text == "rm -rf /␛[2K␍<U+202E>txt.exe<U+2066>␀<U+200B>"
    task.cancel()
