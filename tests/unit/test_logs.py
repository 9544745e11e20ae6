"""The log: private, clean, without credentials, and never on the terminal."""

from __future__ import annotations

import logging
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox_chat import logs
from sandbox_chat.settings import ConfigError, Secret, Settings

CANARY = "canary-7f3e9c1b5d8a2046"

PROGRAM = f"""
import gc, logging, sys, threading, warnings
from pathlib import Path
from sandbox_chat import logs
from sandbox_chat.settings import Secret, Settings
logs.set_up(Settings(log=Path(sys.argv[1]) if sys.argv[1] else None, anthropic_api_key=Secret("{CANARY}")))
log = logging.getLogger("sandbox_chat.part")
log.debug("token %s", "{CANARY}")
try:
    raise ValueError("with {CANARY} \\x1b[2J")
except ValueError:
    log.exception("failed")
logging.getLogger("library").info("chatter")
logging.getLogger("library").warning("a warning with {CANARY}")
warnings.warn("deprecated {CANARY}")
def work(): raise RuntimeError("thread {CANARY}")
thread = threading.Thread(target=work, name="worker-1")
thread.start(); thread.join()
class Odd:
    def __del__(self): raise RuntimeError("unraisable {CANARY}")
Odd(); gc.collect()
"""


def run(log: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PROGRAM, log], capture_output=True, text=True, check=True)


def test_the_log_holds_all_but_credentials(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.touch(mode=0o644)
    done = run(str(path))
    assert (done.stdout, done.stderr) == ("", "")
    text = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert CANARY not in text
    assert "\x1b" not in text
    for part in (
        "token [secret]",
        "ValueError: with [secret] ␛[2J",
        "a warning with [secret]",
        "deprecated [secret]",
        "the thread worker-1 failed",
        "RuntimeError: thread [secret]",
        "RuntimeError: unraisable [secret]",
    ):
        assert part in text, part
    assert "chatter" not in text


def test_without_a_log_nothing_is_shown() -> None:
    done = run("")
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("bad", ["", "missing/x.log", "/proc/nowhere/x.log"])
def test_a_log_that_cannot_be_written(tmp_path: Path, bad: str) -> None:
    with pytest.raises(
        ConfigError, match=r"The log file .* cannot be written \(.*\)\. Choose another with --log\."
    ):
        logs.set_up(Settings(log=tmp_path / bad))


def test_the_formatter_scrubs_the_arguments_too() -> None:
    settings = Settings(e2b_api_key=Secret(CANARY))
    record = logging.LogRecord("n", logging.INFO, "f", 1, "%s and %r", (CANARY, {"k": CANARY}), None)
    shown = logs.ScrubbingFormatter(settings.scrub).format(record)
    assert shown.endswith("n: [secret] and {'k': '[secret]'}")
