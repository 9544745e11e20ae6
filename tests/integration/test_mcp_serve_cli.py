"""The real Claude CLI as a client of ``sandbox-chat mcp serve``, over stdio and over HTTP, against a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.program import PROGRAM, environment, gone_within, watching_leftovers
from support.scripted import call, cli_env, serve, text, tool_results
from support.serving import PATIENCE, http

from sandbox_chat.agent.program import find_cli

FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.savefig('/tmp/chart.png')\nplt.show()\nkept = 41"
ALLOWED = ("run_code", "read_image")


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_cli_runs_code_and_looks_at_a_picture(tmp_path: Path, transport: str) -> None:
    steps = (
        call("mcp__box__run_code", code=FIGURE),
        call("mcp__box__read_image", path="/tmp/chart.png"),
        call("mcp__box__run_code", code="kept + 1"),
        text("It is drawn."),
    )
    with ExitStack() as stack:
        left = stack.enter_context(watching_leftovers())
        server = stack.enter_context(serve(*steps))
        entry: dict[str, Any] = {
            "command": PROGRAM[0],
            "args": [*PROGRAM[1:], "mcp", "serve"],
            "env": environment(tmp_path / "served"),
        }
        if transport == "http":
            box = stack.enter_context(http(tmp_path / "served"))
            entry = {
                "type": "http",
                "url": f"{box.url}?sandbox=mine",
                "headers": {"Authorization": f"Bearer {box.token}"},
            }
        config = tmp_path / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"box": entry}}))
        before = len(left())
        done = subprocess.run(
            [
                str(find_cli()),
                "-p",
                "draw",
                "--strict-mcp-config",
                f"--mcp-config={config}",
                f"--allowedTools={','.join(f'mcp__box__{name}' for name in ALLOWED)}",
                "--output-format=json",
            ],
            env={
                "PATH": os.environ["PATH"],
                "ENABLE_TOOL_SEARCH": "false",
                **cli_env(server, tmp_path / "cli", model="scripted-model-1"),
            },
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout)["result"] == "It is drawn."
        offered = {tool["name"] for tool in server.requests[-1].body["tools"]}
        assert {f"mcp__box__{name}" for name in ALLOWED} <= offered
        drawn, seen, added = (tool_results(server, number)[-1] for number in (-3, -2, -1))
        assert drawn.images and "[success] True" in drawn.text
        assert seen.images
        assert "42" in added.text
        if transport == "http":  # its protocol has no farewell: the sandbox waits for the next call
            assert box.end() == 143
        assert gone_within(20, lambda: left()[before:]) == []
