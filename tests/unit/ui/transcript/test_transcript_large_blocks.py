"""The place in the transcript when blocks are measured only in part."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from textual.strip import Strip

from sandbox_chat.ui.transcript.blocks import Block
from sandbox_chat.ui.transcript.cells import Row, Run
from sandbox_chat.ui.transcript.layout import Layout, locate
from sandbox_chat.ui.transcript.scene import Scene


class Large(Block):
    """A block of leaves. Until a leaf is looked at, its height is a guess."""

    kind = "large"

    def __init__(self, name: str, leaves: Sequence[tuple[int, int]]) -> None:
        super().__init__(Scene(), name)
        self.name = name
        self.leaves = list(leaves)
        """(true height at any width, guessed height) of each."""
        self.known: dict[int, set[int]] = {}

    def heights(self, width: int) -> list[int]:
        known = self.known.setdefault(width, set())
        return [true if n in known else guess for n, (true, guess) in enumerate(self.leaves)]

    def find(self, width: int, row: int) -> tuple[int, int]:
        for number, height in enumerate(self.heights(width)):
            if row < height:
                return number, row
            row -= height
        return len(self.leaves) - 1, self.heights(width)[-1] - 1

    def height(self, width: int) -> int:
        return sum(self.heights(width))

    def prepare(self, width: int, row: int, count: int) -> int:
        leaf, inner = self.find(width, max(0, row))
        known = self.known.setdefault(width, set())
        known.add(leaf)
        inner = min(inner, self.leaves[leaf][0] - 1)
        have, number = self.leaves[leaf][0] - inner, leaf + 1
        while have < count and number < len(self.leaves):
            known.add(number)
            have += self.leaves[number][0]
            number += 1
        return sum(self.heights(width)[:leaf]) + inner

    def prepare_end(self, width: int, count: int) -> None:
        known = self.known.setdefault(width, set())
        have, number = 0, len(self.leaves) - 1
        while have < count and number >= 0:
            known.add(number)
            have += self.leaves[number][0]
            number -= 1

    def strips(self, width: int, start: int, stop: int) -> Sequence[Strip]:
        out = []
        for row in range(start, stop):
            leaf, inner = self.find(width, row)
            assert leaf in self.known[width], "a row that nobody measured is drawn"
            out.append(_strip(f"{self.name}.{leaf}.{inner}"))
        return out

    def row_source(self, width: int, row: int) -> tuple[int, Row] | None:
        leaf, inner = self.find(width, row)
        return leaf, [Run(f"{leaf}.{inner}", at=10 * inner)]

    def estimate(self, width: int) -> int:
        return sum(guess for _, guess in self.leaves)

    def everything(self) -> list[str]:
        return [f"{self.name}.{n}.{i}" for n, (true, _) in enumerate(self.leaves) for i in range(true)]


def _strip(text: str) -> Strip:
    from rich.segment import Segment

    return Strip([Segment(text)])


LEAVES = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12)
BLOCKS = st.lists(LEAVES, min_size=1, max_size=6)


def make(blocks: list[list[tuple[int, int]]], height: int = 7) -> tuple[list[Block], Layout, list[str]]:
    items: list[Block] = [Large(str(number), leaves) for number, leaves in enumerate(blocks)]
    layout = Layout(items)
    layout.resize(40, height)
    whole = [row for item in items if isinstance(item, Large) for row in item.everything()]
    return items, layout, whole


def text(layout: Layout) -> list[str]:
    return [strip.text for _, _, strip in layout.visible()]


@settings(max_examples=40, deadline=None)
@given(BLOCKS)
def test_going_up_and_down_passes_every_row_once(blocks: list[list[tuple[int, int]]]) -> None:
    _, layout, whole = make(blocks)
    end = len(whole)
    assert text(layout) == whole[-7:]
    for back in range(1, max(1, end - 6)):
        layout.move(-1)
        assert text(layout) == whole[max(0, end - 7 - back) :][:7]
    layout.move(-5)
    assert text(layout) == whole[:7]
    assert layout.total == end
    for down in range(1, max(1, end - 6)):
        layout.move(1)
        assert text(layout) == whole[down : down + 7]
    assert layout.following


@settings(max_examples=40, deadline=None)
@given(BLOCKS, st.lists(st.integers(-12, 12), max_size=20), st.integers(0, 400))
def test_moves_are_exact_from_anywhere(
    blocks: list[list[tuple[int, int]]], moves: list[int], start: int
) -> None:
    _, layout, whole = make(blocks)
    layout.go(start)
    place = whole.index(text(layout)[0])
    for rows in moves:
        layout.move(rows)
        place = max(0, min(place + rows, len(whole) - 7))
        assert text(layout) == whole[place : place + 7]


@settings(max_examples=40, deadline=None)
@given(BLOCKS, st.integers(0, 400))
def test_a_new_width_keeps_what_is_read(blocks: list[list[tuple[int, int]]], start: int) -> None:
    _, layout, _ = make(blocks)
    layout.go(start)
    following, first = layout.following, text(layout)[0]
    layout.resize(50, 7)
    assert text(layout)[0] == first or following or layout.following
    while layout.guess(1):
        pass
    assert text(layout)[0] == first or following or layout.following


@settings(max_examples=40, deadline=None)
@given(LEAVES, st.data())
def test_a_place_in_the_text_is_found_again(leaves: list[tuple[int, int]], data: st.DataObject) -> None:
    block = Large("x", leaves)
    part = data.draw(st.integers(0, len(leaves) - 1))
    inner = data.draw(st.integers(0, leaves[part][0] - 1))
    row = locate(block, 40, part, 10 * inner + data.draw(st.integers(0, 9)))
    block.prepare(40, row, 1)
    assert block.find(40, row) == (part, inner)


@settings(max_examples=40, deadline=None)
@given(BLOCKS, st.integers(0, 100), st.integers(1, 5))
def test_what_grows_below_does_not_move_what_is_read(
    blocks: list[list[tuple[int, int]]], start: int, more: int
) -> None:
    items, layout, _ = make(blocks)
    layout.go(start)
    if layout.following:
        return
    before = text(layout)
    last = items[-1]
    assert isinstance(last, Large)
    for number in range(more):
        last.leaves.append((number + 1, 1))
        layout.changed([len(items) - 1])
        assert text(layout) == before
    layout.go_end()
    assert text(layout)[-1] == f"{last.name}.{len(last.leaves) - 1}.{more - 1}"


def test_what_was_seen_longest_ago_is_forgotten() -> None:
    items, layout, whole = make([[(5, 5)] * 10] * 40)
    forgotten: list[str] = []
    for item in items:
        item.forget = lambda name=item.id: forgotten.append(name)  # type: ignore[method-assign]
    for _ in range(400):
        layout.move(-7)
        layout.trim(300)
    assert len(forgotten) >= 30
    assert items[0].id not in forgotten
    assert text(layout) == whole[:7]
    assert items[39].id in forgotten
