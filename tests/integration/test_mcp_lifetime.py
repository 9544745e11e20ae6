"""Servers' programs end with this one, however it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from support.mcp_host import BAD, gone, way

from sandbox_chat.mcp import launch_server
from sandbox_chat.mcp.base import McpError, ServerConfig
from sandbox_chat.mcp.connection import Connection
from sandbox_chat.settings import Settings

HOST = """
import asyncio, sys
from pathlib import Path
sys.path[:0] = [{tests!r}]
from support.mcp_host import hosted, way

async def main():
    async with hosted(Path({folder!r}), way({name!r})) as h:
        print((await h.call("pid")).text, (await h.call("child")).text, flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""


@pytest.mark.parametrize("name", ["good", "ignores_the_end"])
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_program_that_is_killed_leaves_nothing(tmp_path: Path, name: str, sign: signal.Signals) -> None:
    script = HOST.format(tests=str(BAD.parents[1]), folder=str(tmp_path), name=name)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        pids = [int(word) for word in program.stdout.readline().split()]
        assert len(pids) == 2
        whole = [each.pid for each in psutil.Process(program.pid).children(recursive=True)]
        assert set(pids) <= set(whole)
        program.send_signal(sign)
        for pid in whole:
            assert gone(pid)


async def test_the_launcher_that_is_killed_takes_the_server_along(tmp_path: Path) -> None:
    lost: list[str] = []
    connection = Connection(way("good"), Settings(), tmp_path / "x.log", on_lost=lost.append)
    await connection.open()
    result = await connection.call("pid", {})
    pid = int(result.content[0].text)  # type: ignore[union-attr]
    parent = psutil.Process(pid).parent()
    assert parent is not None and launch_server.__file__ in parent.cmdline()
    os.kill(parent.pid, signal.SIGKILL)
    assert await asyncio.to_thread(gone, pid)
    async with asyncio.timeout(10):
        while not lost:
            await asyncio.sleep(0.01)
    with pytest.raises(McpError):
        await connection.call("pid", {})
    await connection.close()


async def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    for pause in (0.0, 0.02, 0.1, 0.3):
        connection = Connection(way("hangs"), Settings(), tmp_path / "x.log")
        task = asyncio.ensure_future(connection.open())
        await asyncio.sleep(pause)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    log = str(tmp_path / "x.log")  # in the command line of each launcher: other tests leave processes too
    assert [pid for pid in started(log) if not gone(pid)] == []


def started(mark: str) -> list[int]:
    """The launchers whose command line holds ``mark``, with all below them."""
    found = []
    for each in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if any(mark in word for word in each.cmdline()):
                found += [each.pid, *(child.pid for child in each.children(recursive=True))]
    return found


async def test_terminal_signals_do_not_reach_it(tmp_path: Path) -> None:
    connection = Connection(way("good"), Settings())
    await connection.open()
    pid = int((await connection.call("pid", {})).content[0].text)  # type: ignore[union-attr]
    assert os.getpgid(pid) != os.getpgid(0) and os.getsid(pid) != os.getsid(0)
    await connection.close()
    assert gone(pid)


def launched(
    tmp_path: Path, *command: str, limit: int = 10_000, secrets: str = ""
) -> tuple[dict[str, object], str]:
    """Run the launcher to the end of its server; return its report and the log."""
    log = tmp_path / "s.log"
    control, end = os.pipe()
    with subprocess.Popen(
        [
            sys.executable,
            "-I",
            "-S",
            launch_server.__file__,
            str(control),
            str(log),
            str(limit),
            secrets,
            *command,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(control,),
        env={"PATH": os.environ["PATH"], "TOKEN": "s3cr3t-value"},
    ) as program:
        os.close(control)
        said = program.communicate(timeout=30)[1]
        os.close(end)
    return json.loads(said), log.read_text() if log.exists() else ""


def test_the_launcher_s_report(tmp_path: Path) -> None:
    report, log = launched(tmp_path, "/bin/sh", "-c", "echo one >&2; printf two >&2; exit 5")
    assert report == {"status": 5, "problem": "", "tail": "one\ntwo\n"}
    assert "one\ntwo\n" in log and "started" in log and "ended with status 5" in log
    report, _ = launched(tmp_path, "/bin/sh", "-c", "kill -9 $$")
    assert report["status"] == -9
    report, _ = launched(tmp_path, "/no/such/program")
    assert report["problem"] == "No such file or directory"


def test_the_log_is_bounded_private_clean_and_without_secrets(tmp_path: Path) -> None:
    script = (
        "import os,sys\nfor n in range(20000): sys.stderr.write(f'{n} \\x1b[31m {os.environ[\"TOKEN\"]}\\n')"
    )
    report, log = launched(tmp_path, sys.executable, "-c", script, secrets="TOKEN,OTHER")
    log = (tmp_path / "s.log.1").read_text() + log
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"s.log", "s.log.1"} and sum(sizes.values()) <= 10_000
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in tmp_path.iterdir())
    assert "19999" in log and "\x1b" not in log and "s3cr3t" not in log and "[secret]" in log
    assert "19999" in str(report["tail"]) and "s3cr3t" not in str(report)


def test_a_log_that_cannot_be_written_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "s.log").mkdir()
    control, end = os.pipe()
    done = subprocess.run(
        [sys.executable, "-I", "-S", launch_server.__file__, str(control), str(tmp_path / "s.log"), "100", "",
         "/bin/sh", "-c", "echo x >&2"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=(control,), check=False,
    )  # fmt: skip
    os.close(control)
    os.close(end)
    assert json.loads(done.stderr)["tail"] == "x\n"


async def test_a_server_that_takes_no_input_does_not_hold_up_the_end(tmp_path: Path) -> None:
    config = ServerConfig(name="x", command=("/bin/sh", "-c", "trap '' TERM; sleep 1000"))
    connection = Connection(config, Settings(mcp_start_timeout=1.0))
    with pytest.raises(McpError, match="not ready within 1 s"):
        await connection.open()
    begin = time.monotonic()
    await connection.close()
    assert time.monotonic() - begin < 5


async def test_a_program_in_its_own_folder(tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {BAD} good\n")
    program.chmod(0o755)
    connection = Connection(ServerConfig(name="x", command=("./server",), cwd=tmp_path), Settings())
    await connection.open()
    assert len(connection.tools) == 8
    await connection.close()
