"""The block parser beside markdown-it: the same structure, in whatever pieces the text comes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.markdown_documents import ANSWER, EXAMPLES, FIXTURES, chunkings, documents
from support.markdown_reference import actual, expected, tree_of

from sandbox_chat.ui.markdown.parser import BlockParser
from sandbox_chat.ui.markdown.reader import MAX_DEPTH, LineReader

DOCUMENTS = documents()


def parse(*pieces: str) -> BlockParser:
    parser = BlockParser()
    for piece in pieces:
        parser.feed(piece)
    return parser


def shown(*pieces: str) -> list[tuple[str, str]]:
    parser = parse(*pieces)
    return [(leaf.kind, leaf.text) for leaf in parser.leaves[: parser.shown]]


# -- beside markdown-it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_every_example_of_the_specification(number: int) -> None:
    text = EXAMPLES[number]
    want = expected(text)
    assert actual([text]) == want
    assert actual(list(text)) == want


@pytest.mark.parametrize("number", range(len(FIXTURES)))
def test_the_fixtures_of_markdown_it(number: int) -> None:
    assert actual([FIXTURES[number]]) == expected(FIXTURES[number])


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_pieces_make_no_difference(number: int) -> None:
    text = DOCUMENTS[number]
    ways = chunkings(text, number)
    assert len(ways) == 5
    want = actual([text])
    if "[^" not in text:
        assert want == expected(text)
    for pieces in ways:
        assert actual(pieces) == want


# Titles of definitions are left out: where one goes wrong in a line that only continues its container lazily,
# markdown-it ends the container and we keep it.
TOKENS = [
    "- ", "* ", "1. ", "2) ", "3. ", "> ", ">", "  ", "    ", "\t", " ", "   ", "# ", "## h #", "```", "~~~", "```py",
    "---", "***", "===", "=", "-", "+", "|", "| a | b |", "|---|--|", "--|:-:", "a | b", "a", "b c", "<b>", "<div>",
    "</div>", "<!--", "-->", "<a href='x'>", "[l]: /u", "[l]:", "[m]: <u> 't'", "[l]", "\\|", "\\", "[x] ", "[ ]",
    "10. ", "é", "http://x",
]  # fmt: skip
LINES = st.lists(st.lists(st.sampled_from(TOKENS), max_size=5).map("".join), min_size=1, max_size=8).map(
    "\n".join
)


@settings(max_examples=400, deadline=None)
@given(LINES, st.lists(st.integers(1, 9), min_size=1, max_size=12))
def test_any_text_is_read_as_markdown_it_does(text: str, sizes: list[int]) -> None:
    head, newline, last = text.rpartition("\n")
    if not last.strip(" \t"):  # markdown-it does not see a last line of blanks that no newline ends
        text = head + newline
    pieces, at, step = [], 0, 0
    while at < len(text):
        size = sizes[step % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
        step += 1
    assert actual(pieces) == expected(text)


# -- while it comes ---------------------------------------------------------------------------------------


def test_every_complete_line_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = LineReader._read
    monkeypatch.setattr(LineReader, "_read", lambda self, text: (read.append(text), real(self, text))[1])
    lines = [f"- item {number} with words" for number in range(200)]
    parse("\n".join(lines) + "\n")
    assert read == lines


def test_an_unfinished_line_that_only_grows_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    real = LineReader._read
    monkeypatch.setattr(LineReader, "_read", lambda self, text: (read.append(len(text)), real(self, text))[1])
    parse(*["word "] * 500)
    parse("```\n", *["code "] * 500)
    parse("<div class='a'>a long line of it ", *["html "] * 500)
    assert len(read) == 4
    assert max(read) < 100


@pytest.mark.parametrize(
    "held",
    ["-", "- ", "#", "##", "`", "```"[:2], "*", "**", "1", "12.", "1. ", ">", "> -", "|", "|--", "- [", "- [x", "- [x]",
     "---", "===", "+", "~", "<", "</d", "- 1. #"],
)  # fmt: skip
def test_a_line_of_marks_is_held_back(held: str) -> None:
    assert shown("before\n\n", *held) == [("paragraph", "before")]
    parser = parse("before\n\n", held)
    parser.finish()
    assert tree_of(parser.leaves) == actual(["before\n\n" + held])[0]


def test_a_fence_does_not_show_its_end_as_code() -> None:
    assert shown("```py\nx = 1\n", "`", "`") == [("code", "x = 1\n")]
    assert shown("```py\nx = 1\n", "- ") == [("code", "x = 1\n- ")]


def test_the_likely_head_of_a_table_waits_for_the_next_line() -> None:
    assert shown("| a | b |") == []
    assert shown("| a | b |\n", "|--") == []
    assert shown("| a | b |\n|--|--|\n", "| 1 |") == [("table", "")]
    assert shown("| a | b |\nno table") == [("paragraph", "| a | b |\nno table")]


def test_a_definition_is_not_shown_as_text() -> None:
    assert shown("[1]: http") == []
    assert shown("[1]: http://x.org\n") == []
    assert shown("[1") == []
    assert shown("[a](http://x") == [("paragraph", "[a](http://x")]


def test_leaves_stay_the_same_objects_while_they_grow() -> None:
    parser = parse("- one\n- two")
    kept = parser.leaves[1]
    for piece in (" more", "\n  and", " more\n", "\n- "):
        parser.feed(piece)
        assert parser.leaves[1] is kept
    assert kept.text == "two more\nand more"
    assert kept.closed


def test_what_changed_is_told() -> None:
    parser = parse("a\n\nb\n\nc")
    assert parser.take_changed() == 0
    assert parser.take_changed() == 3
    parser.feed("c")
    assert parser.take_changed() == 2
    parser.feed("\n\nd")
    assert parser.take_changed() == 2


def test_a_setext_heading_and_a_table_are_made_of_a_paragraph() -> None:
    parser = parse("Title\n")
    leaf = parser.leaves[0]
    parser.feed("=====\n")
    assert parser.leaves[0] is leaf
    assert (leaf.kind, leaf.level, leaf.closed) == ("heading", 1, True)
    parser = parse("text\na | b\n")
    assert [leaf.kind for leaf in parser.leaves] == ["paragraph"]
    parser.feed("--|--\n")
    assert [(leaf.kind, leaf.text) for leaf in parser.leaves] == [("paragraph", "text"), ("table", "")]
    assert parser.leaves[1].cells == [("a", "b")]


def test_definitions_are_told_late() -> None:
    parser = parse("see [x]\n\n")
    before = parser.references_version
    parser.feed("[x]: http://x.org\n\n")
    assert parser.references_version > before
    assert parser.references["X"]["href"] == "http://x.org"
    parser.feed("[x]: http://later.org\n\n")
    assert parser.references["X"]["href"] == "http://x.org"


def test_a_definition_that_is_taken_back_is_no_definition() -> None:
    parser = parse("[x]: http://x.org\n", "b")
    assert "X" in parser.references
    parser.feed("ar\n")
    parser.finish()
    assert actual(["[x]: http://x.org\n", "b", "ar\n"]) == expected("[x]: http://x.org\nbar\n")


# -- what markdown-it does not know -----------------------------------------------------------------------


def test_footnotes() -> None:
    parser = parse(ANSWER)
    parser.finish()
    notes = [leaf for leaf in parser.leaves if leaf.path and leaf.path[0].kind == "footnote"]
    assert [leaf.text for leaf in notes] == ["A footnote\nwith a second line.", "And a paragraph."]
    assert notes[0].path[0] is notes[1].path[0]
    assert notes[0].path[0].label == "1"


def test_tasks() -> None:
    parser = parse("- [ ] a\n- [x] b\n- [X] c\n- [y] d\n- [x]e\n")
    parser.finish()
    assert [(leaf.path[1].task, leaf.text) for leaf in parser.leaves] == [
        ("open", "a"), ("done", "b"), ("done", "c"), ("", "[y] d"), ("", "[x]e"),
    ]  # fmt: skip


def test_an_empty_item_and_an_empty_quote_have_a_leaf() -> None:
    parser = parse("-\n- a\n\n>\n")
    parser.finish()
    assert [(leaf.kind, len(leaf.path)) for leaf in parser.leaves] == [
        ("empty", 2),
        ("paragraph", 2),
        ("empty", 1),
    ]
    assert [(leaf.kind, leaf.text) for leaf in parse("-\n  a\n").leaves] == [("paragraph", "a")]


def test_items_know_their_numbers() -> None:
    parser = parse("7. a\n9. b\n\n   c\n7. d\n")
    assert [leaf.path[1].start for leaf in parser.leaves] == [7, 8, 8, 9]
    assert parser.leaves[0].path[0].loose


def test_lines_and_gaps() -> None:
    parser = parse("a\n\n- b\n- c\n\n  d\n")
    assert [(leaf.line, leaf.gap) for leaf in parser.leaves] == [(0, False), (2, True), (3, False), (5, True)]
    parser = parse("a | b\n---\n", "\nx | y\n", "|-|-|-|\n", "\nc | d\n-|-\n\ne")
    assert [leaf.line for leaf in parser.leaves] == [0, 3, 6, 9]


# -- without bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        ">" * 10_000 + " a", "- " * 50_000 + "a", "1. " * 20_000 + "x", "[" * 100_000, "*" * 100_000, "`" * 100_000,
        "|" * 100_000, "> " * 5_000 + "\n" + "lazy\n" * 1000, "\\" * 100_000, "<" * 100_000, "a|" * 50_000 + "\n" + "-|" * 50_000,
        "".join(f"{'  ' * level}- x\n" for level in range(300)), "[a]:\n'" + "t\n" * 20_000, "[" + "a\n" * 50_000,
        "<!--" + "\n" * 50_000, "> " * 200 + "```\n" + "x\n" * 1000, "\t" * 50_000 + "x", "#" * 100_000,
    ],
)  # fmt: skip
def test_hostile_texts_end_soon_and_shallow(text: str) -> None:
    parser = parse(text)
    parser.feed("\n")
    parser.finish()
    assert all(len(leaf.path) <= MAX_DEPTH + 1 for leaf in parser.leaves)


def test_nothing_is_lost_below_the_deepest_level() -> None:
    parser = parse(">" * 100 + " deep **text**\n")
    parser.finish()
    assert parser.leaves[0].text == ">" * (100 - MAX_DEPTH) + " deep **text**"
