"""The prompts that wait: in order, none lost, none twice, whatever is done with them."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from support.screen import PlayedEngine

from sandbox_chat import events as ev
from sandbox_chat.settings import Settings
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.queue import Prompt, Queue
from sandbox_chat.ui.tokens import Part

FILE = Part("file", "/w/my data.csv", "my data.csv", 3)


def filled(*texts: str) -> tuple[Queue, list[str]]:
    """A queue with a prompt for each text, and their ids."""
    queue = Queue()
    for text in texts:
        queue.add(Prompt(text))
    return queue, [prompt.id for prompt in queue]


def texts(queue: Queue) -> list[str]:
    return [prompt.text for prompt in queue]


def test_a_prompt_is_what_its_parts_write_out() -> None:
    prompt = Prompt.of([Part("text", "  look at "), FILE, Part("paste", "\nlong\n")])
    assert prompt.text == 'look at @"my data.csv"\nlong'
    assert prompt.files == ["/w/my data.csv"]
    assert prompt.draft == list(prompt.parts)
    assert Prompt("plain").draft == [Part("text", "plain")]


def test_they_go_out_in_order_and_each_once() -> None:
    queue, _ = filled("one", "two", "three")
    assert [queue.take() for _ in range(4)][:3] != [None] * 3
    queue, _ = filled("one", "two", "three")
    assert [prompt.text for _ in range(3) if (prompt := queue.take()) is not None] == ["one", "two", "three"]
    assert queue.take() is None


def test_one_that_waits_already_is_not_taken_twice() -> None:
    queue, _ = filled("one")
    [prompt] = queue
    queue.add(prompt)
    queue.add(prompt, first=True)
    assert queue.bring([prompt]) == 0
    assert texts(queue) == ["one"]


def test_moving_stops_at_the_ends() -> None:
    queue, ids = filled("one", "two", "three")
    assert queue.move(ids[2], -1)
    assert texts(queue) == ["one", "three", "two"]
    assert queue.move(ids[2], -9)
    assert texts(queue) == ["three", "one", "two"]
    assert not queue.move(ids[2], -1)
    assert queue.move(ids[2], 9)
    assert not queue.move("gone", 1)
    assert texts(queue) == ["one", "two", "three"]


def test_an_edited_prompt_keeps_its_place_and_holds_up_those_behind() -> None:
    queue, ids = filled("one", "two", "three")
    assert queue.edit(ids[1]) is not None
    assert queue.edit(ids[2]) is None, "another one is being edited"
    first = queue.take()
    assert first is not None and first.text == "one"
    assert queue.take() is None
    queue.put_back([Part("text", "two, edited")])
    assert [each.text for each in (queue.take(), queue.take()) if each] == ["two, edited", "three"]


def test_left_as_it_was_it_goes_out_as_it_was() -> None:
    queue, ids = filled("one")
    queue.edit(ids[0])
    queue.put_back()
    assert queue.editing == ""
    taken = queue.take()
    assert taken is not None and (taken.id, taken.text) == (ids[0], "one")


def test_editing_one_that_is_removed_is_over() -> None:
    queue, ids = filled("one", "two")
    queue.edit(ids[0])
    queue.remove(ids[0])
    assert queue.editing == ""
    queue.put_back([Part("text", "nothing")])
    assert texts(queue) == ["two"]


def test_what_an_earlier_run_left_goes_out_only_when_it_is_said() -> None:
    queue, _ = filled("new")
    assert queue.bring([Prompt("old", left=False)]) == 1
    assert queue.left and queue.due
    assert texts(queue) == ["old", "new"]
    taken = queue.take()
    assert taken is not None and taken.text == "new"
    assert queue.take() is None
    queue.go_on()
    assert queue.take() is None
    queue.go_on(left=True)
    taken = queue.take()
    assert taken is not None and (taken.text, taken.left) == ("old", False)


def test_nothing_is_held_when_nothing_waits() -> None:
    queue = Queue()
    queue.hold("why")
    assert queue.held == ""
    queue.add(Prompt("one"))
    queue.hold("why")
    assert queue.take() is None
    queue.remove(next(iter(queue)).id)
    assert queue.held == "", "the next prompt is not held for what was removed"


def test_each_change_is_told() -> None:
    told: list[int] = []
    queue = Queue(lambda: told.append(len(queue)))
    queue.add(Prompt("one"))
    queue.add(Prompt("two"))
    first, second = (prompt.id for prompt in queue)
    queue.move(second, -1)
    queue.edit(first)
    queue.put_back([Part("text", "1")])
    queue.hold("why")
    queue.go_on()
    queue.remove(second)
    queue.take()
    assert told == [1, 2, 2, 2, 2, 2, 2, 1, 0]
    assert queue.revision == len(told)


# -- random walks ------------------------------------------------------------------------------------------


class Walk:
    """A chat that is used at random. What was typed is in ``typed`` by a number that edits do not change."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.back: list[Prompt] = []
        self.events: list[ev.Event] = []
        self.kept: list[Prompt] = []
        self.chat = Chat(restored=self._restored, keep=self._keep)
        self.engine = PlayedEngine(Settings(), self.events.append)
        self.removed: list[str] = []
        self.typed = 0

    def _restored(self, prompt: Prompt) -> bool:
        if self.random.random() < 0.5:
            return False  # something else is being written
        self.back.append(prompt)
        return True

    def _keep(self, prompts: object) -> None:
        self.kept = list(prompts)  # type: ignore[call-overload]

    def deliver(self) -> None:
        while self.events:
            batch, self.events[:] = list(self.events), []
            self.chat.apply(batch)

    def some(self) -> str:
        """Id of a prompt that waits, or of none."""
        ids = [prompt.id for prompt in self.chat.queue]
        return self.random.choice(ids) if ids else "none"

    def step(self) -> None:
        chat, chance = self.chat, self.random
        match chance.randrange(12):
            case 0 | 1 | 2:
                self.typed += 1
                text = f"prompt {self.typed}"
                chat.submit(text, [Part("text", text)])
            case 3:
                chat.queue.edit(self.some())
            case 4:
                editing = chat.queue.find(chat.queue.editing)
                if editing is not None and chance.random() < 0.7:
                    chat.put_back([Part("text", f"{editing.text} edited")])
                else:
                    chat.put_back()
            case 5:
                chat.move(self.some(), chance.randrange(-3, 4))
            case 6:
                if (prompt := chat.remove(self.some())) is not None:
                    self.removed.append(prompt.text)
            case 7:
                chat.resume_waiting(left=chance.random() < 0.5)
            case 8 if self.back:
                again = self.back.pop()  # sent once more, by the user's word
                chat.submit(again.text, again.parts)
            case 9:
                self.typed += 1
                chat.queue.bring([Prompt(f"prompt {self.typed}")])
            case _ if self.engine.prompts and chat.state.busy:
                self.end_of_turn()
        self.deliver()

    def end_of_turn(self) -> None:
        how = self.random.randrange(4)
        if how == 0:
            self.engine.finish(is_error=True)
        elif how == 1:
            self.chat.interrupt()
            self.engine.finish(interrupted=True)
        else:
            self.engine.finish()


def numbers(prompts: list[str]) -> list[int]:
    return [int(prompt.split()[1]) for prompt in prompts]


@pytest.mark.parametrize("seed", range(60))
def test_a_random_walk_loses_none_and_sends_none_twice(seed: int) -> None:
    walk = Walk(seed)
    if walk.random.random() < 0.5:
        walk.chat.attach(walk.engine)
        walk.engine.start()
    for number in range(300):
        if number == 40 and walk.chat.engine is None:
            walk.chat.attach(walk.engine)
            walk.engine.start()
        walk.step()
        told = [prompt.text for prompt in walk.kept]
        assert told == [*walk.chat.unconfirmed, *walk.chat.waiting], "what is on disk is what waits"
    failed = [turn for turn in walk.chat.state.turns if turn.is_error and not turn.interrupted]
    waits = numbers([*walk.chat.waiting, *walk.chat.unconfirmed])
    back = numbers([prompt.text for prompt in walk.back])
    ended = numbers(walk.removed)
    sent = Counter(numbers(walk.engine.prompts))
    given = Counter(numbers([turn.prompt for turn in failed]))
    for number in range(1, walk.typed + 1):
        places = waits.count(number) + back.count(number) + ended.count(number)
        # Each time that it was sent it either failed, and was then given back, or is done with.
        assert sent[number] - given[number] + places == 1, number


@pytest.mark.parametrize("seed", range(20))
def test_without_edits_the_order_is_kept(seed: int) -> None:
    walk = Walk(seed)
    walk.chat.attach(walk.engine)
    walk.engine.start()
    for _ in range(200):
        if walk.random.random() < 0.5:
            walk.typed += 1
            walk.chat.submit(f"prompt {walk.typed}")
        elif walk.chat.state.busy:
            walk.engine.finish(interrupted=walk.random.random() < 0.3)
        else:
            walk.chat.resume_waiting()
        walk.deliver()
    assert numbers(walk.engine.prompts) == list(range(1, len(walk.engine.prompts) + 1))
