"""Every attempt of the table is tried in a real sandbox: as the present user and, from root, as an ordinary one."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from security.attempts import ATTEMPTS, Attempt
from support import ordinary

ORDINARY_UID = 1234
RUNNER = Path(__file__).with_name("run_all.py")
WHO = ("present", "ordinary")
# Attempts that do no harm and that work without isolation: they show that the scripts do what they say.
FAULTS = ("NameError", "TypeError", "AttributeError", "SyntaxError", "ArgumentError", "IndentationError")
CONTROLS = (
    "home_file",
    "host_tmp_file",
    "tcp_host_loopback",
    "abstract_socket",
    "see_others",
    "proc_secrets",
)


@dataclass
class Outside:
    """What there is on the machine for the attempts to find."""

    secret: str
    context: dict[str, object]
    victim: subprocess.Popen[bytes]
    home: Path

    def environment(self) -> dict[str, str]:
        """The environment of the program, with the secret as credentials."""
        keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        names = ("E2B_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "SANDBOX_CHAT_TEST")
        return {**keep, **dict.fromkeys(names, self.secret), "HOME": str(self.home)}


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    with ordinary.open_folder() as home:
        yield from prepared(home)


def prepared(home: Path) -> Iterator[Outside]:
    """Put the things outside in place, and take them away afterwards."""
    secret = "canary-" + secrets.token_hex(16)
    (home / "private.txt").write_text(secret)
    tmp_file = Path("/tmp") / f"sandbox-chat-test-{secrets.token_hex(8)}"
    tmp_file.write_text(secret)
    listener = socket.create_server(("127.0.0.1", 0))
    abstract = socket.socket(socket.AF_UNIX)
    name = "sandbox-chat-" + secrets.token_hex(8)
    abstract.bind("\0" + name)
    abstract.listen()
    victim = subprocess.Popen(["sleep", "1000"])
    context: dict[str, object] = {
        "PORT": listener.getsockname()[1],
        "ABSTRACT": name,
        "VICTIM": victim.pid,
        "HOME_FILE": str(home / "private.txt"),
        "TMP_FILE": str(tmp_file),
        "SECRET_HASH": hashlib.sha256(secret.encode()).hexdigest(),
        "SECRET_LENGTH": len(secret),
    }
    try:
        yield Outside(secret, context, victim, home)
    finally:
        victim.kill()
        victim.wait()
        tmp_file.unlink()
        listener.close()
        abstract.close()


def run(outside: Outside, who: str, kind: str, folder: Path, *names: str) -> dict[str, str]:
    command = [sys.executable, str(RUNNER), kind, str(folder), json.dumps(outside.context), *names]
    if who == "ordinary":
        done = ordinary.run_as(ORDINARY_UID, folder, command, env=outside.environment())
    else:
        done = subprocess.run(command, env=outside.environment(), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert isinstance(results, dict)
    return results


@pytest.fixture(scope="module")
def results(outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What came of all attempts, for each user; made at first use."""
    found = {"present": run(outside, "present", "local", tmp_path_factory.mktemp("present"))}
    if os.geteuid() == 0:
        with ordinary.open_folder() as folder:
            found["ordinary"] = run(outside, "ordinary", "local", folder)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_attempt(attempt: Attempt, who: str, results: dict[str, dict[str, str]]) -> None:
    if who not in results:
        pytest.skip("the tests run as an ordinary user already")
    text = results[who][attempt.name]
    if attempt.expect == "killed":
        assert text.startswith("DIED") or "REFUSED" in text, text
    else:
        assert "REFUSED" in text, text
    assert "WORKED" not in text, text
    assert not any(fault in text for fault in FAULTS), f"the script is wrong: {text}"


@pytest.mark.slow
def test_the_scripts_would_work_without_isolation(outside: Outside, tmp_path: Path) -> None:
    found = run(outside, "present", "unsafe-local", tmp_path, *CONTROLS)
    # The guest's own environment holds no credentials even then; its parent's, on the same machine, does.
    assert {name: "WORKED" in found[name] for name in CONTROLS} == dict.fromkeys(CONTROLS, True), found


@pytest.mark.slow
def test_nothing_outside_was_harmed(outside: Outside, results: dict[str, dict[str, str]]) -> None:
    assert results
    assert outside.victim.poll() is None
    assert (outside.home / "private.txt").read_text() == outside.secret


def test_names_are_unique() -> None:
    assert len({attempt.name for attempt in ATTEMPTS}) == len(ATTEMPTS)
