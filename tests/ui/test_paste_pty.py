"""Pastes at a real terminal, with brackets and without: nothing is sent, every character arrives (case T7)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.chat_program import chat_program
from support.terminal import Terminal

THREE = "one\rtwo\rthree\r"


def draft(folder: Path) -> str:
    """The draft as it is kept on disk, with long pastes written out."""
    found = [json.loads(path.read_text()) for path in (folder / "data/drafts").glob("*.json")]
    return "".join(part[1] for part in found[0]) if found else ""


def sent_nothing(at: Terminal) -> bool:
    return "Type a prompt" not in at.text() and "Try" in at.text()


@pytest.mark.parametrize("brackets", [True, False])
def test_three_lines(tmp_path: Path, brackets: bool) -> None:
    with chat_program(tmp_path) as at:
        at.type(f"\x1b[200~{THREE}\x1b[201~" if brackets else THREE)
        at.wait(lambda: draft(tmp_path) == "one\ntwo\nthree\n")
        at.shows("› one")
        at.wait(lambda: sent_nothing(at))


@pytest.mark.parametrize("brackets", [True, False])
def test_a_large_one_arrives_whole_and_the_next_key_with_it(tmp_path: Path, brackets: bool) -> None:
    text = "\n".join(f"line {number} 你好" for number in range(1500))
    size = 3 if brackets else 1
    text = "\n".join([text] * size)
    keys = text.replace("\n", "\r")
    with chat_program(tmp_path) as at:
        data = (f"\x1b[200~{keys}\x1b[201~" if brackets else keys).encode()
        for place in range(0, len(data), 3000):  # a terminal's buffer holds no more
            at.type(data[place : place + 3000])
        at.wait(lambda: draft(tmp_path) == text)
        at.shows("pasted text")
        at.wait(lambda: sent_nothing(at))
        at.type("x")
        at.wait(lambda: draft(tmp_path) == text + "x")


def test_what_looks_like_keys_in_a_paste_is_text(tmp_path: Path) -> None:
    with chat_program(tmp_path) as at:
        at.type("\x1b[200~a\x1b[77;77Hb\r\x1b\x11\x07\x1bOP\x1b\rc\r\x1b[201~")
        at.wait(lambda: draft(tmp_path) == "a␛[77;77Hb\n␛␑␇␛OP␛\nc\n")
        at.wait(lambda: sent_nothing(at))
        assert at.process.poll() is None


def test_a_byte_that_is_no_text_does_not_end_the_keys(tmp_path: Path) -> None:
    with chat_program(tmp_path) as at:
        at.type(b"a\xffb\xc3c")
        at.wait(lambda: draft(tmp_path) == "a\ufffdb\ufffdc")
