"""The main job, run as a user runs it: demo model, real SDK and CLI, real sandbox, real journal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from support.program import (
    PROGRAM,
    environment,
    gone_within,
    journal_events,
    journals,
    run,
    wait_until,
    watching_leftovers,
)

GAUSS = "sum 1 to 100 and check it with Gauss's formula"


def test_demo_sum_end_to_end(tmp_path: Path) -> None:
    with watching_leftovers() as left:
        ended = run("run", "--demo", "--json", GAUSS, home=tmp_path)
        assert gone_within(2, left) == []
    assert ended.code == 0, ended.stderr
    assert ended.of("tool_started")[0]["name"] == "mcp__sandbox__run_code"
    assert "5050" in ended.results()[0]
    assert "5050" in ended.answer
    assert ended.of("turn_finished")[0]["subtype"] == "success"
    # every event is numbered without a gap, and the journal holds exactly what was printed
    assert [event["seq"] for event in ended.events] == list(range(1, len(ended.events) + 1))
    assert [event["type"] for event in journal_events(tmp_path)] == [event["type"] for event in ended.events]
    assert ended.events[0]["type"] == "session_started"
    assert ended.events[-1]["type"] == "session_finished"
    listed = run("sessions", home=tmp_path)
    assert listed.code == 0
    assert "sum 1 to 100" in listed.stdout
    assert ended.events[0]["session_id"][:8] in listed.stdout


def test_demo_mends_its_error(tmp_path: Path) -> None:
    ended = run("run", "--demo", "--json", "make a mistake and fix it", home=tmp_path)
    assert ended.code == 0, ended.stderr
    finished = ended.of("tool_finished")
    assert finished[0]["is_error"]
    assert "[traceback]" in ended.results()[0]
    assert not finished[-1]["is_error"]


def test_chart_is_saved_and_shown_to_both(tmp_path: Path) -> None:
    ended = run("run", "--demo", "--json", "plot a damped sine and tell me its half-life", home=tmp_path)
    assert ended.code == 0, ended.stderr
    pictures = [
        part for event in ended.of("tool_finished") for part in event["content"] if part["type"] == "image"
    ]
    assert pictures
    for picture in pictures:
        assert Path(picture["path"]).read_bytes().startswith(b"\x89PNG")
        assert picture["width"] > 100


def test_resume_knows_the_session(tmp_path: Path) -> None:
    first = run("run", "--demo", "--json", "x = 41", home=tmp_path)
    session = first.events[0]["session_id"]
    second = run("run", "--demo", "--json", "--resume", session, GAUSS, home=tmp_path)
    assert second.code == 0, second.stderr
    assert second.events[0]["session_id"] == session
    assert second.events[0]["seq"] == first.events[-1]["seq"] + 1
    assert len(journals(tmp_path)) == 1
    shown = run("sessions", "show", session, home=tmp_path)
    assert "x = 41" in shown.stdout
    assert "5050" in shown.stdout


@pytest.mark.parametrize("moment", [pytest.param("text_delta", marks=pytest.mark.slow), "tool_output"])
def test_kill_9_leaves_the_record_and_no_process(tmp_path: Path, moment: str) -> None:
    prompt = GAUSS if moment == "text_delta" else "run a slow job"
    (tmp_path / "work").mkdir()
    with watching_leftovers() as left:
        process = subprocess.Popen(
            [*PROGRAM, "run", "--demo", "--json", prompt],
            env=environment(tmp_path),
            cwd=tmp_path / "work",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        shown = []
        for line in process.stdout:
            shown.append(json.loads(line))
            if shown[-1]["type"] == moment:
                break
        process.kill()
        process.wait()
        assert gone_within(2, left) == []
    recorded = journal_events(tmp_path)
    assert recorded[: len(shown)] == shown  # what had been shown is in the journal
    resumed = run("run", "--demo", "--json", "--resume", shown[0]["session_id"], GAUSS, home=tmp_path)
    assert resumed.code == 0, resumed.stderr + resumed.stdout[-2000:]
    assert "5050" in resumed.answer


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
    ],
)
def test_signals_close_in_order(tmp_path: Path, number: signal.Signals, code: int) -> None:
    (tmp_path / "work").mkdir()
    with watching_leftovers() as left:
        process = subprocess.Popen(
            [*PROGRAM, "run", "--demo", "--json", "run a slow job"],
            env=environment(tmp_path),
            cwd=tmp_path / "work",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(
            lambda: any(event["type"] == "tool_output" for event in journal_events(tmp_path)),
            60,
            "output of the job",
        )
        os.kill(process.pid, number)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == code, errors
        assert "Traceback" not in errors
        assert gone_within(2, left) == []
    assert journal_events(tmp_path)[-1]["type"] == "session_finished"
