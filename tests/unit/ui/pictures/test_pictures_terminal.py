"""What the terminal can draw: replies, the choice, and the question on a real pty."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.settings import IMAGE_MODES
from sandbox_chat.ui.pictures.terminal import (
    QUERY,
    Probe,
    TerminalInfo,
    cell_of,
    cell_within,
    choose,
    has_placeholders,
    read_replies,
)

KITTY = b"\x1b_Gi=4177;OK\x1b\\\x1b[6;20;10t\x1b[4;800;1200t\x1bP>|kitty(0.32.2)\x1b\\\x1b[?62;c"
XTERM = b"\x1b[6;17;9t\x1bP>|XTerm(379)\x1b\\\x1b[?63;1;2;4;6;9;15;22c"
FOOT = b"\x1b[6;19;9t\x1bP>|foot(1.13.1)\x1b\\\x1b[?62;4;22c"
PLAIN = b"\x1b[?62;22c"


@pytest.mark.parametrize(
    ("replies", "mode", "cell"),
    [
        (KITTY, "kitty", (10, 20)),
        (KITTY.replace(b"0.32.2", b"0.26.5"), "sharp", (10, 20)),  # no placeholder characters yet
        (KITTY.replace(b"kitty(0.32.2)", b"ghostty 1.1.3"), "kitty", (10, 20)),
        (KITTY.replace(b"kitty(0.32.2)", b"WezTerm 20240203"), "sharp", (10, 20)),
        (KITTY.replace(b"kitty(0.32.2)", b"Konsole 24.12"), "symbols", (10, 20)),
        (XTERM, "sixel", (9, 17)),
        (FOOT, "sixel", (9, 19)),
        (PLAIN, "symbols", (0, 0)),
        (b"", "symbols", (0, 0)),
        (b"\x1b[6;0;0t\x1b[?4c", "symbols", (0, 0)),  # sixel without a cell size
    ],
)
def test_auto(replies: bytes, mode: str, cell: tuple[int, int]) -> None:
    info, typed = read_replies(replies)
    assert choose("auto", info) == mode
    assert info.cell == cell
    assert typed == b""


def test_the_cell_from_the_size_of_the_window() -> None:
    info, _ = read_replies(b"\x1b[4;800;1200t\x1b[?4c", (120, 40))
    assert info.cell == (10, 20)


def test_typed_keys_are_given_back() -> None:
    info, typed = read_replies(b"he" + XTERM[:10] + XTERM[10:] + b"llo\x1b[A")
    assert info.sixel
    assert typed == b"hello\x1b[A"


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(data: bytes) -> None:
    read_replies(data, (80, 24))


@pytest.mark.parametrize("mode", IMAGE_MODES)
def test_the_choice_of_the_user(mode: str) -> None:
    xterm = TerminalInfo(is_tty=True, answered=True, sixel=True, cell=(9, 17), name="XTerm(379)")
    other = {"auto": "sixel", "kitty": "symbols"}  # xterm has no placeholders: they would be shown as such
    assert choose(mode, xterm) == other.get(mode, mode)
    silent = TerminalInfo(is_tty=True)
    assert choose("kitty", silent) == "kitty"  # a terminal that says nothing is not known to lack them
    page = choose(mode, TerminalInfo())
    assert page == ("symbols" if mode in ("auto", "kitty", "sixel", "iterm") else mode)


def test_a_multiplexer_gets_symbols_unless_the_user_says_otherwise() -> None:
    info = TerminalInfo(is_tty=True, sixel=True, cell=(9, 17), multiplexer=True)
    assert choose("auto", info) == "symbols"
    assert choose("sixel", info) == "sixel"
    assert (
        choose("auto", replace(info, name="foot(1.13)")) == "symbols"
    )  # tmux has another font than it may seem


def test_ascii_signs_for_the_ascii_set() -> None:
    info = TerminalInfo(is_tty=True, sixel=True, kitty=True, cell=(9, 17), name="kitty(0.32.2)")
    assert choose("auto", info, ascii_only=True) == "ascii"
    assert choose("auto", TerminalInfo(), ascii_only=True) == "ascii"
    assert choose("kitty", info, ascii_only=True) == "kitty"
    assert choose("symbols", info, ascii_only=True) == "symbols"


@pytest.mark.parametrize(
    ("pixels", "cells", "cell"),
    [
        ((800, 480), (80, 24), (10, 20)),
        ((809, 489), (80, 24), (10, 20)),
        ((0, 0), (80, 24), (0, 0)),
        ((800, 480), (0, 0), (0, 0)),
        ((80, 24), (80, 24), (0, 0)),  # one pixel a cell: not a size in pixels
    ],
)
def test_the_size_of_a_cell(pixels: tuple[int, int], cells: tuple[int, int], cell: tuple[int, int]) -> None:
    assert cell_within(pixels, cells) == cell


def test_the_cell_that_the_system_knows(terminal: tuple[int, int]) -> None:
    _, slave = terminal
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 720, 408))
    assert cell_of(slave) == (9, 17)
    assert cell_of(-1) == (0, 0)


def test_names() -> None:
    assert has_placeholders("kitty(0.28.0)")
    assert has_placeholders("kitty(1.0.0)")
    assert not has_placeholders("kitty(x)")
    assert not has_placeholders("")


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """A pty: the terminal's end and the program's end."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    yield master, slave
    os.close(master)
    os.close(slave)


def probe(slave: int, **environ: str) -> Probe:
    return Probe(input_fd=slave, output_fd=slave, environ={"TERM": "xterm-256color", **environ})


def test_the_question_on_a_pty(terminal: tuple[int, int]) -> None:
    master, slave = terminal
    before = termios.tcgetattr(slave)
    asked = probe(slave)
    asked.start()
    assert not termios.tcgetattr(slave)[3] & termios.ECHO
    assert os.read(master, 1000) == QUERY

    def answer() -> None:
        time.sleep(0.05)
        os.write(master, b"h" + XTERM[:9])
        time.sleep(0.05)
        os.write(master, XTERM[9:] + b"i")

    thread = threading.Thread(target=answer)
    thread.start()
    info = asked.finish(5.0)
    thread.join()
    assert (info.name, info.sixel, info.cell) == ("XTerm(379)", True, (9, 17))
    assert asked.typed in (b"hi", b"h")  # what comes after the answer may be left for the program
    assert termios.tcgetattr(slave) == before


def test_a_silent_terminal_costs_only_the_time_allowed(terminal: tuple[int, int]) -> None:
    _, slave = terminal
    before = termios.tcgetattr(slave)
    asked = probe(slave)
    asked.start()
    begun = time.monotonic()
    info = asked.finish(0.1)
    assert time.monotonic() - begun < 2
    assert not info.answered
    assert info.is_tty
    assert termios.tcgetattr(slave) == before


@pytest.mark.parametrize(
    "environ", [{"TERM": "dumb"}, {"TERM": ""}, {"TMUX": "/tmp/x"}, {"TERM": "screen-256color"}]
)
def test_no_question_where_no_answer_is_of_use(terminal: tuple[int, int], environ: dict[str, str]) -> None:
    master, slave = terminal
    asked = probe(slave, **environ)
    asked.start()
    info = asked.finish(5.0)
    os.set_blocking(master, False)
    with pytest.raises(BlockingIOError):
        os.read(master, 1)
    assert choose("auto", info) == "symbols"


def test_without_a_terminal_nothing_happens() -> None:
    read, write = os.pipe()
    asked = Probe(input_fd=read, output_fd=write, environ={"TERM": "xterm"})
    asked.start()
    assert asked.finish(5.0) == TerminalInfo()
    os.close(read)
    os.close(write)
    closed = Probe(input_fd=read, output_fd=write, environ={"TERM": "xterm"})
    closed.start()
    assert not closed.finish(0.1).is_tty


def test_a_terminal_that_goes_away_is_survived() -> None:
    master, slave = pty.openpty()
    asked = probe(slave)
    asked.start()
    os.close(master)
    asked.finish(0.2)
    os.close(slave)
