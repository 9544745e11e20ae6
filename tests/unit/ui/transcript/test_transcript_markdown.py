"""Markdown as rows: what it looks like, and that streaming makes no difference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox_chat.ui.transcript.inline import heal, inline_runs
from sandbox_chat.ui.transcript.palette import Palette
from sandbox_chat.ui.transcript.stream import MarkdownText

PALETTE = Palette()


def show(text: str, width: int = 40) -> list[str]:
    rows = MarkdownText(text, finished=True).rows(width, PALETTE)
    assert all(row.cell_length == width for row in rows)
    return [row.text.rstrip() for row in rows]


PIECES = [
    "- a\n", "- b\n", "* c\n", "1. x\n", "2. y\n", "9) z\n", "\n", "\n", "  - n\n", "   more\n", "> q\n", "> - r\n",
    "```py\n", "```\n", "~~~\n", "code = 1\n", "'''\n", "# h\n", "## **h** `c`\n", "| a | b |\n", "|---|:-:|\n",
    "| 1 | **2** |\n", "para *x* y\n", "---\n", "===\n", "***\n", "[l]: http://x.org\n", "[l] z\n", "    ind\n",
    "<b>\n", "<!-- x\n", "-->\n", "  cont\n", "你好，世界\n", "- [x] t\n", "a\\\n", "&#27;&#x202e;\n", "1", "-", "`", "*", " ",
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14), st.lists(st.integers(1, 9), min_size=1, max_size=20))
def test_streaming_in_any_pieces_gives_the_same_rows(pieces: list[str], sizes: list[int]) -> None:
    text = "".join(pieces)
    whole = [row.text for row in MarkdownText(text, finished=True).rows(40, PALETTE)]
    stream = MarkdownText()
    at = step = 0
    while at < len(text):
        size = sizes[step % len(sizes)]
        stream.append(text[at : at + size])
        at += size
        step += 1
        if step % 2:
            assert all(row.cell_length == 40 for row in stream.rows(40, PALETTE))
    stream.finish(text)
    assert [row.text for row in stream.rows(40, PALETTE)] == whole


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=10), st.integers(2, 60))
def test_no_row_is_wider_than_the_width(pieces: list[str], width: int) -> None:
    for row in MarkdownText("".join(pieces), finished=True).rows(width, PALETTE):
        assert row.cell_length == width


def test_the_kinds_of_blocks() -> None:
    assert show("# Title\n\ntext\nsecond row\n\n---\n\n> quote") == [
        "Title", "", "text", "second row", "", "─" * 40, "", "▎ quote",
    ]  # fmt: skip


def test_lists() -> None:
    text = "1. one\n2. two\n   - in\n     - deeper\n10. ten\n\n- [x] done\n- [ ] open\n"
    assert show(text) == [
        " 1. one", " 2. two", "    ◦ in", "      ▪ deeper", " 3. ten", "", "☑ done", "☐ open",
    ]  # fmt: skip


def test_loose_items_keep_their_distance() -> None:
    assert show("- a\n\n- b\n- c") == ["• a", "", "• b", "• c"]


def test_a_table_fits_its_columns() -> None:
    rows = show("| name | n |\n|:--|--:|\n| 你好 | 1 |\n| b | 12345 |")
    assert rows == ["name │     n", "─────┼──────", "你好 │     1", "b    │ 12345"]


def test_a_wide_table_wraps_its_cells() -> None:
    rows = show("| a | b |\n|--|--|\n| x | " + "word " * 20 + "|", 30)
    assert rows[2].startswith("x │ word word")
    assert len(rows) > 4


def test_a_table_without_room_becomes_records() -> None:
    head = "|" + "|".join(f"head {n}" for n in range(12)) + "|\n" + "|--" * 12 + "|\n"
    rows = show(head + "|" + "|".join(f"value {n}" for n in range(12)) + "|", 40)
    assert rows[0] == "head 0: value 0"
    assert len(rows) == 12


def test_code_is_highlighted_and_keeps_its_spaces() -> None:
    text = MarkdownText("```python\ndef f():\n    return 'x'\n```", finished=True)
    rows = text.rows(30, PALETTE)
    assert [row.text.rstrip() for row in rows] == [" def f():", "     return 'x'"]
    keyword = PALETTE.style(("block", "tok-keyword"))
    assert any(segment.text == "def" and segment.style == keyword for segment in rows[0])


def test_an_open_fence_is_coloured_while_it_grows() -> None:
    text = MarkdownText()
    for piece in ["```pyt", "hon\nimport", " os\ndef f(", "):\n  pa"]:
        text.append(piece)
        text.rows(30, PALETTE)
    rows = text.rows(30, PALETTE)
    assert [row.text.rstrip() for row in rows] == [" import os", " def f():", "   pa"]
    assert any(segment.text == "import" and segment.style.color != PALETTE.base.color for segment in rows[0])


def test_an_empty_fence_and_an_empty_text() -> None:
    assert show("```\n```") == [""] or show("```\n```") == []
    assert show("") == []
    assert show("\n\n") == []


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
    assert "<U+202E>" in shown


def test_links_carry_their_target_and_unsafe_ones_do_not() -> None:
    runs = inline_runs("[a](https://x.org/y) https://z.org/q. [b](javascript:alert(1))")
    assert [(run.text, run.href) for run in runs if run.href] == [
        ("a", "https://x.org/y"), ("https://z.org/q", "https://z.org/q"),
    ]  # fmt: skip
    assert "javascript:alert(1)" in "".join(run.text for run in runs)


@pytest.mark.parametrize(
    ("text", "healed"),
    [
        ("some **bold", "some **bold**"), ("some **", "some "), ("a `code", "a `code`"), ("a ~~x", "a ~~x~~"),
        ("see [link](http://x", "see link"), ("2 * 3", "2 * 3"), ("*em", "*em*"), ("plain", "plain"),
        ("**done** and", "**done** and"), ("a\\*b", "a\\*b"),
    ],
)  # fmt: skip
def test_what_is_open_is_closed_while_writing(text: str, healed: str) -> None:
    assert heal(text) == healed


def test_a_link_may_be_defined_after_its_use() -> None:
    text = MarkdownText()
    for piece in ["see [here][1]", "\n\nnext\n\n", "[1]: https://x.org\n"]:
        text.append(piece)
        text.rows(40, PALETTE)
    text.finish()
    assert text.rows(40, PALETTE)[0].text.rstrip() == "see here"


def test_a_replaced_text_is_shown_alone() -> None:
    text = MarkdownText()
    text.append("- a\n- b\n\nwrong")
    text.rows(40, PALETTE)
    text.finish("right")
    assert [row.text.rstrip() for row in text.rows(40, PALETTE)] == ["right"]


def test_only_the_end_is_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from sandbox_chat.ui.transcript import stream

    sizes: list[int] = []
    real = stream.parse
    monkeypatch.setattr(stream, "parse", lambda text: (sizes.append(len(text)), real(text))[1])
    text = MarkdownText()
    for number in range(200):
        text.append(f"paragraph {number} of some length\n\n- item one\n- item two\n\n")
        text.rows(60, PALETTE)
    assert max(sizes) < 400
