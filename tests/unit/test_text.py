"""Cleaning and bounding of text: nothing that acts on a terminal gets through, the rest is untouched."""

from __future__ import annotations

import time
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.signs import MARKS
from sandbox_chat.text import (
    DEEPEST,
    ModelText,
    bound,
    bound_tail,
    clean,
    clean_line,
    from_arguments,
    from_file,
    from_model,
    from_name,
    from_output,
    from_paste,
    from_tool,
)

# Text that looks like what attacks look like: control bytes, C1, bidi, surrogates among plain letters.
NASTY = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\x1b\x9b\x9d\x90\r\n\t\x07\x00[];0m31HAKJ?\u202e\u2066\u200b\ufeff\u2028\x85\x7f\b"),
        st.sampled_from(
            "\u200d\u200c\ufe0f\ufe01\U000e0100\U000e0067\U000e007f\U0001f3f4\u0301\u0e47❤👩🔥ക്م1葛"
        ),
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
    assert not [sign for sign in from_output(text) if acts_on_a_terminal(sign)]
    line = clean_line(text, 40)
    assert not [sign for sign in line if acts_on_a_terminal(sign) or sign in "\n\t"]
    assert len(line) <= 40


@given(NASTY)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)
    assert from_output(from_output(text)) == from_output(text)


@given(st.text(st.characters(categories=["Lu", "Ll", "Nd", "P", "S", "Zs"]), max_size=200))
def test_printable_text_is_untouched(text: str) -> None:
    assert clean(text) == text
    assert from_output(text) == text


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
        ("❤️‍🔥 1️⃣ 👍🏽 🏳️‍🌈", "❤️‍🔥 1️⃣ 👍🏽 🏳️‍🌈"),
        ("می‌خواهم ക്‍ क्‍ष", "می‌خواهم ക്‍ क्‍ष"),
        ("葛\U000e0100", "葛\U000e0100"),
        ("a\u200db\u200c", "a<U+200D>b<U+200C>"),
        ("a\ufe0f\u200d🔥", "a<U+FE0F><U+200D>🔥"),
        ("👍\ufe01\ufe02", "👍<U+FE01><U+FE02>"),
        ("👍" + "\U000e0141" * 40, "👍" + "<U+E0141>" * 6 + "<+34>"),
        ("🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",) * 2,
        ("🏴\U000e0068\U000e0069\U000e007f", "🏴<U+E0068><U+E0069><U+E007F>"),
        ("Z" + "\u0301" * 40, "Z" + "\u0301" * MARKS + f"<+{40 - MARKS}>"),
        ("ก" + "็" * 20, "ก" + "็" * MARKS + f"<+{20 - MARKS}>"),
        ("\ufff9a\ufffab\ufffb", "<U+FFF9>a<U+FFFA>b<U+FFFB>"),
        ("\ufdd0\uffff\U0001fffe", "<U+FDD0><U+FFFF><U+1FFFE>"),
        ("\u3164\u115f\uffa0\u034f", "<U+3164><U+115F><U+FFA0><U+034F>"),
        ("\U0010eeee\u0305", "<U+10EEEE>\u0305"),
        ("\u200b" * 40, "<U+200B>" * 32 + "<+8>"),
        ("שָׁלוֹם عَرَبِيّ ภาษาไทย", "שָׁלוֹם عَرَبِيّ ภาษาไทย"),
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
    assert from_output(raw) == shown


@given(st.lists(st.text("ab1", max_size=6), min_size=1, max_size=6))
def test_settling_equals_overwriting(parts: list[str]) -> None:
    line = ""
    for part in parts:
        line = part + line[len(part) :]
    assert from_output("\r".join(parts)) == line


def test_many_carriage_returns_on_a_long_line_take_no_time() -> None:
    start = time.process_time()
    assert len(from_output("x" * 500_000 + "\r" * 500_000)) == 500_000
    assert from_output("x" * 4000 + "\rX" * 300_000).startswith("Xx")
    assert len(from_output("\x1b[A\x08" * 100_000 + "x")) == 1
    assert time.process_time() - start < 10


@given(NASTY, st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_pieces_of_the_models_text_are_clean_and_whole(text: str, sizes: list[int]) -> None:
    pieces = ModelText()
    shown, place, number = "", 0, 0
    while place < len(text):
        size = sizes[number % len(sizes)]
        shown += pieces.feed(text[place : place + size])
        place, number = place + size, number + 1
    shown += pieces.end()
    assert not [sign for sign in shown if acts_on_a_terminal(sign)]
    plain = [sign for sign in clean(text) if sign.isalnum() and sign.isascii()]
    assert len([sign for sign in shown if sign.isalnum() and sign.isascii()]) >= len(plain) - len(text)


@pytest.mark.parametrize(
    "text",
    [
        "a❤️‍🔥b 👩‍👩‍👧 1️⃣",
        "\x1b[31mred\x1b[0m.",
        "a\r\nb",
        "می‌خواهم ക്‍ x",
        "é\u0301\u0301",
        "\x1b]0;t\x07",
        "ab\x1b",
    ],
)
def test_however_the_models_text_is_cut_it_reads_the_same(text: str) -> None:
    for size in (1, 2, 3, 5):
        pieces = ModelText()
        shown = "".join(pieces.feed(text[place : place + size]) for place in range(0, len(text), size))
        assert shown + pieces.end() == from_model(text)


def test_what_is_held_back_of_the_models_text_is_little() -> None:
    pieces = ModelText()
    assert pieces.feed("x" * 1000) == "x" * 1000
    assert "<+" in pieces.feed("\u200d" * 5000)
    assert len(pieces.feed("日本語" * 1000)) > 2990
    assert pieces.feed("\x1b[" + "1;" * 500) != ""


def test_each_way_in() -> None:
    evil = "a\x1b[2J\u202eb"
    shown = "a␛[2J<U+202E>b"
    assert (
        from_model(evil)
        == from_tool(evil)
        == from_output(evil)
        == from_file(evil)
        == from_paste(evil)
        == shown
    )
    assert from_file("\ufeffx\ufeff") == "x<U+FEFF>"
    assert from_paste("one\r\ntwo\rthree\n") == "one\ntwo\nthree\n"  # case T7
    assert from_name("a\n\tb\x07.txt ") == "a b␇.txt"
    assert len(from_name("x" * 1000, 40)) == 40
    assert from_arguments({"k\x1b": ["\u202e", 1, None, {"n": ("\x9b",)}]}) == {
        "k␛": ["<U+202E>", 1, None, {"n": ["<9B>"]}]
    }


@pytest.mark.parametrize("depth", [DEEPEST - 1, DEEPEST, 490, 700, 900, 100_000])
def test_arguments_that_are_nested_too_deeply_become_text_there(depth: int) -> None:
    value: Any = "\x1b"
    for _ in range(depth):
        value = [value]
    found, levels = from_arguments({"x": value})["x"], 0
    while isinstance(found, list):
        found, levels = found[0], levels + 1
    assert levels == min(depth, DEEPEST - 1)
    if depth < DEEPEST:
        assert found == "␛"
    elif depth < 500:
        assert found == "[" * (depth - levels) + '"\\u001b"' + "]" * (depth - levels), "nothing is lost"
    else:
        assert isinstance(found, str)


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
