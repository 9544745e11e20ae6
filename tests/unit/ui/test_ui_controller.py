"""The chat without a screen: what is sent when, what waits, what comes back."""

from __future__ import annotations

from support.screen import PlayedEngine, tool_started, turn_finished

from sandbox_chat import events as ev
from sandbox_chat.settings import Settings
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.queue import Prompt
from sandbox_chat.ui.tokens import Part


class Desk:
    """A chat with a played engine whose events are delivered at once."""

    def __init__(self, attach: bool = True) -> None:
        self.restored: list[str] = []
        self.free = True  # the composer is
        self.events: list[ev.Event] = []
        self.chat = Chat(restored=self._restored)
        self.engine = PlayedEngine(Settings(), self.events.append)
        if attach:
            self.chat.attach(self.engine)
            self.engine.start()
            self.deliver()

    def _restored(self, prompt: Prompt) -> bool:
        if self.free:
            self.restored.append(prompt.text)
        return self.free

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


def test_t13_the_second_is_edited_and_the_third_removed() -> None:
    desk = Desk()
    for text in ("one", "two", "three", "four"):
        desk.chat.submit(text)
    two, three, _ = (prompt.id for prompt in desk.chat.queue)
    assert desk.chat.queue.edit(two) is not None
    desk.chat.put_back([Part("text", "two, edited")])
    assert desk.chat.remove(three) is not None
    for _ in range(4):
        desk.deliver()
        desk.engine.finish()
    desk.deliver()
    assert desk.engine.prompts == ["one", "two, edited", "four"]
    assert desk.chat.waiting == []


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
    assert (desk.engine.chosen_models, desk.chat.state.model) == (["claude-x"], "claude-x")


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


def test_a_prompt_that_comes_back_while_another_is_written_waits_before_all() -> None:
    desk = Desk()
    desk.free = False
    for text in ("one", "two"):
        desk.chat.submit(text)
    desk.deliver()
    desk.engine.finish(is_error=True)
    desk.deliver()
    assert (desk.chat.waiting, desk.chat.held) == (["one", "two"], "after the failure")
    assert desk.engine.prompts == ["one"], "never twice by itself"
    desk.chat.resume_waiting()
    assert desk.engine.prompts == ["one", "one"]


def test_while_the_next_one_is_edited_nothing_goes_out() -> None:
    desk = Desk()
    for text in ("one", "two", "three"):
        desk.chat.submit(text)
    desk.deliver()
    desk.chat.queue.edit(next(iter(desk.chat.queue)).id)
    desk.engine.finish()
    desk.deliver()
    assert desk.engine.prompts == ["one"]
    desk.chat.put_back()
    assert desk.engine.prompts == ["one", "two"]


def test_files_of_a_prompt_are_attached_when_it_goes_out() -> None:
    desk = Desk()
    file = Part("file", "/w/f.csv", "f.csv", 3)
    desk.chat.submit("one")
    desk.chat.submit("@f.csv", [file])
    desk.deliver()
    assert desk.engine.attached == []
    desk.engine.finish()
    desk.deliver()
    assert desk.engine.attached == [("/w/f.csv", "")]
    assert desk.engine.prompts == ["one", "@f.csv"]


def test_what_an_earlier_run_left_does_not_go_out_with_a_new_prompt() -> None:
    desk = Desk()
    desk.chat.queue.bring([Prompt("old")])
    assert desk.chat.submit("new")
    desk.deliver()
    desk.engine.finish()
    desk.deliver()
    assert (desk.engine.prompts, desk.chat.waiting) == (["new"], ["old"])
    desk.chat.resume_waiting()
    assert desk.engine.prompts == ["new", "old"]


def test_what_waits_is_told_until_the_engine_has_taken_it() -> None:
    desk = Desk(attach=False)
    kept: list[list[str]] = []
    desk.chat.keep = lambda prompts: kept.append([prompt.text for prompt in prompts])
    desk.chat.submit("early")
    desk.chat.submit("second")
    assert kept[-1] == ["early", "second"]
    desk.chat.attach(desk.engine)
    assert kept[-1] == ["early", "second"]
    desk.deliver()
    assert kept[-1] == ["second"]
    desk.engine.finish()
    desk.deliver()
    assert kept[-1] == []


def test_a_prompt_that_was_given_after_the_order_to_stop_goes_on_by_itself() -> None:  # case T10
    desk = Desk()
    desk.chat.submit("one")
    desk.deliver()
    assert desk.chat.interrupt()
    assert not desk.chat.submit("two")
    desk.engine.finish(interrupted=True)
    desk.deliver()
    assert (desk.engine.prompts, desk.chat.held) == (["one", "two"], "")
    desk.chat.submit("three")
    desk.chat.interrupt()
    desk.engine.finish(interrupted=True)
    desk.deliver()
    assert (desk.engine.prompts, desk.chat.held) == (["one", "two"], "after the interruption")


def test_stopping_is_what_the_engine_says_too() -> None:
    desk = Desk()
    desk.chat.submit("one")
    desk.engine.emit(ev.Status(component="agent", state="interrupting"))
    desk.deliver()
    assert desk.chat.stopping
    desk.engine.finish(interrupted=True)
    desk.deliver()
    assert not desk.chat.stopping


def test_a_prompt_before_the_engine_can_be_taken_back() -> None:
    desk = Desk(attach=False)
    desk.chat.submit("early")
    assert desk.chat.interrupt()
    assert desk.restored == ["early"]
    assert not desk.chat.busy
    assert not desk.chat.interrupt()
    desk.chat.attach(desk.engine)
    assert desk.engine.prompts == []


def test_steering_goes_into_the_running_turn_only() -> None:
    desk = Desk()
    assert not desk.chat.steer("to nobody")
    desk.chat.submit("one")
    desk.deliver()
    assert desk.chat.steer("and two")
    desk.deliver()
    assert (desk.engine.prompts, desk.engine.steers, desk.chat.waiting) == (["one"], ["and two"], [])
    desk.chat.interrupt()
    assert not desk.chat.steer("too late")
    desk.engine.finish(interrupted=True)
    desk.deliver()
    assert not desk.chat.busy


def test_what_is_sent_again_is_a_prompt_and_no_order() -> None:
    desk = Desk()
    assert not desk.chat.retry()
    for prompt in ("one", "/compact", "/compact the numbers"):
        desk.chat.submit(prompt)
        desk.deliver()
        desk.engine.finish()
        desk.deliver()
    assert desk.chat.retry()
    assert desk.engine.prompts[-1] == "one"


def left_waiting(last: str, *texts: str, held: str = "") -> Desk:
    """A resumed session whose last prompt failed, and what an earlier run left in it."""
    desk = Desk()
    desk.chat.submit(last)
    desk.deliver()
    desk.engine.finish(is_error=True)
    desk.deliver()
    desk.engine.prompts.clear()
    desk.chat.queue.bring([Prompt(text) for text in texts])
    desk.chat.queue.hold(held)
    return desk


def run_dry(desk: Desk) -> list[str]:
    """What goes out while turn after turn ends."""
    desk.deliver()
    while desk.chat.busy:
        desk.engine.finish()
        desk.deliver()
    return desk.engine.prompts


def test_what_is_sent_again_brings_nothing_along_that_an_earlier_run_left() -> None:
    desk = left_waiting("one", "one", "two")
    assert desk.chat.retry()
    assert run_dry(desk) == ["one"]
    assert desk.chat.waiting == ["two"] and desk.chat.queue.left
    desk = left_waiting("one", "two", "one")
    assert desk.chat.retry()
    assert run_dry(desk) == ["one"]
    assert desk.chat.waiting == ["two", "one"]


def test_the_one_that_was_given_back_is_not_sent_twice() -> None:
    desk = Desk()
    desk.free = False
    desk.chat.submit("one")
    desk.chat.submit("after it")
    desk.deliver()
    desk.engine.finish(is_error=True)
    desk.deliver()
    desk.chat.queue.bring([Prompt("two")])
    assert desk.chat.waiting == ["two", "one", "after it"]
    desk.engine.prompts.clear()
    assert desk.chat.retry()
    assert run_dry(desk) == ["one", "after it"]
    assert desk.chat.waiting == ["two"]


def test_nothing_that_waits_goes_out_once_the_session_is_being_left() -> None:
    desk = Desk()
    for text in ("one", "two", "three"):
        desk.chat.submit(text)
    desk.deliver()
    desk.chat.queue.edit(next(iter(desk.chat.queue)).id)
    desk.chat.leave()
    desk.engine.finish()
    desk.deliver()
    desk.chat.put_back([Part("text", "two, half")])
    assert not desk.chat.resume_waiting()
    desk.deliver()
    assert desk.engine.prompts == ["one"]
    assert desk.chat.waiting == ["two, half", "three"]


def test_what_waits_is_kept_again_once_the_session_is_known() -> None:
    kept: list[list[str]] = []
    desk = Desk(attach=False)
    desk.chat.queue.bring([Prompt("old")])
    desk.chat.keep = lambda prompts: kept.append([prompt.text for prompt in prompts])
    desk.chat.attach(desk.engine)
    assert kept == [["old"]]
