"""The record of one session while it is written."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from sandbox_chat.events import (
    Event,
    FileContent,
    ImageContent,
    SessionFinished,
    SessionForked,
    SessionRenamed,
    SessionStarted,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolInputDelta,
    ToolOutput,
    TurnFinished,
    TurnSettled,
    TurnStarted,
)
from sandbox_chat.gateway.whole_file import write_whole
from sandbox_chat.journal import files
from sandbox_chat.journal.errors import SessionError, SessionInUse, SessionNotFound
from sandbox_chat.journal.index import SessionSummary, read_format, summarise, write_meta
from sandbox_chat.journal.lines import Damage, Span, missing_aside, set_aside
from sandbox_chat.journal.tail import Tail, read_tail
from sandbox_chat.scratch import Scratch

_SYNCED = (ToolFinished, TurnFinished, SessionFinished)
_SUMMARISED = (SessionStarted, TurnStarted, TurnFinished, TurnSettled, SessionRenamed, SessionFinished)
_BEGINS = (TurnStarted, SessionRenamed, SessionForked)
"""Events that are worth a session: before one of them nothing is written."""
_PIECES = (TextDelta, ThinkingDelta, ToolInputDelta, ToolOutput)

WAITING_LIMIT = 64 << 20
"""Bytes of records kept in memory while the disk does not take them. Beyond it, pieces are given up
whose whole comes in a later event (``text``, ``tool_started``, ``tool_finished``)."""

_ENDINGS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/svg+xml": "svg",
    "text/html": "html",
}


class Journal:
    """Appends the events of one session to its folder and keeps its pictures.

    Nothing is written before the first prompt, so a session that was only opened leaves no trace. A
    disk that takes nothing never stops the chat: ``problem`` then holds a sentence for the user, the
    records wait in memory, and each later ``append`` tries again, in order. Any thread may call.
    """

    def __init__(self, root: Path, session_id: str) -> None:
        """Use ``create`` or ``open``. Raises ``ValueError`` for an id that cannot name a folder."""
        if not files.valid_id(session_id):
            raise ValueError("not a valid session id")
        self.session_id = session_id
        self.folder = root.absolute() / session_id
        self.last_seq = 0
        self.problem = ""
        self.reason = ""
        """Why the disk did not take what was appended last, in the system's words."""
        self._damage = Damage()
        self._guard = threading.RLock()
        self._waiting: deque[tuple[bytes, bool]] = deque()  # line, to be synced
        self._waiting_size = 0
        self._early: list[Event] = []
        self._begun = False
        self._closed = False
        self._fd = -1
        self._lock_fd = -1
        self._size = 0
        self._torn = False
        self._summary: SessionSummary | None = None
        self._summary_due = False
        self._aside: Scratch | None = None  # temporary folder for pictures
        self._away: list[Path] = []  # pictures there that are not yet in the session's folder

    @classmethod
    def create(cls, root: Path, session_id: str) -> Journal:
        """Return the journal of a new session under ``root``. Touches no disk."""
        return cls(root, session_id)

    @classmethod
    def open(cls, root: Path, session_id: str, *, read_only: bool = False) -> Journal:
        """Open the journal of an earlier session to read it, and unless it is ``read_only`` to append to it.

        Raises ``SessionNotFound``, ``SessionInUse`` when another program writes to it, and
        ``SessionError`` when it cannot be read or was written by a later version.
        """
        missing = f"There is no session {session_id!r}. See the list with: sandbox-chat sessions"
        try:
            journal = cls(root, session_id)
        except ValueError:
            raise SessionNotFound(missing) from None
        if not (journal.folder / files.EVENTS).is_file():
            raise SessionNotFound(missing)
        if read_format(journal.folder) > files.FORMAT:
            raise SessionError(
                f"Session {session_id} was written by a later version of Sandbox Chat. "
                "Update the program to go on with it."
            )
        journal._closed = read_only
        if not read_only:
            journal._take_lock()
        try:
            journal.last_seq, journal._torn = files.read_end(journal.folder)
            journal._summary = summarise(journal.folder)
        except OSError as error:
            journal.close()
            raise SessionError(
                f"Session {session_id} cannot be read ({error.strerror}). "
                f"Check the permissions of {journal.folder}."
            ) from None
        return journal

    @property
    def skipped(self) -> int:
        """How many damaged places were passed over when the events were last read."""
        return self._damage.skipped

    def events(self) -> Iterator[Event]:
        """Yield what is on disk, in order, with absolute picture paths. Damage is counted in ``skipped``."""
        self._damage = Damage()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            yield from files.read_events(self.folder, self._damage)

    def tail(self) -> Tail:
        """Read the last turns, without pieces whose whole follows; ``older`` reads what is before them. Raises ``OSError``."""
        found = read_tail(self.folder)
        self._damage = found.damage
        return found

    def older(self, tail: Tail) -> Iterator[Event]:
        """Yield what stands before a tail, also without pieces whose whole follows. Any thread. Raises ``OSError``."""
        damage = Damage()
        yield from files.read_events(self.folder, damage, stop=tail.start, brief=True)
        with self._guard:
            self._damage = Damage([*damage.spans, *tail.damage.spans])
            if self._fd >= 0:
                with contextlib.suppress(OSError):  # the places stay in the file itself too
                    set_aside(self.folder / files.EVENTS, damage.spans)

    def only(self, *kinds: type[Event]) -> Iterator[Event]:
        """Yield the events of some types; the others are not even parsed. Raises ``OSError``."""
        yield from files.read_some(self.folder, kinds)

    def new_damage(self) -> int:
        """Return how many of the damaged places that were found are not in ``events.damaged`` from earlier. Raises ``OSError``."""
        return len(missing_aside(self.folder / files.EVENTS, self._damage.spans))

    # --- writing ----------------------------------------------------------------------------------------

    def append(self, event: Event) -> None:
        """Write ``event`` as one line. Never raises; see the class for what happens when the disk fails."""
        with self._guard:
            self.last_seq = max(self.last_seq, event.seq)
            if self._closed:
                return
            if not self._begun:
                known = self._summary is not None  # an earlier session: it has a title that can be changed
                if not isinstance(event, TurnStarted) and not (known and isinstance(event, SessionRenamed)):
                    self._early.append(event)
                    return
                self._begun = True
                early, self._early = self._early, []
                for earlier in early:
                    self._queue(earlier)
            self._queue(event)
            self._write_waiting()

    def _queue(self, event: Event) -> None:
        try:
            line = files.to_line(event, self.folder, *([self._aside.path] if self._aside else []))
        except (TypeError, ValueError, RecursionError) as error:
            self.problem = f"An event could not be saved ({type(error).__name__}). The chat goes on."
            return
        if self._waiting_size > WAITING_LIMIT and isinstance(event, _PIECES):
            return
        self._waiting.append((line, isinstance(event, _SYNCED)))
        self._waiting_size += len(line)
        if self._summary is None:
            self._summary = SessionSummary(id=self.session_id, created=event.at, updated=event.at)
        if isinstance(event, _SUMMARISED):
            self._summary = self._summary.after(event)
            self._summary_due = True

    def _write_waiting(self) -> None:
        try:
            self._prepare()
            sync = False
            while self._waiting:
                line, synced = self._waiting[0]
                self._write_line(line)
                self._waiting.popleft()
                self._waiting_size -= len(line)
                sync |= synced
            if sync:
                os.fsync(self._fd)
            if self._summary_due and self._summary is not None:
                write_meta(self.folder, self._summary)
                self._summary_due = False
            self._bring_pictures_home()
        except OSError as error:
            self.reason = str(error.strerror or error)
            self.problem = (
                f"The session cannot be saved in {self.folder} ({self.reason}). The chat goes on in "
                "memory and saving is tried again. Make room, mend the permissions, or set SANDBOX_CHAT_DATA_DIR."
            )
        except SessionInUse as error:
            self.problem = str(error)
        else:
            self.problem = ""

    def _prepare(self) -> None:
        """Make the folder and open the file, if that is still to be done. Raises ``OSError``."""
        if self._fd >= 0 and not self._replaced():
            return
        files.make_folder(self.folder)
        self._take_lock()
        self._set_aside()
        fd = files.open_append(self.folder / files.EVENTS)
        self._size = os.fstat(fd).st_size
        self._fd = fd

    def _replaced(self) -> bool:
        """Whether the open file is not that of the folder any more; then it is let go. Raises ``OSError``.

        One that was removed while it was written is written again, without its pictures, before that.
        """
        path = self.folder / files.EVENTS
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if os.path.samestat(path.stat(), os.fstat(self._fd)):
                return False
        files.make_folder(self.folder)
        self._unlock()
        self._take_lock()
        if not path.exists():
            files.copy_whole(self._fd, path)
        os.close(self._fd)
        self._fd = -1
        self._damage = Damage()
        self._torn = files.read_end(self.folder)[1]
        self._summary_due = True
        return True

    def _unlock(self) -> None:
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def _set_aside(self) -> None:
        """Copy what could not be read, and a last line that is torn, before anything is written. Raises ``OSError``."""
        path = self.folder / files.EVENTS
        spans = list(self._damage.spans)
        if self._torn:
            end = Damage()
            for _ in files.read_events(self.folder, end, start=files.last_line(path)):
                pass  # whole, and only its newline is missing
            known = spans[-1] if spans else Span(0, 0)
            spans += [span for span in end.spans if span.start >= known.start + known.size]
        set_aside(path, spans)

    def _write_line(self, line: bytes) -> None:
        """Append a line, whole or not at all. Raises ``OSError``."""
        data = b"\n" + line if self._torn else line
        done = 0
        try:
            while done < len(data):
                done += os.write(self._fd, data[done:])
        except OSError:
            if done:
                try:
                    os.ftruncate(self._fd, self._size)
                except OSError:
                    self._torn = True
                    self._size += done
            raise
        self._torn = False
        self._size += len(data)

    def _take_lock(self) -> None:
        """Become the only writer. Raises ``SessionInUse``; a file system without locks is accepted."""
        if self._lock_fd >= 0:
            return
        try:
            import fcntl
        except ImportError:  # Windows
            return
        try:
            fd = files.open_append(self.folder / files.LOCK)
        except OSError:  # a session on a read-only disk can still be read
            return
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise SessionInUse(
                f"Session {self.session_id} is open in another running Sandbox Chat. Close that one first, "
                "or open this session with --fork (go on with a copy) or --read-only (look at it)."
            ) from None
        except OSError:
            os.close(fd)
            return
        self._lock_fd = fd
        files.clear_temporary(self.folder)

    # --- pictures and files -----------------------------------------------------------------------------

    def save_picture(self, data: bytes, mime: str, width: int, height: int) -> ImageContent:
        """Keep a picture of ``width`` × ``height`` pixels under its content's hash; the path is absolute.

        When the session's folder takes nothing, the picture goes to a temporary folder and is brought
        home as soon as saving works again. Raises ``OSError`` only if there is no temporary folder either.
        """
        return ImageContent(str(self._save(data, mime)), mime, width, height)

    def save_file(self, data: bytes, mime: str, title: str) -> FileContent:
        """Keep what only another program can show, as ``save_picture`` does. ``title`` is clean and says what it is."""
        return FileContent(str(self._save(data, mime)), mime, len(data), title)

    def _save(self, data: bytes, mime: str) -> Path:
        name = f"{hashlib.sha256(data).hexdigest()}.{_ENDINGS.get(mime, 'bin')}"
        with self._guard:
            try:
                path = self._store(self.folder, name, data)
            except OSError:
                if self._aside is None:
                    self._aside = Scratch()
                path = self._store(self._aside.path, name, data)
                self._away.append(path)
        return path

    @staticmethod
    def _store(home: Path, name: str, data: bytes) -> Path:
        files.make_folder(home)
        files.make_folder(home / files.PICTURES)
        path = home / files.PICTURES / name
        if not path.is_file() or path.stat().st_size != len(data):
            write_whole(path, data)
        return path

    def _bring_pictures_home(self) -> None:
        """Copy pictures that were put aside. They stay there too until the end: the screen knows them by that path."""
        while self._away:
            path = self._away[0]
            self._store(self.folder, path.name, path.read_bytes())
            self._away.pop(0)

    # --- the end ----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Try a last time to write what waits, then let go of the session. Any number of times."""
        with self._guard:
            if self._closed:
                return
            if self._begun and (self._waiting or self._summary_due or self._away):
                self._write_waiting()
            self._closed = True
            for fd in (self._fd, self._lock_fd):
                if fd >= 0:
                    with contextlib.suppress(OSError):
                        os.close(fd)
            self._fd = self._lock_fd = -1
            if self._aside is not None:
                self._aside.remove()
