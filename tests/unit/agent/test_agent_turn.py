"""When a turn of several prompts is over: at the result that covers the last of them."""

from __future__ import annotations

import asyncio
from typing import Any

from claude_agent_sdk import ResultMessage

from sandbox_chat.agent.turn import Turn


def result(*covered: str, steps: int = 1, **changes: Any) -> ResultMessage:
    values: dict[str, Any] = {
        "subtype": "success",
        "duration_ms": 1,
        "duration_api_ms": 1,
        "is_error": False,
        "num_turns": steps,
        "session_id": "s",
        "user_message_uuid": covered[0] if covered else None,
        "user_message_uuids": list(covered) or None,
    }
    return ResultMessage(**{**values, **changes})


def turn(*prompts: str) -> Turn:
    made = Turn("t", "p", asyncio.get_running_loop().create_future())
    made.sent = True
    for prompt in prompts:
        made.add(prompt)
    return made


async def test_one_prompt_ends_with_its_result() -> None:
    made = turn("a")
    assert not made.take(result("a"))
    assert made.result.done() and not made.steered


async def test_any_result_is_that_of_the_first_prompt() -> None:
    made = turn("a")
    assert not made.take(result())
    assert made.result.done()


async def test_a_prompt_that_was_taken_up_ends_with_the_same_result() -> None:
    made = turn("a", "b")
    assert made.steered
    assert not made.take(result("a", "b", steps=3))
    assert made.result.done() and made.steps == 0


async def test_a_prompt_that_waited_is_waited_for() -> None:
    made = turn("a", "b", "c")
    assert made.take(result("a", steps=2))
    assert made.takes_more
    assert made.take(result("c", steps=4))
    last = result("b")
    assert not made.take(last)
    assert made.result.result() is last
    assert made.steps == 6, "those before the last one"


async def test_when_nothing_more_comes_the_last_result_is_it() -> None:
    made = turn("a", "b")
    made.give_up_waiting()
    assert not made.result.done()
    first = result("a", steps=2)
    assert made.take(first)
    made.give_up_waiting()
    assert made.result.result() is first
    assert made.steps == 0
    assert not made.take(result("b")), "it is over"


async def test_a_stopped_turn_ends_with_the_next_result_and_takes_no_more() -> None:
    made = turn("a", "b")
    made.stopped.set()
    assert not made.takes_more
    assert not made.take(result("a"))
    assert made.result.done()


async def test_an_order_takes_no_prompt() -> None:
    made = turn("a")
    made.order = True
    assert not made.takes_more


async def test_it_is_waited_for_what_the_cli_has_taken_up() -> None:
    made = turn("a", "b")
    made.take(result("a", steps=2))
    made.goes_on = True
    made.give_up_waiting()
    assert not made.result.done()
    assert not made.take(result("b"))
    assert made.result.done()
    other = turn("a", "b", "c")
    other.goes_on = True
    other.take(result("a"))
    other.give_up_waiting()
    assert other.result.done(), "nothing has come since"
