"""Which limit is named, from what a run left behind; and what is said of the limits that hold."""

from __future__ import annotations

import pytest

from sandbox_chat.sandbox import cgroups, limits_report, notes
from sandbox_chat.sandbox.base import CodeError, Execution
from sandbox_chat.settings import Settings

SETTINGS = Settings(sandbox_processes=99, sandbox_file_mb=7, sandbox_disk_mb=70, sandbox_memory_mb=700)


def named(done: Execution, *, at_limit: bool = False, isolated: bool = True) -> list[str]:
    found = notes.of_limits(done, SETTINGS, at_process_limit=at_limit, isolated=isolated)
    return [note[note.index("SANDBOX_CHAT_SANDBOX_") + 21 :].split(")")[0] for note in found]


def failed(name: str, value: str, trace: str = "") -> Execution:
    return Execution(error=CodeError(name, value, trace))


@pytest.mark.parametrize(
    ("done", "settings"),
    [
        (Execution(), []),
        (failed("ValueError", "no"), []),
        (failed("MemoryError", ""), ["MEMORY_MB"]),
        (failed("_ArrayMemoryError", "Unable to allocate 7 GiB"), ["MEMORY_MB"]),
        (failed("OSError", "[Errno 12] Cannot allocate memory"), ["MEMORY_MB"]),
        (failed("OSError", "[Errno 27] File too large"), ["FILE_MB"]),
        (failed("CalledProcessError", "Command 'x' died with <Signals.SIGXFSZ: 25>."), ["FILE_MB"]),
        (failed("OSError", "[Errno 28] No space left on device"), ["DISK_MB"]),
        (failed("RuntimeError", "can't start new thread"), ["PROCESSES"]),
        (failed("BlockingIOError", "[Errno 11] Resource temporarily unavailable", "os.fork()"), ["PROCESSES"]),
        (failed("BlockingIOError", "[Errno 11] Resource temporarily unavailable", "sock.recv(1)"), []),
        (Execution(stderr="dd: error writing 'x': No space left on device\n"), ["DISK_MB"]),
        (Execution(stderr="sh: 1: Cannot fork\n"), ["PROCESSES"]),
        (Execution(stdout="File too large", stderr="x" * 50_000), []),
        (Execution(stopped="died", error=CodeError("SandboxDied", "MemoryError", "")), []),
    ],
)  # fmt: skip
def test_the_limit_is_named(done: Execution, settings: list[str]) -> None:
    assert named(done) == settings


def test_the_limit_of_processes_is_named_when_it_was_seen_from_outside() -> None:
    assert named(Execution(), at_limit=True) == ["PROCESSES"]
    assert (
        "the limit of 99 processes"
        in notes.of_limits(Execution(), SETTINGS, at_process_limit=True, isolated=False)[0]
    )


def test_without_isolation_the_machine_has_its_own_limits() -> None:
    assert named(failed("OSError", "No space left on device"), isolated=False) == []
    assert named(failed("RuntimeError", "can't start new thread"), isolated=False) == []
    assert named(failed("OSError", "File too large"), isolated=False) == ["FILE_MB"]


@pytest.mark.parametrize("kind", ["local", "unsafe-local", "docker"])
def test_the_report_says_what_holds(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "find", lambda: None)
    text = " ".join(limits_report(Settings(sandbox=kind, sandbox_memory_mb=700, sandbox_cpus=1.5)))
    assert "at most 700 MB of memory" in text
    assert "256 processes" in text
    assert ("cannot be limited here" in text) == (kind != "docker")
    monkeypatch.setattr(cgroups, "find", lambda: cgroups.Place(1, {}))
    text = " ".join(limits_report(Settings(sandbox=kind)))
    assert ("control group, version 1" in text) == (kind != "docker")


def test_the_report_is_silent_where_nothing_is_ours() -> None:
    assert limits_report(Settings(sandbox="off")) == []
    assert limits_report(Settings(sandbox="e2b")) == []
