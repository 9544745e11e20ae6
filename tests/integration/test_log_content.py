"""A whole chat with the log on: no word of it, no credential and no path is in the log or in its older parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.program import PROGRAM, environment, journals, run
from support.scripted import Text as Said
from support.scripted import call, error, reply, serve, text
from support.terminal import terminal

WORDS = {
    "prompt": "marker-prompt-aqua",
    "answer": "marker-answer-bronze",
    "thinking": "marker-thinking-coral",
    "code": "marker_code_denim",
    "output": "marker-output-ebony",
    "result": "marker-result-fuchsia",
    "exception": "marker-exception-gold",
    "tool": "marker-tool-hazel",
    "endpoint": "marker-endpoint-indigo",
    "environment": "marker-environment-jade",
    "file": "marker-file-khaki",
    "credential": "marker-credential-lemon",
}


def secret_chat(program: str) -> list[object]:
    """Answers that use every word somewhere, for four prompts."""
    return [
        call("run_code", before=WORDS["answer"], code=program),
        call("run_code", code=f"raise ValueError('{WORDS['exception']}')"),
        call(f"mcp__sandbox__{WORDS['tool']}", value=WORDS["prompt"]),
        call("read_file", path=f"/tmp/{WORDS['file']}.txt"),
        reply(Said(WORDS["answer"] * 3), cut_at=30, pace=0.001),
        text(WORDS["answer"], thinking=WORDS["thinking"]),
        error(400, WORDS["endpoint"]),
        error(403, WORDS["endpoint"]),
    ]


def parts(folder: Path) -> list[Path]:
    found = sorted(folder.glob("**/chat.log*"))
    assert found
    return found


def check(folder: Path) -> list[dict[str, object]]:
    """No word is in any part; returns all entries."""
    entries: list[dict[str, object]] = []
    for part in parts(folder):
        assert part.stat().st_mode & 0o777 == 0o600
        raw = part.read_text(encoding="ascii")
        for place, word in WORDS.items():
            assert word not in raw, place
        assert str(folder) not in raw and folder.name not in raw
        entries += [json.loads(line) for line in raw.splitlines()]
    return entries


@pytest.mark.slow
def test_a_chat_without_a_screen(tmp_path: Path) -> None:
    program = f"{WORDS['code']} = '{WORDS['result']}'\nprint('{WORDS['output']}')\n{WORDS['code']}"
    attached = tmp_path / f"{WORDS['file']}.csv"
    attached.write_text("a,b\n1,2\n")
    log = tmp_path / "logs of mine" / "chat.log"
    log.parent.mkdir()
    with serve(*secret_chat(program), after=text(WORDS["answer"]), token=WORDS["credential"]) as server:
        env = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_AUTH_TOKEN": WORDS["credential"],
            "SANDBOX_CHAT_LOG_MB": "0.01",
            "SANDBOX_CHAT_REQUEST_RETRIES": "1",
            "PRIVATE_THING": WORDS["environment"],
        }
        for number in range(4):
            run(
                "run", "--log", str(log), "--attach", str(attached), f"{WORDS['prompt']} {number}",
                home=tmp_path, env=env,
            )  # fmt: skip
    recorded = "".join(path.read_text() for path in journals(tmp_path))
    for place in ("prompt", "answer", "code", "output", "exception", "tool", "endpoint", "file"):
        assert WORDS[place] in recorded, place
    found = check(tmp_path)
    assert len(parts(tmp_path)) > 1, "the log was never begun anew"
    kinds = {entry.get("event") for entry in found}
    assert {
        "start",
        "session_started",
        "turn_started",
        "tool_started",
        "tool_finished",
        "turn_finished",
        "retry",
    } <= kinds
    tools = [entry["tool"] for entry in found if entry.get("event") == "tool_started"]
    assert "mcp__sandbox__run_code" in tools and "…" in tools
    ends = [entry for entry in found if entry.get("event") == "turn_finished"]
    assert "forbidden" in [entry.get("kind") for entry in ends]
    assert all(isinstance(entry["duration_ms"], int) for entry in ends)


@pytest.mark.slow
def test_a_chat_in_the_terminal(tmp_path: Path) -> None:
    log = tmp_path / "chat.log"
    with serve(text(WORDS["answer"]), error(400, WORDS["endpoint"]), token=WORDS["credential"]) as server:
        env = environment(
            tmp_path, {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_AUTH_TOKEN": WORDS["credential"]}
        )
        with terminal([*PROGRAM, "--sandbox", "off", "--log", str(log)], env=env) as at:
            at.shows("idle", 60)
            at.type(f"{WORDS['prompt']}\r")
            at.shows(WORDS["answer"])
            at.type(f"again {WORDS['prompt']}\r")
            at.shows("not accepted (400)")
            at.type(b"\x15\x11")
            assert at.ends() == 0
    found = check(tmp_path)
    assert [entry["event"] for entry in found if "event" in entry][-1] == "session_finished"
    assert {entry["level"] for entry in found} <= {"debug", "info", "warning", "error"}
