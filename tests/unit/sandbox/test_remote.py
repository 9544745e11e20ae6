"""Marks by which a sandbox of a crashed run is told from one of a running program."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from sandbox_chat.sandbox import remote

CODE = "import json; from sandbox_chat.sandbox import remote; print(json.dumps(remote.marks('s', '')), flush=True); input()"


def test_our_own_are_not_left() -> None:
    marks = remote.marks("session", "tag")
    assert marks["app"] == remote.APP
    assert (marks["session"], marks["tag"], marks["pid"]) == ("session", "tag", str(os.getpid()))
    assert remote.is_here(marks)
    assert remote.is_mine(marks)
    assert not remote.is_left(marks)
    assert "tag" not in remote.marks("session", "")


def test_those_of_another_process_are_left_once_it_is_gone() -> None:
    import json

    with subprocess.Popen(
        [sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        marks = json.loads(program.stdout.readline())
        assert remote.is_here(marks)
        assert not remote.is_mine(marks)
        assert not remote.is_left(marks)
        program.kill()
        program.wait()
        assert remote.is_left(marks)


def test_a_number_that_was_given_out_again_is_not_taken_for_the_same_process() -> None:
    marks = remote.marks("s", "")
    boot = marks["started"].rpartition("-")[0]
    assert remote.is_left({**marks, "started": f"{boot}-1"})


def test_those_of_before_the_machines_start_are_left_if_it_surely_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marks = {**remote.marks("s", ""), "started": "another-1"}
    long_ago, now = datetime(2020, 1, 1, tzinfo=UTC), datetime.now(UTC)
    monkeypatch.setattr(remote, "_machine", lambda: "m")
    assert remote.is_left(marks, long_ago)
    assert not remote.is_left(marks, now), "made after this machine's start: by another of the same name"
    assert not remote.is_left(marks)
    monkeypatch.setattr(remote, "_machine", lambda: "")
    assert not remote.is_left(marks, long_ago), "any machine may have this name"


def test_a_process_of_another_container_is_not_taken_for_dead() -> None:
    marks = remote.marks("s", "")
    gone = {**marks, "pid": "999999999"}
    assert remote.is_left(gone)
    assert not remote.is_left({**gone, "space": "another"})
    assert not remote.is_mine({**marks, "space": "another"})


def test_a_process_that_proc_hides_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    marks = {**remote.marks("s", ""), "pid": "1"}

    def hidden(pid: int) -> str:
        return "" if pid == 1 else marks["started"]

    def refused(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(remote, "_started", hidden)
    assert remote.is_left(marks), "a zombie's end is not waited for"
    monkeypatch.setattr(os, "kill", refused)
    assert not remote.is_left(marks)


def test_machines_of_one_name_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    here = remote._host()
    remote._host.cache_clear()
    monkeypatch.setattr(remote, "_machine", lambda: "another")
    try:
        assert remote._host() != here
    finally:
        remote._host.cache_clear()


def test_marks_of_others_and_nonsense_are_nobodys_leftovers() -> None:
    marks = remote.marks("s", "")
    assert not remote.is_left({**marks, "host": "elsewhere", "pid": "1", "started": "x"})
    assert not remote.is_left({**marks, "app": "other", "started": "x"})
    for pid in ("", "-1", "abc", "²", "1" * 30):
        assert not remote.is_left({**marks, "pid": pid}) or pid == "1" * 30
    assert not remote.is_left({})


def test_the_host_says_nothing_of_the_machine() -> None:
    import platform

    assert platform.node() not in remote.marks("s", "")["host"]
