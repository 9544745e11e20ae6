"""The script: answers in order, functions, and what happens when it is used up."""

from __future__ import annotations

from sandbox_chat.demo.reply import ErrorReply, Reply, Text
from sandbox_chat.demo.script import Script
from sandbox_chat.demo.wire import Message, Request

REQUEST = Request("m", (Message("user", "ping"),))


def test_steps_in_order() -> None:
    script = Script(["one", ErrorReply(429), lambda request: f"you said {request.prompt}"])
    assert script.left == 3
    assert script.reply(REQUEST) == Reply((Text("one"),))
    assert script.reply(REQUEST) == ErrorReply(429)
    assert script.reply(REQUEST) == Reply((Text("you said ping"),))
    assert script.left == 0
    assert len(script.requests) == 3


def test_used_up() -> None:
    answer = Script([]).reply(REQUEST)
    assert isinstance(answer, ErrorReply)
    assert answer.status == 400
    assert answer.message == "The script has no reply for request 1."
    assert Script([], after="again").reply(REQUEST) == Reply((Text("again"),))


def test_function_for_all() -> None:
    script = Script(lambda request: request.prompt.upper())
    assert [script.reply(REQUEST), script.reply(REQUEST)] == [Reply((Text("PING"),))] * 2


def test_probes_use_up_nothing() -> None:
    probe = Request("other", (Message("user", "Hi"),), max_tokens=1)
    script = Script(["one"])
    assert script.reply(probe) == Reply((Text("Hi"),))
    assert script.requests == []
    assert script.left == 1
    assert Script([], probe=ErrorReply(404)).reply(probe) == ErrorReply(404)


def test_add() -> None:
    script = Script([])
    script.add("late")
    assert script.reply(REQUEST) == Reply((Text("late"),))
