"""Hostile text in every place of the interface: nothing of it acts on the terminal, all of it is shown."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support.hostile import ACTS, HOSTILE
from support.program import PROGRAM, environment
from support.terminal import terminal
from support.written import faults

from sandbox_chat.text import from_model

TESTS = Path(__file__).parents[1]


def driven(folder: Path, mode: str) -> tuple[bytes, dict[str, Any]]:
    """Drive the chat's screen at a terminal; return what it wrote and what it reports."""
    (folder / "[bold]file").touch()
    (folder / "a\u202egnp.txt").touch()
    (folder / "esc\x1b[77;77H").touch()
    env = {
        **environment(folder),
        "COLORTERM": "truecolor",
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)]),
    }
    command = [sys.executable, "-m", "support.hostile_app", str(folder), mode]
    with terminal(command, env=env, columns=100, rows=70, drawn=False) as screen:
        code = screen.ends(400)
        written = screen.written()
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert code == 0, report["failure"]
    assert report["failed"] == ""
    assert report["failure"] == ""
    return written, report


def acting(written: bytes) -> list[str]:
    """The sequences of hostile text that were written as they are."""
    sequences = [act for act in ACTS if len(act) > 2 and (act[0] < " " or "\x7f" <= act[0] < "\xa0")]
    return [act for act in sequences if act.encode() in written]


def clickable_by_text(report: dict[str, Any]) -> list[str]:
    """What a click would do that only hostile text can have made."""
    return [
        what for what in report["clickable"] if "app.quit" in what.partition("=")[2] and what.startswith("@")
    ] + [what for what in report["clickable"] if what.startswith("@click") and "answer(7)" in what]


@pytest.mark.slow
def test_hostile_text_in_every_place_does_nothing_and_is_shown(tmp_path: Path) -> None:  # cases T3, T4
    assert len(HOSTILE) >= 60
    written, report = driven(tmp_path, "clean")
    assert faults(written) == []
    assert acting(written) == []
    assert report["stopped"] == []  # the border held: the last look had nothing to do
    assert clickable_by_text(report) == []
    seen = "\n".join(report["screens"])
    shown = [from_model(each.text).strip() for each in HOSTILE if "\t" not in each.text]
    missing = [text for text in shown if "\n" not in text and len(text) < 50 and text not in seen]
    assert missing == []


@pytest.mark.slow
def test_text_that_no_border_cleaned_does_nothing_either(tmp_path: Path) -> None:
    written, report = driven(tmp_path, "raw")
    assert faults(written, hidden=False) == []
    assert acting(written) == []
    assert report["stopped"] != []
    assert clickable_by_text(report) == []


@pytest.mark.slow
def test_without_the_last_look_it_would_be_noticed(tmp_path: Path) -> None:
    written, _ = driven(tmp_path, "blind")
    assert faults(written, hidden=False) != []
    assert acting(written) != []


@pytest.mark.parametrize(
    ("written", "count"),
    [
        (b"plain \x1b[1;38;2;1;2;3mtext\x1b[0m\r\n\x1b[3;4H\x1b[?25l\x1b[?2026h", 0),
        (b'\x1b]52;c;YWJj\x07\x1b_Ga=d,d=I,i=7,q=2\x1b\\\x1bP0;1;0q"1;1;8;8#0~\x1b\\', 0),
        (b"\x1b[3J", 1),
        (b"\x1b]0;title\x07", 2),
        (b"\x1b]8;;http://e\x1b\\", 2),
        (b"\x1b[?1047h", 1),
        (b"\x9b2J", 1),
        ("\x9b2J \u202e \U000e0041".encode(), 3),
        (b"tab\t bell\x07 \0", 3),
        (b"\x1bc\x1b", 2),
    ],
)
def test_what_is_written_is_read_strictly(written: bytes, count: int) -> None:
    assert len(faults(written)) == count


@pytest.mark.parametrize("opening", [b"\x1b[200~", b""])
def test_three_pasted_lines_are_not_sent(tmp_path: Path, opening: bytes) -> None:  # case T7
    with terminal([*PROGRAM, "--demo"], env=environment(tmp_path)) as screen:
        screen.shows("Type a prompt", 60)
        screen.wait(lambda: b"\x1b[?2004h" in screen.written())
        closing = b"\x1b[201~" if opening else b""
        screen.type(
            opening + b"alpha one\rbeta \x07two\rgamma three" + closing
            if opening
            else b"alpha one\rbeta two\rgamma three"
        )
        screen.shows("gamma three")
        text = screen.text()
        assert "alpha one" in text and "beta" in text
        assert "thinking" not in text and "writing" not in text
        screen.type(b"\x11")
        assert screen.ends() == 0
    if opening:
        assert "\u2407two" in text
    assert faults(screen.written().partition(b"\x1b[?1049l")[0]) == []
