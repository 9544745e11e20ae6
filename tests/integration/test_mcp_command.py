"""The command ``mcp`` with real servers: tried, listed, and nothing of them left behind."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.program import PROGRAM, environment

BAD = Path(__file__).parents[1] / "support" / "bad_mcp_server.py"
CANARY = "canary-7f3e9c1b5d8a2046"


class Shell:
    """A user who types commands in a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / "work"
        self.work.mkdir()
        self.environ = environment(
            root / "home",
            {
                "SANDBOX_CHAT_DATA_DIR": str(root / "data"),
                "SANDBOX_CHAT_CONFIG_DIR": str(root / "config"),
                "MARK": str(root),
            },
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*PROGRAM, "mcp", *words],
            cwd=self.work,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words: str) -> tuple[int, str, str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=400)
        assert "Traceback" not in out + err
        return process.returncode, out, err

    def add(self, name: str, way: str = "good", *options: str) -> None:
        code, _, err = self("add", name, *options, "--", sys.executable, str(BAD), way, str(self.root))
        assert (code, err) == (0, "")

    def servers(self) -> list[psutil.Process]:
        """The programs of servers that were started here and live."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if str(BAD) in words and str(self.root) in words and PROGRAM[1] not in words:
                found.append(process)
        return found


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_good_server_is_tried_and_listed(shell: Shell) -> None:
    shell.add("good")
    code, out, err = shell("test", "good")
    assert (code, err) == (0, "")
    head, *tools = out.splitlines()
    assert head.startswith("good is ready after ")
    assert head.endswith(" tools.")
    assert any(line.startswith("  echo") for line in tools)
    assert shell.servers() == []
    shell.add("odd", "bad_schemas")
    code, out, err = shell("test", "odd")
    assert code == 0
    assert "is not offered" in err
    assert shell("remove", "odd")[0] == 0
    code, out, err = shell("tools", "--json")
    assert (code, err) == (0, "")
    echo = next(each for each in json.loads(out) if each["name"] == "echo")
    assert (echo["server"], echo["full_name"]) == ("good", "mcp__good__echo")
    assert echo["input_schema"]["type"] == "object"


def test_one_that_dies_is_said_with_its_log(shell: Shell) -> None:
    path = shell.root / "dies.py"
    path.write_text(
        "import os, sys\nsys.stderr.write('no \\x1b[2J database: ' + os.environ['DB_PASSWORD'] + '\\n')\nsys.exit(7)\n"
    )
    shell.environ["DB_PASSWORD"] = CANARY
    assert shell("add", "dies", "--env", "DB_PASSWORD", "--", sys.executable, str(path))[0] == 0
    code, out, err = shell("test", "dies")
    assert (code, err) == (1, "")
    first, *rest = out.splitlines()
    assert first.startswith("dies failed after ")
    assert "with status 7" in first
    assert "The end of its log, " in rest[0]
    assert any(line.endswith("database: [secret]") for line in rest)
    assert CANARY not in out
    assert "\x1b" not in out
    assert CANARY not in (shell.root / "config" / "mcp.json").read_text()
    code, out, err = shell("tools")
    assert code == 1
    assert "dies failed after" in err


def test_one_that_hangs_is_given_up(shell: Shell) -> None:
    shell.environ["SANDBOX_CHAT_MCP_START_TIMEOUT"] = "1"
    assert shell("add", "hangs", "--", "sleep", "1000")[0] == 0
    code, out, err = shell("test", "hangs")
    assert (code, err) == (1, "")
    assert "was not ready within 1 s" in out


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_it_is_stopped(shell: Shell, how: signal.Signals) -> None:
    assert (
        shell("add", "waits", "--", sys.executable, str(BAD), "silent_after_initialize", str(shell.root))[0]
        == 0
    )
    process = shell.start("test", "waits")
    while not shell.servers():
        assert process.poll() is None, process.communicate()
    servers = shell.servers()
    os.kill(process.pid, how)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in out + err
    _, alive = psutil.wait_procs(servers, timeout=60)
    assert alive == []


def test_one_failure_does_not_hide_the_others(shell: Shell) -> None:
    shell.add("good")
    assert shell("add", "gone", "--", str(shell.root / "no-such-program"))[0] == 0
    code, out, err = shell("tools")
    assert code == 1
    assert out.splitlines()[0] == "good"
    assert "gone failed" in err
    code, out, err = shell("test", "gone")
    assert code == 2
    assert err.count("\n") == 1


def test_a_server_of_a_foreign_folder_runs_only_when_it_was_taken_over(shell: Shell) -> None:
    mark = shell.root / "ran"
    raw = {"mcpServers": {"evil": {"command": "sh", "args": ["-c", f"touch {mark}"]}}}
    (shell.work / ".mcp.json").write_text(json.dumps(raw))
    for words in (
        ["list"],
        ["tools"],
        ["test", "evil"],
        ["--mcp", "evil", "tools"],
        ["add", "--from", ".mcp.json"],
    ):
        shell(*words)
    assert not mark.exists()
    code, out, _ = shell("add", "--from", ".mcp.json", "--yes")
    assert code == 0
    assert f"sh -c 'touch {mark}'" in out
    assert not mark.exists()
    assert shell("test", "evil")[0] == 1
    assert mark.exists()
    assert stat.S_IMODE((shell.root / "config" / "mcp.json").stat().st_mode) == 0o600


@pytest.mark.slow
def test_the_doctor_names_what_is_missing(shell: Shell) -> None:
    shell.add("good")
    assert shell("add", "needs", "--env", "NO_SUCH_VARIABLE", "--", sys.executable)[0] == 0

    def check(**extra: str) -> dict[str, Any]:
        done = subprocess.run(
            [*PROGRAM, "doctor", "--demo", "--json"],
            cwd=shell.work,
            env={**shell.environ, **extra},
            capture_output=True,
            text=True,
            check=False,
        )
        found: list[dict[str, Any]] = json.loads(done.stdout)["checks"]
        return next(each for each in found if each["name"] == "MCP servers")

    found = check()
    assert found["state"] == "note"
    assert found["text"].startswith("good, needs. ")
    assert "NO_SUCH_VARIABLE" in found["text"]
    assert check(NO_SUCH_VARIABLE="x")["state"] == "ok"
    assert check(SANDBOX_CHAT_MCP="needs")["state"] == "problem"
    assert "There is no MCP server 'gode'" in check(SANDBOX_CHAT_MCP="gode")["text"]


@pytest.mark.slow
def test_one_of_the_catalogue_from_adding_to_removing(shell: Shell) -> None:
    for name in ("PIP_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONFIG_FILE", "PIP_CERT", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy"):  # fmt: skip
        if name in os.environ:
            shell.environ[name] = os.environ[name]
    code, out, err = shell("add", "time", "--yes")
    assert code == 0, err
    assert "risk:" in out
    code, out, err = shell("test", "time")
    assert (code, err) == (0, "")
    assert "  get_current_time" in out
    code, out, _ = shell("remove", "time")
    assert code == 0
    assert not list((shell.root / "data" / "mcp" / "servers").glob("time/*"))
