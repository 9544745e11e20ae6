"""What holds for a session, from its events alone."""

from __future__ import annotations

from sandbox_chat.allowed import Allowed
from sandbox_chat.events import (
    ApprovalAnswered,
    ApprovalForgotten,
    ApprovalRequested,
    Choice,
    SessionStarted,
)


def asked(approval_id: str, subject: str = "/a") -> ApprovalRequested:
    return ApprovalRequested(
        approval_id=approval_id,
        kind="overwrite",
        question="Replace it?",
        detail="",
        choices=(
            Choice("once", "o", "this once"),
            Choice("session", "s", "all session"),
            Choice("no", "n", "no"),
        ),
        default="no",
        subject=subject,
        lasting=("session",),
    )


def answered(approval_id: str, choice: str, by: str = "user") -> ApprovalAnswered:
    return ApprovalAnswered(approval_id=approval_id, choice=choice, by=by)


def held(allowed: Allowed) -> list[tuple[str, str]]:
    return [(question.subject, label) for question, label in allowed.answers.values()]


def test_only_what_lasts_is_held_and_it_goes_when_it_is_taken_back() -> None:
    allowed = Allowed()
    for event in (
        asked("1"),
        asked("2", "/b"),
        asked("3", ""),
        asked("4", "/a"),
        answered("1", "session"),
        answered("2", "once"),
        answered("3", "session"),
        answered("4", "session", "remembered"),
        answered("unknown", "session"),
    ):
        allowed.take(event)
    assert held(allowed) == [("/a", "all session")]
    allowed.take(ApprovalForgotten(approval_id="other"))
    assert held(allowed) == [("/a", "all session")]
    allowed.take(ApprovalForgotten(approval_id="1"))
    assert held(allowed) == []


def test_nothing_is_held_in_another_run() -> None:
    allowed = Allowed()
    for event in (asked("1"), asked("2", "/b"), answered("1", "session")):
        allowed.take(event)
    allowed.take(SessionStarted(session_id="s", model="", sandbox="local", demo=False))
    allowed.take(answered("2", "session"))
    assert held(allowed) == []
