"""The log: private, bounded, one JSON object a line, no content in it, and never on the terminal."""

from __future__ import annotations

import ast
import errno
import json
import logging
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sandbox_chat
from sandbox_chat import crash, logs
from sandbox_chat import events as ev
from sandbox_chat.log_file import PrivateRotatingFile
from sandbox_chat.settings import ConfigError, Secret, Settings
from sandbox_chat.tools.schemas import tool_specs

CANARY = "canary-7f3e9c1b5d8a2046"
WORDS = "unmistakable words of the user"

PROGRAM = f"""
import gc, logging, sys, threading, warnings
from pathlib import Path
from sandbox_chat import logs
from sandbox_chat.settings import Secret, Settings
folder = Path(sys.argv[1])
logs.set_up(Settings(log=folder / "a.log" if sys.argv[2] else None, data_dir=folder, anthropic_api_key=Secret("{CANARY}")))
log = logging.getLogger("sandbox_chat.part")
log.debug("token %s of %d after %s", "{CANARY}", 3, ValueError("{WORDS}"))
try:
    raise ValueError("with {CANARY} {WORDS} \\x1b[2J")
except ValueError:
    log.exception("it failed")
logging.getLogger("library").info("chatter")
logging.getLogger("library").warning("a warning with {WORDS}")
logging.getLogger("library").warning("{WORDS} %s", "{CANARY}")
warnings.warn("deprecated {WORDS}")
def work(): raise RuntimeError("thread {CANARY} {WORDS}")
thread = threading.Thread(target=work, name="worker-1")
thread.start(); thread.join()
class Odd:
    def __del__(self): raise RuntimeError("unraisable {WORDS}")
Odd(); gc.collect()
"""


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Logging as it was, so that no other test writes into this one's files."""
    hooks = sys.unraisablehook, logs.threading.excepthook
    level = logging.getLogger().level
    yield
    logs.set_up(Settings())
    logging.captureWarnings(False)
    logging.getLogger().setLevel(level)
    sys.unraisablehook, logs.threading.excepthook = hooks
    crash.take_written()
    crash.recent.clear()


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def run(folder: Path, *, log: bool) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), "yes" if log else ""],
        capture_output=True,
        text=True,
        check=True,
    )


def test_the_log_tells_what_happened_and_quotes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.touch(mode=0o644)
    done = run(tmp_path, log=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert CANARY not in text and WORDS not in text and "chatter" not in text
    found = entries(path)
    assert found[0]["event"] == "start" and found[0]["pid"] > 0
    assert set(found[1]) == {"time", "level", "logger", "thread", "message"}
    assert found[1]["message"] == "token … of 3 after ValueError"
    assert found[2]["error"] == {"type": "ValueError", "frames": ["<string>:11 in <module>"]}
    library = [entry for entry in found if entry["logger"] == "library"]
    assert len(library) == 2 and all("message" not in entry for entry in library)
    assert library[0]["place"].startswith("<string>:")
    assert [entry["thread"] for entry in found if entry.get("message") == "a thread failed"] == ["worker-1"]
    assert any(entry["logger"] == "py.warnings" for entry in found)
    assert any(entry.get("message") == "an exception could not be raised" for entry in found)


def test_without_a_log_nothing_is_shown(tmp_path: Path) -> None:
    done = run(tmp_path, log=False)
    assert (done.stdout, done.stderr) == ("", "")
    assert [path.name for path in tmp_path.iterdir()] == ["crashes"]


@pytest.mark.parametrize("bad", ["", "missing/x.log", "/proc/nowhere/x.log"])
def test_a_log_that_cannot_be_written(tmp_path: Path, bad: str) -> None:
    with pytest.raises(
        ConfigError, match=r"The log file .* cannot be written \(.*\)\. Choose another with --log\."
    ):
        logs.set_up(Settings(log=tmp_path / bad))


def test_without_a_name_the_log_is_in_the_data_folder(tmp_path: Path) -> None:
    settings = Settings(log=Path("auto"), data_dir=tmp_path)
    logs.set_up(settings)
    path = tmp_path / "logs" / "sandbox-chat.log"
    assert settings.log_path == path
    assert entries(path)[0]["event"] == "start"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_terminal_that_was_closed_is_no_fault(tmp_path: Path) -> None:
    logs.set_up(Settings(log=tmp_path / "a.log", data_dir=tmp_path))
    for error in (OSError(errno.EIO, WORDS), OSError(errno.ENOSPC, WORDS)):
        thread = threading.Thread(target=raising, args=(error,), name="writer")
        thread.start()
        thread.join()
    assert [entry["level"] for entry in entries(tmp_path / "a.log")[1:]] == ["warning", "error"]
    assert len(crash.take_written()) == 1


def raising(error: Exception) -> None:
    raise error


# -- events ------------------------------------------------------------------------------------------------


def noted(tmp_path: Path, *events: ev.Event) -> list[dict[str, Any]]:
    path = tmp_path / "a.log"
    logs.set_up(Settings(log=path, data_dir=tmp_path))
    for event in events:
        logs.note(event)
    return entries(path)[1:]


def full(kind: type[ev.Event]) -> ev.Event:
    """An event whose texts are all content."""
    import dataclasses

    values: dict[str, Any] = {}
    for item in dataclasses.fields(kind):
        match str(item.type):
            case "str":
                values[item.name] = WORDS
            case "int":
                values[item.name] = 7
            case "bool":
                values[item.name] = True
            case "float" | "float | None":
                values[item.name] = 0.5
            case "Mapping[str, Any]":
                values[item.name] = {WORDS: WORDS}
            case "Component":
                values[item.name] = "agent"
            case "ServerPlace":
                values[item.name] = "host"
            case "ServerState":
                values[item.name] = "ready"
            case "tuple[ServerTool, ...]":
                values[item.name] = (ev.ServerTool(WORDS, WORDS, WORDS),)
            case "NoticeLevel":
                values[item.name] = "info"
            case "Stream":
                values[item.name] = "stdout"
            case "About":
                values[item.name] = ((WORDS, WORDS),)
            case "tuple[Content, ...]":
                values[item.name] = (ev.TextContent(WORDS), ev.FileContent(WORDS, WORDS, 1, WORDS))
            case "tuple[Choice, ...]":
                values[item.name] = (ev.Choice(WORDS, WORDS, WORDS),)
            case "tuple[ModelUse, ...]":
                values[item.name] = (ev.ModelUse(WORDS, ev.Usage(1), 0.1),)
    return kind(**values)


def test_no_text_of_any_event_is_written(tmp_path: Path) -> None:
    found = noted(tmp_path, *(full(kind) for kind in ev.EVENT_TYPES.values()))
    assert WORDS not in (tmp_path / "a.log").read_text()
    assert {entry["event"] for entry in found} == set(ev.EVENT_TYPES) - set(logs._SILENT)


def test_what_is_written_of_events(tmp_path: Path) -> None:
    usage = ev.Usage(input=5, output=2)
    turn = ev.TurnFinished(
        seq=9, turn_id="t1", subtype="success", is_error=True, interrupted=False, num_turns=2, duration_ms=1200,
        cost_usd=0.01, total_cost_usd=0.02, usage=usage, error=WORDS, kind="rate_limit",
    )  # fmt: skip
    started, other, finished, notice = noted(
        tmp_path,
        ev.ToolStarted(seq=7, tool_use_id="toolu_1", name="mcp__sandbox__run_code", input={"code": WORDS}),
        ev.ToolStarted(seq=8, tool_use_id="toolu_2", name="confidential", input={}),
        turn,
        ev.Notice(seq=10, level="warning", text=WORDS),
    )
    assert (started["event"], started["seq"], started["tool"]) == (
        "tool_started",
        7,
        "mcp__sandbox__run_code",
    )
    assert other["tool"] == "…"
    assert (
        finished["kind"] == "rate_limit" and finished["duration_ms"] == 1200 and finished["turn_id"] == "t1"
    )
    assert finished["usage"] == {"input": 5, "output": 2}
    assert (notice["level"], notice["notice"]) == ("info", "warning")


def test_the_names_of_our_tools_are_known() -> None:
    assert {spec.full_name for spec in tool_specs(Settings())} == logs._TOOLS


# -- the file ----------------------------------------------------------------------------------------------


def record(number: int) -> logging.LogRecord:
    return logging.LogRecord("sandbox_chat.x", logging.INFO, "f", 1, "line %d", (number,), None)


def test_the_file_is_bounded_and_its_parts_are_private(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    file = PrivateRotatingFile(path, size=2000, parts=2)
    for number in range(2000):
        file.handle(record(number))
    file.close()
    parts = sorted(each.name for each in tmp_path.iterdir())
    assert parts == ["a.log", "a.log.1", "a.log.2"]
    for part in parts:
        assert stat.S_IMODE((tmp_path / part).stat().st_mode) == 0o600
        assert (tmp_path / part).stat().st_size <= 2000
    assert path.read_text().endswith("line 1999\n")


def test_two_programs_lose_no_line_when_one_begins_the_file_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    first, second = (PrivateRotatingFile(path, size=500, parts=50) for _ in range(2))
    for number in range(200):
        (first if number % 2 else second).handle(record(number))
    first.close()
    second.close()
    lines = [line for each in tmp_path.iterdir() for line in each.read_text().splitlines()]
    assert sorted(lines) == sorted(f"line {number}" for number in range(200))


def test_a_pipe_and_a_link_are_only_written_to(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    for name in ("link", "pipe"):
        file = PrivateRotatingFile(tmp_path / name, size=20, parts=1)
        for number in range(10):
            file.handle(record(number))
        file.close()
    os.close(reader)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "pipe", "real"]
    assert len((tmp_path / "real").read_text().splitlines()) == 10


def test_a_file_that_was_taken_away_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    file = PrivateRotatingFile(path, size=10_000, parts=1)
    file.handle(record(1))
    path.unlink()
    file.handle(record(2))
    file.close()
    assert path.read_text() == "line 2\n"


def test_a_file_that_cannot_be_made_again_stops_nobody_and_is_written_once_it_can(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    path = folder / "a.log"
    file = PrivateRotatingFile(path, size=10_000, parts=1)
    file.handle(record(1))
    path.unlink()
    folder.rmdir()
    file.handle(record(2))  # there is no place for it
    folder.mkdir()
    path.touch()
    for number in (3, 4):
        file.handle(record(number))
    file.close()
    assert path.read_text() == "line 3\nline 4\n"


def test_a_full_file_that_cannot_be_begun_anew_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.log"
    file = PrivateRotatingFile(path, size=30, parts=1)
    file.handle(record(1))

    def full() -> None:
        raise OSError(errno.EMFILE, "too many open files")

    for ours in (True, False):  # whoever begins it anew
        with monkeypatch.context() as patch:
            patch.setattr(file, "_open", full)
            patch.setattr(file, "_is_ours", lambda ours=ours: ours)
            for number in range(10):
                file.handle(record(number))
        file.handle(record(99))
        assert path.read_text().endswith("line 99\n")
    file.close()


def test_a_file_that_may_be_written_and_not_made_private_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.log"
    file = PrivateRotatingFile(path, size=10_000, parts=1)
    path.unlink()

    def not_mine(fd: int, mode: int) -> None:
        raise PermissionError(errno.EPERM, "not the owner")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fchmod", not_mine)
        before = len(list(Path("/proc/self/fd").iterdir()))
        for number in range(5):
            file.handle(record(number))
        assert len(list(Path("/proc/self/fd").iterdir())) <= before
    file.close()


# -- what is logged ------------------------------------------------------------------------------------------


def test_every_message_of_ours_is_a_constant() -> None:
    """Only then the formatter can tell what may be content: the values that are put into it."""
    wrong = []
    for path in Path(sandbox_chat.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("debug", "info", "warning", "error", "exception", "critical")
                and ast.unparse(node.func.value) in ("log", "logger", "logs.log", "logging", "_events")
                and not (isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str))
            ):
                wrong.append(f"{path.name}:{node.lineno}")
    assert wrong == []


def test_a_credential_in_a_place_that_is_written_is_scrubbed(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    logs.set_up(Settings(log=path, e2b_api_key=Secret(CANARY)))
    logs.note(ev.Attached(attach_id=CANARY, name="n", path="p", size=1))
    assert CANARY not in path.read_text()
    assert entries(path)[-1]["attach_id"] == "[secret]"
