"""The log of the gateway: what the servers write to standard error, and what the gateway does with them."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

LIMIT = 16 << 20
"""Bytes at which the file is begun anew; the one before is kept beside it, with ``.1`` after its name."""
_LONGEST = 8 << 10  # characters of a line that are kept
_MOST_CLEANED = 128 << 10  # characters of a line that are looked at
_WAITING = 64 << 10  # bytes of a line without an end; the rest of it is thrown away
_SHORTEST_SECRET = 6  # shorter values are no secrets, and would blot out ordinary words
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff]")


class Log:
    """A log file of bounded size. A disk that is full loses lines, nothing else."""

    def __init__(self, path: Path, secrets: Iterable[str] = (), limit: int = LIMIT) -> None:
        self._path = path
        self._limit = limit
        lines = {line for secret in secrets for line in secret.splitlines() if len(line) >= _SHORTEST_SECRET}
        self._secrets = sorted(lines, key=len, reverse=True)
        self._file = open_log(path)
        info = os.fstat(self._file)
        self._size, self._regular = info.st_size, stat.S_ISREG(info.st_mode)

    def say(self, text: str) -> None:
        """Write what the gateway has to say."""
        for line in text.splitlines():
            self.line("gateway", line)

    def clean(self, text: str) -> str:
        """Return a line without control characters and without the values of secrets."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, "***")
        return _CONTROL.sub("", text)

    def line(self, name: str, text: str) -> None:
        """Write one line of a server, cleaned."""
        more = max(0, len(text) - _MOST_CLEANED)
        text = self.clean(text[:_MOST_CLEANED])
        if len(text) > _LONGEST:
            text = f"{text[:_LONGEST]}… ({len(text) + more - _LONGEST:,} more characters)"
        data = f"[{name}] {text}\n".encode()
        with contextlib.suppress(OSError):
            if self._regular and self._size + len(data) > self._limit:
                self._begin_anew()
            self._size += os.write(self._file, data)

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            os.close(self._file)

    def _begin_anew(self) -> None:
        self._path.replace(f"{self._path}.1")
        fresh = open_log(self._path)
        os.close(self._file)
        self._file, self._size = fresh, 0


class Handler(logging.Handler):
    """Writes the warnings of the libraries to the log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        self._log.say(f"{record.name}: {self.format(record)}")


class Lines:
    """Puts pieces of a server's standard error together to lines of the log."""

    def __init__(self, log: Log, name: str) -> None:
        self._log = log
        self._name = name
        self._waiting = b""
        self._skipping = False

    def feed(self, data: bytes) -> None:
        """Take what came."""
        *whole, rest = (self._waiting + data).split(b"\n")
        for line in whole:
            if not self._skipping:
                self._write(line)
            self._skipping = False
        if len(rest) > _WAITING:
            if not self._skipping:
                self._write(rest)
            self._skipping, rest = True, b""
        self._waiting = b"" if self._skipping else rest

    def end(self) -> None:
        """Write a last line that has no end."""
        if self._waiting:
            self._write(self._waiting)
            self._waiting = b""

    def _write(self, line: bytes) -> None:
        self._log.line(self._name, line.decode("utf-8", "replace").rstrip("\r"))


def open_log(path: Path) -> int:
    """Open a log file for appending, readable for its owner only. A pipe that nobody reads fails. Raises ``OSError``."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    return os.open(path, flags, 0o600)


def tail(path: Path, start: int, most: int = 4096) -> str:
    """Return the last ``most`` bytes of a log that were written after byte ``start``, from the begin of a line."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = 0 if size < start else start
            begin = max(start, size - most)
            file.seek(begin)
            data = file.read(most)
    except OSError:
        return ""
    if begin > start:
        data = data.partition(b"\n")[2] or data
    return data.decode("utf-8", "replace").strip()
