"""The log: one JSON object a line, in a private file that does not grow without end. No content is ever written.

What is written is what this program itself knows beforehand: words of its own, names of types, ids, numbers, states.
A text that came from anywhere else (a prompt, an answer, code, a path, words of a server or of a library) stands as
``…``, whoever logs it: the formatter decides, and not the place that logs.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sandbox_chat import __version__, crash
from sandbox_chat.settings import ConfigError, Settings

if TYPE_CHECKING:
    from sandbox_chat.events import Event

log = logging.getLogger("sandbox_chat")
_events = logging.getLogger("sandbox_chat.events")

_added: list[tuple[logging.Logger, logging.Handler]] = []

_GONE = (errno.EIO, errno.EPIPE, errno.EBADF)
"""What a thread that writes to the terminal fails with when that was closed: no fault of ours."""
HIDDEN = "…"
"""Stands for a text that may be content."""
_WORD = re.compile(r"[A-Za-z0-9_.:-]{1,80}")
"""Ids, names of states and types look like this; a longer text is not written."""
_SILENT = ("text_delta", "thinking_delta", "tool_input_delta", "tool_output", "progress")
"""Events that come in masses and say nothing beside their content."""
_FIELDS = (
    "session_id", "turn_id", "tool_use_id", "approval_id", "attach_id", "component", "state", "kind", "level", "subtype",
    "by", "is_error", "interrupted", "num_turns", "duration_ms", "cost_usd", "attempt", "delay_ms", "size", "sandbox",
    "demo", "usage", "context", "limit_usd", "automatic", "origin", "agent_id",
)  # fmt: skip
"""Fields of events that may be written: none of them holds what was said, or a path."""
_TOOLS = frozenset(
    f"mcp__sandbox__{name}"
    for name in ("run_code", "write_file", "read_file", "list_files", "read_image", "download_file")
)
"""Names of tools that are ours; the model may call anything, and then the name is its own words."""


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object. ``scrub`` is the last guard: it takes credentials out of the whole line."""

    def __init__(self, scrub: Callable[[str], str]) -> None:
        super().__init__()
        self._scrub = scrub

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line."""
        ours = record.name.partition(".")[0] == "sandbox_chat"
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name if _WORD.fullmatch(record.name) else HIDDEN,
            "thread": _word(record.threadName or "") or HIDDEN,
        }
        fields = getattr(record, "fields", None)
        if ours and isinstance(fields, Mapping):
            entry.update(fields)
        elif ours:
            entry["message"] = _message(record)
        else:  # a library's template may hold anything already
            entry["place"] = f"{Path(record.pathname).name}:{record.lineno}"
        if record.exc_info and record.exc_info[1] is not None:
            entry["error"] = crash.outline(record.exc_info[1])
        line = json.dumps(entry, ensure_ascii=True, separators=(",", ":"), default=lambda _: HIDDEN)
        return self._scrub(line)


def _message(record: logging.LogRecord) -> str:
    """Return a message of our own with what was put into it hidden, but for numbers and types of errors."""
    if not isinstance(record.msg, str):
        return HIDDEN
    if not record.args:
        return record.msg
    arguments = record.args if isinstance(record.args, tuple) else (record.args,)
    try:
        return record.msg % tuple(_harmless(value) for value in arguments)
    except (TypeError, ValueError):
        return record.msg


def _harmless(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    return type(value).__name__ if isinstance(value, BaseException) else HIDDEN


def _word(value: str) -> str:
    return value if _WORD.fullmatch(value) else ""


def note(event: Event) -> None:
    """Note that an event happened: for the log, and for a crash report. Any thread; never raises."""
    crash.recent.add(event.type, event.seq)
    if event.type in _SILENT or not _events.isEnabledFor(logging.INFO):
        return
    fields: dict[str, Any] = {"event": event.type, "seq": event.seq}
    for name in _FIELDS:
        value = _plain(getattr(event, name, None))
        if value not in (None, "", {}):
            fields["notice" if name == "level" else name] = value
    tool = getattr(event, "name", None)
    if isinstance(tool, str) and event.type == "tool_started":
        fields["tool"] = tool if tool in _TOOLS else HIDDEN
    _events.info("", extra={"fields": fields})


def _plain(value: object) -> object:
    """Return a value as it may be written, ``None`` if it may not."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _word(value)
    slots = getattr(value, "__slots__", ())
    return {
        name: found
        for name in slots
        if isinstance(found := getattr(value, name, None), int | float) and found
    }


def set_up(settings: Settings) -> None:
    """Direct all logging, Python warnings and faults of threads to the log file, or nowhere without one.

    Nothing is ever logged to the terminal, which belongs to the chat. Faults of ours leave a crash report in any
    case. Raises ``ConfigError`` when the file cannot be written.
    """
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    while _added:
        logger, handler = _added.pop()
        logger.removeHandler(handler)
        handler.close()
    for logger, handler in ((root, _log_handler(settings)), (log, crash.Handler(settings))):
        logger.addHandler(handler)
        _added.append((logger, handler))
    log.setLevel(logging.DEBUG if settings.log is not None else logging.WARNING)
    logging.captureWarnings(True)
    threading.excepthook = _thread_failed
    sys.unraisablehook = _unraisable
    if settings.log is not None:
        fields = {
            "event": "start",
            "version": __version__,
            "python": sys.version.split()[0],
            "pid": os.getpid(),
        }
        log.info("", extra={"fields": fields})


def _log_handler(settings: Settings) -> logging.Handler:
    path = settings.log_path
    if path is None:
        return logging.NullHandler()
    from sandbox_chat.log_file import PrivateRotatingFile

    try:
        if settings.log_is_own:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = PrivateRotatingFile(path, size=int(settings.log_mb * 1_000_000), parts=settings.log_parts)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"The log file {path} cannot be written ({reason}). Choose another with --log."
        ) from None
    handler.setFormatter(JsonFormatter(settings.scrub))
    return handler


def _thread_failed(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is SystemExit or args.exc_value is None:
        return
    info: tuple[type[BaseException], BaseException, TracebackType | None]
    info = (args.exc_type, args.exc_value, args.exc_traceback)
    if isinstance(args.exc_value, OSError) and args.exc_value.errno in _GONE:
        log.warning("a thread ended because what it wrote to has gone", exc_info=info)
    else:
        log.error("a thread failed", exc_info=info)


def _unraisable(args: Any) -> None:
    if args.exc_value is not None:
        log.warning("an exception could not be raised", exc_info=args.exc_value)
