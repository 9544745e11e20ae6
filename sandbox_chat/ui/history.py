"""The prompts of a user over all sessions, for the composer's up and down keys.

One JSON string a line in a file that only its owner can read. A history that cannot be read or
written is no reason to stop a chat: it then lives in memory.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from sandbox_chat.gateway.whole_file import write_whole
from sandbox_chat.text import clean, clean_line
from sandbox_chat.ui.trouble import Trouble
from sandbox_chat.words import tr

if sys.platform != "win32":  # there nobody else is kept out of the file
    import fcntl

KEEP = 1000
"""Prompts kept; the file is rewritten when it holds twice as many."""

ENTRY_LIMIT = 100_000
"""Characters of the longest prompt that the file keeps: a longer one is kept while the program runs."""


SEARCHED = 4000
"""Characters of a prompt's beginning that a search looks at."""


class History:
    """Prompts, oldest first, with a place in them that ``back`` and ``forward`` move.

    The draft that was being written is kept while older prompts are looked at. ``path`` is ``None``
    for a history in memory only. The file is read by ``load`` and written on a thread of its own. ``problem`` says
    why that failed, and ``failed`` is called with it on that thread, once for
    the same sentence.
    """

    def __init__(self, path: Path | None = None, failed: Callable[[str], None] | None = None) -> None:
        self.path = path
        self._trouble = Trouble(failed)
        self._entries: list[str] = []
        self._place: int | None = None
        self._draft = ""
        self._keys: dict[str, str] = {}
        self._lock = threading.Lock()
        self._writers: list[threading.Thread] = []

    @property
    def problem(self) -> str:
        """Why the file could not be read or written; empty when it could."""
        return self._trouble.text

    @property
    def entries(self) -> list[str]:
        """The prompts, oldest first."""
        return list(self._entries)

    @property
    def recalling(self) -> bool:
        """True while an older prompt is looked at."""
        return self._place is not None

    @property
    def draft(self) -> str:
        """The draft that was being written before older prompts were looked at."""
        return self._draft

    def search(self, words: str, limit: int) -> list[str]:
        """Return the prompts that hold all of ``words``, newest first, each once. Letters of either case are the same."""
        wanted = words.casefold().split()
        if len(self._keys) > 2 * KEEP:
            self._keys.clear()  # those of prompts that are forgotten
        found: dict[str, None] = {}
        for entry in reversed(self._entries):
            key = self._keys.get(entry)
            if key is None:
                key = self._keys[entry] = entry[:SEARCHED].casefold()
            if all(word in key for word in wanted):
                found[entry] = None
                if len(found) >= limit:
                    break
        return list(found)

    def load(self) -> None:
        """Read the file; blocking, so call it off the loop. Never raises."""
        if self.path is None:
            return
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            self._fail("composer.history_not_read", error)
            return
        found = _entries_of(raw)
        with self._lock:
            self._entries = [*found[-KEEP:], *self._entries]
        if len(found) > 2 * KEEP:
            self._rewrite()

    def add(self, prompt: str) -> None:
        """Remember a prompt, unless it is the same as the one before. Returns at once."""
        self._place = None
        self._draft = ""
        prompt = prompt.strip("\n")
        if not prompt.strip():
            return
        with self._lock:
            if self._entries and self._entries[-1] == prompt:
                return
            self._entries.append(prompt)
            del self._entries[:-KEEP]
        if self.path is not None and len(prompt) <= ENTRY_LIMIT:
            writer = threading.Thread(target=self._append, args=(prompt,), name="history", daemon=True)
            self._writers = [thread for thread in self._writers if thread.is_alive()]
            self._writers.append(writer)
            writer.start()

    def keeps(self, prompt: str) -> bool:
        """True when the next run will find ``prompt`` here, after all was written: see ``close``."""
        return not prompt.strip() or (not self.problem and len(prompt) <= ENTRY_LIMIT)

    def close(self, timeout: float = 1.0) -> bool:
        """Wait until what was added is written, for at most about ``timeout`` seconds. Returns false when it is not yet."""
        for writer in self._writers:
            writer.join(timeout)
        return not any(writer.is_alive() for writer in self._writers)

    def back(self, current: str) -> str | None:
        """Return the prompt before the present place, or ``None`` at the oldest. ``current`` is the draft."""
        place = len(self._entries) if self._place is None else self._place
        if place == 0:
            return None
        if self._place is None:
            self._draft = current
        self._place = place - 1
        return self._entries[self._place]

    def forward(self) -> str | None:
        """Return the prompt after the present place, at the end the draft; ``None`` when already there."""
        if self._place is None:
            return None
        self._place += 1
        if self._place >= len(self._entries):
            self._place = None
            return self._draft
        return self._entries[self._place]

    def leave(self) -> None:
        """Forget the place: the text was edited and is a draft of its own now."""
        self._place = None

    def _append(self, prompt: str) -> None:
        assert self.path is not None
        line = json.dumps(prompt) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with _alone(self.path) as handle:
                size = os.fstat(handle).st_size
                if size and os.pread(handle, 1, size - 1) != b"\n":
                    line = "\n" + line  # a full disk cut the line before
                if os.write(handle, line.encode()) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._fail("composer.history_not_written", error)

    def _fail(self, key: str, error: OSError) -> None:
        self._trouble.met(tr(key, path=clean_line(str(self.path), 500), reason=error.strerror))

    def _rewrite(self) -> None:
        """Cut the file to what is kept of it now: another program may have appended to it, or cut it, since it was read."""
        assert self.path is not None
        try:
            with _alone(self.path, wait=False):
                found = _entries_of(self.path.read_bytes())
                if len(found) > 2 * KEEP:
                    body = "".join(json.dumps(entry) + "\n" for entry in found[-KEEP:])
                    write_whole(self.path, body.encode())
        except BlockingIOError:
            return  # a later start cuts it
        except OSError as error:
            self._fail("composer.history_not_written", error)


def _entries_of(raw: bytes) -> list[str]:
    """Return the prompts of the file's bytes, oldest first, cleaned. What is no prompt is passed over."""
    found: list[str] = []
    for line in raw.decode("utf-8", "replace").splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            entry = json.loads(line)
            if isinstance(entry, str) and entry.strip():
                found.append(clean(entry))
    return found


@contextlib.contextmanager
def _alone(path: Path, *, wait: bool = True) -> Iterator[int]:
    """Open the file for appending, or make it, while nobody else writes it. Blocking; raises ``OSError``.

    Without ``wait`` it raises ``BlockingIOError`` when somebody does. Where there are no locks it is only opened.
    """
    same = False
    while not same:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(handle, wait=wait)
            with contextlib.suppress(FileNotFoundError):  # another one may have been put in its place
                same = os.path.samestat(path.stat(), os.fstat(handle))
            if same:
                yield handle
        finally:
            os.close(handle)


def _lock(handle: int, *, wait: bool) -> None:
    if sys.platform != "win32":
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno == errno.EWOULDBLOCK:
                raise
