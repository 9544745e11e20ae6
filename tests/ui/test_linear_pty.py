"""The plain chat at a real pty and at pipes: only text is ever written, and every way out is orderly."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.program import PROGRAM, environment, gone_within, journal_events, run, watching_leftovers
from support.terminal import Terminal, terminal

PLAIN = [*PROGRAM, "--plain", "--demo"]
CONTROL = re.compile(rb"[\x00-\x06\x0b-\x0c\x0e-\x1f\x7f]")
"""What must never be written: all but the bell, backspace, tab, newline and carriage return."""
GOLDEN = Path(__file__).parent / "__snapshots__" / "test_linear_pty" / "plain.txt"


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Terminal]:
    with terminal(PLAIN, env=environment(tmp_path), columns=200, rows=50) as shown:
        shown.shows("prompt:")
        yield shown
        assert CONTROL.search(shown.written()) is None


def said(shown: Terminal, words: str, count: int = 1) -> None:
    """Wait until ``words`` have been written so many times."""
    shown.wait(lambda: shown.written().count(words.encode()) >= count)


def leaves(shown: Terminal) -> int:
    """Press Ctrl+D, and again where the terminal took it while the program was between two lines; the exit code."""
    end = time.monotonic() + 30.0
    while shown.process.poll() is None and time.monotonic() < end:
        shown.type("\x04")
        with contextlib.suppress(subprocess.TimeoutExpired):
            shown.process.wait(1.0)
    return shown.ends()


def test_a_conversation(plain: Terminal) -> None:
    plain.type("sum 1 to 100 and check it with Gauss's formula\r")
    said(plain, "turn: ")
    text = plain.text()
    assert "Ready." in text
    assert re.search(r"^tool run_code started: .+\(\d+ lines\)$", text, re.MULTILINE)
    assert "  Gauss: 5050" in text
    assert re.search(r"^tool run_code ok, [\d.]+ s$", text, re.MULTILINE)
    assert re.search(r"^turn: .+no cost \(demo\)", text, re.MULTILINE)
    plain.type("/cost\r/nosuch\r")
    plain.type("\x15")
    plain.type("/quit\r")


def test_editing_a_line_writes_no_escape_sequences(plain: Terminal) -> None:
    plain.type("x = 4\x01y = 5; \x1b[C\x1b[D\x05 + 1\x1b[D\x1b[D\x1b[D\x7f\x1b[A\x1b[B\x0b\x15")
    time.sleep(0.3)
    plain.type("x = 41\r")
    said(plain, "turn: ")
    plain.type("\x1b[A\x1b[A")
    time.sleep(0.3)


def test_a_paste_is_one_prompt_and_is_not_sent(plain: Terminal) -> None:
    plain.type("one\r/quit\rthree\r")
    plain.shows("3 lines are in the prompt.")
    plain.type("/clear\r")
    plain.shows("The prompt is empty.")
    assert b"turn: " not in plain.written()


def test_a_paste_is_sent_by_enter_alone(plain: Terminal, tmp_path: Path) -> None:
    plain.type("x = 41\rprint(x)\r")
    plain.shows("2 lines are in the prompt.")
    plain.type("\r")
    said(plain, "turn: ")
    prompts = [event["prompt"] for event in journal_events(tmp_path) if event["type"] == "turn_started"]
    assert prompts == ["x = 41\nprint(x)"]


def test_ctrl_c_stops_the_turn_and_twice_at_the_prompt_ends(plain: Terminal) -> None:
    plain.type("import time; time.sleep(60)\r")
    said(plain, "tool run_code started")
    time.sleep(0.5)
    plain.type("\x03")
    plain.shows("Stopping the turn.")
    said(plain, "turn: ")
    plain.type("\x03")
    said(plain, "Ctrl+C once more quits.", 2)
    plain.type("\x03")
    assert plain.ends() == 0
    assert "Session saved: sandbox-chat --resume " in plain.text()


def test_commands(plain: Terminal) -> None:
    for command, words in (
        ("/help", "/attach FILE puts a file"),
        ("/code", "There was no tool call yet."),
        ("/history", "Nothing has been said yet."),
        ("/model x", "The demo has no model to choose."),
        ("/attach", "Which file?"),
    ):
        plain.type(command + "\r")
        plain.shows(words)
        time.sleep(0.1)
    plain.type("print(6 * 7)\r")
    said(plain, "turn: ")
    plain.type("/code\r")
    plain.shows("\n  print(6 * 7)")
    plain.type("/output\r")
    said(plain, "  42", 2)
    plain.type("/history\r")
    plain.shows("You: print(6 * 7)")
    assert leaves(plain) == 0


def test_what_only_looks_like_a_command_is_a_prompt(plain: Terminal) -> None:
    for count, prompt in enumerate(("//cost", "/quit smoking", " /help"), 1):
        plain.type(prompt + "\r")
        said(plain, "turn: ", count)
        said(plain, "prompt: ", count + 1)
        time.sleep(0.1)
    plain.type("/history\r")
    for prompt in ("/cost", "/quit smoking", "/help"):
        said(plain, f"You: {prompt}")
    assert leaves(plain) == 0


def test_a_question_is_answered_by_its_number(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "downloads").mkdir(parents=True)
    env = environment(tmp_path, {"SANDBOX_CHAT_DOWNLOADS_DIR": str(work / "downloads")})
    with terminal(PLAIN, env=env, columns=200, rows=50) as shown:
        shown.shows("prompt:")
        for number in (1, 2, 3):
            shown.type(f"open('/tmp/a.txt', 'w').write('x' * {number})\r")
            said(shown, "turn: ", 2 * number - 1)
            shown.type("download /tmp/a.txt\r")
            if number == 2:
                said(shown, "answer with a number:")
                shown.type("9\r")
                shown.shows("Please type a number from 1 to 5.")
                shown.type("2\r")
                shown.shows("Answer: replace this file for this session")
            said(shown, "turn: ", 2 * number)
        assert (work / "downloads" / "a.txt").read_text() == "xxx", "the third time nobody was asked"
        assert shown.text().count("answer with a number:") == 2  # one of them was no answer
        shown.type("/approvals\r")
        shown.shows("1 replace this file for this session: ")
        time.sleep(0.1)
        shown.type("/approvals 1\r")
        shown.shows("Taken back")
        time.sleep(0.1)
        shown.type("/approvals\r")
        shown.shows("You have answered nothing")
        time.sleep(0.1)
        shown.type("/quit\r")
        assert shown.ends() == 0
        assert CONTROL.search(shown.written()) is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with watching_leftovers() as left:
        with terminal(PLAIN, env=environment(tmp_path)) as shown:
            shown.shows("prompt:")
            shown.type("import time; time.sleep(60)\r")
            said(shown, "tool run_code started")
            shown.process.send_signal(number)
            assert shown.ends() == 128 + number
        assert gone_within(5, left) == []
    assert journal_events(tmp_path)[-1]["type"] == "session_finished"


def test_at_pipes_every_line_is_a_prompt_and_the_end_ends(tmp_path: Path) -> None:
    done = run("--plain", "--demo", home=tmp_path, stdin="x = 41\nprint(x + 1)\n")
    assert done.code == 0
    assert done.stdout.count("\nturn: ") == 2
    assert "\n  42\n" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_the_session_goes_on(tmp_path: Path) -> None:
    run("--plain", "--demo", home=tmp_path, stdin="x = 41\n")
    done = run("--plain", "--demo", "--resume", home=tmp_path, stdin="/history\nprint(1)\n")
    assert "The session goes on after 1 turn. /history reads it." in done.stdout
    assert "You: x = 41" in done.stdout
    turns = [event for event in journal_events(tmp_path) if event["type"] == "turn_finished"]
    assert len(turns) == 2


def test_a_wrong_setting_is_told_in_one_line(tmp_path: Path) -> None:
    done = run("--plain", home=tmp_path, stdin="")
    assert done.code == 2
    assert done.stderr.startswith("sandbox-chat: No model is configured.")


def test_how_it_reads(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A conversation as it is written; ``--snapshot-update`` writes the text that it is compared with."""
    done = run(
        "--plain", "--demo", "--sandbox", "local", home=tmp_path,
        stdin="/help\nsum 1 to 100 and check it with Gauss's formula\nmake a mistake and fix it\n/cost\n",
    )  # fmt: skip
    text = re.sub(r"\d+\.\d+ s\b", "0.00 s", done.stdout)
    text = re.sub(r"[\d,]+ tokens in, [\d,]+ out", "0 tokens in, 0 out", text)
    text = re.sub(r"--resume [0-9a-f-]+", "--resume ID", text)
    if request.config.getoption("--snapshot-update"):
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_the_bell_rings_only_when_it_is_asked_for(tmp_path: Path) -> None:
    env = environment(tmp_path, {"SANDBOX_CHAT_NOTIFY": "bell", "SANDBOX_CHAT_NOTIFY_AFTER": "0"})
    with terminal(PLAIN, env=env, columns=100, rows=30) as shown:
        shown.shows("prompt:")
        shown.type("hello\r")
        said(shown, "turn: ")
        said(shown, "prompt: ", 2)
        assert shown.written().count(b"\x07") == 1
        shown.type("/quit\r")
        assert shown.ends() == 0


def test_branches_are_made_and_gone_back_to(tmp_path: Path) -> None:
    words = [
        "x = 41",
        "x + 1",
        "/fork",
        "y = 2",
        "/rewind 2",
        "/retry",
        "/clear",
        "/rewind 1",
        "/retry",
        "/quit",
    ]
    done = run("--plain", "--demo", home=tmp_path, stdin="".join(f"{line}\n" for line in words))
    assert done.code == 0 and "Traceback" not in done.stderr
    said = done.stdout
    assert "A branch of the session" in said
    assert "Back at turn 2, in a branch; the first session stays. The prompt was: x + 1." in said
    assert "The session goes on after 1 turn." in said
    assert "NameError: name 'x' is not defined" in said  # the sandbox is a new one
    assert "remembers nothing" in said
    assert "own record of this conversation was not found" not in said
    assert said.count("Session saved: ") == 4 == len(set(re.findall(r"--resume (\S+)", said)))
