"""Marks by which a sandbox of a crashed run is told from one of a running program."""

from __future__ import annotations

import os
import subprocess
import sys

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
    marks = {**remote.marks("s", ""), "started": "other-1"}
    assert remote.is_left(marks)


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
