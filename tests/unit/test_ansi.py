"""Output of programs: colours as data, progress lines settled, however it is cut."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandbox_chat.ansi import (
    LINE_LIMIT,
    LINES,
    SPANS,
    Output,
    Piece,
    joined,
    settle,
)
from sandbox_chat.sgr import Styles, to_terminal, valid_styles
from sandbox_chat.text import clean


class Seen:
    """What a reader of the pieces has, and what it has to do for it."""

    def __init__(self) -> None:
        self.output = Output()
        self.text = ""
        self.styles: list[tuple[int, int, str]] = []
        self.rewound = 0

    def feed(self, *chunks: str) -> Seen:
        for chunk in chunks:
            self.output.feed(chunk)
            self.take()
        return self

    def take(self) -> None:
        piece = self.output.take()
        assert 0 <= piece.rewind <= len(self.text)
        assert valid_styles(piece.styles, len(piece.text))
        self.rewound += piece.rewind
        self.text, rewind, styles = joined(Piece(self.text, 0, tuple(self.styles)), piece)
        assert rewind == 0
        self.styles = list(styles)

    def end(self) -> Seen:
        self.output.finish()
        self.take()
        return self

    def look(self) -> list[tuple[str, str]]:
        """The styles with the text that they are of."""
        return [(self.text[start:end], words) for start, end, words in self.styles]


SGR = st.sampled_from(
    [
        "\x1b[31m",
        "\x1b[1;44m",
        "\x1b[0m",
        "\x1b[m",
        "\x1b[38;5;208m",
        "\x1b[38;2;1;2;3m",
        "\x1b[48:2::9:8:7m",
        "\x1b[7m",
        "\x1b[27m",
    ]
)
MOVES = st.sampled_from(
    ["\r", "\n", "\r\n", "\b", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[A", "\x1b[2A", "\x1b[B", "\x1b[3C", "\x1b[2D",
     "\x1b[5G", "\x1b[J", "\x1b[E", "\x1b[F", "\x1b[?25l", "\x1b[2J", "\x1b]0;t\x07", "\x1b]8;;u\x1b\\", "\x9b2D"]
)  # fmt: skip
PROGRAMS = st.lists(st.one_of(st.text("abc12 %", max_size=6), SGR, MOVES), max_size=30).map("".join)


@given(PROGRAMS, st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_however_output_is_cut_it_looks_the_same(program: str, sizes: list[int]) -> None:
    cut, place, number = Seen(), 0, 0
    while place < len(program):
        size = sizes[number % len(sizes)]
        cut.feed(program[place : place + size])
        place, number = place + size, number + 1
    cut.end()
    whole = Seen().feed(program).end()
    assert cut.text == whole.text
    assert cut.styles == whole.styles
    assert cut.text == clean(cut.text)


@given(st.lists(st.text("ab1", max_size=6), min_size=1, max_size=6))
def test_writing_over_equals_overwriting(parts: list[str]) -> None:
    line = ""
    for part in parts:
        line = part + line[len(part) :]
    assert Seen().feed("\r".join(parts)).end().text == line
    assert Seen().feed(*(piece for part in parts for piece in (part, "\r"))).end().text == line


def test_one_progress_line_is_shown_and_its_colours_are_kept() -> None:  # case T5
    for cut in (1, 2, 3, 4, 50):
        program = "\x1b[32m10%\r20%\r100%\x1b[0m\ndone\n"
        seen = Seen().feed(*(program[place : place + cut] for place in range(0, len(program), cut))).end()
        assert seen.text == "100%\ndone\n"
        assert seen.look() == [("100%", "green")]


@pytest.mark.parametrize(
    ("program", "look"),
    [
        ("\x1b[1;31mA\x1b[22mB\x1b[39mC", [("A", "bold red"), ("B", "red")]),
        ("\x1b[91;104mA\x1b[49mB", [("A", "bright-red on-bright-blue"), ("B", "bright-red")]),
        (
            "\x1b[38;5;9mA\x1b[38;5;208mB\x1b[48;5;244mC",
            [("A", "bright-red"), ("B", "#ff8700"), ("C", "#ff8700 on-#808080")],
        ),
        (
            "\x1b[38;2;1;2;3mA\x1b[38:2::4:5:6mB\x1b[38:5:21mC",
            [("A", "#010203"), ("B", "#040506"), ("C", "#0000ff")],
        ),
        ("\x1b[3;4;9;2;7mA\x1b[23;24;29;22;27mB", [("A", "dim italic underline reverse strike")]),
        ("\x1b[4:3mA\x1b[4:0mB", [("A", "underline")]),
        ("\x1b[31;38;5mA", [("A", "red")]),
        ("\x1b[38;2;1;2;999mA\x1b[999mB\x1b[38;5;300mC", []),
        ("\x1b[31mA\nB\x1b[m", [("A", "red"), ("B", "red")]),
        ("\x9b35mA\x9bm", [("A", "magenta")]),
    ],
)
def test_colours(program: str, look: list[tuple[str, str]]) -> None:
    assert Seen().feed(program).end().look() == look


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("a\x1b[2Jb", "a␛[2Jb"),
        ("a\x1b[5;5Hb", "a␛[5;5Hb"),
        ("\x1b]52;c;YQ==\x07", "␛]52;c;YQ==␇"),
        ("\x1b]0;title\x1b\\x", "␛]0;title␛\\x"),
        ("\x1b]8;;http://e/\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1bPq#0~\x1b\\", "␛Pq#0~␛\\"),
        ("\x1b_Ga=T;AA\x1b\\", "␛_Ga=T;AA␛\\"),
        ("\x90x\x9c\x9dy", "<90>x<9C><9D>y"),
        ("\x1b[?1049h\x1b[?25lx\x1b[?25h", "␛[?1049hx"),
        ("\x1bc\x1b7\x1b8\x1b(0", "␛c␛7␛8␛(0"),
        ("x\x1b", "x␛"),
        ("x\x1b[31", "x␛[31"),
        ("x\x1b]8;;http", "x␛]8;;http"),
        ("abc\x1b[2K\rd", "d"),
        ("abc\b\bX", "aXc"),
        ("abcdef\r\x1b[3C\x1b[K!", "abc!"),
        ("a\x1b[5Gb", "a   b"),
        ("nul\0 \x7f", "nul␀ ␡"),
        ("file\u202egnp.exe\ud800", "file<U+202E>gnp.exe\ufffd"),
        ("a\u2028b\x85c", "a\nb\nc"),
    ],
)
def test_all_else_is_shown_or_has_no_look(program: str, text: str) -> None:
    assert Seen().feed(program).end().text == text
    assert Seen().feed(*program).end().text == text
    assert settle(program) == text


def test_two_bars_that_take_turns() -> None:  # as tqdm writes them
    seen = Seen()
    for percent in range(0, 101, 10):
        seen.feed(f"\router {percent}%", f"\n\rinner {percent}%\x1b[A")
    seen.feed("\n\n").end()
    assert seen.text.rstrip("\n") == "outer 100%\ninner 100%"


def test_a_table_that_is_drawn_anew() -> None:  # as rich draws what is live
    seen = Seen().feed("head\n")
    for number in range(30):
        up = "" if not number else "\r\x1b[2K" + "\x1b[1A\x1b[2K" * 2
        seen.feed(f"{up}┏━━┓\n┃{number:2}┃\n┗━━┛")
    seen.feed("\n").end()
    assert seen.text == "head\n┏━━┓\n┃29┃\n┗━━┛\n"


def test_lines_that_left_the_window_stay() -> None:
    lines = "".join(f"{number}\n" for number in range(1000))
    seen = Seen().feed(lines).feed("\x1b[900A\rX").end()
    assert seen.text.startswith("0\n1\n2\n")
    assert len(seen.text.split("\n")) == 1001
    assert seen.text.split("\n").index(f"X{1001 - LINES}"[:1] + str(1001 - LINES)[1:]) == 1001 - LINES


def test_what_a_reader_must_do_is_bounded() -> None:
    seen = Seen().feed("x" * 100_000).feed("\rX").end()
    assert len(seen.text) >= 100_000
    assert seen.rewound <= 2 * LINE_LIMIT
    many = Seen().feed("".join(f"\x1b[3{number % 8}mx" for number in range(20_000)))
    assert len(many.styles) <= SPANS


def test_much_plain_output_costs_little_more_than_a_search() -> None:
    text = "a line of output that says nothing\n" * 100_000
    begun = time.process_time()
    output = Output()
    output.feed(text)
    piece = output.take()
    middle = time.process_time()
    for _ in range(20):
        assert clean(text) == text
    assert piece.text == text
    assert middle - begun < (time.process_time() - middle) + 0.5


@example(["x" * 50], 300, "\x1b[30A\rX")
@example(["x" * 50, "\x1b[31m"], 300, "\rX\nb\rc")
@given(
    st.lists(
        st.one_of(st.sampled_from(["ab ", "x" * 60, "\n", "\r\n", "é", "\u200b", "\0", "\x85"]), SGR),
        max_size=40,
    ),
    st.sampled_from([1, 3, 40, 300]),
    st.sampled_from(["", "\x1b[30A\rX", "\b\x1b[2K", "\x1b[9A\x1b[J\x1b[31", "\r"]),
)
def test_long_coloured_output_looks_as_when_it_comes_in_small_pieces(
    parts: list[str], times: int, then: str
) -> None:
    program = "".join(parts) * times + then
    whole, cut = Output(), Output()
    whole.feed(program)
    for place in range(0, len(program), 1000):
        cut.feed(program[place : place + 1000])
    whole.finish()
    cut.finish()
    one, other = whole.take(), cut.take()
    assert one.text == other.text
    assert valid_styles(one.styles, len(one.text))
    if len(one.styles) < SPANS and len(other.styles) < SPANS:
        looks = []
        for piece in (one, other):
            look = [""] * len(piece.text)
            for start, end, style in piece.styles:
                look[start:end] = [style] * (end - start)
            looks.append([style for style, sign in zip(look, piece.text, strict=True) if sign != "\n"])
        assert looks[0] == looks[1]


def test_much_coloured_output_is_not_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0
    write = Output._write

    def counted(self: Output, text: str) -> None:
        nonlocal written
        written += 1
        write(self, text)

    monkeypatch.setattr(Output, "_write", counted)
    output = Output()
    output.feed("\x1b[32mok\x1b[0m a test \x1b[1;31mFAIL\x1b[0m\n" * 20_000)
    assert output.take().text == "ok a test FAIL\n" * 20_000
    assert written < 10 * LINES


def test_rewriting_the_same_is_no_change() -> None:
    output = Output()
    output.feed("50%")
    assert output.take() == Piece("50%")
    output.feed("\r50%")
    assert output.rewinds
    assert output.take() == Piece("")
    output.feed("\n")
    assert not output.rewinds


@given(st.text("ab", max_size=5), st.text("cd", max_size=5), st.integers(0, 8))
def test_two_pieces_as_one(first: str, then: str, rewind: int) -> None:
    before = "x" * 10
    one = joined(Piece(first, 2), Piece(then, rewind))
    text = (before[:-2] + first)[: max(0, 8 + len(first) - rewind)] + then
    assert (before[: len(before) - one.rewind] + one.text) == text


def test_styles_are_written_for_a_terminal_a_line_at_a_time() -> None:
    styles: Styles = ((0, 5, "bold bright-red on-#010203"), (5, 6, "reverse on-bright-blue"))
    assert to_terminal("ab\ncd!?", styles) == (
        "\x1b[1;91;48;2;1;2;3mab\x1b[0m\n\x1b[1;91;48;2;1;2;3mcd\x1b[0m\x1b[7;104m!\x1b[0m?"
    )
    assert to_terminal("x", ((0, 1, "evil \x1b[2J"),)) == "x"


@pytest.mark.parametrize(
    "styles",
    [((0, 9, "red"),), ((1, 1, "red"),), ((0, 2, "red"), (1, 3, "red")), ((0, 1, "pink"),), ((0, 1, ""),)],
)
def test_styles_that_are_not_valid(styles: Styles) -> None:
    assert not valid_styles(styles, 4)
