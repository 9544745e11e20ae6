"""Texts of a long transcript wait on disk and come back."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from typing import Any

import pytest

from sandbox_chat.ui.transcript.answer import AnswerBlock
from sandbox_chat.ui.transcript.blocks import Block
from sandbox_chat.ui.transcript.keeper import Keeper
from sandbox_chat.ui.transcript.scene import Scene
from sandbox_chat.ui.transcript.search import search, snapshot
from sandbox_chat.ui.transcript.spill import Spill, Ticket
from sandbox_chat.ui.transcript.storage import Storage


def answers(count: int, scene: Scene | None = None) -> list[Block]:
    scene = scene or Scene()
    return [
        AnswerBlock(
            scene, f"answer-{number}", f"# Answer {number}\n\n" + "words **and** more\n" * 60, finished=True
        )
        for number in range(count)
    ]


class Loop:
    """Runs what threads hand over, when it is told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def later(self, call: Callable[..., Any], *values: Any) -> None:
        self.calls.append((call, values))

    def run(self) -> None:
        for _ in range(100):
            for thread in threading.enumerate():
                if thread.name.startswith("transcript-"):
                    thread.join()
            if not self.calls:
                return
            calls, self.calls = self.calls, []
            for call, values in calls:
                call(*values)


@pytest.mark.parametrize("text", ["", "plain", "你好 \ud83c 👩‍👩‍👧\n" * 1000])
def test_what_is_written_is_read_back_to_the_letter(text: str) -> None:
    spill = Spill()
    spill.write("before")
    ticket = spill.write(text)
    spill.write("after")
    assert ticket is not None
    assert spill.read(ticket) == text
    spill.close()
    with pytest.raises(OSError, match="nothing"):
        spill.read(ticket)
    assert spill.write("late") is None


def test_the_file_has_no_name(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spill = Spill()
    assert spill.write("x" * 1000) is not None
    assert list(tmp_path.iterdir()) == []
    spill.close()


def test_a_text_that_comes_and_goes_takes_its_place_once() -> None:
    spill = Spill()
    first = spill.write("a text\n" * 1000)
    other = spill.write("another text\n" * 1000)
    assert [spill.write("a text\n" * 1000) for _ in range(50)] == [first] * 50
    assert first is not None
    assert other is not None
    assert spill.read(first) == "a text\n" * 1000
    third = spill.write("a third")
    assert third is not None
    assert third.offset == first.length + other.length
    spill.close()


def test_a_ticket_beyond_the_end_is_an_error() -> None:
    spill = Spill()
    spill.write("short")
    with pytest.raises(OSError, match="too early"):
        spill.read(Ticket(2, 100))


def test_the_keeper_names_the_oldest_that_are_not_needed() -> None:
    blocks = answers(20)
    weight = blocks[0].weight
    keeper = Keeper(weight * 10)
    keeper.note(blocks, range(20))
    assert keeper.held == sum(block.weight for block in blocks)
    assert keeper.surplus(blocks, lambda index: index < 3)[:2] == [3, 4]
    keeper = Keeper(weight * 30)
    keeper.note(blocks, range(20))
    assert keeper.surplus(blocks, lambda index: False) == []


def test_growing_and_small_texts_stay() -> None:
    scene = Scene()
    growing = AnswerBlock(scene, "a")
    growing.append("x" * 5000)
    assert growing.weight == 0
    growing.finish()
    assert growing.weight == 5000
    assert AnswerBlock(scene, "b", "short", finished=True).weight == 0


def test_far_texts_go_to_disk_and_come_back_when_wanted() -> None:
    scene, loop = Scene(), Loop()
    blocks = answers(100, scene)
    texts = [block.text for block in blocks]
    shapes = [[strip.text for strip in block.rows(50)] for block in blocks]
    arrived: list[Block] = []
    storage = Storage(scene.spill, 20_000, later=loop.later, arrived=arrived.extend)
    scene.want = storage.want
    storage.note(blocks, range(100), lambda index: index >= 95)
    loop.run()
    away = [block for block in blocks if block.away]
    assert storage.keeper.held <= 20_000
    assert len(away) > 50
    assert not any(block.away for block in blocks[95:])
    assert blocks[0].away
    assert blocks[0].estimate(50) > 0
    assert len(blocks[0].strips(50, 0, 10)) == 10  # rows that stand for it
    loop.run()
    assert arrived == [blocks[0]]
    assert [strip.text for strip in blocks[0].rows(50)] == shapes[0]
    assert [block.text for block in blocks] == texts  # copying reads it, wherever it is
    assert [[strip.text for strip in (block.ensure(), block.rows(50))[1]] for block in blocks] == shapes


def test_a_block_that_changed_meanwhile_stays() -> None:
    scene, loop = Scene(), Loop()
    blocks = answers(5, scene)
    storage = Storage(scene.spill, 100, later=loop.later, arrived=lambda _: None)
    storage.note(blocks, range(5), lambda index: False)
    blocks[0].touch()
    for thread in threading.enumerate():
        if thread.name == "transcript-out":
            thread.join()
    call, values = loop.calls.pop(0)
    call(*values)
    assert not blocks[0].away
    assert blocks[1].away


def test_without_a_place_on_disk_all_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    scene, loop = Scene(), Loop()
    blocks = answers(10, scene)
    storage = Storage(scene.spill, 100, later=loop.later, arrived=lambda _: None)
    storage.note(blocks, range(10), lambda index: False)
    loop.run()
    assert not any(block.away for block in blocks)


def test_a_search_finds_what_is_on_disk() -> None:
    scene = Scene()
    blocks = answers(3, scene)
    for block in blocks:
        ticket = scene.spill.write(block.text)
        assert ticket is not None
        block.put_away(ticket)
    hits, more = search(snapshot(blocks), "answer 1")
    assert [(hit.block, hit.part, hit.start) for hit in hits] == [(1, 0, 0)]
    assert not more
    scene.spill.close()
    assert search(snapshot(blocks), "answer 1") == ([], False)
