"""The checks of the doctor: each finding says what is wrong and what to do, and shows no credential."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from sandbox_chat import doctor, sandbox
from sandbox_chat.doctor import Check, check_folder, check_isolation, check_model, check_pictures, reach
from sandbox_chat.sandbox import docker_program
from sandbox_chat.settings import Secret, Settings

CANARY = "canary-7f3e9c1b5d8a2046"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class Quiet(BaseHTTPRequestHandler):
    """Answers 404 to everything and remembers the headers that came."""

    seen: list[str] = []  # noqa: RUF012 - filled by the requests of one test

    def do_HEAD(self) -> None:
        self.seen.append(str(self.headers))
        self.send_response(404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        return


@contextmanager
def http_server() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def raw_server(behave: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that does one thing with the first connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)

        def work() -> None:
            with listening.accept()[0] as link:
                behave(link)

        thread = threading.Thread(target=work)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


# --- the model ------------------------------------------------------------------------------------------


def test_nothing_configured() -> None:
    found = check_model(Settings())
    assert found.state == "problem"
    assert found.text == "no model is configured"
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "--demo"):
        assert name in found.advice


def test_a_token_without_an_address() -> None:
    found = check_model(Settings(anthropic_auth_token=Secret(CANARY)))
    assert found.state == "problem"
    assert "ANTHROPIC_BASE_URL" in found.advice


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (Settings(demo=True), "the built-in demo: rules, no model"),
        (
            Settings(anthropic_api_key=Secret(CANARY)),
            "Claude with ANTHROPIC_API_KEY (set), model the CLI's default",
        ),
        (Settings(claude_login=True, model="m"), "Claude with the login of Claude Code, model m"),
    ],
)
def test_what_needs_no_address(settings: Settings, text: str) -> None:
    assert check_model(settings) == Check("model", "ok", text)


def test_a_gateway_that_answers_is_asked_without_a_credential() -> None:
    Quiet.seen.clear()
    with http_server() as url:
        settings = Settings(anthropic_base_url=url, anthropic_auth_token=Secret(CANARY), model="m")
        assert check_model(settings) == Check("model", "ok", f"{url}, token set, model m: it answers")
        found = check_model(Settings(anthropic_base_url=url))
        assert found.state == "note"
        assert "CLAUDE_MODEL" in found.advice
        assert "token not set" in found.text
    assert Quiet.seen
    assert CANARY not in "".join(Quiet.seen)


def test_a_gateway_that_does_not_answer() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    found = check_model(Settings(anthropic_base_url=url, anthropic_auth_token=Secret(CANARY)))
    assert found.state == "problem"
    assert found.text == f"{url}, token set, model not named: the connection was refused"
    assert "Check ANTHROPIC_BASE_URL" in found.advice


def test_what_is_wrong_with_an_address() -> None:
    assert reach("http://no-such-host.invalid") == "the host no-such-host.invalid is not known"
    with raw_server(lambda link: link.recv(1) and None) as port:
        assert "reached" in reach(f"http://127.0.0.1:{port}") or "HTTP" in reach(f"http://127.0.0.1:{port}")
    with raw_server(lambda link: link.sendall(b"SSH-2.0-x\r\n") or (link.recv(9999) and None)) as port:
        assert reach(f"http://127.0.0.1:{port}") == "what answers there does not speak HTTP"
    release = threading.Event()
    with raw_server(lambda _: release.wait(30) and None) as port:
        assert reach(f"http://127.0.0.1:{port}", timeout=0.2) == "no answer within 0.2 s"
        release.set()
    with http_server() as url:
        assert reach(url.replace("http", "https")).startswith("no secure connection (")


def test_a_proxy_makes_a_direct_connection_meaningless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert reach("http://no-such-host.invalid") == ""
    assert ssl.OPENSSL_VERSION


# --- the rest -------------------------------------------------------------------------------------------


def test_python_and_cli_are_found() -> None:
    assert doctor.check_python().state == "ok"
    path = doctor.find_cli()
    assert path is not None
    assert path.is_file()


def test_the_cli_says_its_version() -> None:
    found = doctor.check_agent()
    assert found.state == "ok"
    assert found.text.startswith("CLI 2.")


def test_a_missing_or_broken_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "claude"
    monkeypatch.setattr(doctor, "find_cli", lambda: program)
    assert "cannot be started (No such file or directory)" in doctor.check_agent().text
    program.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    program.chmod(0o755)
    assert doctor.check_agent().text.endswith("ended with code 3: broken")
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(doctor, "CLI_TIMEOUT", 0.2)
    assert doctor.check_agent().text.endswith("did not answer within 0.2 s")
    monkeypatch.setattr(doctor, "find_cli", lambda: None)
    found = doctor.check_agent()
    assert (found.state, found.text) == (
        "problem",
        "the agent's program is not there: not in claude-agent-sdk, not on the PATH",
    )


def test_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "probe", lambda _settings: (True, "bubblewrap works"), raising=False)
    assert check_isolation(Settings()) == Check("isolation", "ok", "bubblewrap works")
    monkeypatch.setattr(sandbox, "probe", lambda _settings: (False, "No user namespaces."), raising=False)
    assert check_isolation(Settings()).state == "problem"
    assert check_isolation(Settings(sandbox="off")).state == "note"
    assert "as you" in check_isolation(Settings(sandbox="unsafe-local")).text


def test_a_cloud_and_a_daemon_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def remotes(settings: Settings, kind: str) -> list[object]:
        asked.append(kind)
        return [object()]

    monkeypatch.setattr(sandbox, "remotes", remotes)
    found = check_isolation(Settings(sandbox="e2b", e2b_api_key=Secret(CANARY)))
    assert found.state == "ok" and "1 sandbox of this program alive" in found.text
    assert "sandboxes list" in found.advice
    there = docker_program.Answer(0, "sha256:1", "")
    monkeypatch.setattr(docker_program, "call", lambda *_, **__: there)
    found = check_isolation(Settings(sandbox="docker"))
    assert found.state == "ok" and docker_program.default_image() in found.text
    there = docker_program.Answer(1, "", "Error: No such image: x")
    found = check_isolation(Settings(sandbox="docker"))
    assert found.state == "problem" and "sandbox-chat docker build" in found.text
    assert asked == ["e2b", "docker", "docker"]


def test_what_is_not_there_is_said() -> None:
    found = check_isolation(Settings(sandbox="docker", docker_command="no-such-program"))
    assert found.state == "problem" and "not installed" in found.text and "--sandbox local" in found.advice
    assert "E2B_API_KEY" in check_isolation(Settings(sandbox="e2b")).text


def test_limits_are_listed() -> None:
    assert "2,048 MB of memory" in doctor.check_limits(Settings()).text
    assert doctor.check_limits(Settings(sandbox="off")).text == "those of off"


def test_sandbox_credentials() -> None:
    assert doctor.check_sandbox_credentials(Settings()).state == "ok"
    assert doctor.check_sandbox_credentials(Settings(sandbox="e2b")).state == "problem"
    found = doctor.check_sandbox_credentials(Settings(sandbox="e2b", e2b_api_key=Secret(CANARY)))
    assert found == Check("sandbox credentials", "ok", "E2B_API_KEY is set")


@pytest.mark.parametrize(
    ("env", "text"),
    [
        ({"TERM": "dumb"}, "TERM is dumb"),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, "half-cells (inside tmux"),
        ({"TERM": "xterm-kitty"}, "kitty protocol"),
        ({"TERM": "foot"}, "sixel"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "sixel"),
        ({"TERM": "xterm-256color"}, "the terminal will be asked"),
    ],
)
def test_pictures(env: dict[str, str], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMUX", "KITTY_WINDOW_ID", "TERM_PROGRAM", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert text in check_pictures(Settings()).text
    assert check_pictures(Settings(images="half")).text == "half (chosen)"


def test_folders(tmp_path: Path) -> None:
    assert check_folder("data folder", tmp_path / "a" / "b") == Check("data folder", "ok", f"{tmp_path}/a/b")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    for bad in (tmp_path / "file" / "x", Path("/proc/1/x")):
        found = check_folder("data folder", bad)
        assert found.state == "problem"
        assert "cannot be written" in found.text
        assert "SANDBOX_CHAT_DATA_DIR" in found.advice
        found = check_folder("downloads folder", bad)
        assert found.state == "note"
        assert "SANDBOX_CHAT_DOWNLOADS_DIR" in found.advice


# --- all of it ------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A home of its own, a sandbox that works, no start of the CLI."""
    monkeypatch.setattr(sandbox, "probe", lambda _settings: (True, "bubblewrap works"), raising=False)
    monkeypatch.setattr(doctor, "check_agent", lambda: Check("agent", "ok", "CLI 1"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SANDBOX_CHAT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SANDBOX_CHAT_CONFIG_DIR", str(tmp_path / "config"))
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "E2B_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("quick")
def test_all_is_well_in_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.run({"demo": True}) == 0
    shown = capsys.readouterr().out
    assert "     ok  model: the built-in demo: rules, no model\n" in shown
    assert shown.endswith("Everything needed is there.\n")


@pytest.mark.usefixtures("quick")
def test_problems_come_with_advice_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.run({}) == 1
    shown = capsys.readouterr().out
    assert "problem  model: no model is configured\n         → Set ANTHROPIC_API_KEY" in shown
    assert "A chat would not work yet" in shown


@pytest.mark.usefixtures("quick")
def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.run({}, as_json=True) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is False
    names = [check["name"] for check in found["checks"]]
    for name in ("configuration", "python", "agent", "isolation", "model", "pictures", "data folder"):
        assert name in names
    assert all(set(check) == {"name", "state", "text", "advice"} for check in found["checks"])


@pytest.mark.usefixtures("quick")
def test_a_wrong_configuration_is_a_problem_not_an_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.run({"sandbox": "lcal"}) == 1
    shown = capsys.readouterr().out
    assert "problem  configuration: --sandbox must be one of" in shown
    assert "python: " in shown


@pytest.mark.usefixtures("quick")
def test_warnings_are_notes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SANDBOX_CHAT_MODLE", "x")
    assert doctor.run({"demo": True}) == 0
    assert (
        "   note  configuration: The variable SANDBOX_CHAT_MODLE in the environment is not"
        in capsys.readouterr().out
    )


@pytest.mark.usefixtures("quick")
def test_a_check_that_fails_itself_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_settings: Settings) -> tuple[bool, str]:
        raise RuntimeError(f"with {CANARY} and \x1b[2J")

    monkeypatch.setenv("E2B_API_KEY", CANARY)
    monkeypatch.setattr(sandbox, "probe", fail, raising=False)
    assert doctor.run({"demo": True}) == 1
    shown = capsys.readouterr().out
    assert "problem  isolation: the check failed (RuntimeError: with [secret] and ␛[2J)" in shown


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_no_credential_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "E2B_API_KEY"):
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{free_port()}")
    for overrides in ({}, {"demo": True}, {"sandbox": "e2b"}, {"sandbox": CANARY}):
        for as_json in (False, True):
            doctor.run(overrides, as_json=as_json)
    shown = capsys.readouterr()
    assert CANARY not in shown.out + shown.err
