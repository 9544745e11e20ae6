"""Selecting text in the transcript: places, what is copied, which cells are marked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.text import from_model
from sandbox_chat.ui.transcript.answer import AnswerBlock
from sandbox_chat.ui.transcript.blocks import Block, NoticeBlock, PromptBlock
from sandbox_chat.ui.transcript.cells import Run, row_width
from sandbox_chat.ui.transcript.scene import Scene
from sandbox_chat.ui.transcript.select import (
    Place,
    Selection,
    line_at,
    place_at,
    place_in_row,
    spans,
    word_at,
)

ROW = [Run("> "), Run("a你好b", ("strong",), at=5), Run("|"), Run("cd", at=9)]


def blocks(*prompts: str) -> list[Block]:
    out: list[Block] = [PromptBlock(Scene(), f"p{number}", text) for number, text in enumerate(prompts)]
    out[0].first = True
    return out


def at(items: list[Block], width: int, row: int, x: int, block: int = 0) -> Place:
    place = place_at(items, width, block, row, x)
    assert place is not None
    return place


def test_a_cell_is_a_character_and_never_half_of_one() -> None:
    assert [place_in_row(ROW, x) for x in range(8)] == [
        (5, 5), (5, 5), (5, 6), (6, 7), (6, 7), (7, 8), (7, 8), (8, 9),
    ]  # fmt: skip
    assert place_in_row(ROW, 8) == (9, 9)  # a mark between two texts
    assert place_in_row(ROW, 9) == (9, 10)
    assert place_in_row(ROW, 99) == (11, 11)
    assert place_in_row([Run("• ")], 0) is None


def test_a_grapheme_is_one_character() -> None:
    family = "👩‍👩‍👧"
    row = [Run(f"x{family}y", at=0)]
    assert place_in_row(row, 1) == (1, 1 + len(family))
    assert place_in_row(row, 2) == (1, 1 + len(family))
    assert place_in_row(row, 3) == (1 + len(family), 2 + len(family))


def test_marked_cells_are_those_of_the_characters() -> None:
    assert spans(ROW, 6, 8) == [(3, 7)]
    assert spans(ROW, 0, 5) == []
    assert spans(ROW, 0, 99) == [(2, 8), (9, 11)]
    assert spans(ROW, 8, 10) == [(7, 8), (9, 10)]


def test_what_is_copied_has_no_ends_of_rows_and_no_margin() -> None:
    items = blocks("the quick brown fox jumps over the lazy dog")
    selection = Selection(at(items, 12, 0, 2), at(items, 12, 3, 99))
    assert items[0].height(12) > 3
    text = selection.text(items)
    assert "\n" not in text
    assert text == "the quick brown fox jumps over the lazy dog"[: len(text)]
    whole = Selection(at(items, 12, 0, 0), at(items, 12, items[0].height(12) - 1, 99))
    assert whole.text(items) == items[0].text


def test_it_goes_over_several_blocks_and_backwards() -> None:
    items = blocks("first prompt", "second prompt", "third prompt")
    start, end = at(items, 40, 0, 8), at(items, 40, 1, 6, block=2)
    assert Selection(start, end).text(items) == "prompt\n\nsecond prompt\n\nthird"
    assert Selection(end, start).text(items) == "prompt\n\nsecond prompt\n\nthird"
    items[1].hide()
    assert Selection(start, end).text(items) == "prompt\n\nthird"
    assert Selection(start, end).within(1, 0) is not None
    assert Selection(start, end).within(3, 0) is None


def test_it_stays_when_the_rows_are_others() -> None:
    items = blocks("the quick brown fox jumps over the lazy dog")
    selection = Selection(at(items, 80, 0, 6), at(items, 80, 0, 10))
    assert selection.text(items) == "quick"
    for width in (8, 12, 40):
        marked = []
        for row in range(items[0].height(width)):
            source = items[0].row_source(width, row)
            if source is not None and (inside := selection.within(0, source[0])):
                text = "".join(run.text for run in source[1])
                marked += [text[start:end] for start, end in spans(source[1], *inside)]
        assert "".join(marked) == "quick"


def test_words_and_lines() -> None:
    items = blocks("say: naïve_word, twice\nand 你好 more")
    word = word_at(items, at(items, 60, 0, 9))
    assert Selection(word, word).text(items) == "naïve_word"
    sign = word_at(items, at(items, 60, 0, 5))
    assert Selection(sign, sign).text(items) == ":"
    line = line_at(items, at(items, 60, 1, 5))
    assert Selection(line, line).text(items) == "and 你好 more"


def test_a_row_without_text_gives_the_nearest() -> None:
    items = [*blocks("one", "two")]
    assert at(items, 20, 0, 5, block=1) == Place(1, 0, 0, 0)  # the empty row before it
    notice = NoticeBlock(Scene(), "n", "info", "")
    assert place_at([notice], 20, 0, 0, 3) in (None, Place(0, 0, 0, 0))


@given(
    st.text(st.sampled_from("ab 你ç👩‍ｗ\n\t"), min_size=1, max_size=60).filter(str.strip),
    st.integers(4, 30),
    st.data(),
)
def test_any_two_places_copy_what_stands_between_them(text: str, width: int, data: st.DataObject) -> None:
    items = blocks(from_model(text))
    height = items[0].height(width)
    rows = st.integers(0, height - 1)
    first = place_at(items, width, 0, data.draw(rows), data.draw(st.integers(0, width)))
    second = place_at(items, width, 0, data.draw(rows), data.draw(st.integers(0, width)))
    if first is None or second is None:
        return
    selection = Selection(first, second)
    plain = items[0].plain(0)
    copied = selection.text(items)
    assert copied == plain[min(first.at, second.at) : max(first.until, second.until)]
    marked = 0
    for row in range(height):
        source = items[0].row_source(width, row)
        if source is not None:
            inside = selection.within(0, 0)
            for start, end in spans(source[1], *inside) if inside else []:
                assert 0 <= start < end <= row_width(source[1])
                marked += end - start
    assert marked > 0 or not copied.strip(" \n\u200d")


def test_code_of_an_answer_is_copied_with_its_tabs() -> None:
    block = AnswerBlock(Scene(), "a", "A rule:\n\n```make\nall:\n\tcc x.c\n```\n\nand\tmore", finished=True)
    whole = Selection(Place(0, 0, 0, 1), Place(0, 2, 0, 8))
    assert "all:\n\tcc x.c" in whole.text([block])
