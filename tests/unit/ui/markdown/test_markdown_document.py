"""A document in rows: what it looks like, that streaming makes no difference, and that only what is seen costs."""

from __future__ import annotations

import random
import subprocess
import sys
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.markdown_documents import ANSWER, chunkings, documents

from sandbox_chat.ui.markdown import document as document_module
from sandbox_chat.ui.markdown.document import MarkdownDocument
from sandbox_chat.ui.transcript.palette import Palette

PALETTE = Palette()
DOCUMENTS = documents()[:130]  # the small ones; every text goes through the parser in its own test
LONG = "\n".join(f"paragraph {n} " + "word " * (n % 37) + "\n\n- item\n- item two\n" for n in range(400))


def whole(document: MarkdownDocument, width: int = 40) -> list[Any]:
    """Return all rows, each as its text and styles."""
    document.prepare(width, 0, 1 << 30)
    strips = document.strips(width, PALETTE, 0, document.height(width))
    assert len(strips) == document.height(width)
    assert all(
        strip.cell_length == width == sum(segment.cell_length for segment in strip) for strip in strips
    )
    return [[(segment.text, segment.style) for segment in strip.simplify()] for strip in strips]


def show(text: str, width: int = 40) -> list[str]:
    rows = whole(MarkdownDocument(text, finished=True), width)
    return ["".join(part for part, _ in row).rstrip() for row in rows]


def streamed(pieces: list[str], width: int, every: int) -> MarkdownDocument:
    """Return a document that was looked at while it came."""
    document = MarkdownDocument()
    for number, piece in enumerate(pieces):
        document.append(piece)
        if number % every == 0:
            document.prepare_end(width, 12)
            height = document.height(width)
            start = max(0, height - 12)
            strips = document.strips(width, PALETTE, start, height)
            assert len(strips) == height - start
            assert all(strip.cell_length == width for strip in strips)
    document.finish("".join(pieces))
    return document


# -- what it looks like -----------------------------------------------------------------------------------


def test_the_kinds_of_blocks() -> None:
    assert show("# Title\n\ntext\nsecond row\n\n---\n\n> quote\n\n<b>x") == [
        "Title", "", "text", "second row", "", "─" * 40, "", "▎ quote", "", "<b>x",
    ]  # fmt: skip


def test_lists() -> None:
    text = "1. one\n2. two\n   - in\n     - deeper\n10. ten\n\n- [x] done\n- [ ] open\n"
    assert show(text) == [
        " 1. one", " 2. two", "    ◦ in", "      ▪ deeper", " 3. ten", "", "☑ done", "☐ open",
    ]  # fmt: skip
    assert show("9. a\n10. b\n   c") == [" 9. a", "10. b", "    c"]
    assert show("100. a\n101. b") == ["100. a", "101. b"]


def test_parts_of_an_item_keep_the_distance_of_the_source() -> None:
    assert show("- a\n\n- b\n- c") == ["• a", "", "• b", "• c"]
    assert show("- a\n  - b\n\n    c\n  - d\n\n  ```\n  x\n  ```") == [
        "• a",
        "  ◦ b",
        "",
        "    c",
        "  ◦ d",
        "",
        "   x",
    ]
    assert show("- a\n  ```\n  x\n  ```\n- b") == ["• a", "   x", "• b"]


def test_containers_in_each_other() -> None:
    assert show("> a\n>\n> - b\n>   c\n> > d\n\n- > e\n  > f\n-\n- # h") == [
        "▎ a", "▎", "▎ • b", "▎   c", "▎", "▎ ▎ d", "", "• ▎ e", "  ▎ f", "•", "• h",
    ]  # fmt: skip
    assert show("- - a\n  - b\n\n1. ```\n   x\n   ```") == ["• ◦ a", "  ◦ b", "", " 1.  x"]


def test_footnotes() -> None:
    assert show("a[^1]\n\n[^1]: note\n    more\n[^long]: other") == [
        "a[^1]",
        "",
        "[1] note",
        "    more",
        "[long] other",
    ]


def test_a_table_fits_its_columns() -> None:
    rows = show("| name | n |\n|:--|--:|\n| 你好 | 1 |\n| b | 12345 |")
    assert rows == ["name │     n", "─────┼──────", "你好 │     1", "b    │ 12345"]


def test_code_is_highlighted_and_keeps_its_spaces() -> None:
    rows = whole(MarkdownDocument("```python\ndef f():\n    return 'x'\n```", finished=True), 30)
    assert ["".join(text for text, _ in row).rstrip() for row in rows] == [" def f():", "     return 'x'"]
    assert ("def", PALETTE.style(("block", "tok-keyword"))) in rows[0]


def test_nothing_to_show() -> None:
    for text in ("", "\n\n", "   \n", "[a]: http://x.org\n"):
        assert show(text) == []
    empty = MarkdownDocument()
    empty.prepare_end(40, 10)
    assert (empty.prepare(40, 5, 5), empty.height(40), empty.row_source(40, 3), empty.plain(0)) == (
        0,
        0,
        (0, ()),
        "",
    )


@pytest.mark.parametrize(
    "hostile",
    [
        "[/",
        "[bold]",
        "-x-][/dim]",
        "[@click=app.quit]x[/]",
        "[red]a[/red] $primary {x}",
        "<script>x</script>",
    ],
)
def test_markup_of_others_is_shown_to_the_letter(hostile: str) -> None:
    assert show(f"say {hostile} now", 80) == [f"say {hostile} now"]
    assert show(f"```\n{hostile}\n```", 80) == [f" {hostile}"]
    assert show(f"- `{hostile}`", 80) == [f"• {hostile}"]


def test_character_references_cannot_bring_control_characters_back() -> None:
    shown = "".join(show("a&#27;[2J &#x202e; &#x9b; &#0; &#13;b `&#27;`", 80))
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c == "\u202e" for c in shown)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(DOCUMENTS), st.integers(1, 60))
def test_every_row_is_as_wide_as_the_width(text: str, width: int) -> None:
    whole(MarkdownDocument(text, finished=True), width)


def test_deep_nesting_leaves_room_for_the_text() -> None:
    for width in (2, 3, 5, 8, 12, 20):
        rows = show("> " * 12 + "- " * 12 + "1. word", width)
        assert "".join(c for row in rows for c in row if c.isalpha()) == "word"
        assert len(rows) < 4


# -- while it comes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_pieces_make_no_difference(number: int) -> None:
    text = DOCUMENTS[number]
    want = whole(MarkdownDocument(text, finished=True))
    for pieces in chunkings(text, number):
        assert whole(streamed(pieces, 40, 1 + len(pieces) // 40)) == want


def test_a_row_that_did_not_change_is_the_same_object() -> None:
    document = MarkdownDocument()
    document.append("a\n\n- b\n\n```py\nx = 1\ny = 2\n")
    document.prepare(40, 0, 99)
    before = list(document.strips(40, PALETTE, 0, document.height(40)))
    document.append("z = 3\nw = 4")
    document.prepare_end(40, 2)
    after = document.strips(40, PALETTE, 0, document.height(40))
    assert len(after) > len(before)
    assert all(one is other for one, other in zip(before[:-2], after, strict=False))


def test_what_was_exact_stays_where_it_is() -> None:
    document = MarkdownDocument()
    document.append(LONG)
    document.prepare(40, 0, 60)
    before = [strip.text for strip in document.strips(40, PALETTE, 0, 60)]
    for piece in ("more ", "text\n\n", "# h\n\n", "| a |\n", "|---|\n", "> q"):
        document.append(piece)
        assert [strip.text for strip in document.strips(40, PALETTE, 0, 60)] == before


def test_an_open_fence_is_coloured_while_it_grows() -> None:
    document = MarkdownDocument()
    for piece in ["```pyt", "hon\nimport", " os\ndef f(", "):\n  pa"]:
        document.append(piece)
        rows = whole(document, 30)
    assert ["".join(text for text, _ in row).rstrip() for row in rows] == [" import os", " def f():", "   pa"]
    assert ("import", PALETTE.style(("block", "tok-keyword"))) in rows[0]


def test_a_link_may_be_defined_after_its_use() -> None:
    document = MarkdownDocument()
    for piece in ["see [here][1] and | [x] |\n\n", "| [1] |\n|--|\n", "\nnext\n\n", "[1]: https://x.org\n"]:
        document.append(piece)
        whole(document)
    document.finish()
    assert show(document.text)[0] == "see here and | [x] |"
    rows = ["".join(text for text, _ in row).rstrip() for row in whole(document)]
    assert rows == ["see here and | [x] |", "", "1", "─", "", "next"] or rows[:3] == [
        "see here and | [x] |",
        "",
        "1",
    ]
    hrefs = [run.href for index in range(6) for run in document.row_source(40, index)[1] if run.href]
    assert hrefs == ["https://x.org", "https://x.org"]


def test_a_replaced_text_is_shown_alone() -> None:
    document = MarkdownDocument()
    document.append("- a\n- b\n\nwrong")
    whole(document)
    document.finish("right")
    assert [row[0][0].rstrip() for row in whole(document)] == ["right"]
    assert document.text == "right"


# -- only what is seen ------------------------------------------------------------------------------------


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the leaves whose rows are made."""
    lines: list[int] = []
    real = document_module._make
    monkeypatch.setattr(
        document_module,
        "_make",
        lambda leaf, references: (lines.append(leaf.line), real(leaf, references))[1],
    )
    return lines


def test_only_what_is_asked_for_is_measured(made: list[int]) -> None:
    document = MarkdownDocument(LONG, finished=True)
    guess = document.height(40)
    assert guess > 400
    assert not made
    document.prepare_end(40, 30)
    assert 5 < len(made) < 40
    document.strips(40, PALETTE, document.height(40) - 30, document.height(40))
    count = len(made)
    document.prepare(40, document.height(40) // 2, 30)
    assert len(made) < count + 40


def test_a_flush_measures_only_the_new(made: list[int]) -> None:
    document = MarkdownDocument()
    document.append(LONG)
    document.prepare_end(40, 30)
    for number in range(50):
        made.clear()
        document.append(f"next {number}\n\n")
        document.prepare_end(40, 30)
        height = document.height(40)
        document.strips(40, PALETTE, height - 30, height)
        assert len(made) <= 2


def test_a_new_width_measures_only_the_seen(made: list[int]) -> None:
    document = MarkdownDocument(LONG, finished=True)
    document.prepare(40, 0, 1 << 30)
    made.clear()
    document.prepare_end(60, 30)
    document.strips(60, PALETTE, document.height(60) - 30, document.height(60))
    assert not made  # what was parsed is kept
    assert whole(document, 60) == whole(MarkdownDocument(LONG, finished=True), 60)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 3000), st.integers(1, 60), st.sampled_from((17, 40, 73)), st.booleans())
def test_the_content_keeps_its_place_when_heights_are_corrected(
    row: int, count: int, width: int, parsed: bool
) -> None:
    document = MarkdownDocument(LONG, finished=True)
    if parsed:
        document.prepare_end(width, 5)
    at = document.prepare(width, min(row, document.height(width) - 1), count)
    texts = [strip.text for strip in document.strips(width, PALETTE, at, at + count)]
    plain = whole_texts(width)
    # The rows are a part of the whole, and measuring all the rest does not change them.
    places = [start for start in range(len(plain)) if plain[start : start + len(texts)] == texts]
    assert places
    below = document.height(width) - at
    document.prepare(width, at + count, 1 << 30)
    assert [strip.text for strip in document.strips(width, PALETTE, at, at + count)] == texts
    assert below > 0


@lru_cache
def whole_texts(width: int) -> list[str]:
    rows = whole(MarkdownDocument(LONG, finished=True), width)
    return ["".join(text for text, _ in row) for row in rows]


def test_scrolling_up_row_by_row_shows_every_row() -> None:
    document = MarkdownDocument(LONG, finished=True)
    document.prepare_end(40, 10)
    row = document.height(40) - 10
    seen = [strip.text for strip in document.strips(40, PALETTE, row, row + 10)]
    while row > 0:
        after = document.height(40) - row
        document.prepare(40, row - 1, 1)
        row = document.height(40) - after - 1
        seen.insert(0, document.strips(40, PALETTE, row, row + 1)[0].text)
    assert seen == whole_texts(40)


def test_a_new_theme_is_drawn_where_it_is_seen() -> None:
    document = MarkdownDocument(ANSWER, finished=True)
    before = whole(document)
    light = Palette(dark=False)
    rows = document.strips(40, light, 0, document.height(40))
    assert [strip.text for strip in rows] == ["".join(text for text, _ in row) for row in before]
    assert rows[0]._segments[0].style != before[0][0][1]
    assert whole(document) == before


def test_long_code_gets_its_colours_a_moment_later() -> None:
    document = MarkdownDocument("```py\n" + "x = 'y'\n" * 5000 + "```\n\nafter", finished=True)
    document.prepare_end(40, 10)
    end = document.height(40)
    document.strips(40, PALETTE, end - 10, end)
    assert document.pending
    rows: Any = document._pieces[0].rows
    rows.settle()
    last = document.strips(40, PALETTE, end - 10, end)[7]
    assert not document.pending
    assert PALETTE.style(("block", "tok-string")) in [segment.style for segment in last]


def test_a_long_document_keeps_the_rows_of_few_leaves() -> None:
    document = MarkdownDocument()
    for number in range(2000):
        document.append(f"paragraph {number}\n\n")
        if number % 10 == 0:
            document.prepare_end(40, 30)
            document.strips(40, PALETTE, document.height(40) - 30, document.height(40))
    assert sum(piece.rows is not None for piece in document._pieces) <= document_module.KEPT_LEAVES
    assert document.height(40) == 3999
    fence = MarkdownDocument("```\n" + "x\n" * 5000)
    for start in range(0, 5000, 50):
        fence.prepare(40, start, 50)
        fence.strips(40, PALETTE, start, start + 50)
    assert len(fence._pieces[0].strips or ()) <= document_module.KEPT_STRIPS + 50


def test_rows_can_be_dropped() -> None:
    document = MarkdownDocument(ANSWER, finished=True)
    before = whole(document)
    height = document.height(40)
    document.drop_rows()
    assert document.height(40) == height
    assert whole(document) == before
    document.drop()
    assert document._parser is None
    assert document.height(40) == height
    assert document._parser is None
    assert whole(document) == before
    growing = MarkdownDocument("a\n\nb")
    whole(growing)
    growing.drop()
    growing.append("c")
    assert [row[0][0].rstrip() for row in whole(growing)] == ["a", "", "bc"]


def test_the_text_of_rows_can_be_copied() -> None:
    text = "# *Head*\n\n- one **two** three four five six seven eight nine ten\n- `x`\n\n```py\na = 1\n  b\n```\n\n> q w"
    document = MarkdownDocument(text, finished=True)
    whole(document, 20)
    parts: dict[int, str] = {}
    for row in range(document.height(20)):
        index, runs = document.row_source(20, row)
        for run in runs:
            if run.at >= 0:
                plain = document.plain(index)
                assert plain[run.at : run.at + len(run.text)] == run.text
                parts[index] = plain[: run.at + len(run.text)]
    assert list(parts.values()) == [
        "Head", "one two three four five six seven eight nine ten", "x", "a = 1\n  b", "q w",
    ]  # fmt: skip


def test_growing_and_looking_anywhere_at_any_width() -> None:
    rnd = random.Random(4)
    for _ in range(30):
        text = rnd.choice(DOCUMENTS)
        document = MarkdownDocument()
        for piece in chunkings(text, rnd.randrange(99))[4]:
            document.append(piece)
            width = rnd.choice((20, 40, 41))
            height = document.height(width)
            if height and rnd.random() < 0.5:
                at = document.prepare(width, rnd.randrange(height), rnd.randrange(1, 9))
                assert 0 <= at < max(document.height(width), 1)
                document.strips(width, PALETTE, at, at + 5)
            if rnd.random() < 0.1:
                document.drop_rows()
        document.finish()
        assert whole(document) == whole(MarkdownDocument(text, finished=True))


def test_what_the_first_answer_needs_can_be_loaded_ahead() -> None:
    code = (
        "import sys; from sandbox_chat.ui.markdown.warm import warm; before = set(sys.modules); warm();"
        "after = set(sys.modules) - before; print(*sorted(name for name in after if 'leaves' in name or name == 'markdown_it'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["markdown_it", "sandbox_chat.ui.markdown.leaves"]
