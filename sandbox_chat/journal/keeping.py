"""What is done with whole sessions: another title, an end, and the end of those that are old."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sandbox_chat.events import SessionRenamed
from sandbox_chat.journal import files
from sandbox_chat.journal.errors import SessionError, SessionInUse, SessionNotFound
from sandbox_chat.journal.index import TITLE_LIMIT, records, summarise
from sandbox_chat.journal.record import Journal
from sandbox_chat.journal.search import SessionSearch
from sandbox_chat.journal.search_text import agent_ids
from sandbox_chat.text import from_name

log = logging.getLogger(__name__)

_GONE = ".deleted-"
"""Beginning of the name of a folder that is being removed: it is no session any more."""


def rename(root: Path, session_id: str, title: str) -> str:
    """Give a session another title, and return it as it was kept. An empty one brings the first prompt's back.

    Raises ``SessionNotFound``, ``SessionInUse`` when it is open, and ``SessionError`` when it cannot be written.
    """
    kept = from_name(title, TITLE_LIMIT)
    try:
        journal = Journal.open(root, session_id)
    except SessionInUse:
        raise SessionInUse(
            f"Session {session_id} is open in a running Sandbox Chat. Give it its title there, with /rename, or close it first."
        ) from None
    record = root / session_id / files.EVENTS
    try:
        used = record.stat()
        journal.append(SessionRenamed(seq=journal.last_seq + 1, title=kept))
        problem = journal.problem
        if problem and journal.reason:
            problem = f"Session {session_id} cannot be renamed ({journal.reason})."
        with contextlib.suppress(OSError):  # it was not used: its place in the list stays
            os.utime(record, ns=(used.st_atime_ns, used.st_mtime_ns))
    except OSError as error:
        problem = f"Session {session_id} cannot be renamed ({error.strerror})."
    finally:
        journal.close()
    if problem:
        raise SessionError(problem)
    summary = summarise(root / session_id)
    return summary.title if summary is not None else kept


def is_open(root: Path, session_id: str) -> bool:
    """True when a running program, this one too, has the session open to write to it."""
    try:
        with _claimed(root / session_id):
            return False
    except SessionInUse:
        return True
    except OSError:
        return False


def delete(data_path: Path, session_id: str) -> None:
    """Remove a session for good: its folder, the agent's own record of it, prompts that wait for it, and what the index holds of it.

    Raises ``SessionNotFound``, ``SessionInUse`` when it is open, and ``SessionError`` when its folder stays.
    """
    _delete(data_path, session_id, SessionSearch(data_path).forget)


def _delete(data_path: Path, session_id: str, forget: Callable[[str], None]) -> None:
    """Do what ``delete`` says; ``forget`` takes the session out of the index."""
    root = data_path / "sessions"
    folder = root / session_id
    if not files.valid_id(session_id) or not folder.is_dir():
        raise SessionNotFound(f"There is no session {session_id!r}. See the list with: sandbox-chat sessions")
    if folder.is_symlink():
        raise SessionError(
            f"Session {session_id} is a link to a folder elsewhere. Remove that folder and the link yourself."
        )
    gone = root / f"{_GONE}{session_id}"
    try:
        with _claimed(folder):
            agents = agent_ids(folder / files.EVENTS) | {session_id}
            _remove_left(root)
            folder.rename(gone)  # at once: whoever comes now finds no session
    except OSError as error:
        raise _stays(session_id, root, error) from None
    for config in _agent_configs(data_path):
        _remove_agent_records(config / "projects", agents)
    _remove_waiting(data_path / "waiting", session_id)
    forget(session_id)
    try:
        shutil.rmtree(gone)
    except OSError as error:
        if gone.exists():  # else another program has removed it, as what an earlier one left
            raise _stays(session_id, root, error) from None


def _remove_waiting(folder: Path, session_id: str) -> None:
    """Remove the prompts that wait for a session that is gone: files of the interface, each with a lock beside it.

    One that is locked belongs to a running program, which has another session open, and stays. Never raises.
    """
    try:
        import fcntl
    except ImportError:  # Windows, where they are not found again either
        return
    with contextlib.suppress(OSError):
        for lock in list(folder.glob("*.lock")):
            kept = lock.with_suffix(".json")
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
                fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if json.loads(kept.read_bytes())["session"] == session_id:
                        for path in (kept, lock.with_suffix(".new"), lock):
                            path.unlink(missing_ok=True)
                finally:
                    os.close(fd)


def _remove_left(root: Path) -> None:
    """Remove what a program left that was ended while it removed a session. Never raises."""
    with contextlib.suppress(OSError):
        for left in root.glob(f"{_GONE}*"):
            shutil.rmtree(left, ignore_errors=True)


def _stays(session_id: str, root: Path, error: OSError) -> SessionError:
    return SessionError(
        f"Session {session_id} cannot be removed ({error.strerror or error}). Check the permissions of {root}."
    )


def expire(data_path: Path, days: int, *, now: datetime | None = None) -> int:
    """Delete the sessions that were not used for so many ``days``, and return how many. 0 days: none.

    One that is open, or that was given a title by hand, is never deleted. Blocking; never raises.
    """
    root = data_path / "sessions"
    _remove_left(root)
    if days <= 0:
        return 0
    limit = (datetime.now(UTC) if now is None else now) - timedelta(days=days)
    deleted = 0
    gone: list[str] = []
    for session_id, (path, _, time) in records(root).items():
        if time / 1e9 >= limit.timestamp():
            continue
        summary = summarise(path.parent)
        if summary is None or summary.renamed or summary.updated >= limit:
            continue
        try:
            _delete(data_path, session_id, gone.append)
        except SessionError as error:
            log.info("an old session stays: %s", type(error).__name__)
        else:
            deleted += 1
    if gone:
        SessionSearch(data_path).forget(*gone)
    return deleted


@contextlib.contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Hold the lock of a session. Raises ``SessionInUse``; a file system without locks is accepted."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    fd = files.open_append(folder / files.LOCK)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SessionInUse(
                f"Session {folder.name} is open in a running Sandbox Chat. Close it there first."
            ) from None
        except OSError:
            log.info("this file system has no locks")
        yield
    finally:
        os.close(fd)


def _agent_configs(data_path: Path) -> tuple[Path, ...]:
    """Return the folders in which the CLI may have written of a session: our own, and that of the user's login."""
    own = os.environ.get("CLAUDE_CONFIG_DIR")
    login = [Path(own)] if own else []
    with contextlib.suppress(RuntimeError):  # there is no home folder
        login += [Path.home() / ".claude"]
    return (data_path / "claude" / "config", *login[:1])


def _remove_agent_records(projects: Path, agents: set[str]) -> None:
    """Remove what the CLI wrote of a session: ``ID.jsonl`` and the folder ``ID`` of whatever project."""
    with contextlib.suppress(OSError):
        for path in [
            path for project in projects.iterdir() if project.is_dir() for path in project.iterdir()
        ]:
            if path.name.partition(".")[0] not in agents:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
