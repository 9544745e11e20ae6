"""Wrapping by cells."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandbox_chat.ui.transcript.cells import (
    Run,
    expand_tabs,
    fit,
    fit_row,
    row_width,
    split_cells,
    width_of,
    wrap,
    wrap_code,
)

ODD = "a b  \n你好，世界（好）é👨\u200d👩\u200d👧❤\ufe0f🇩🇪\u0301"
TEXT = st.text(alphabet=st.sampled_from(ODD), max_size=80)


def rows_text(rows: list[list[Run]]) -> list[str]:
    return ["".join(run.text for run in row) for row in rows]


@given(TEXT, st.integers(2, 30))
def test_no_row_is_wider_than_the_width(text: str, width: int) -> None:
    for row in wrap([Run(text)], width):
        assert row_width(row) <= width


@given(TEXT, st.integers(2, 30))
def test_wrapping_loses_nothing_but_spaces(text: str, width: int) -> None:
    got = "".join(rows_text(wrap([Run(text)], width)))
    assert re.sub(r"[ \n]", "", got) == re.sub(r"[ \n]", "", text)


@given(TEXT.map(lambda text: text.replace("\n", "")), st.integers(2, 30))
@example("\u200d\u200d世a", 2)
def test_wrapping_code_keeps_every_character(text: str, width: int) -> None:
    rows = wrap_code([Run(text)], width)
    assert "".join(rows_text(rows)) == text
    assert all(row_width(row) <= width for row in rows)


def test_a_word_of_several_styles_stays_together() -> None:
    rows = wrap([Run("one "), Run("two", ("strong",)), Run("three four")], 9)
    assert rows_text(rows) == ["one", "twothree", "four"]


def test_cjk_is_broken_anywhere_but_not_before_a_closing_mark() -> None:
    assert rows_text(wrap([Run("你好世界，再見")], 8)) == ["你好世", "界，再見"]


def test_a_wide_character_is_never_cut() -> None:
    assert split_cells("你好", 3) == ("你", "好")
    assert fit("你好世界", 5) == "你好…"
    assert rows_text([fit_row([Run("ab"), Run("你好")], 4)]) == ["ab…"]
    assert width_of("❤\ufe0f") == 2


@pytest.mark.parametrize(
    ("text", "shown"), [("\tx", "    x"), ("ab\tx", "ab  x"), ("你\tx", "你  x"), ("a\n\tx", "a\n    x")]
)
def test_tabs_go_to_the_next_stop(text: str, shown: str) -> None:
    assert expand_tabs(text) == shown


def test_newlines_break_rows() -> None:
    assert rows_text(wrap([Run("a\n\nb")], 10)) == ["a", "", "b"]
    assert wrap([], 10) == [[]]
