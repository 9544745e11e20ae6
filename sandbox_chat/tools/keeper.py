"""The whole output of a run, kept in a file when the answer had to be cut."""

from __future__ import annotations

import codecs
import contextlib
import errno
import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sandbox_chat.events import Stream
from sandbox_chat.tools.context import Private

log = logging.getLogger(__name__)

SAME_NAME_LIMIT = 100
HIDDEN_LIMIT = 1_000_000
"""Bytes that are kept at most where personal data is looked for: that takes a second or two."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a run's output lies: ``size`` bytes of ``total`` that came."""

    path: Path
    size: int
    total: int


class HiddenOutput:
    """Passes output on to a keeper without personal data, the first ``HIDDEN_LIMIT`` bytes of it. One thread at a time.

    A character that is broken is replaced.
    """

    def __init__(self, keeper: OutputKeeper, private: Private) -> None:
        self._keeper = keeper
        self._private = private
        self._streams: dict[
            Stream, tuple[codecs.IncrementalDecoder, Callable[[str], str], Callable[[], str]]
        ] = {}
        self._taken = 0

    def take(self, stream: Stream, data: bytes) -> None:
        """Take a piece of output; what is beyond the limit is only counted. The worker's thread only."""
        if self._taken > HIDDEN_LIMIT:
            self._keeper.count(len(data))
            return
        self._taken += len(data)
        if stream not in self._streams:
            fresh: codecs.IncrementalDecoder = codecs.getincrementaldecoder("utf-8")("replace")
            self._streams[stream] = (fresh, *self._private.stream())
        decoder, feed, _ = self._streams[stream]
        if text := feed(decoder.decode(data)):
            self._keeper.take(stream, text.encode("utf-8", "replace"))

    def close(self) -> None:
        """Pass on what was held back. Any number of times."""
        streams, self._streams = self._streams, {}
        for stream, (decoder, feed, rest) in streams.items():
            if text := feed(decoder.decode(b"", True)) + rest():
                self._keeper.take(stream, text.encode("utf-8", "replace"))


class OutputKeeper:
    """Takes the bytes of a run on the sandbox worker's thread and writes them to ``<call id>.txt`` under ``folder``.

    Up to ``spare`` bytes are only held: an answer shows so much by itself. Beyond ``limit`` bytes nothing more is
    written. The file is private to the user and holds what the code wrote, byte for byte, in the order in which
    it came. A disk that takes nothing only costs the file.
    """

    def __init__(self, folder: Path, call_id: str, *, spare: int, limit: int) -> None:
        self._folder = folder
        self._name = _UNSAFE.sub("_", call_id)[:80] or "call"
        self._spare = spare
        self._limit = limit
        self._held: list[bytes] = []
        self._total = 0
        self._written = 0
        self._fd = -1
        self._path: Path | None = None
        self._failed = limit <= 0
        self.problem = ""
        """Why there is no file although the output is longer than what is only held; empty when all is well."""

    def take(self, stream: Stream, data: bytes) -> None:
        """Take a piece of output. The worker's thread only; never raises."""
        del stream
        self._total += len(data)
        if self._failed:
            return
        if self._fd < 0:
            self._held.append(data)
            if self._total <= self._spare:
                return
            data, self._held = b"".join(self._held), []
        data = data[: max(self._limit - self._written, 0)]
        if not data:
            return
        try:
            if self._fd < 0:
                self._open()
            while data:
                done = os.write(self._fd, data)
                self._written += done
                data = data[done:]
        except OSError as error:
            log.warning("the output of a run could not be kept: %s", error.strerror)
            self.problem = error.strerror or type(error).__name__
            self._fail()

    def count(self, size: int) -> None:
        """Know of output that is not to be kept."""
        self._total += size

    def close(self) -> Kept | None:
        """Close the file and return where it is; ``None`` when there is none. When the run is over."""
        self._held = []
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._path is None:
            return None
        return Kept(self._path, self._written, self._total)

    def _open(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(1, SAME_NAME_LIMIT + 1):
            path = self._folder / (f"{self._name}.txt" if number == 1 else f"{self._name}-{number}.txt")
            with contextlib.suppress(FileExistsError):
                self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                self._path = path
                return
        raise FileExistsError(errno.EEXIST, "too many files of that name")

    def _fail(self) -> None:
        self._failed = True
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()
            self._path = None
