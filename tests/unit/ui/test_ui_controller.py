"""The chat without a screen: what is sent when, what waits, what comes back."""

from __future__ import annotations

from support.screen import PlayedEngine, tool_started, turn_finished

from sandbox_chat import events as ev
from sandbox_chat.settings import Settings
from sandbox_chat.ui.controller import Chat


class Desk:
    """A chat with a played engine whose events are delivered at once."""

    def __init__(self, attach: bool = True) -> None:
        self.restored: list[str] = []
        self.events: list[ev.Event] = []
        self.chat = Chat(restored=self.restored.append)
        self.engine = PlayedEngine(Settings(), self.events.append)
        if attach:
            self.chat.attach(self.engine)
            self.engine.start()
            self.deliver()

    def deliver(self) -> None:
        batch, self.events[:] = list(self.events), []
        self.chat.apply(batch)
        if self.events:
            self.deliver()


def test_a_prompt_goes_out_at_once_when_idle() -> None:
    desk = Desk()
    assert desk.chat.submit("one")
    assert desk.engine.prompts == ["one"]
    assert desk.chat.busy, "also before the engine's first word"


def test_prompts_wait_and_run_one_by_one_in_order() -> None:
    desk = Desk()
    for text in ("one", "two", "three"):
        desk.chat.submit(text)
    desk.deliver()
    assert (desk.engine.prompts, desk.chat.waiting) == (["one"], ["two", "three"])
    desk.engine.finish()
    desk.deliver()
    assert (desk.engine.prompts, desk.chat.waiting) == (["one", "two"], ["three"])
    desk.engine.finish()
    desk.deliver()
    assert (desk.engine.prompts, desk.chat.waiting) == (["one", "two", "three"], [])


def test_a_waiting_prompt_can_be_edited_and_another_dropped() -> None:  # case T13
    desk = Desk()
    for text in ("one", "two", "three"):
        desk.chat.submit(text)
    assert desk.chat.take_back() == "three"
    assert desk.chat.take_back() == "two"
    desk.chat.submit("two, edited")
    desk.deliver()
    desk.engine.finish()
    desk.deliver()
    desk.engine.finish()
    desk.deliver()
    assert desk.engine.prompts == ["one", "two, edited"]
    assert desk.chat.take_back() is None


def test_a_prompt_before_the_engine_is_kept() -> None:
    desk = Desk(attach=False)
    assert desk.chat.submit("early")
    assert not desk.chat.submit("second")
    desk.chat.attach(desk.engine)
    assert desk.engine.prompts == ["early"]
    desk.deliver()
    desk.engine.finish()
    desk.deliver()
    assert desk.engine.prompts == ["early", "second"]


def test_a_file_before_the_engine_goes_before_the_prompt() -> None:
    desk = Desk(attach=False)
    order: list[str] = []
    desk.engine.attach = lambda path, target="": order.append(path) or path  # type: ignore[method-assign]
    desk.engine.send = lambda prompt: order.append(prompt) or "t"  # type: ignore[method-assign]
    assert desk.chat.attach_file("/x", "")
    desk.chat.submit("early")
    desk.chat.attach(desk.engine)
    assert order == ["/x", "early"]


def test_after_an_interruption_what_waits_is_held() -> None:
    desk = Desk()
    desk.chat.submit("one")
    desk.chat.submit("two")
    desk.deliver()
    assert desk.chat.interrupt()
    assert desk.chat.stopping
    desk.engine.finish(interrupted=True)
    desk.deliver()
    assert not desk.chat.stopping
    assert (desk.engine.prompts, desk.chat.held) == (["one"], "after the interruption")
    assert desk.chat.resume_waiting()
    assert desk.engine.prompts == ["one", "two"]


def test_a_new_prompt_lets_the_held_ones_go_first() -> None:
    desk = Desk()
    desk.chat.submit("one")
    desk.chat.submit("two")
    desk.deliver()
    desk.engine.finish(is_error=True)
    desk.deliver()
    assert desk.chat.held == "after the failure"
    desk.chat.submit("three")
    assert (desk.engine.prompts, desk.chat.waiting) == (["one", "two"], ["three"])


def test_an_unanswered_prompt_comes_back() -> None:
    desk = Desk()
    desk.chat.submit("one")
    desk.deliver()
    desk.engine.finish(is_error=True, error="The endpoint refused.")
    desk.deliver()
    assert desk.restored == ["one"]


def test_an_answered_or_interrupted_prompt_does_not_come_back() -> None:
    desk = Desk()
    desk.chat.submit("one")
    desk.deliver()
    desk.engine.emit(tool_started())
    desk.engine.finish(is_error=True)
    desk.deliver()
    desk.chat.submit("two")
    desk.deliver()
    desk.engine.finish(interrupted=True, is_error=True)
    desk.deliver()
    assert desk.restored == []


def test_replayed_events_do_nothing_but_change_the_state() -> None:
    desk = Desk()
    past = [
        ev.TurnStarted(turn_id="old", prompt="old"),
        turn_finished("old", is_error=True),
    ]
    desk.chat.apply(past, past=2)
    assert desk.restored == []
    assert desk.chat.state.turns[0].ended


def test_interrupting_nothing_is_nothing() -> None:
    desk = Desk()
    assert not desk.chat.interrupt()
    assert desk.engine.interrupts == 0


def test_typing_starts_the_sandbox_once() -> None:
    desk = Desk()
    for _ in range(3):
        desk.chat.typing()
    assert desk.engine.prestarts == 1


def test_the_model_is_changed_in_engine_and_state() -> None:
    desk = Desk()
    desk.chat.set_model("claude-x")
    assert (desk.engine.models, desk.chat.state.model) == (["claude-x"], "claude-x")


def test_a_session_that_ends_by_itself_gives_back_what_it_never_took() -> None:
    desk = Desk()
    desk.engine.send = lambda prompt: "lost"  # type: ignore[method-assign]
    desk.chat.submit("one")
    desk.engine.emit(ev.Status(component="agent", state="closed"), ev.SessionFinished())
    desk.deliver()
    assert desk.restored == ["one"]
    assert not desk.chat.busy
    desk.chat.submit("two")
    assert desk.restored == ["one", "two"], "there is nobody who could answer"
    assert not desk.chat.busy
