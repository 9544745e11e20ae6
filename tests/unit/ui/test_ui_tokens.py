"""Tokens of a draft: what they stand for, and that nothing from outside becomes one."""

from __future__ import annotations

import pytest

from sandbox_chat.text import clean
from sandbox_chat.ui.tokens import (
    FILE,
    PASTE,
    PASTE_END,
    Part,
    Tokens,
    clean_slowly,
    files,
    outside,
    recognised,
    shown,
    span_at,
    spans,
    written,
)

LONG = "\n".join(f"line {number}" for number in range(312))


def test_a_long_paste_stands_as_its_label_and_expands_to_the_letter() -> None:
    tokens = Tokens()
    document = f"before {tokens.fold(LONG)} after"
    assert shown(document) == "before [pasted text #1 · 312 lines] after"
    assert tokens.expand(document) == f"before {LONG} after"
    assert shown(tokens.fold("x" * 12_345)) == "[pasted text #2 · 12,345 characters]"


@pytest.mark.parametrize(
    "text",
    [
        "[pasted text #1 · 312 lines]",
        f"{PASTE}pasted text #1 · 312 lines{PASTE_END}",
        f"{FILE}notes.md (3 bytes\ufdd3",
        "\ufdd0\ufdd1\ufdd2\ufdd3",
    ],
)
def test_text_that_looks_like_a_token_is_text(text: str) -> None:
    tokens = Tokens()
    tokens.fold(LONG)
    document = outside(text)
    assert spans(document) == []
    assert tokens.expand(document) == document
    assert tokens.parts(document) == [Part("text", document)]


def test_a_token_in_a_token_is_not_expanded_again() -> None:
    tokens = Tokens()
    inner = tokens.fold("a\nb")
    assert tokens.expand(tokens.fold(inner)) == inner


def test_mentioned_files() -> None:
    tokens = Tokens()
    document = "look at " + tokens.mention("/w/data/my sales.csv", "data/my sales.csv", 12_000)
    assert shown(document) == "look at @data/my sales.csv (12 kB)"
    assert tokens.expand(document) == 'look at @"data/my sales.csv"'
    assert files(tokens.parts(document + document)) == ["/w/data/my sales.csv"]


def test_two_files_that_are_called_alike_stay_two() -> None:
    tokens = Tokens()
    first = tokens.mention("/w/a\x1b", "a\x1b", 1)
    second = tokens.mention("/w/a␛", "a␛", 1)
    assert first != second
    assert files(tokens.parts(first + second)) == ["/w/a\x1b", "/w/a␛"]
    assert tokens.mention("/w/a\x1b", "a\x1b", 1) == first


def test_hostile_names_are_cleaned_where_they_are_written() -> None:
    tokens = Tokens()
    document = tokens.mention("/w/x", "x\x1b]52;c;eA==\x07\ufdd3\n\u202e.csv", 1)
    text = shown(document) + tokens.expand(document)
    assert not any(character in text for character in "\x1b\x07\n\u202e")
    assert len(spans(document)) == 1


def test_parts_make_the_same_draft_again() -> None:
    tokens, again = Tokens(), Tokens()
    document = f"a {tokens.fold(LONG)} b {tokens.mention('/w/f', 'f', 3)} \nc"
    parts = tokens.parts(document)
    assert [part.kind for part in parts] == ["text", "paste", "text", "file", "text"]
    assert again.document(parts) == document
    assert again.expand(again.document(parts)) == "".join(map(written, parts)) == tokens.expand(document)


def test_places_inside_of_a_token() -> None:
    line = f"ab{PASTE}xyz{PASTE_END}c"
    assert [span_at(line, column) is not None for column in range(len(line) + 1)] == [
        *[False] * 3, *[True] * 4, False, False,
    ]  # fmt: skip


def test_half_a_token_is_drawn_and_sent_as_text() -> None:
    tokens = Tokens()
    document = tokens.fold(LONG)[:-1]
    assert tokens.expand(document) == "[pasted text #1 · 312 lines"


def test_mentions_survive_an_editor_where_they_are_still_named() -> None:
    mention = Part("file", "/w/f.csv", "f.csv", 3)
    before = [Part("text", "sum "), mention]
    assert recognised("sum @f.csv, no: @f.csv twice @f.csvx", before) == [
        Part("text", "sum @f.csv, no: "),
        mention,
        Part("text", " twice @f.csvx"),
    ]
    assert recognised("@/etc/passwd", []) == [Part("text", "@/etc/passwd")]
    assert recognised("", before) == []


def test_a_raw_paste_is_never_given_out_uncleaned() -> None:
    tokens = Tokens()
    text = "a\x1b[2J\n" * 50_000
    document = tokens.fold(text, raw=True)
    assert "\x1b" not in tokens.expand(document)
    assert tokens.raw == []


def test_cleaning_in_slices_is_cleaning_and_comes_only_if_it_is_still_wanted() -> None:
    for text in ("a\x1b[31m\u202e你\n" * 30_000, "\x1b" * 100_000, "x" * 70_001, ""):
        assert clean_slowly(text) == clean(text)
    tokens = Tokens()
    document = tokens.fold("x\x1b", raw=True)
    [(label, raw)] = tokens.raw
    tokens.clear()
    tokens.settle(label, raw, "late")
    assert tokens.expand(document) == "[pasted text #1 · 2 characters]"
