"""``sandbox-chat mcp serve`` over stdio, driven by the official client and line by line, with the real local sandbox."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import types
from support import serving
from support.program import PROGRAM, environment, gone_within, run, wait_until, watching_leftovers
from support.serving import PATIENCE, lines, pictures_of, text_of

FIGURE = """
import matplotlib.pyplot as plt
plt.plot([1, 4, 9])
plt.savefig("/tmp/chart.png")
plt.show()
"""
TOOLS = ["run_code", "write_file", "read_file", "read_image", "list_files", "download_file"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_runs_code_and_sees_pictures(tmp_path: Path, mode: str) -> None:
    async with serving.stdio(tmp_path, mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        shown = await client.call_tool("run_code", {"code": FIGURE})
        assert not shown.is_error, text_of(shown)
        [picture] = pictures_of(shown)
        assert base64.b64decode(picture.data).startswith(b"\x89PNG")
        seen = await client.call_tool("read_image", {"path": "/tmp/chart.png"})
        assert len(pictures_of(seen)) == 1
        await client.call_tool("run_code", {"code": "kept = 41"})
        assert "42" in text_of(await client.call_tool("run_code", {"code": "kept + 1"}))
        wrong = await client.call_tool("run_code", {"code": "1", "timeout": 9999})
        assert wrong.is_error and "timeout" in text_of(wrong)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_cancelling_stops_the_code(tmp_path: Path, mode: str) -> None:
    async with serving.stdio(tmp_path, mode=mode) as client:
        await client.call_tool("run_code", {"code": "import time; n = 0"})
        code = "while True:\n    n += 1\n    time.sleep(0.01)"
        heard = asyncio.Event()

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            heard.set()

        task = asyncio.ensure_future(client.call_tool("run_code", {"code": code}, progress_callback=tell))
        await asyncio.wait_for(heard.wait(), PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        counts = [text_of(await client.call_tool("run_code", {"code": "n"})) for _ in range(2)]
        assert counts[0] == counts[1] and "[result]" in counts[0]


async def test_progress_of_a_long_run(tmp_path: Path) -> None:
    async with serving.stdio(tmp_path) as client:
        told: list[tuple[float, float | None, str | None]] = []

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, total, message))

        code = "import time\nfor n in range(30):\n    print('step', n)\n    time.sleep(0.1)"
        await client.call_tool("run_code", {"code": code, "timeout": 20}, progress_callback=tell)
        assert len(told) >= 2
        assert [each[0] for each in told] == sorted({each[0] for each in told})
        assert {each[1] for each in told} == {20.0}
        assert any(each[2] and each[2].startswith("step ") for each in told)
        count = len(told)
        await client.call_tool("run_code", {"code": code, "timeout": 20})
        assert len(told) == count  # who did not ask is told nothing


@pytest.mark.parametrize(
    ("action", "answer", "kept"),
    [
        ("accept", "replace", {"a.txt": "2"}),
        ("accept", "nonsense", {"a.txt": "1", "a (2).txt": "2"}),
        ("decline", None, {"a.txt": "1"}),
        ("cancel", None, {"a.txt": "1", "a (2).txt": "2"}),
        (None, None, {"a.txt": "1", "a (2).txt": "2"}),
    ],
)
async def test_a_question_is_asked_by_the_client(
    tmp_path: Path, action: Any, answer: str | None, kept: dict[str, str]
) -> None:
    asked: list[str] = []

    async def ask(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action=action, content={"answer": answer} if answer else None)

    options = {"elicitation_callback": ask} if action else {}
    async with serving.stdio(tmp_path, **options) as client:
        for content in "12":
            await client.call_tool("write_file", {"path": "a.txt", "content": content})
            await client.call_tool("download_file", {"path": "a.txt"})
    folder = tmp_path / "work" / "downloads"
    assert {path.name: path.read_text() for path in folder.iterdir()} == kept
    assert len(asked) == (1 if action else 0)
    assert all("a.txt exists already" in message for message in asked)


async def test_what_is_not_a_picture_is_told_by_its_path(tmp_path: Path) -> None:
    async with serving.stdio(tmp_path, env={"SANDBOX_CHAT_IMAGES_PER_CALL": "0"}) as client:
        page = "from IPython.display import HTML, display\ndisplay(HTML('<h1>A page</h1><script>1</script>'))"
        result = await client.call_tool("run_code", {"code": page + "\nprint('x' * 200_000)" + FIGURE})
        assert pictures_of(result) == []
        said = text_of(result)
        paths = [Path(line.partition(": ")[2]) for line in said.splitlines() if ": /" in line]
        assert {path.suffix for path in paths} == {".png", ".html", ".txt"}, said
        assert all(path.stat().st_mode & 0o077 == 0 for path in paths)
    assert not any(path.exists() for path in paths)


# --- the wire -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_older_protocols(tmp_path: Path, version: str) -> None:
    with lines(tmp_path) as server:
        begun = server.begin(version)
        assert begun["protocolVersion"] == version
        assert "sandbox" in begun["instructions"]
        server.send("tools/list")
        assert [tool["name"] for tool in server.receive()["result"]["tools"]] == TOOLS


def test_rubbish_and_prints_do_not_break_the_wire(tmp_path: Path) -> None:
    with lines(tmp_path) as server:
        server.begin()
        for line in (b"", b"nonsense", b'{"jsonrpc": "2.0"}', b"\xff\xfe\x00", b"[" * 100_000):
            server.raw(line)
        code = "import os, sys\nos.write(1, b'to fd 1\\n'); print('out'); sys.__stdout__.write('again'); 7"
        result = server.call("run_code", code=code)
        assert not result["isError"]
        assert "out" in result["content"][0]["text"]


def test_the_end_of_input_ends_the_sandbox(tmp_path: Path) -> None:
    with watching_leftovers() as left, lines(tmp_path) as server:
        server.begin()
        server.call("run_code", code="x = 1")
        server.send("tools/call", {"name": "run_code", "arguments": {"code": "while True: pass"}})
        wait_until(lambda: len(left()) > 1, PATIENCE, "the sandbox")
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert server.process.wait(PATIENCE) == 0
        assert gone_within(10, left) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_the_sandbox_although_the_client_stays(tmp_path: Path, number: signal.Signals) -> None:
    with watching_leftovers() as left, lines(tmp_path) as server:
        server.begin()
        server.call("run_code", code="x = 1")
        server.process.send_signal(number)
        code = server.process.wait(PATIENCE)
        assert code == (-9 if number == signal.SIGKILL else 128 + number)
        assert gone_within(10, left) == []


def test_a_client_that_does_not_read_can_still_be_left(tmp_path: Path) -> None:
    with watching_leftovers() as left, lines(tmp_path) as server:
        server.begin()
        for _ in range(40):
            server.send("tools/call", {"name": "run_code", "arguments": {"code": "print('x' * 15_000)"}})
        time.sleep(3)  # the pipe is full by now, or soon
        server.process.terminate()
        server.process.wait(PATIENCE)
        assert gone_within(10, left) == []


def test_a_killed_client_takes_its_server_along(tmp_path: Path) -> None:
    client = (
        "import subprocess, sys, time\n"
        f"server = subprocess.Popen({[*PROGRAM, 'mcp', 'serve']!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        f"server.stdin.write(sys.argv[1].encode()); server.stdin.flush()\n"
        "server.stdout.readline(); server.stdout.readline(); print('ready', flush=True); time.sleep(1000)\n"
    )
    version = serving.INITIALIZE["params"]["protocolVersion"]
    call = {"name": "run_code", "arguments": {"code": "1"}}
    import json

    wire = "".join(
        json.dumps(each) + "\n"
        for each in (
            serving.INITIALIZE,
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        )
    )
    assert version in wire
    with (
        watching_leftovers() as left,
        subprocess.Popen(
            [sys.executable, "-c", client, wire],
            env=environment(tmp_path),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert len(left()) > 2  # the server, its guard and the sandbox
        os.kill(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
        assert gone_within(20, left) == []


# --- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--sandbox", "off"), "no tools to serve"),
        (("--sandbox", "nonsense"), "--sandbox"),
        (("--token-file", "t"), "--token-file goes with --http"),
        (("--http", "eighty"), "--http takes [HOST:]PORT"),
        (("--http", "70000"), "--http takes [HOST:]PORT"),
        (("--http", "::1:80"), "--http takes [HOST:]PORT"),
        (("--http", "203.0.113.9:1"), "Cannot listen on 203.0.113.9:1"),
        (("--http", "0", "--token-file", "/nowhere/t"), "/nowhere/t cannot be made"),
        (("--http", "0", "--token-file", "/"), "--token-file"),
        (("--http",), "expected one argument"),
        (("more",), "one argument too many"),
        (("--htp", "1"), "there is no option '--htp' here; did you mean '--http'?"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    if "/nowhere/t" in arguments:
        arguments = tuple(word.replace("/nowhere", "/proc/nowhere") for word in arguments)
        words = words.replace("/nowhere", "/proc/nowhere")
    ended = run("mcp", "serve", *arguments, home=tmp_path)
    assert ended.code == 2
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert words in ended.stderr
