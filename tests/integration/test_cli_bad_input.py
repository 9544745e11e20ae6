"""What a user can get wrong, with the real program: each a clear line, the right exit code, no traceback."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.program import PROGRAM, Ended, environment, run
from support.scripted import error, serve, text

CANARY = "canary-7f3e9c1b5d8a2046"

# Starts a program without the privilege of root to read and write whatever it likes.
ORDINARY = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
os.execv(sys.executable, [sys.executable, "-m", "sandbox_chat", *sys.argv[1:]])
"""


def refused(ended: Ended, code: int, *parts: str) -> str:
    """Check that a run ended with ``code`` and said ``parts``, as sentences; return what it said."""
    said = ended.stderr
    assert ended.code == code, said
    for part in parts:
        assert part in said
    for text_ in (said, ended.stdout):
        assert "Traceback" not in text_
        assert 'File "' not in text_
    return said


def one_line(ended: Ended, *parts: str) -> str:
    """Check that a run ended with code 2, nothing on stdout and one line on stderr with ``parts``."""
    said = refused(ended, 2, *parts)
    assert ended.stdout == ""
    assert said.startswith("sandbox-chat: ")
    assert said.count("\n") == 1
    return said


def run_ordinary(*arguments: str, home: Path, cwd: Path, env: Mapping[str, str] | None = None) -> Ended:
    """Run the program as somebody whom file modes bind, also when the tests run as root."""
    done = subprocess.run(
        [sys.executable, "-c", ORDINARY, *arguments],
        env=environment(home, env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr, 0.0)


# --- settings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_no_key_and_no_demo(tmp_path: Path, options: tuple[str, ...]) -> None:
    ended = run("run", *options, "hello", home=tmp_path)
    one_line(ended, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "--demo")
    assert not list(tmp_path.rglob("sessions"))


@pytest.mark.parametrize(
    "url",
    ["gateway", "ftp://gateway", "http://", "http://h:99999", f"http://me:{CANARY}@gateway", "http://a b"],
)
def test_a_bad_address(tmp_path: Path, url: str) -> None:
    said = one_line(
        run("run", "hello", home=tmp_path, env={"ANTHROPIC_BASE_URL": url}), "ANTHROPIC_BASE_URL in the"
    )
    assert CANARY not in said


def test_an_env_file_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "work" / ".env").mkdir(parents=True)
    one_line(run("run", "--demo", "hello", home=tmp_path), ".env cannot be read (Is a directory).")


def test_an_env_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".env").write_bytes(b"ANTHROPIC_API_KEY=" + CANARY.encode() + b"\xff")
    said = one_line(
        run("run", "--demo", "hello", home=tmp_path), ".env cannot be read (it is not UTF-8 text)."
    )
    assert CANARY not in said


def test_an_env_file_without_permission(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("CLAUDE_MODEL=m")
    (tmp_path / ".env").chmod(0)
    ended = run_ordinary("run", "--demo", "hello", home=tmp_path / "home", cwd=tmp_path)
    one_line(ended, ".env cannot be read (Permission denied).")


def test_a_config_that_is_no_toml(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "sandbox-chat"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("model = \n")
    one_line(run("run", "--demo", "hello", home=tmp_path), "config.toml is not valid TOML", "line 1")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--sandbox", "lcal"), "did you mean 'local'?"),
        (
            ("--images", "png"),
            "--images must be one of auto, kitty, sixel, iterm, sharp, symbols, half, ascii, off.",
        ),
        (("--theme", "blue"), "--theme must be one of auto, dark, light, contrast, terminal."),
        (("--sandbox", "e2b"), "needs a key. Set E2B_API_KEY"),
        (("--log", "/proc/nowhere/x.log"), "The log file /proc/nowhere/x.log cannot be written"),
        (("--resume", "0000"), "There is no session '0000'."),
        (("--sandbx", "off"), "did you mean '--sandbox'?"),
    ],
)
def test_an_unknown_value_of_an_option(tmp_path: Path, options: tuple[str, ...], part: str) -> None:
    one_line(run("run", "--demo", *options, "hello", home=tmp_path), part)


@pytest.mark.parametrize("prompt", ["", "  ", "-"])
def test_an_empty_prompt(tmp_path: Path, prompt: str) -> None:
    one_line(run("run", "--demo", prompt, home=tmp_path, stdin="\n"), "is empty")


def test_a_warning_is_shown_and_the_turn_runs(tmp_path: Path) -> None:
    ended = run("run", "--demo", "--sandbox", "off", "help", home=tmp_path, env={"SANDBOX_CHAT_MODLE": "x"})
    assert ended.code == 0, ended.stderr
    assert ended.stderr.count("SANDBOX_CHAT_MODLE in the environment is not a setting and was ignored") == 1


# --- places ---------------------------------------------------------------------------------------------


def answered_unsaved(ended: Ended, why: str) -> None:
    """The turn ran, and one line says that it is not saved, why, and what to do."""
    assert ended.code == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    (line,) = [one for one in ended.stderr.splitlines() if "cannot be saved" in one]
    assert why in line
    assert "SANDBOX_CHAT_DATA_DIR" in line


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    work = tmp_path / "work"
    work.mkdir()
    home.chmod(0o500)
    ended = run_ordinary("run", "--demo", "--sandbox", "off", "help", home=home, cwd=work)
    home.chmod(0o700)
    answered_unsaved(ended, "Permission denied")
    assert list(home.iterdir()) == []


def test_a_data_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    env = {"SANDBOX_CHAT_DATA_DIR": str(tmp_path / "file" / "data")}
    ended = run("run", "--demo", "--sandbox", "off", "help", home=tmp_path, env=env)
    answered_unsaved(ended, "Not a directory")


def test_a_working_folder_that_was_removed(tmp_path: Path) -> None:
    command = f'cd "{tmp_path}" && mkdir gone && cd gone && rmdir "$PWD" && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", command, "sh", *PROGRAM, "run", "--demo", "hello"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    one_line(Ended(done.returncode, done.stdout, done.stderr, 0), "The working folder no longer exists.")


# --- terminals ------------------------------------------------------------------------------------------


def test_stdout_is_no_terminal(tmp_path: Path) -> None:
    one_line(run("--demo", home=tmp_path), "The chat needs a terminal", 'sandbox-chat run "your prompt"')


def on_a_terminal(home: Path, *arguments: str, term: str, **redirected: int) -> tuple[int, str]:
    """Run the program on a pty, as far as it is not redirected; return exit code and what the terminal got."""
    controller, terminal = pty.openpty()
    streams: dict[str, int] = {"stdin": terminal, "stdout": terminal, "stderr": terminal, **redirected}
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        env=environment(home, {"TERM": term}),
        cwd=home,
        start_new_session=True,
        **streams,  # type: ignore[call-overload]  # three file descriptors
    )
    os.close(terminal)
    shown = b""
    end = time.monotonic() + 60
    try:
        while time.monotonic() < end and (
            process.poll() is None or select.select([controller], [], [], 0)[0]
        ):
            if select.select([controller], [], [], 0.1)[0]:
                try:
                    shown += os.read(controller, 65536)
                except OSError:  # the last one who had the terminal is gone
                    break
    finally:
        os.close(controller)
        if process.poll() is None:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    return process.returncode, shown.decode()


def test_a_dumb_terminal(tmp_path: Path) -> None:
    code, shown = on_a_terminal(tmp_path, "--demo", term="dumb")
    assert code == 2
    assert shown.startswith("sandbox-chat: The chat needs a terminal that can place text, and TERM is dumb.")
    assert "\x1b" not in shown


def test_an_error_output_that_is_no_terminal(tmp_path: Path) -> None:
    with (tmp_path / "errors").open("wb") as errors:
        code, shown = on_a_terminal(tmp_path, "--demo", term="xterm", stderr=errors.fileno())
    assert (code, shown) == (2, "")
    assert "the error output is not one" in (tmp_path / "errors").read_text()


# --- endpoints ------------------------------------------------------------------------------------------


def test_an_address_where_nobody_answers(tmp_path: Path) -> None:
    env = {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "ANTHROPIC_AUTH_TOKEN": CANARY,
        "SANDBOX_CHAT_REQUEST_RETRIES": "1",
    }
    ended = run("run", "--sandbox", "off", "hello", home=tmp_path, env=env)
    said = refused(ended, 1, "error: ")
    assert CANARY not in said + ended.stdout


@pytest.mark.parametrize(
    ("status", "message", "part"),
    [
        (400, "model: no-such-model is not supported", "no-such-model"),
        (404, "model: no-such-model", "no-such-model"),
        (401, "invalid token", "ANTHROPIC_AUTH_TOKEN"),
    ],
)
def test_an_endpoint_that_refuses(tmp_path: Path, status: int, message: str, part: str) -> None:
    with serve(after=error(status, message)) as server:
        env = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_AUTH_TOKEN": server.token,
            "CLAUDE_MODEL": "no-such-model",
            "SANDBOX_CHAT_REQUEST_RETRIES": "1",
        }
        ended = run("run", "--sandbox", "off", "hello", home=tmp_path, env=env)
    said = refused(ended, 1, "error: ", part, "failed · ")
    assert server.token not in said + ended.stdout


# --- streams --------------------------------------------------------------------------------------------


def shell(home: Path, command: str, env: Mapping[str, str] | None = None) -> Ended:
    """Run a shell command in which ``$RUN`` is the program with the demo and no sandbox."""
    home.mkdir(exist_ok=True)
    script = f'run() {{ "$@" run --demo --sandbox off help; }}; {command}'
    done = subprocess.run(
        ["bash", "-c", script, "bash", *PROGRAM],
        env=environment(home, env),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr, 0.0)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ('run "$@" | true; exit ${PIPESTATUS[0]}', 141),
        ('"$@" run --json --demo --sandbox off help | head -n 1 >/dev/null; exit ${PIPESTATUS[0]}', 141),
        pytest.param('run "$@" >/dev/full', 1, marks=pytest.mark.slow),
        pytest.param('run "$@" >&-', 0, marks=pytest.mark.slow),
        pytest.param('run "$@" 2>&-', 0, marks=pytest.mark.slow),
        ('run "$@" <&-', 0),
        ('"$@" sessions >&-', 0),
        ('"$@" sessions >/dev/full', 1),
    ],
)
def test_streams_that_are_closed_or_full(tmp_path: Path, command: str, code: int) -> None:
    ended = shell(tmp_path, command)
    refused(ended, code)
    assert "Exception ignored" not in ended.stderr
    if "/dev/full" in command:
        assert "The output cannot be written (No space left on device)." in ended.stderr


def test_an_ascii_locale(tmp_path: Path) -> None:
    env = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with serve(text("größer 한글 →")) as server:
        gateway = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_AUTH_TOKEN": server.token,
            "CLAUDE_MODEL": "m",
        }
        ended = run("run", "--sandbox", "off", "größer?", home=tmp_path, env={**env, **gateway})
    assert ended.code == 0, ended.stderr
    assert "gr\\xf6\\xdfer \\ud55c\\uae00 \\u2192" in ended.stdout
