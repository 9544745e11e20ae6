"""A crash report tells where and what kind, and nothing of what was said."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox_chat import crash
from sandbox_chat.settings import Secret, Settings

WORDS = "unmistakable words of the user"
SECRET = "canary-7f3e9c1b5d8a2046"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    crash.take_written()
    crash.recent.clear()
    yield
    crash.take_written()
    crash.recent.clear()


def fault(error: BaseException, cause: BaseException | None = None) -> BaseException:
    """``error``, as it was raised and caught."""
    marker = WORDS  # a local variable that must not be in the report
    try:
        try:
            raise cause or KeyError(marker)
        except BaseException as first:
            raise error from first
    except BaseException as caught:
        return caught


def settings(tmp_path: Path, **changes: object) -> Settings:
    return Settings(**{"data_dir": tmp_path, "anthropic_api_key": Secret(SECRET), **changes})  # type: ignore[arg-type]


def written(report: crash.Report | None) -> str:
    assert report is not None and report.path is not None
    return report.path.read_text(encoding="utf-8")


def test_what_a_report_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("TERM_PROGRAM", f"{WORDS}\x1b[2J")
    for number in range(1, 4):
        crash.recent.add("text_delta", number)
    crash.recent.add("tool_started", 4)
    report = crash.report(
        fault(RuntimeError(f"{WORDS} {SECRET}"), OSError(2, WORDS, WORDS)),
        settings(tmp_path, model=WORDS),
        thread="engine",
    )
    text = written(report)
    assert WORDS not in text and SECRET not in text and "\x1b" not in text
    lines = text.splitlines()
    assert lines[0].startswith("sandbox-chat ") and ", Python 3." in lines[0]
    assert "textual 8." in text and "claude-agent-sdk 0." in text
    assert "terminal: xterm-256color, " in text and " columns, " in text
    assert "settings that were changed: anthropic_api_key, model, data_dir" in text
    assert "thread: engine" in lines
    assert "RuntimeError" in lines
    assert "because of FileNotFoundError (ENOENT)" in lines
    assert any(
        line.startswith("  ") and "test_crash.py:" in line and line.endswith("in fault") for line in lines
    )
    assert lines[-3:] == ["last events:", "  1-3 text_delta", "  4 tool_started"]
    assert str(tmp_path) not in text
    assert report is not None and report.path is not None
    assert report.path.parent == tmp_path / "crashes"
    assert stat.S_IMODE(report.path.stat().st_mode) == 0o600


def test_a_type_that_is_named_by_others_is_not_quoted(tmp_path: Path) -> None:
    kind = type(WORDS, (Exception,), {})
    text = written(crash.report(fault(kind()), settings(tmp_path)))
    assert WORDS not in text


def test_of_an_exception_that_carries_another_that_one_counts(tmp_path: Path) -> None:
    class WorkerFailed(Exception):
        def __init__(self, error: BaseException) -> None:
            self.error = error

    carrier = WorkerFailed(fault(RuntimeError(WORDS)))
    report = crash.report(carrier, settings(tmp_path))
    text = written(report)
    assert report is not None and report.kind == crash.name_of(carrier) == "RuntimeError"
    assert "because of RuntimeError" in text and "in fault" in text and WORDS not in text
    assert crash.report(fault(carrier), settings(tmp_path)) is None, "the same fault, raised once more"


def test_the_last_events_are_bounded() -> None:
    for number in range(1000):
        crash.recent.add(f"kind{number % 2}", number)
    lines = crash.recent.lines()
    assert len(lines) == crash.RECENT and lines[-1] == "999 kind1"


def test_a_fault_that_comes_again_leaves_one_report_and_many_leave_few(tmp_path: Path) -> None:
    known = fault(RuntimeError("a"))
    assert crash.report(known, settings(tmp_path)) is not None
    assert crash.report(known, settings(tmp_path)) is None
    for number in range(20):
        crash.report(type(f"Fault{number}", (Exception,), {})(), settings(tmp_path))
    assert len(list((tmp_path / "crashes").iterdir())) == crash.MOST
    assert crash.report(fault(ValueError()), settings(tmp_path), last=True) is not None
    assert len(crash.take_written()) == crash.MOST + 1
    assert crash.take_written() == []


def test_old_reports_are_removed_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "crashes"
    folder.mkdir()
    for number in range(30):
        (folder / f"crash-20200101-0000{number:02d}-x.txt").touch()
    (folder / "notes.txt").touch()
    new = crash.report(fault(RuntimeError()), settings(tmp_path, crash_reports=4))
    names = sorted(path.name for path in folder.iterdir())
    assert new is not None and new.path is not None
    assert names[0] == "crash-20200101-000027-x.txt"
    assert names[3:] == [new.path.name, "notes.txt"]


def test_where_the_data_folder_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    report = crash.report(fault(RuntimeError()), Settings(data_dir=Path("/proc/nowhere")))
    assert report is not None and report.path is not None
    assert report.path.parent == tmp_path and report.path.name.startswith("sandbox-chat-crash-")
    crash.take_written()
    monkeypatch.setattr("tempfile.tempdir", "/proc/nowhere")
    report = crash.report(fault(RuntimeError()), Settings(data_dir=Path("/proc/nowhere")))
    assert report == crash.Report("RuntimeError", None)


def test_only_faults_that_are_logged_with_their_exception_leave_one(tmp_path: Path) -> None:
    logger = logging.Logger("sandbox_chat.x")
    logger.addHandler(crash.Handler(settings(tmp_path)))
    error = fault(RuntimeError())
    logger.warning("w", exc_info=error)
    logger.error("no exception")
    assert crash.take_written() == []
    logger.error("e", exc_info=error)
    assert [report.kind for report in crash.take_written()] == ["RuntimeError"]
