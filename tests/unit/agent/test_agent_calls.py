"""Tool calls: each told once, and what is kept of them does not grow."""

from __future__ import annotations

from sandbox_chat.agent import calls as module
from sandbox_chat.agent.calls import Calls
from sandbox_chat.events import TextContent

OK = (TextContent("ok"),)


def finish(calls: Calls, call_id: str) -> object:
    return calls.handler_finished(call_id, OK, is_error=False, interrupted=False, duration_ms=1)


def test_a_call_is_told_once_whoever_tells_first() -> None:
    calls = Calls()
    assert calls.started("a", "run_code", {}) is not None
    assert calls.handler_started("a", "run_code", {}) is None
    assert calls.handling == calls.open == ["a"]
    assert calls.result("a", OK, is_error=False) is None, "its handler tells the end"
    assert finish(calls, "a") is not None
    assert finish(calls, "a") is None
    assert calls.result("a", OK, is_error=False) is None
    assert calls.started("a", "run_code", {}) is None
    assert calls.handler_started("a", "run_code", {}) is None, "it has ended"
    assert calls.known("a") and calls.open == []


def test_a_call_without_a_handler_ends_by_its_result() -> None:
    calls = Calls()
    calls.started("a", "other", {})
    assert calls.handling == []
    assert calls.result("a", OK, is_error=True) is not None
    assert calls.result("a", OK, is_error=True) is None


def test_every_open_call_is_abandoned_and_none_that_has_ended() -> None:
    calls = Calls()
    for name in ("a", "b", "c"):
        calls.handler_started(name, "run_code", {})
    finish(calls, "b")
    assert [event.tool_use_id for event in calls.abandon(OK, interrupted=True)] == ["a", "c"]
    assert calls.open == []


def test_what_is_kept_has_a_bound_and_an_open_call_is_never_forgotten() -> None:
    calls = Calls()
    calls.handler_started("open", "run_code", {})
    for number in range(3 * module.KEPT):
        calls.handler_started(str(number), "run_code", {})
        finish(calls, str(number))
    assert calls.open == ["open"]
    kept = sum(calls.known(str(number)) for number in range(3 * module.KEPT))
    assert kept == module.KEPT
    assert calls.known(str(3 * module.KEPT - 1)), "the latest are"
    assert finish(calls, "open") is not None
