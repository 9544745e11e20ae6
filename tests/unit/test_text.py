"""Cleaning and bounding of text: nothing that acts on a terminal gets through, the rest is untouched."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.text import bound, bound_tail, clean, clean_line, clean_output

# Text that looks like what attacks look like: control bytes, C1, bidi, surrogates among plain letters.
NASTY = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\x1b\x9b\x9d\x90\r\n\t\x07\x00[];0m31H\u202e\u2066\u200b\ufeff\u2028\x85\x7f"),
        st.characters(min_codepoint=0, max_codepoint=0x9F),
        st.characters(categories=["Cs", "Cf"]),
    ),
    max_size=200,
)
BIDI = {*"\u061c\u200e\u200f", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}


def acts_on_a_terminal(sign: str) -> bool:
    code = ord(sign)
    if sign in "\n\t":
        return False
    return code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or sign in BIDI


@given(NASTY)
def test_nothing_that_acts_on_a_terminal_gets_through(text: str) -> None:
    assert not [sign for sign in clean(text) if acts_on_a_terminal(sign)]


@given(NASTY)
def test_output_and_titles_are_as_clean(text: str) -> None:
    assert not [sign for sign in clean_output(text) if acts_on_a_terminal(sign)]
    line = clean_line(text, 40)
    assert not [sign for sign in line if acts_on_a_terminal(sign) or sign in "\n\t"]
    assert len(line) <= 40


@given(NASTY)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)
    assert clean_output(clean_output(text)) == clean_output(text)


@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=200))
def test_printable_text_is_untouched(text: str) -> None:
    assert clean(text) == text
    assert clean_output(text) == text


@given(NASTY)
def test_clean_text_can_be_encoded(text: str) -> None:
    clean(text).encode("utf-8")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b1;32mgreen\x9bm", "green"),
        ("\x1b[2J", "␛[2J"),
        ("\x1b]52;c;YQ==\x07", "␛]52;c;YQ==␇"),
        ("a\r\nb\u2028c\x85d", "a\nb\nc\nd"),
        ("a\rb", "a␍b"),
        ("file\u202egnp.exe", "file<U+202E>gnp.exe"),
        ("\ud83c", "\ufffd"),
        ("nul\0", "nul␀"),
        ("\x9d", "<9D>"),
        ("ab\u200bcd\ufeff", "ab<U+200B>cd<U+FEFF>"),
        ("\U000e0041", "<U+E0041>"),
        ("👩‍👩‍👧 नमस्ते 한글", "👩‍👩‍👧 नमस्ते 한글"),
        ("tab\tstays", "tab\tstays"),
        ("\x1b[\x1b[0m2J", "␛[2J"),
    ],
)
def test_what_is_made_of_known_tricks(raw: str, shown: str) -> None:
    assert clean(raw) == shown


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("10%\r20%\r100%", "100%"),
        ("100%\r7%", "7%0%"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("done\r", "done"),
        ("abcdef\r\x1b[32mX\x1b[0m", "Xbcdef"),
        ("one\rtwo\nthree\rfo", "two\nforee"),
    ],
)
def test_progress_lines_settle(raw: str, shown: str) -> None:
    assert clean_output(raw) == shown


@given(st.lists(st.text("ab1", max_size=6), min_size=1, max_size=6))
def test_settling_equals_overwriting(parts: list[str]) -> None:
    line = ""
    for part in parts:
        line = part + line[len(part) :]
    assert clean_output("\r".join(parts)) == line


def test_many_carriage_returns_on_a_long_line_take_no_time() -> None:
    start = time.monotonic()
    assert len(clean_output("x" * 500_000 + "\r" * 500_000)) == 500_000
    assert time.monotonic() - start < 10


def test_titles_are_one_line() -> None:
    assert clean_line("  a\n\tb   c ") == "a b c"
    assert clean_line("x" * 300) == "x" * 199 + "…"


@given(st.text(max_size=300), st.integers(0, 100))
def test_bounds_say_what_was_cut(text: str, limit: int) -> None:
    for cut in (bound(text, limit), bound_tail(text, limit)):
        if len(text) <= limit:
            assert cut == text
        else:
            assert f"{len(text) - limit:,} characters cut out of {len(text):,}" in cut
            assert len(cut) <= limit + 80
    if len(text) > limit:
        assert bound_tail(text, limit).endswith(text[len(text) - limit :])


def test_a_bound_keeps_head_and_tail() -> None:
    cut = bound("a" * 1000 + "z" * 1000, 300)
    assert cut.startswith("a" * 200 + "\n[…")
    assert cut.endswith("]\n" + "z" * 100)
    assert bound_tail("abc", 2, what="bytes") == "[… 1 bytes cut out of 3 …]\nbc"


def test_the_signs_that_stand_for_others_are_printable() -> None:
    for code in range(0x110000):
        for sign in clean(chr(code)):
            assert sign in "\n\t" or unicodedata.category(sign) not in ("Cc", "Cs", "Zl", "Zp"), hex(code)
