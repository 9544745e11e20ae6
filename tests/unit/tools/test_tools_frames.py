"""Data frames out of HTML."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.tools.frames import LONGEST, Frame, read_frame


def read(html: str, rows: int = 60, columns: int = 40, cell: int = 200) -> Frame | None:
    return read_frame(html, rows=rows, columns=columns, cell=cell)


def frame_of(data: pd.DataFrame, **limits: int) -> Frame:
    found = read(data._repr_html_(), **limits)
    assert found is not None
    return found


def test_a_data_frame() -> None:
    frame = frame_of(pd.DataFrame({"a": [1, 2], "b": ["x<y", "z &  w"]}))
    assert frame == Frame(("", "a", "b"), (("0", "1", "x<y"), ("1", "2", "z & w")), 2, 2, styled=False)


def test_a_named_index() -> None:
    data = pd.DataFrame({"a": [1]}, index=pd.Index(["r"], name="key"))
    assert frame_of(data)[:2] == (("key", "a"), (("r", "1"),))


def test_levels_of_columns_and_of_the_index() -> None:
    columns = pd.MultiIndex.from_product([["A", "B"], ["x", "y"]])
    index = pd.MultiIndex.from_tuples([("g", 1), ("g", 2)], names=["k", "n"])
    frame = frame_of(pd.DataFrame([[0, 1, 2, 3], [4, 5, 6, 7]], columns=columns, index=index))
    assert frame.columns == ("k", "n", "A · x", "A · y", "B · x", "B · y")
    assert frame.rows == (("g", "1", "0", "1", "2", "3"), ("", "2", "4", "5", "6", "7"))
    assert (frame.row_count, frame.column_count) == (2, 4)


def test_a_large_one_keeps_its_true_size() -> None:
    frame = frame_of(pd.DataFrame([[0] * 30] * 1000), rows=4, columns=5)
    assert (len(frame.rows), len(frame.columns)) == (4, 5)
    assert (frame.row_count, frame.column_count) == (1000, 30)


def test_polars() -> None:
    html = (
        "<div><style>\n.dataframe > thead > tr { text-align: right; }\n</style>\n"
        '<small>shape: (6_000, 2)</small><table border="1" class="dataframe"><thead><tr><th>a</th><th>b</th></tr>'
        "<tr><td>i64</td><td>str</td></tr></thead><tbody><tr><td>1</td><td>&quot;x&quot;</td></tr></tbody></table></div>"
    )
    assert read(html) == Frame(("a · i64", "b · str"), (("1", '"x"'),), 6000, 2, styled=False)


def test_a_styled_one_is_worth_a_look_itself() -> None:
    html = '<style>#T_1 {}</style><table id="T_1"><thead><tr><th>&nbsp;</th><th>a</th></tr></thead><tbody><tr><th>0</th><td>1</td></tr></tbody></table>'
    frame = read(html)
    assert frame is not None
    assert frame.styled
    assert frame.rows == (("0", "1"),)


@pytest.mark.parametrize("data", [pd.DataFrame(), pd.DataFrame({"a": []})])
def test_an_empty_one(data: pd.DataFrame) -> None:
    frame = read(data._repr_html_())
    assert frame is None or (frame.columns, frame.rows, frame.row_count, frame.column_count) == (
        ("", "a"),
        (),
        0,
        1,
    )


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<b>bold</b>",
        "<table><tr><td>1</td></tr></table><table></table>",
        "<table><tr><td><script>alert(1)</script></td></tr></table>",
        "<table><tr><td><img src=x></td></tr></table>",
        "<table><!-- x --><tr><td>1</td></tr></table>",
        "<table>" + "x" * LONGEST,
        "<table>",
    ],
)
def test_what_is_no_data_frame(html: str) -> None:
    assert read(html) is None


def test_cells_hold_nothing_that_acts() -> None:
    html = "<table><thead><tr><th>&#27;[2J\u202e</th></tr></thead><tbody><tr><td>&#x9b;31m[/</td></tr></tbody></table>"
    frame = read(html)
    assert frame is not None
    text = frame.columns[0] + frame.rows[0][0]
    assert not any(ord(sign) < 32 or 0x7F <= ord(sign) < 0xA0 or sign == "\u202e" for sign in text)
    assert "[/" in text


def test_cells_that_reach_far_stay_within_the_limits() -> None:
    frame = read(
        "<table>" + "<tr><td rowspan=99999 colspan=99999>x</td></tr>" * 500 + "</table>", rows=20, columns=7
    )
    assert frame is not None
    assert len(frame.rows) == 20
    assert {len(row) for row in frame.rows} == {7}


@given(
    st.lists(
        st.sampled_from(
            ["<table>", "</table>", "<thead>", "</thead>", "<tr>", "</tr>", "<td>", "<th colspan=3>", "<td rowspan=2>",
             "</td>", "x", "&amp;", "<", "'", '"', "<td a='", "<br>", " ", "<tbody>"]
        ),
        max_size=40,
    )
)  # fmt: skip
def test_any_html_gives_a_rectangle_or_nothing(parts: list[str]) -> None:
    frame = read("<table>" + "".join(parts).replace("<table>", ""), rows=5, columns=4, cell=10)
    if frame is not None:
        assert len(frame.rows) <= 5
        assert all(len(row) == len(frame.columns) for row in frame.rows)
        assert all(len(cell) <= 10 for row in frame.rows for cell in row)
