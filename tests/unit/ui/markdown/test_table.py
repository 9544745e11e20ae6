"""Tables that grow row by row."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox_chat.ui.markdown import table as table_module
from sandbox_chat.ui.markdown.table import TableRows
from sandbox_chat.ui.markdown.tree import Align, Leaf
from sandbox_chat.ui.transcript.cells import Row, row_width

ALIGNS: tuple[Align, ...] = ("left", "right", "center")


def table(*cells: tuple[str, ...], closed: bool = True, aligns: tuple[Align, ...] = ()) -> Leaf:
    return Leaf("table", cells=list(cells), aligns=aligns or ALIGNS[: len(cells[0])], closed=closed)


def texts(rows: Sequence[Row]) -> list[str]:
    return ["".join(run.text for run in row).rstrip() for row in rows]


def test_columns_are_as_wide_as_their_cells() -> None:
    leaf = table(("name", "n"), ("你好", "1"), ("**b**", "12345"))
    assert texts(TableRows(leaf).rows(40)) == ["name │     n", "─────┼──────", "你好 │     1", "b    │ 12345"]


def test_cells_that_are_too_wide_are_wrapped() -> None:
    rows = TableRows(table(("a", "b"), ("x", "word " * 20), aligns=("left", "left"))).rows(30)
    assert texts(rows)[2].startswith("x │ word word")
    assert len(rows) > 4
    assert all(row_width(row) <= 30 for row in rows)


def test_a_table_without_room_becomes_records() -> None:
    names = tuple(f"head {n}" for n in range(12))
    values = tuple(f"value {n}" for n in range(12))
    leaf = table(names, values, values, aligns=("left",) * 12)
    rows = texts(TableRows(leaf).rows(40))
    assert rows[0] == "head 0: value 0"
    assert len(rows) == 25
    assert set(rows[12]) == {"─"}


def test_a_head_alone_without_room_is_shown() -> None:
    names = tuple(f"head {n}" for n in range(12))
    leaf = table(names, closed=False, aligns=("left",) * 12)
    rows = TableRows(leaf)
    assert texts(rows.rows(30))[0].startswith("head 0 head 1")
    leaf.cells.append(names)
    rows.update(leaf)
    assert texts(rows.rows(30))[0] == "head 0: head 0"
    assert rows.stable == 0


CELLS = st.text(alphabet=st.sampled_from("ab 你*`，"), max_size=14).map(str.strip)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=9), st.integers(2, 60))
def test_a_table_that_grew_equals_one_made_at_once(lines: list[tuple[str, str, str]], width: int) -> None:
    leaf = Leaf("table", aligns=ALIGNS)
    grown = TableRows(leaf)
    before: list[Row] = []
    for line in lines:
        leaf.cells.append(line)
        grown.update(leaf)
        rows = grown.rows(width)
        assert list(rows[: grown.stable]) == before[: grown.stable]
        before = list(rows)
    leaf.closed = True
    grown.update(leaf)
    whole = TableRows(leaf)
    assert list(grown.rows(width)) == list(whole.rows(width))
    assert grown.plain == whole.plain
    for row in whole.rows(width):
        assert row_width(row) <= width
        for run in row:
            assert run.at < 0 or run.text == "?" or whole.plain[run.at :].startswith(run.text)


def test_a_new_row_lays_out_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    leaf = table(("name", "n"), closed=False)
    rows = TableRows(leaf)
    counted: list[int] = []
    real = table_module._Layout._line
    monkeypatch.setattr(
        table_module._Layout, "_line", lambda self, index: (counted.append(index), real(self, index))[1]
    )
    shown: list[Row] = []
    for number in range(300):
        leaf.cells.append((f"row {number}", "x" * (number // 10)))
        rows.update(leaf)
        del shown[rows.stable :]
        found = rows.rows(80)
        del shown[rows.stable :]
        shown.extend(found[len(shown) :])
    assert len(counted) < 300 * 6
    assert len(shown) == 302


def test_the_row_that_is_being_written_may_change_and_go() -> None:
    leaf = table(("a", "b"), ("1", "2"), closed=False)
    rows = TableRows(leaf)
    rows.rows(40)
    leaf.cells.append(("x" * 30, ""))
    rows.update(leaf)
    rows.rows(40)
    leaf.cells[-1] = ("x", "y")
    rows.update(leaf)
    assert texts(rows.rows(40))[-1].split() == ["x", "│", "y"]
    leaf.cells.pop()
    leaf.closed = True
    rows.update(leaf)
    assert texts(rows.rows(40)) == ["a │ b", "──┼──", "1 │ 2"]


def test_the_text_is_cells_between_tabs() -> None:
    leaf = table(("a", "**b**"), ("[l](http://x)", "&#10;c"))
    assert TableRows(leaf).plain == "a\tb\nl\t c"


def test_hostile_cells_stay_text() -> None:
    leaf = table(("[bold]", "&#27;[2J"), ("[@click=app.quit]x[/]", "&#x202e;"))
    shown = "\n".join(texts(TableRows(leaf).rows(80)))
    assert "[@click=app.quit]x[/]" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@pytest.mark.parametrize("width", [0, 1, 2, 3, 5, 8])
def test_hardly_any_room(width: int) -> None:
    leaf = table(("name", "n", "你好"), ("x", "1", "世界"))
    assert all(row_width(row) <= max(width, 2) for row in TableRows(leaf).rows(width))
