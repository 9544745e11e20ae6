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

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.ui.pictures.terminal import (
    QUERY,
    Probe,
    TerminalInfo,
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
        (KITTY.replace(b"0.32.2", b"0.26.5"), "half", (10, 20)),  # no placeholder characters yet
        (KITTY.replace(b"kitty(0.32.2)", b"ghostty 1.1.3"), "kitty", (10, 20)),
        (KITTY.replace(b"kitty(0.32.2)", b"WezTerm 20240203"), "half", (10, 20)),
        (XTERM, "sixel", (9, 17)),
        (FOOT, "sixel", (9, 19)),
        (PLAIN, "half", (0, 0)),
        (b"", "half", (0, 0)),
        (b"\x1b[6;0;0t\x1b[?4c", "half", (0, 0)),  # sixel without a cell size
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


@pytest.mark.parametrize("mode", ["auto", "kitty", "sixel", "half", "off"])
def test_the_choice_of_the_user(mode: str) -> None:
    known = TerminalInfo(is_tty=True, sixel=True, cell=(9, 17), name="XTerm(379)")
    assert choose(mode, known) == ("sixel" if mode == "auto" else mode)
    assert choose(mode, TerminalInfo()) == ("off" if mode == "off" else "half")


def test_a_multiplexer_gets_half_cells_unless_the_user_says_otherwise() -> None:
    info = TerminalInfo(is_tty=True, sixel=True, cell=(9, 17), multiplexer=True)
    assert choose("auto", info) == "half"
    assert choose("sixel", info) == "sixel"


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
    assert choose("auto", info) == "half"


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
