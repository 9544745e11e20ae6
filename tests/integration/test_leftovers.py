"""What a killed program leaves: nothing that lives, and no temporary folder beyond the next start."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from support.program import PROGRAM, environment, gone_within, run, wait_until, watching_leftovers
from support.sandboxes import PATIENCE
from support.terminal import terminal


def test_the_next_start_clears_what_a_killed_one_left(tmp_path: Path) -> None:
    temp = tmp_path / "t"
    temp.mkdir()
    env = {"TMPDIR": str(temp)}
    with watching_leftovers() as left:
        process = subprocess.Popen(
            [*PROGRAM, "run", "--demo", "run a slow job"],
            env=environment(tmp_path, env),
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: list(temp.glob("*/*")), PATIENCE, "the temporary folder")
        process.kill()
        process.wait()
        assert gone_within(2, left) == []
    assert list(temp.iterdir())
    ended = run("run", "--demo", "x = 1", home=tmp_path, env=env)
    assert ended.code == 0, ended.stderr
    assert list(temp.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["connecting", "streaming", "running"])
def test_a_killed_chat_leaves_no_process(tmp_path: Path, moment: str) -> None:
    with watching_leftovers() as left, terminal([*PROGRAM, "--demo"], env=environment(tmp_path)) as chat:
        chat.wait(lambda: b"\x1b[?1049h" in chat.written(), PATIENCE)
        if moment != "connecting":
            chat.shows("Type a prompt", PATIENCE)
        if moment == "streaming":
            chat.type("sum 1 to 100 and check it with Gauss's formula\r")
            chat.shows("add up", PATIENCE)
        elif moment == "running":
            chat.type("run a slow job\r")
            chat.shows("run_code", PATIENCE)
        os.kill(chat.process.pid, signal.SIGKILL)
        chat.process.wait()
        assert gone_within(2, left) == []
    if moment != "connecting":
        ended = run("run", "--demo", "--resume=", "x = 41", home=tmp_path)
        assert ended.code == 0, ended.stderr
        shown = run("sessions", "show", home=tmp_path)
        assert "sum 1 to 100" in shown.stdout or "slow job" in shown.stdout
