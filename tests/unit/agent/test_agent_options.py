"""The CLI's environment, its launcher, the options, the system prompt."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sandbox_chat.agent import launch_cli, options, program
from sandbox_chat.agent.controls import Controls
from sandbox_chat.agent.endpoint import Endpoint
from sandbox_chat.agent.errors import AgentError
from sandbox_chat.agent.prompt import system_prompt
from sandbox_chat.sandbox.base import Capabilities, SandboxInfo
from sandbox_chat.settings import Secret, Settings
from sandbox_chat.tools.schemas import tool_specs

AMBIENT = {
    "PATH": "/bin",
    "LC_ALL": "C.UTF-8",
    "HOME": "/home/someone",
    "HTTPS_PROXY": "http://proxy:1",
    "NO_PROXY": "intern",
    "E2B_API_KEY": "canary-e2b",
    "ANTHROPIC_API_KEY": "canary-ambient",
    "ANTHROPIC_MODEL": "canary-model",
    "CLAUDE_CODE_USE_BEDROCK": "1",
    "CLAUDE_CONFIG_DIR": "/home/someone/.claude-x",
    "AWS_SECRET_ACCESS_KEY": "canary-aws",
    "CLAUDECODE": "1",
}


def environment(endpoint: Endpoint, tmp_path: Path, settings: Settings | None = None) -> dict[str, str]:
    folders = options.Folders(tmp_path / "home", tmp_path / "temp")
    return options.cli_environment(settings or Settings(), endpoint, folders, AMBIENT)


def test_only_what_is_meant_for_it_reaches_the_cli(tmp_path: Path) -> None:
    env = environment(Endpoint("https://gw.example", Secret("tok"), Secret("key"), "m"), tmp_path)
    assert not [name for name, value in env.items() if "canary" in value]
    assert env["ANTHROPIC_BASE_URL"] == "https://gw.example"
    assert env["ANTHROPIC_AUTH_TOKEN"] == "tok"
    assert "ANTHROPIC_API_KEY" not in env
    assert "CLAUDE_CODE_USE_BEDROCK" not in env
    assert env["HOME"] == str(tmp_path / "home")
    assert env["CLAUDE_CONFIG_DIR"] == str(tmp_path / "home" / "config")
    assert env["HTTPS_PROXY"] == "http://proxy:1"
    assert env["NO_PROXY"] == "intern"
    assert env["LC_ALL"] == "C.UTF-8"


def test_a_key_for_claude_itself(tmp_path: Path) -> None:
    env = environment(Endpoint("", Secret(""), Secret("key"), ""), tmp_path)
    assert env["ANTHROPIC_API_KEY"] == "key"
    assert "ANTHROPIC_BASE_URL" not in env
    assert "ANTHROPIC_AUTH_TOKEN" not in env


def test_a_local_server_is_reached_without_proxy_and_token(tmp_path: Path) -> None:
    for url in ("http://127.0.0.1:11434", "http://localhost:1", "http://[::1]:1"):
        env = environment(Endpoint(url, Secret(""), Secret(""), "m"), tmp_path)
        assert env["NO_PROXY"] == env["no_proxy"] == "*"
        assert env["ANTHROPIC_AUTH_TOKEN"] == options.NO_TOKEN


def test_what_the_cli_writes_for_a_while_ends_with_the_session(tmp_path: Path) -> None:
    env = environment(Endpoint("", Secret(""), Secret("key"), ""), tmp_path)
    for name in ("TMPDIR", "CLAUDE_CODE_TMPDIR", "XDG_CACHE_HOME"):
        assert Path(env[name]).is_relative_to(tmp_path / "temp")


def test_a_login_is_looked_for_in_the_users_own_home(tmp_path: Path) -> None:
    env = environment(
        Endpoint("https://gw.example", Secret("tok"), Secret("key"), "", use_login=True), tmp_path
    )
    assert env["HOME"] == "/home/someone"
    assert env["CLAUDE_CONFIG_DIR"] == "/home/someone/.claude-x"
    assert not [name for name in env if name.startswith("ANTHROPIC_")]
    assert "CLAUDE_CODE_SIMPLE" not in env
    assert "canary-e2b" not in env.values()


def test_limits_come_from_the_settings(tmp_path: Path) -> None:
    settings = Settings(request_retries=7, request_timeout=12.5, run_timeout=200, start_timeout=30)
    env = environment(Endpoint("", Secret(""), Secret("k"), ""), tmp_path, settings)
    assert env["CLAUDE_CODE_MAX_RETRIES"] == "7"
    assert env["API_TIMEOUT_MS"] == "12500"
    assert int(env["MCP_TOOL_TIMEOUT"]) >= 24 * 3600 * 1000


def make(tmp_path: Path, **changes: Any) -> options.ClaudeAgentOptions:
    folders = options.Folders(tmp_path / "home", tmp_path / "temp")
    folders.make()
    arguments: dict[str, Any] = {
        "session_id": "00000000-0000-0000-0000-000000000001",
        "resume": False,
        "new_run": False,
        "servers": {"sandbox": object(), "git": object()},
        "controls": Controls("some-model"),
        "on_stderr": print,
    }
    arguments.update(changes)
    endpoint = Endpoint("https://gw.example", Secret("canary-tok"), Secret(""), "m")
    return options.build_options(Settings(), endpoint, folders, **arguments)


def test_the_options_of_the_spec(tmp_path: Path) -> None:
    made = make(tmp_path)
    assert made.tools == []
    assert made.allowed_tools == ["mcp__sandbox__*", "mcp__git__*"]
    assert made.setting_sources == []
    assert made.strict_mcp_config
    assert made.max_turns == 30
    assert made.model == "some-model"
    assert not made.verbatim_prompts  # each prompt is marked by itself
    assert made.session_id and made.resume is None
    assert isinstance(made.mcp_servers, dict)
    assert list(made.mcp_servers) == ["sandbox", "git"]
    resumed = make(tmp_path, resume=True, controls=Controls(), servers={})
    assert resumed.resume and resumed.session_id is None
    assert resumed.model is None
    assert (resumed.effort, resumed.thinking) == (None, None)
    assert resumed.allowed_tools == [] and resumed.mcp_servers == {}


@pytest.mark.parametrize(
    ("thinking", "option"),
    [
        ("", None),
        ("on", {"type": "adaptive"}),
        ("off", {"type": "disabled"}),
        ("4096", {"type": "enabled", "budget_tokens": 4096}),
    ],
)
def test_effort_and_thinking(tmp_path: Path, thinking: str, option: dict[str, Any] | None) -> None:
    made = make(tmp_path, controls=Controls("m", "low", thinking))
    assert (made.effort, made.thinking) == ("low", option)


def test_controls_change_one_by_one() -> None:
    first = Controls("a", "low", "on")
    assert first.changed(model=" b ", effort=None, thinking=None) == Controls("b", "low", "on")
    assert first.changed(model=None, effort="", thinking="off") == Controls("a", "", "off")


def test_no_credential_in_a_file_or_on_the_command_line(tmp_path: Path) -> None:
    made = make(tmp_path)
    assert "canary" not in str(made.system_prompt)
    for path in (tmp_path / "home").rglob("*"):
        if path.is_file():
            assert b"canary" not in path.read_bytes()


def test_the_launcher_is_written_once_and_private(tmp_path: Path) -> None:
    first = options.write_launcher(tmp_path)
    assert options.write_launcher(tmp_path) == first
    assert first.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in tmp_path.iterdir()] == [first.name]


def launch(tmp_path: Path, parent: int) -> subprocess.CompletedProcess[str]:
    shown = tmp_path / "show env.sh"
    shown.write_text('#!/bin/sh\nenv\nprintf "arg:%s\\n" "$@"\n')
    shown.chmod(0o700)
    env = {
        **AMBIENT,
        "PATH": os.environ["PATH"],
        "SHOWN": "with, comma\nand newline",
        launch_cli.PATH: str(shown),
        launch_cli.KEEP: "PATH,SHOWN,ABSENT",
        launch_cli.PARENT: str(parent),
    }
    launcher = options.write_launcher(tmp_path)
    return subprocess.run([launcher, "--a b", "it's"], env=env, capture_output=True, text=True, timeout=30)


def test_the_launcher_passes_exactly_what_is_listed(tmp_path: Path) -> None:
    done = launch(tmp_path, os.getpid())
    assert done.returncode == 0, done.stderr
    assert "SHOWN=with, comma\nand newline" in done.stdout
    assert "arg:--a b\narg:it's\n" in done.stdout
    assert "canary" not in done.stdout
    assert launch_cli.KEEP not in done.stdout


def test_the_launcher_starts_nothing_for_a_program_that_has_gone(tmp_path: Path) -> None:
    done = launch(tmp_path, 1 if os.getpid() != 1 else 2)
    assert done.returncode == 1
    assert done.stdout == ""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux only")
def test_what_the_launcher_starts_dies_with_its_parent(tmp_path: Path) -> None:
    program = tmp_path / "waits.sh"
    program.write_text("#!/bin/sh\necho up $$\nexec sleep 60\n")
    program.chmod(0o700)
    launcher = options.write_launcher(tmp_path)
    middle = (
        "import os, subprocess, sys\n"
        f"env = dict(os.environ, {launch_cli.PATH}={str(program)!r}, {launch_cli.KEEP}='PATH', "
        f"{launch_cli.PARENT}=str(os.getpid()))\n"
        f"subprocess.Popen([{str(launcher)!r}], env=env).wait()\n"
    )
    with subprocess.Popen([sys.executable, "-c", middle], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline().split()[1])
        process.kill()
        process.wait(10)
        assert process.stdout.read() == ""  # the pipe ends when the last holder has gone
    with pytest.raises(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] == "Z":
                raise ProcessLookupError  # ended, and not yet collected by init


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AgentError, match="SANDBOX_CHAT_DATA_DIR"):
        options.Folders(tmp_path / "file" / "home", tmp_path).make()
    with pytest.raises(AgentError, match="SANDBOX_CHAT_DATA_DIR"):
        options.write_launcher(tmp_path / "absent")


TODAY = date(2026, 3, 4)


def test_the_prompt_says_what_it_must() -> None:
    prompt = system_prompt(Settings(run_timeout=17), new_run=False, today=TODAY)
    for words in (
        "17 s", "persist", "/tmp", "savefig", "read_image", "plt.show()", "traceback", "3 failures", "[tool_error]",
        "Wednesday, 2026-03-04",
    ):  # fmt: skip
        assert words in prompt
    assert "earlier run" not in prompt
    assert "earlier run" in system_prompt(Settings(), new_run=True, today=TODAY)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("local", "sandbox on the user's computer"),
        ("docker", "container on the user's computer"),
        ("e2b", "machine in a cloud"),
    ],
)
@pytest.mark.parametrize("network", [True, False])
def test_the_prompt_says_where_code_runs(kind: str, words: str, network: bool) -> None:
    info = SandboxInfo(kind, kind, capabilities=Capabilities(network=network))
    prompt = system_prompt(Settings(sandbox=kind, run_timeout=17), info, new_run=False, today=TODAY)
    assert words in prompt and "17 s" in prompt
    assert ("internet is reachable" in prompt) == network
    assert ("no network" in prompt) != network
    [run_code] = [
        spec for spec in tool_specs(Settings(run_timeout=17), info.capabilities) if spec.name == "run_code"
    ]
    assert ("internet is reachable" in run_code.description) == network
    limit = run_code.schema["properties"]["timeout"]
    assert (limit["maximum"], limit["default"]) == (17, 17) and "17 s" in run_code.description


def test_the_prompt_names_a_shared_folder(tmp_path: Path) -> None:
    shared = Settings(sandbox_workspace=tmp_path)
    assert "/workspace" in system_prompt(shared, new_run=False, today=TODAY)
    assert "/workspace" not in system_prompt(Settings(), new_run=False, today=TODAY)
    assert str(tmp_path) not in system_prompt(shared, new_run=False, today=TODAY)


def test_the_prompt_names_the_folders_of_code_mode() -> None:
    for kind in ("local", "docker", "e2b"):
        prompt = system_prompt(Settings(sandbox=kind, code_mode="on"), new_run=False, today=TODAY)
        assert "/workspace is empty at the start of a session and gone at its end" in prompt
        assert "/skills/<name>/, read-only" in prompt
        assert "/skills/" not in system_prompt(Settings(sandbox=kind), new_run=False, today=TODAY)
    plain = system_prompt(Settings(sandbox="unsafe-local", code_mode="on"), new_run=False, today=TODAY)
    assert "/workspace" not in plain and "/skills/" not in plain


def test_the_prompt_says_that_the_workspace_is_kept() -> None:
    kept = Settings(keep_workspace=True, code_mode="on")
    assert "/workspace are kept with the session" in system_prompt(kept, new_run=False, today=TODAY)
    assert "gone at its end" not in system_prompt(kept, new_run=False, today=TODAY)
    assert "Only the files in /workspace are there again" in system_prompt(kept, new_run=True, today=TODAY)
    assert "there again" not in system_prompt(Settings(), new_run=True, today=TODAY)


def test_the_prompt_without_a_sandbox_offers_no_tools() -> None:
    prompt = system_prompt(Settings(sandbox="off"), new_run=False, today=TODAY)
    assert "no sandbox" in prompt
    assert "run_code" not in prompt


def test_the_prompt_warns_where_code_is_not_isolated() -> None:
    assert "NOT isolated" in system_prompt(Settings(sandbox="unsafe-local"), new_run=False, today=TODAY)


def test_the_cli_is_the_sdks_own_or_an_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert options.required_cli().parent.name == "_bundled"
    monkeypatch.setattr(program, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AgentError, match="pip install"):
        options.required_cli()
    (tmp_path / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "claude").chmod(0o700)
    assert options.required_cli() == tmp_path / "claude"
