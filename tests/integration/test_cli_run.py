"""``run`` and ``sessions`` as a user meets them: streaming, Ctrl-C at a terminal, resuming, a session in use."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.program import PROGRAM, environment, journal_events, run, wait_until
from support.scripted import MessagesServer, serve, text

from sandbox_chat import __version__

SLOW = text("word " * 2000, pace=0.02)


def gateway(server: MessagesServer) -> dict[str, str]:
    """The variables of a user who has a gateway and wants no code run."""
    return {
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_AUTH_TOKEN": server.token,
        "CLAUDE_MODEL": "scripted-model-1",
        "SANDBOX_CHAT_SANDBOX": "off",
    }


@contextmanager
def running(home: Path, server: MessagesServer, *options: str) -> Iterator[subprocess.Popen[str]]:
    """The program while it answers slowly; killed at the end if it still runs."""
    process = subprocess.Popen(
        [*PROGRAM, "run", *options, "hello"],
        env=environment(home, gateway(server)),
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until_streaming(home: Path) -> None:
    """Wait until the answer is being written to the journal."""
    wait_until(
        lambda: any(event["type"] == "text_delta" for event in journal_events(home)), 60, "the first words"
    )


@pytest.mark.slow  # two turns and five runs of the program
def test_plain_text_streams_and_the_session_can_be_read_and_resumed(tmp_path: Path) -> None:
    with serve(text("The first answer.\n\nIt has two parts."), text("The second.")) as server:
        env = gateway(server)
        first = run("run", "first prompt", home=tmp_path, env=env)
        assert (first.code, first.stdout) == (0, "The first answer.\n\nIt has two parts.\n"), first.stderr
        last = first.stderr.splitlines()[-1]
        assert last.startswith("success · 1 step · ")
        assert " · cost n/a · " in last
        session = last.rpartition("session ")[2]
        second = run("run", "--resume", "-", home=tmp_path, env=env, stdin="from\nstdin\n")
        assert (second.code, second.stdout) == (0, "The second.\n"), second.stderr
        messages = json.dumps(server.requests[-1].body["messages"])
        for part in ("first prompt", "The first answer.", "from\\nstdin"):
            assert part in messages

    (listed,) = json.loads(run("sessions", "--json", home=tmp_path).stdout)
    assert (listed["id"], listed["turns"], listed["title"]) == (session, 2, "first prompt")
    table = run("sessions", home=tmp_path).stdout.splitlines()
    assert len(table) == 2
    assert table[1].startswith(session[:8])
    shown = run("sessions", "show", session[:6], home=tmp_path).stdout
    for part in (
        "› first prompt",
        "It has two parts.",
        "resumed ",
        "› from\n  stdin",
        "The second.",
        "cost n/a",
    ):
        assert part in shown
    lines = run("sessions", "show", "--json", home=tmp_path).events
    assert lines == journal_events(tmp_path)
    assert [event["seq"] for event in lines] == list(range(1, len(lines) + 1))


def test_of_a_deleted_session_nothing_stays_on_the_disk(tmp_path: Path) -> None:
    def holding() -> list[str]:
        found = (path for path in tmp_path.rglob("*") if path.is_file())
        return [str(path) for path in found if b"quokkas" in path.read_bytes()]

    with serve(text("They smile.")) as server:
        done = run("run", "What do quokkas do?", home=tmp_path, env=gateway(server))
    assert done.code == 0, done.stderr
    assert any("projects" in path for path in holding())  # the agent's own record
    deleted = run("sessions", "delete", "--yes", done.stderr.split()[-1], home=tmp_path)
    assert deleted.code == 0, deleted.stderr
    assert holding() == []


@pytest.mark.slow  # two turns
def test_ctrl_c_at_a_terminal_keeps_the_partial_answer(tmp_path: Path) -> None:
    with serve(SLOW, text("Still here.")) as server:
        process, terminal = pty.fork()
        if process == 0:  # the child: it has the terminal as a user's shell would give it
            os.chdir(tmp_path)
            os.execve(PROGRAM[0], [*PROGRAM, "run", "hello"], environment(tmp_path, gateway(server)))
        shown = b""
        while b"word word" not in shown:
            shown += os.read(terminal, 4096)
        os.write(terminal, b"\x03")
        try:
            while piece := os.read(terminal, 4096):
                shown += piece
        except OSError:  # the program has gone, and with it the terminal
            pass
        os.close(terminal)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        assert code == 130, shown
        assert b"interrupted \xc2\xb7 " in shown
        assert b"Traceback" not in shown
        recorded = journal_events(tmp_path)
        (finished,) = [event for event in recorded if event["type"] == "turn_finished"]
        assert finished["interrupted"]
        answer = "".join(event["text"] for event in recorded if event["type"] in ("text", "text_delta"))
        assert "word word" in answer
        again = run("run", "--resume", "go on", home=tmp_path, env=gateway(server))
        assert (again.code, again.stdout) == (0, "Still here.\n"), again.stderr


def test_a_second_signal_leaves_at_once_and_still_in_order(tmp_path: Path) -> None:
    with serve(SLOW) as server, running(tmp_path, server, "--json") as process:
        until_streaming(tmp_path)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 130, errors
        assert errors == ""
    assert journal_events(tmp_path)[-1]["type"] == "session_finished"


def test_a_session_in_use_is_not_opened_twice(tmp_path: Path) -> None:
    with serve(SLOW) as server, running(tmp_path, server, "--json") as process:
        until_streaming(tmp_path)
        second = run("run", "--resume", "me too", home=tmp_path, env=gateway(server))
        assert (second.code, second.stdout) == (2, "")
        assert "is open in another running Sandbox Chat" in second.stderr
        assert run("sessions", "show", home=tmp_path).code == 0  # reading is free
        assert process.poll() is None


def test_a_killed_session_is_shown_as_far_as_it_came(tmp_path: Path) -> None:
    with serve(SLOW) as server, running(tmp_path, server) as process:
        until_streaming(tmp_path)
        process.kill()
        process.wait()
    shown = run("sessions", "show", home=tmp_path)
    assert shown.code == 0
    assert "› hello" in shown.stdout
    assert "word" in shown.stdout
    assert shown.stdout.endswith("[the answer was cut off here]\n")
    assert run("sessions", home=tmp_path).stdout.splitlines()[1].endswith("hello")


def test_a_log_is_written_and_holds_no_credential(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    with serve(text("Hi.")) as server:
        ended = run("run", "--log", str(log), "hello", home=tmp_path, env=gateway(server))
        assert ended.code == 0, ended.stderr
        assert server.token not in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    started = json.loads(log.read_text().splitlines()[0])
    assert (started["event"], started["version"]) == ("start", __version__)
