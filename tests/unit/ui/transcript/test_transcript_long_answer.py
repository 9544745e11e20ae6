"""A long answer of the past is read in a thread; rows stand for it until it is there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandbox_chat.ui.markdown import document as document_module
from sandbox_chat.ui.markdown.inline import GrowingInline
from sandbox_chat.ui.markdown.parser import BlockParser
from sandbox_chat.ui.transcript.answer import AnswerBlock
from sandbox_chat.ui.transcript.blocks import Block
from sandbox_chat.ui.transcript.layout import Layout
from sandbox_chat.ui.transcript.scene import Scene
from sandbox_chat.ui.transcript.storage import Storage

MIXED = "".join(
    f"## Part {number}\n\nSome **bold** words and `code`.\n\n- an item\n  - another\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\n"
    for number in range(1200)
)
LONG_TEXTS = {
    "mixed": MIXED,
    "paragraph": "word and *more* " * 6000,
    "table": "| a | b |\n|---|---|\n" + "| 1 | some words **x** |\n" * 4000,
    "fence": "```python\n" + "x = foo(1, 'two')  # three\n" * 4000 + "```\n",
    "in the middle": MIXED[:20000] + "\n\n" + "word and *more* " * 6000 + "\n\n" + MIXED[:20000],
}


@pytest.fixture
def on_the_loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Characters that the main thread has read at once."""
    sizes: list[int] = []

    def counting(real: Callable[..., Any]) -> Callable[..., Any]:
        def counted(self: Any, text: str, *given: Any, **named: Any) -> Any:
            if threading.current_thread() is threading.main_thread():
                sizes.append(len(text))
            return real(self, text, *given, **named)

        return counted

    monkeypatch.setattr(BlockParser, "feed", counting(BlockParser.feed))
    monkeypatch.setattr(GrowingInline, "update", counting(GrowingInline.update))
    yield sizes


class Stage:
    """A layout over blocks whose texts come by threads."""

    def __init__(self, *texts: str) -> None:
        scene = Scene()
        self.blocks: list[Block] = [
            AnswerBlock(scene, f"answer-{number}", text, finished=True) for number, text in enumerate(texts)
        ]
        self._calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self.storage = Storage(scene.spill, 1 << 30, later=self._later, arrived=self._came)
        scene.want = self.storage.want
        self.layout = Layout(self.blocks)
        self.layout.resize(80, 30)
        self.layout.changed(range(len(self.blocks)))

    def _later(self, call: Callable[..., Any], *values: Any) -> None:
        self._calls.append((call, values))

    def _came(self, blocks: Any) -> None:
        self.layout.changed([self.blocks.index(block) for block in blocks], counted=False)

    def seen(self) -> list[str]:
        return [strip.text.rstrip() for _, _, strip in self.layout.visible()]

    def settled(self) -> list[str]:
        """Return what is seen when all has come."""
        while True:
            rows = self.seen()
            for thread in threading.enumerate():
                if thread.name == "transcript-in":
                    thread.join()
            if not self._calls:
                return rows
            calls, self._calls = self._calls, []
            for call, values in calls:
                call(*values)


@pytest.mark.parametrize("name", LONG_TEXTS)
def test_it_is_not_read_on_the_loop(name: str, on_the_loop: list[int]) -> None:
    text = LONG_TEXTS[name]
    stage = Stage("before", text)
    waiting = stage.seen()
    assert "".join(waiting).strip(" .…") == "reading it back"
    end = stage.settled()
    stage.layout.go(0)
    start = stage.settled()
    assert "before" in start
    assert max(on_the_loop) <= document_module.LARGE
    plain = AnswerBlock(Scene(), "a", text, finished=True)
    assert [strip.text.rstrip() for strip in plain.rows(80)][-30:] == end


def test_what_is_read_does_not_move_when_it_comes() -> None:
    stage = Stage(MIXED, "\n\n".join(f"line {number}" for number in range(40)))
    stage.settled()
    stage.layout.move(-51)  # the first one's end is at the top of the view
    before = stage.seen()
    after = stage.settled()
    assert "reading" in "".join(before[:5])
    assert before[10:] == after[10:]
    assert "│ 2" in "".join(after[:10])


def test_let_go_of_and_wanted_again_it_keeps_its_height() -> None:
    stage = Stage(MIXED)
    end = stage.settled()
    total = stage.layout.total
    block = stage.blocks[0]
    block.forget()
    assert block.absent
    assert block.height(80) == total
    assert stage.settled() == end


def test_what_stays_short_is_there_at_once() -> None:
    block = AnswerBlock(Scene(), "a", "short", finished=True)
    assert not block.absent
    block = AnswerBlock(Scene(), "b")
    block.append("word " * 10_000)
    assert not block.absent  # it grows: what came is read as it comes
    block.prepare_end(80, 10)
    block.finish()
    assert not block.absent
