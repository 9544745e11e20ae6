"""Leaves of all kinds as rows: growing, changing, at any width."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox_chat.ui.markdown.leaves import leaf_rows
from sandbox_chat.ui.markdown.tree import Container, Leaf, LeafKind
from sandbox_chat.ui.transcript.cells import Row, row_width

PIECES = [
    "word ", "**bold** ", "*it", "alic* ", "`co", "de` ", "[li", "nk](http://x.org/y) ", "\n", "你好，世界。", "👨\u200d👩 ", "é\u0301 ",
    "a_b ", "~~x~~ ", "$x_1$ ", "\\", "*", "<b>", "</b>", "&amp; ", "http://x.org/a ", "x" * 50, "\t", "<!-- ",
]  # fmt: skip


def texts(rows: Sequence[Row]) -> list[str]:
    return ["".join(run.text for run in row) for row in rows]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES), max_size=24),
    st.lists(st.integers(1, 12), min_size=1, max_size=6),
    st.integers(2, 50),
    st.sampled_from(["paragraph", "heading", "html", "code"]),
)
def test_a_leaf_that_grew_equals_one_made_at_once(
    pieces: list[str], sizes: list[int], width: int, kind: LeafKind
) -> None:
    text = "".join(pieces).strip()
    leaf = Leaf(kind, level=2, info="python", fenced=True)
    grown = leaf_rows(leaf)
    before: list[Row] = []
    at = step = 0
    while at < len(text):
        at += sizes[step % len(sizes)]
        step += 1
        leaf.text = text[:at]
        grown.update(leaf)
        if step % 3 == 0:
            continue
        rows = grown.rows(width)
        assert all(row_width(row) <= width for row in rows)
        assert list(rows[: grown.stable]) == before[: grown.stable]
        before = list(rows)
        assert list(grown.rows(width)) == before
        assert grown.stable == len(before)
    leaf.text, leaf.closed = text, True
    grown.update(leaf)
    whole = leaf_rows(leaf)
    assert list(grown.rows(width)) == list(whole.rows(width))
    assert grown.plain == whole.plain
    for row in whole.rows(width):
        for run in row:
            assert run.at < 0 or run.text == "?" or whole.plain[run.at :].startswith(run.text)


@pytest.mark.parametrize("kind", ["paragraph", "code", "html", "heading"])
def test_rows_above_the_end_stay_while_a_leaf_grows(kind: LeafKind) -> None:
    leaf = Leaf(kind, level=1, info="python", fenced=True)
    rows = leaf_rows(leaf)
    line = (
        "some words of a line and **more** `code` x\n"
        if kind == "code"
        else "some words and **more** `code` x "
    )
    for number in range(1, 200):
        leaf.text = line * number
        rows.update(leaf)
        shown = rows.rows(60)
        assert number == 1 or rows.stable >= len(shown) - 6


def test_another_width_is_laid_out_anew() -> None:
    for kind in ("paragraph", "code", "html", "rule", "table"):
        leaf = Leaf(
            kind,
            text="some words in a row",
            closed=True,
            cells=[("some words",), ("in a row",)],
            aligns=("left",),
        )
        rows = leaf_rows(leaf)
        rows.rows(40)
        narrow = list(rows.rows(8))
        assert rows.stable == 0
        assert narrow == list(leaf_rows(leaf).rows(8))


def test_text_in_quotes_and_headings_has_their_style() -> None:
    quote = Container("quote")
    paragraph = leaf_rows(Leaf("paragraph", (Container("list", quote),), "x", closed=True))
    assert paragraph.rows(9)[0][0].names == ()
    paragraph = leaf_rows(Leaf("paragraph", (quote, Container("list", quote)), "x", closed=True))
    assert paragraph.rows(9)[0][0].names == ("quote",)
    assert leaf_rows(Leaf("heading", text="x", level=5)).rows(9)[0][0].names == ("heading-3",)


def test_a_paragraph_may_become_a_heading() -> None:
    leaf = Leaf("paragraph", text="x **y**")
    rows = leaf_rows(leaf)
    rows.rows(20)
    leaf.kind, leaf.level, leaf.closed = "heading", 1, True
    rows.update(leaf)
    assert all("heading-1" in run.names for run in rows.rows(20)[0])


def test_a_fence_may_get_its_language_late() -> None:
    leaf = Leaf("code", text="def f(): pass\n", info="py")
    rows = leaf_rows(leaf)
    rows.rows(20)
    leaf.info = "text"
    leaf.closed = True
    rows.update(leaf)
    assert {run.names for row in rows.rows(20) for run in row} == {("block",)}
    assert rows.fill == ("block",)


def test_a_link_is_defined_by_the_document() -> None:
    leaf = Leaf("paragraph", text="see [here][1] and [it]", closed=True)
    references = {"1": {"href": "https://x.org", "title": ""}, "IT": {"href": "/it", "title": ""}}
    rows = leaf_rows(leaf, references)
    assert [(run.text, run.href) for run in rows.rows(40)[0] if run.href] == [
        ("here", "https://x.org"),
        ("it", "/it"),
    ]
    assert rows.plain == "see here and it"


def test_rules_and_nothing() -> None:
    rule = leaf_rows(Leaf("rule"))
    assert texts(rule.rows(5)) == ["─────"]
    assert rule.rows(5)[0][0].at == -1
    empty = leaf_rows(Leaf("empty"))
    assert [list(row) for row in empty.rows(5)] == [[]]
    assert texts(leaf_rows(Leaf("paragraph", text="")).rows(5)) == [""]


def test_what_was_left_out_by_wrapping_is_in_the_plain_text() -> None:
    rows = leaf_rows(Leaf("paragraph", text="one two  three\nfour", closed=True))
    shown = rows.rows(5)
    assert texts(shown) == ["one", "two", "three", "four"]
    assert rows.plain == "one two  three\nfour"
    assert [row[0].at for row in shown] == [0, 4, 9, 15]


def test_html_is_shown_to_the_letter() -> None:
    leaf = Leaf("html", text="<b>[red]x[/red]</b>\n\t&#27; \x1b[2J", closed=True)
    rows = leaf_rows(leaf)
    assert texts(rows.rows(60)) == ["<b>[red]x[/red]</b>", "&#27; ␛[2J"]


@pytest.mark.parametrize("width", [0, 1, 2, 3])
def test_hardly_any_room(width: int) -> None:
    for kind in ("paragraph", "heading", "code", "html", "rule", "empty"):
        rows = leaf_rows(Leaf(kind, text="你好 word 👨\u200d👩", level=1, info="python", closed=True)).rows(
            width
        )
        assert all(row_width(row) <= max(width, 2) for row in rows)
