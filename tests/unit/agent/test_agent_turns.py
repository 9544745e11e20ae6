"""What is told of a sandbox that was lost: once, where it belongs."""

from __future__ import annotations

import pytest

from sandbox_chat.agent.endpoint import Endpoint
from sandbox_chat.agent.ledger import Ledger
from sandbox_chat.agent.turns import Reporter
from sandbox_chat.events import Event, Notice
from sandbox_chat.settings import Secret, Settings
from sandbox_chat.tools.context import text_outcome

LOST = "The cloud has ended the sandbox (its time was over, or it was killed)."


class Desk:
    """A reporter whose events are kept."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        endpoint = Endpoint("", Secret(""), Secret("k"), "")
        self.report = Reporter(Settings(), endpoint, self.events.append, Ledger(resumed=False, earlier=None))

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]

    def start(self, call_id: str) -> None:
        self.report.tool_started(call_id, "mcp__sandbox__run_code", {"code": "1"})

    def finish(self, call_id: str, text: str) -> None:
        self.report.tool_finished(call_id, text_outcome(text, limit=5000), 3)


def test_a_loss_while_nothing_runs_is_said_at_once() -> None:
    desk = Desk()
    desk.report.sandbox_lost(LOST)
    [notice] = desk.notices
    assert notice.startswith(LOST) and "variables and files are gone" in notice


def test_a_loss_that_the_calls_result_does_not_say_is_said_after_it() -> None:
    desk = Desk()
    desk.start("u1")
    desk.report.sandbox_lost(LOST)
    assert desk.notices == []
    desk.finish("u1", "[success] True\n[note] This call ran in a new shell")
    assert len(desk.notices) == 1
    desk.start("u2")
    desk.finish("u2", "[success] True")
    assert len(desk.notices) == 1


@pytest.mark.parametrize("reason", [LOST, "The sandbox's Python ended. Its variables and files are lost."])
def test_a_loss_that_the_calls_result_says_is_not_said_twice(reason: str) -> None:
    desk = Desk()
    desk.start("u1")
    desk.report.sandbox_lost(reason)
    desk.finish("u1", f"[success] False\n[error]\nSandboxDied: {reason}")
    assert desk.notices == []
