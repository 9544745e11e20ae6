"""The place in the transcript: heights, scrolling, following."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat import events as ev
from sandbox_chat.ui.transcript import Feed
from sandbox_chat.ui.transcript.answer import AnswerBlock
from sandbox_chat.ui.transcript.blocks import Block
from sandbox_chat.ui.transcript.cells import Row, Run
from sandbox_chat.ui.transcript.heights import Heights
from sandbox_chat.ui.transcript.layout import Layout, locate, text_at
from sandbox_chat.ui.transcript.scene import Scene


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_heights_are_sums(values: list[int], rnd: random.Random) -> None:
    heights = Heights(values)
    for _ in range(10):
        index = rnd.randrange(len(values))
        values[index] = rnd.randrange(6)
        heights.set(index, values[index])
        assert heights.total == sum(values)
        assert [heights.offset(i) for i in range(len(values))] == [
            sum(values[:i]) for i in range(len(values))
        ]
        for row in range(sum(values)):
            block, inner = heights.find(row)
            assert sum(values[:block]) + inner == row
            assert inner < values[block]


def test_no_heights_and_rows_outside() -> None:
    assert Heights().find(3) == (0, 0)
    heights = Heights([2, 0, 3])
    assert heights.find(-5) == (0, 0)
    assert heights.find(99) == (2, 2)


def make(count: int = 40, width: int = 40, height: int = 10) -> tuple[Feed, Layout]:
    feed = Feed()
    for number in range(count):
        feed.apply(ev.Text(text=f"{number} " + "word " * (number % 23)))
    layout = Layout(feed.blocks)
    layout.resize(width, height)
    layout.changed(feed.take_changed())
    return feed, layout


def text(layout: Layout) -> list[str]:
    return [strip.text.rstrip() for _, _, strip in layout.visible()]


def everything(feed: Feed, width: int = 40) -> list[str]:
    return [row.text.rstrip() for block in feed.blocks for row in block.rows(width)]


def test_it_follows_the_end() -> None:
    feed, layout = make()
    assert layout.following
    assert text(layout) == everything(feed)[-10:]
    feed.apply(ev.Text(text="last"))
    layout.changed(feed.take_changed())
    assert text(layout)[-1] == "last"


def test_moving_goes_through_every_row() -> None:
    feed, layout = make()
    whole = everything(feed)
    for back in range(1, len(whole) - 9):
        layout.move(-1)
        assert text(layout) == whole[len(whole) - 10 - back : len(whole) - back]
    assert layout.top == 0
    layout.move(-3)
    assert layout.top == 0
    for down in range(1, len(whole) - 9):
        layout.move(1)
        assert text(layout) == whole[down : down + 10]
    assert layout.following


def test_scrolled_up_it_holds_still_and_counts() -> None:
    feed, layout = make()
    layout.move(-20)
    before = text(layout)
    assert not layout.following
    for number in range(5):
        feed.apply(ev.TextDelta(text=f"line {number}\n\n"))
        layout.changed(feed.take_changed())
        assert text(layout) == before
    assert layout.unseen == 10
    layout.go_end()
    assert layout.unseen == 0
    assert text(layout)[-1] == "line 4"


def test_a_change_above_does_not_move_the_view() -> None:
    feed, layout = make()
    layout.move(-5)
    before = text(layout)
    feed.blocks[2].hide()
    layout.changed([2])
    assert text(layout) == before


def test_a_new_width_keeps_the_block_in_place() -> None:
    feed, layout = make()
    layout.go(layout.total // 2)
    block = next(layout.visible())[0]
    layout.resize(80, 10)
    assert next(layout.visible())[0] == block
    layout.resize(40, 10)
    assert next(layout.visible())[0] == block
    layout.go_end()
    assert text(layout) == everything(feed)[-10:]


def test_a_large_history_is_not_drawn() -> None:
    feed = Feed()
    for number in range(5000):
        feed.apply(ev.Text(text=f"message {number}\n\n- a\n- b"))
    layout = Layout(feed.blocks)
    layout.resize(80, 30)
    layout.changed(feed.take_changed())
    drawn = sum(1 for block in feed.blocks if block._key is not None)
    assert drawn < 40
    layout.go(0)
    assert text(layout)[0] == "message 0"
    layout.resize(60, 30)
    assert text(layout)[0] == "message 0"
    assert sum(1 for block in feed.blocks if block._key is not None) < 100


def test_show_brings_a_block_into_view() -> None:
    feed, layout = make()
    for index in (0, 20, 39, 5):
        layout.show(index)
        assert index in {item[0] for item in layout.visible()}
    assert feed.blocks


def test_less_than_a_screen() -> None:
    feed, layout = make(count=2)
    assert layout.top == 0
    layout.move(-3)
    layout.move(2)
    assert layout.following
    assert layout.find(0) == (0, 0)
    assert layout.find(9) is None
    assert text(layout) == everything(feed)


def test_nothing_at_all() -> None:
    layout = Layout([])
    layout.resize(40, 10)
    layout.move(1)
    layout.go(5)
    layout.go_end()
    assert text(layout) == []
    assert layout.find(0) is None


@given(st.lists(st.integers(0, 6), min_size=1, max_size=25), st.booleans())
def test_the_view_may_move_before_it_is_told_of_new_blocks(steps: list[int], at_end: bool) -> None:
    """Events are drawn a moment after they came; a key in that moment finds blocks that were never laid out."""
    feed, layout = make(8)
    if not at_end:
        layout.move(-5)
    for number, step in enumerate(steps):
        feed.apply(ev.Text(text=f"new {number} " + "word " * (number % 17)))
        match step:
            case 0:
                layout.go_end()
            case 1:
                layout.move(7)
            case 2:
                layout.move(-7)
            case 3:
                layout.go(layout.top + 3)
            case 4:
                layout.show(len(feed.blocks) - 1)
            case 5:
                layout.resize(40 + number % 2, 10)
            case _:
                layout.changed(feed.take_changed())
        assert len(text(layout)) <= layout.height
    layout.changed(feed.take_changed())
    layout.go_end()
    assert text(layout) == everything(feed, layout.width)[-layout.height :]


LACKING = (
    "> \n\n* \n\nsome words that wrap\n\n" * 12,
    "words\n\n" + "---\n\n" * 9 + "more words\n\n" + "- \n\n" * 9 + "the end",
    ("字" * 50 + "\n  - b\n\n* \n  \n>> qq\n\n```py\nx=1\n\n\n\n\n\n\ny\n```\n\n") * 5,
)


@pytest.mark.parametrize("text", LACKING)
@pytest.mark.parametrize("width", [12, 20, 40])
def test_a_place_is_found_among_rows_without_text(text: str, width: int) -> None:
    parts = AnswerBlock(Scene(), "a", text, finished=True).parts
    for part in range(parts):
        block = AnswerBlock(Scene(), "a", text, finished=True)
        if block.plain(part):
            row = locate(block, width, part, 0)
            assert text_at(block, width, row) == (part, 0)


class Shrinking(Block):
    """A block that turns out to be shorter when it is looked at."""

    size = 3
    asked = 0

    def height(self, width: int) -> int:
        del width
        return self.size

    def prepare(self, width: int, row: int, count: int) -> int:
        self.asked += 1
        assert self.asked < 100
        return super().prepare(width, row, count)

    def prepare_end(self, width: int, count: int) -> None:
        pass

    def row_source(self, width: int, row: int) -> tuple[int, Row]:
        del width
        self.size = 2
        return 0, [Run("x", at=row)]


def test_looking_for_a_place_ends_when_what_is_looked_at_shrinks() -> None:
    assert locate(Shrinking(Scene(), "a"), 40, 0, 9) == 1
