"""The log file and crash reports: private files in which no credential is ever written."""

from __future__ import annotations

import logging
import os
import stat
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from sandbox_chat import __version__
from sandbox_chat.settings import ConfigError, Settings
from sandbox_chat.text import clean

log = logging.getLogger("sandbox_chat")


class ScrubbingFormatter(logging.Formatter):
    """Formats a record, its traceback included, then replaces credentials and makes control bytes visible."""

    def __init__(self, scrub: Callable[[str], str]) -> None:
        super().__init__(
            "%(asctime)s.%(msecs)03d %(levelname)s %(threadName)s %(name)s: %(message)s", "%H:%M:%S"
        )
        self._scrub = scrub

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line or lines."""
        return clean(self._scrub(super().format(record)))


def set_up(settings: Settings) -> None:
    """Direct all logging, Python warnings and faults of threads to the log file, or nowhere without one.

    Nothing is ever logged to the terminal, which belongs to the chat. Raises ``ConfigError`` when
    the file cannot be written.
    """
    handler: logging.Handler = logging.NullHandler()
    if settings.log is not None:
        handler = logging.StreamHandler(_open_private(settings.log))
        handler.setFormatter(ScrubbingFormatter(settings.scrub))
        log.setLevel(logging.DEBUG)
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    root.addHandler(handler)
    logging.captureWarnings(True)
    threading.excepthook = _thread_failed
    sys.unraisablehook = _unraisable
    log.info(
        "sandbox-chat %s, Python %s, log of process %d", __version__, sys.version.split()[0], os.getpid()
    )


def _open_private(path: Path) -> Any:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if stat.S_ISREG(os.fstat(fd).st_mode):
            os.fchmod(fd, 0o600)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"The log file {path} cannot be written ({reason}). Choose another with --log."
        ) from None
    return os.fdopen(fd, "a", encoding="utf-8", errors="backslashreplace", buffering=1)


def _thread_failed(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is SystemExit or args.exc_value is None:
        return
    name = args.thread.name if args.thread else "?"
    info: tuple[type[BaseException], BaseException, TracebackType | None]
    info = (args.exc_type, args.exc_value, args.exc_traceback)
    log.error("the thread %s failed", name, exc_info=info)


def _unraisable(args: Any) -> None:
    if args.exc_value is not None:
        log.error("%s", args.err_msg or "an exception could not be raised", exc_info=args.exc_value)


def write_crash_report(error: BaseException, settings: Settings | None) -> Path | None:
    """Write the traceback of ``error`` to a private file in the data folder; return its path.

    Without settings the credentials are not known, so the texts of exceptions are left out. Falls
    back to the folder for temporary files, and returns ``None`` when nothing can be written.
    """
    lines = [f"sandbox-chat {__version__}, Python {sys.version.split()[0]}, {sys.platform}\n"]
    if settings is None:
        lines += traceback.format_tb(error.__traceback__)
        lines.append(f"{type(error).__name__} (text left out: it may hold a credential)\n")
    else:
        lines += traceback.format_exception(error)
    text = "".join(lines)
    if settings is not None:
        text = settings.scrub(text)
    now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    for folder in _report_folders(settings):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd, name = tempfile.mkstemp(prefix=f"crash-{now}-", suffix=".txt", dir=folder)
            with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(clean(text))
        except OSError:
            continue
        return Path(name)
    return None


def _report_folders(settings: Settings | None) -> list[Path]:
    temporary = Path(tempfile.gettempdir())
    return [temporary] if settings is None else [settings.data_path / "crashes", temporary]
