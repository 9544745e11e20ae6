"""The main job against a scripted endpoint, configured as a user configures a gateway: by three variables."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from support.program import PROGRAM, Ended, environment, gone_within, run, wait_until, watching_leftovers
from support.scripted import MessagesServer, ToolUse, call, error, reply, serve, text, tool_results

PNG = """
import struct, zlib
def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
rows = b"".join(b"\\0" + b"\\x20\\x80\\xc0" * 300 for _ in range(200))
png = b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 300, 200, 8, 2, 0, 0, 0))
png += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
open("/tmp/blue.png", "wb").write(png)
"""


def gateway(server: MessagesServer, model: str = "scripted-model-1") -> dict[str, str]:
    """The variables of a user who has a gateway."""
    return {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_AUTH_TOKEN": server.token, "CLAUDE_MODEL": model}


def ask(server: MessagesServer, home: Path, prompt: str, *options: str, **env: str) -> Ended:
    """Run one prompt against the server."""
    return run("run", "--json", *options, prompt, home=home, env={**gateway(server), **env})


def fixed_part(body: dict[str, Any]) -> int:
    """Bytes of what every request carries: system prompt and tools."""
    return len(json.dumps(body["system"]).encode()) + len(json.dumps(body["tools"]).encode())


def test_sections_model_name_and_size(tmp_path: Path) -> None:
    steps = (
        call(
            "run_code",
            code="import sys\nprint('to out')\nprint('to err', file=sys.stderr)\nsum(range(1, 101))",
        ),
        text("The sum is 5050."),
    )
    with serve(*steps) as server:
        ended = ask(server, tmp_path, "sum 1 to 100")
        assert ended.code == 0, ended.stderr
        (result,) = tool_results(server)
        body = server.requests[-1].body
    assert result.text.splitlines() == [
        "[success] True", "[stdout]", "to out", "[stderr]", "to err", "[result]", "5050",
    ]  # fmt: skip
    assert not result.is_error
    assert body["model"] == "scripted-model-1"
    assert fixed_part(body) < 8000
    assert "5050" in ended.answer
    assert ended.of("turn_finished")[0]["cost_usd"] is None  # the price of this model is not known
    usage = ended.of("turn_finished")[0]["usage"]
    assert usage["output"] > 0


def test_error_is_marked_and_mended(tmp_path: Path) -> None:
    steps = (
        call("run_code", code="def f(rows):\n    return rows['total']\nf({'sum': 3})"),
        call("run_code", code="f({'total': 3})"),
        text("Mended: it is 3."),
    )
    with serve(*steps) as server:
        ended = ask(server, tmp_path, "what is the total?")
        failed = tool_results(server, 1)[0]
        mended = tool_results(server, 2)[-1]
    assert ended.code == 0, ended.stderr
    assert failed.is_error
    assert failed.text.startswith("[success] False")
    assert "[error]\nKeyError: 'total'" in failed.text
    assert "[traceback]" in failed.text
    assert failed.text.rstrip().endswith("KeyError: 'total'")
    assert not mended.is_error
    assert "[result]\n3" in mended.text


def test_picture_reaches_the_model_as_an_image(tmp_path: Path) -> None:
    steps = (call("run_code", code=PNG), call("read_image", path="/tmp/blue.png"), text("It is blue."))
    with serve(*steps) as server:
        ended = ask(server, tmp_path, "what colour is it?")
        last = server.requests[-1].body["messages"]
    assert ended.code == 0, ended.stderr
    images = [
        part
        for message in last
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result" and isinstance(block["content"], list)
        for part in block["content"]
        if part["type"] == "image"
    ]
    assert len(images) == 1
    assert base64.b64decode(images[0]["source"]["data"]).startswith((b"\x89PNG", b"\xff\xd8"))
    shown = [
        part for event in ended.of("tool_finished") for part in event["content"] if part["type"] == "image"
    ]
    assert (shown[-1]["width"], shown[-1]["height"]) == (300, 200)


def test_timeout_is_told_in_time_and_keeps_variables(tmp_path: Path) -> None:
    steps = (
        call("run_code", code="x = 41"),
        call("run_code", code="import time; time.sleep(30)", timeout=2),
        call("run_code", code="x + 1"),
        text("42"),
    )
    with serve(*steps) as server:
        ended = ask(server, tmp_path, "wait")
        slow = tool_results(server, 2)[-1]
        after = tool_results(server, 3)[-1]
    assert ended.code == 0, ended.stderr
    assert slow.is_error
    assert "2 s" in slow.text
    assert 1900 <= ended.of("tool_finished")[1]["duration_ms"] <= 6000
    assert "[result]\n42" in after.text


def test_canaries_are_found_nowhere(tmp_path: Path) -> None:
    canaries = {
        "E2B_API_KEY": "canary-e2b-93d1f2", "ANTHROPIC_AUTH_TOKEN": "canary-token-5be007",
        "ANTHROPIC_API_KEY": "canary-key-a81c66",
    }  # fmt: skip
    look = (
        "import os, glob\nfound = [repr(dict(os.environ))]\n"
        "for p in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline'):\n"
        "    try: found.append(open(p, 'rb').read().decode('latin1'))\n"
        "    except OSError: pass\n"
        "print(len(found)); print('CANARY' if 'canary-' in ''.join(found) else 'clean')"
    )
    log = tmp_path / "program.log"
    with (
        serve(
            call("run_code", code=look),
            text("done"),
            error(403, "canary? no"),
            token=canaries["ANTHROPIC_AUTH_TOKEN"],
        ) as server,
        watching_leftovers(),
    ):
        env = {"ANTHROPIC_BASE_URL": server.url, **canaries}
        process = subprocess.Popen(
            [*PROGRAM, "run", "--json", "--log", str(log), "look"],
            env=environment(tmp_path, env), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        lines = []
        while process.poll() is None:
            lines.extend(command_lines())
            time.sleep(0.02)
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert "clean" in tool_results(server, 1)[0].text
        refused = run("run", "look", home=tmp_path, env=env)
        assert refused.code == 1
        doctor = run("doctor", home=tmp_path, env=env)
        doctor_json = run("doctor", "--json", home=tmp_path, env=env)
    texts = [
        out,
        err,
        *lines,
        refused.stdout,
        refused.stderr,
        doctor.stdout,
        doctor.stderr,
        doctor_json.stdout,
    ]
    for path in tmp_path.rglob("*"):
        if path.is_file():
            texts.append(path.read_bytes().decode("latin1"))
    assert log.exists()
    assert any("claude" in line for line in lines)  # the CLI was seen
    for value in canaries.values():
        assert not [one[:200] for one in texts if value in one]


def command_lines() -> list[str]:
    """The command lines of all processes of this machine that can be read, our pytest's aside."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().decode("latin1").replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "ANTHROPIC_AUTH_TOKEN"),
        *(
            pytest.param(status, says, marks=pytest.mark.slow)
            for status, says in ((400, "model"), (403, "403"), (404, "model"), (529, "again"))
        ),
    ],
)
def test_refusals_are_told_in_words(tmp_path: Path, status: int, says: str) -> None:
    message = "model: scripted-model-1 is not supported" if status == 400 else "scripted refusal"
    with serve(after=error(status, message)) as server:
        ended = ask(server, tmp_path, "hello", SANDBOX_CHAT_REQUEST_RETRIES="1")
    assert ended.code == 1
    finished = ended.of("turn_finished")[0]
    assert finished["is_error"]
    assert says in finished["error"]
    assert "Traceback" not in ended.stderr + ended.stdout
    assert "ede_diagnostic" not in ended.stdout


def test_interrupt_while_code_runs_then_resume(tmp_path: Path) -> None:
    import signal

    steps = (
        call(
            "run_code", code="import time\nprint('begun', flush=True)\ntime.sleep(30)", before="I start it."
        ),
    )
    with serve(*steps, after=text("Answered after all.")) as server, watching_leftovers() as left:
        process = subprocess.Popen(
            [*PROGRAM, "run", "--json", "wait for me"], env=environment(tmp_path, gateway(server)), cwd=tmp_path,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        events = []
        for line in process.stdout:
            events.append(json.loads(line))
            if events[-1]["type"] == "tool_output":
                os.kill(process.pid, signal.SIGINT)
                break
        start = time.monotonic()
        events += [json.loads(line) for line in process.stdout]
        finished = next(event for event in events if event["type"] == "turn_finished")
        assert process.wait() == 130
        assert time.monotonic() - start < 10
        assert finished["interrupted"]
        assert any(event["type"] == "tool_finished" and event["interrupted"] for event in events)
        assert any(event["type"] == "text" and "I start it." in event["text"] for event in events)
        again = ask(server, tmp_path, "go on", "--resume", events[0]["session_id"])
        assert again.code == 0, again.stderr
        assert "Answered after all." in again.answer
        assert wait_until(lambda: not gone_within(2, left), 3, "the end of all processes")


def test_local_tools_read_the_working_folder_and_no_credentials(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "deep").mkdir(parents=True)
    (folder / "notes.txt").write_text("the WORD is here\n")
    (folder / ".env").write_text("KEY=the WORD is secret\n")
    (folder / "deep" / ".env.local").write_text("KEY=the WORD is secret\n")
    outside = tmp_path / "outside.txt"
    outside.write_text("the WORD is elsewhere\n")
    uses = [
        ToolUse("Read", {"file_path": str(folder / "notes.txt")}),
        ToolUse("Read", {"file_path": str(folder / ".env")}),
        ToolUse("Read", {"file_path": str(folder / "deep" / ".env.local")}),
        ToolUse("Read", {"file_path": str(outside)}),
        ToolUse("Grep", {"pattern": "WORD", "path": str(folder), "output_mode": "content"}),
        ToolUse("Grep", {"pattern": "WORD", "path": str(tmp_path), "output_mode": "content"}),
        ToolUse("Bash", {"command": f"cat {outside}"}),
        ToolUse("Write", {"file_path": str(folder / "new.txt"), "content": "x"}),
    ]
    with serve(*[reply(use) for use in uses], after=text("Read.")) as server:
        env = {
            **gateway(server),
            "SANDBOX_CHAT_LOCAL_TOOLS": "read, glob,grep",
            "SANDBOX_CHAT_SANDBOX": "off",
        }
        ended = run("run", "--json", "what do the notes say?", home=tmp_path / "home", env=env, cwd=folder)
        assert ended.code == 0, ended.stderr
        results = [tool_results(server, number)[-1] for number in range(1, len(uses) + 1)]
        names = {tool["name"] for tool in server.requests[0].body["tools"]}
    assert {"Read", "Glob", "Grep"} == names
    assert [result.is_error for result in results] == [False, True, True, True, False, True, True, True]
    assert "the WORD is here" in results[0].text
    assert "here" in results[4].text
    everything = "".join(result.text for result in results) + ended.stdout
    assert "is secret" not in everything
    assert "is elsewhere" not in everything
    assert not (folder / "new.txt").exists()
