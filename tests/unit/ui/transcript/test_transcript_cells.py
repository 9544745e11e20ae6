"""Wrapping by cells."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.wrap_reference import wrap_text

from sandbox_chat.ui.transcript import wrap as wrap_module
from sandbox_chat.ui.transcript.cells import (
    Run,
    expand_tabs,
    fit,
    fit_row,
    row_width,
    split_cells,
    width_of,
    wrap_code,
)
from sandbox_chat.ui.transcript.wrap import Wrapped, wrap

ODD = "a b  \n你好，世界（好）é👨\u200d👩\u200d👧❤\ufe0f🇩🇪\u0301"
STYLES = st.sampled_from([(), ("strong",)])
PARTS = st.lists(
    st.tuples(
        st.text(alphabet=st.sampled_from("ab c  \n.,世界（）。é👨\u200d👩❤\ufe0f\u0301—’\u200b"), max_size=40)
        | st.text(alphabet=st.sampled_from("ab  c\n"), max_size=40)
        | st.text(alphabet=st.sampled_from("ab 世，（)"), max_size=40),
        STYLES,
    ).filter(lambda part: bool(part[0])),
    max_size=4,
)
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


def test_a_closing_mark_stays_although_its_style_is_another() -> None:
    assert rows_text(wrap([Run("你好世界", ("strong",)), Run("，再見")], 8)) == ["你好世", "界，再見"]


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


def runs_of(parts: list[tuple[str, tuple[str, ...]]]) -> list[Run]:
    runs: list[Run] = []
    at = 0
    for text, names in parts:
        runs.append(Run(text, names, "", at))
        at += len(text)
    return runs


@settings(max_examples=150, deadline=None)
@given(PARTS, st.integers(2, 25))
def test_the_quick_ways_wrap_as_piece_by_piece(parts: list[tuple[str, tuple[str, ...]]], width: int) -> None:
    plain = "".join(text for text, _ in parts)
    rows = wrap(runs_of(parts), width)
    assert all(row_width(row) <= width for row in rows)
    assert rows_text(wrap([Run(plain)], width)) == wrap_text(plain, width)
    if not {"\u200d", "\ufe0f", "\u0301"} & set(
        plain
    ):  # what joins two characters joins nothing over two styles
        assert rows_text(rows) == wrap_text(plain, width)
    for row in rows:
        for run in row:
            assert run.text == "?" or plain[run.at : run.at + len(run.text)] == run.text


def test_what_fits_is_never_split() -> None:
    text = "\u200d👨"  # its parts count for two cells, the whole for none
    assert split_cells(text, width_of(text)) == (text, "")


@settings(max_examples=150, deadline=None)
@given(PARTS, PARTS, PARTS, st.integers(2, 25))
@example([("aaa", ()), ("\u200d👨", ())], [], [], 2)
def test_what_grows_is_wrapped_as_at_once(
    base: list[tuple[str, tuple[str, ...]]],
    before: list[tuple[str, tuple[str, ...]]],
    after: list[tuple[str, tuple[str, ...]]],
    width: int,
) -> None:
    wrapped = Wrapped(width)
    wrapped.update(runs_of(base + before))
    old = list(wrapped.rows)
    stable = wrapped.update(runs_of(base + after), sum(len(text) for text, _ in base))
    assert wrapped.rows == wrap(runs_of(base + after), width)
    assert wrapped.rows[:stable] == old[:stable]


def test_only_the_last_rows_are_wrapped_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = wrap_module._Layout.run
    monkeypatch.setattr(
        wrap_module._Layout,
        "run",
        lambda self, runs: (seen.append(sum(len(run.text) for run in runs)), real(self, runs))[1],
    )
    wrapped = Wrapped(40)
    text = ""
    for word in ("plain words and ", "一些中文，", "x" * 100, "👨\u200d👩 é\u0301 ") * 100:
        before = len(text)
        text += word
        stable = wrapped.update([Run(text, (), "", 0)], before)
        assert stable >= len(wrapped.rows) - 6
    assert max(seen) < 400


def test_every_character_of_the_quick_ways_has_the_cells_that_they_count() -> None:
    for code in range(0x20, 0x10000):
        char = chr(code)
        if wrap_module._MEASURED.match(char):
            assert width_of(char) == (2 if char >= wrap_module._FIRST_WIDE else 1), hex(code)
        if wrap_module._NARROW.match(char):
            assert width_of(char) == 1, hex(code)


def test_cutting_a_long_word_takes_linear_steps() -> None:
    text = "é\u0301" * 30_000
    rows = wrap([Run(text)], 20)
    assert "".join(rows_text(rows)) == text


def test_runs_of_code_know_where_they_stand() -> None:
    rows = wrap_code([Run("ab", ("x",), "", 5), Run("你好c", (), "", 7)], 3)
    assert [[(run.text, run.at) for run in row] for row in rows] == [[("ab", 5)], [("你", 7)], [("好c", 8)]]
