"""Files of the user's that they put into the sandbox themselves. The model has no part in which ones."""

from __future__ import annotations

import asyncio
import mimetypes
import os
import posixpath
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from sandbox_chat.events import Attached, Notice, Progress, Sink
from sandbox_chat.sandbox.base import SandboxClosed, SandboxError, SandboxFileError
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean, clean_line
from sandbox_chat.tools.downloads import Meter, bytes_text, safe_name
from sandbox_chat.tools.files import SNIFF_BYTES, as_text
from sandbox_chat.tools.images import file_type

if TYPE_CHECKING:
    from sandbox_chat.sandbox.worker import SandboxWorker

FOLDER = "/tmp/attached"  # noqa: S108 - a path inside the sandbox
NO_SANDBOX = "{name} was not attached, because there is no sandbox in this chat. Start with --sandbox local."


class AttachError(Exception):
    """A file cannot be attached. The message is a sentence for the user."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file of the user's as it was when it was opened."""

    path: Path
    size: int
    kind: str
    device: int
    inode: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class _File:
    attach_id: str
    source: Source
    name: str
    path: str  # in the sandbox


def open_source(given: str, limit: int) -> tuple[BinaryIO, Source]:
    """Open a user's file for reading; ``~`` is their home, a relative path is under the working folder.

    Blocks for the disk. Raises ``AttachError`` for what is missing, no regular file, unreadable or larger than ``limit`` bytes.
    """
    if not given.strip():
        raise AttachError("No file was named. Give the path of the file that is to be attached.")
    shown = clean_line(given, 300)
    try:
        path = Path(given).expanduser().absolute()
        # Not blocking: a pipe without a writer would hold the open for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise AttachError(
            f"There is no file {shown}. Check the path; put quotes around one with spaces."
        ) from None
    except PermissionError:
        raise AttachError(
            f"{shown} cannot be read: the permission is missing. Change its permissions."
        ) from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise AttachError(
            f"{shown} cannot be opened ({clean_line(str(reason)).rstrip('.')}). Check the path."
        ) from None
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise AttachError(
                f"{shown} is a folder. Attach its files one by one, or pack it into one file first."
            )
        if not stat.S_ISREG(found.st_mode):
            raise AttachError(f"{shown} is a device, a pipe or a socket. Only regular files can be attached.")
        if found.st_size > limit:
            raise AttachError(
                f"{shown} has {found.st_size:,} bytes, more than the {limit:,} that can be attached. "
                "Attach a part of it, or raise SANDBOX_CHAT_ATTACH_LIMIT."
            )
        head = os.pread(handle, SNIFF_BYTES, 0)
        if head and not found.st_size:
            raise AttachError(
                f"{shown} is made by the system as it is read, so its size is not known. "
                "Copy it to an ordinary file, and attach that."
            )
        kind = _kind(path, head)
    except OSError as error:
        os.close(handle)
        raise AttachError(f"{shown} cannot be read ({error.strerror}).") from None
    except BaseException:
        os.close(handle)
        raise
    source = Source(path, found.st_size, kind, found.st_dev, found.st_ino, found.st_mtime_ns)
    return os.fdopen(handle, "rb"), source


def _kind(path: Path, head: bytes) -> str:
    """Return a file's type in words as far as its beginning and its name tell."""
    by_name = mimetypes.guess_type(path.name)[0] or ""
    return file_type(head) or by_name or ("text" if head and as_text(head) is not None else "")


class Attachments:
    """Puts files of the user's into the sandbox, tells the model of them, and puts them back when the sandbox was lost.

    ``emit`` takes the events, ``note`` what the model is to hear with its next run. All methods belong to one loop.
    """

    def __init__(
        self,
        worker: SandboxWorker | None,
        settings: Settings,
        emit: Sink,
        note: Callable[[str], None],
    ) -> None:
        self._worker = worker
        self._settings = settings
        self._emit = emit
        self._note = note
        self._files: list[_File] = []
        self._untold: list[_File] = []
        self._telling: list[_File] = []
        self._under_way: set[asyncio.Task[None]] = set()
        self._restoring = asyncio.Lock()
        self._gone = False

    @property
    def under_way(self) -> bool:
        """True while files are on their way into the sandbox."""
        return bool(self._under_way)

    def add(self, attach_id: str, given: str, target: str = "") -> None:
        """Begin to put the file ``given`` into the sandbox, at ``target`` if that is not empty. ``Attached`` tells the end."""
        task = asyncio.ensure_future(self._add(attach_id, given, target))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def settled(self) -> None:
        """Wait until no file is on its way."""
        while self._under_way:
            await asyncio.wait(set(self._under_way))

    def stop(self) -> None:
        """Stop the files that are on their way."""
        for task in self._under_way:
            task.cancel()

    def preface(self) -> str:
        """Return what the model is to read before the next prompt; empty when it knows of every file. See ``told``."""
        self._telling += self._untold
        self._untold = []
        return "\n".join(
            f"[The user has put the file {file.name} at {file.path} in the sandbox: "
            f"{bytes_text(file.source.size)}{', ' + file.source.kind if file.source.kind else ''}.]"
            for file in self._telling
        )

    def told(self) -> None:
        """The model got the preface. Until then the next one says the same again."""
        self._telling = []

    def gone(self) -> None:
        """The sandbox was lost, and the files with it."""
        self._gone = True

    async def restore(self) -> None:
        """Put the files back into a new sandbox if they were lost: those that are still there, and unchanged."""
        async with self._restoring:
            if not self._gone or not self._files:
                return
            self._gone = False
            try:
                await self._restore()
            except SandboxError:
                self._gone = True  # the call that waits for this will meet the same, and says so
            except BaseException:
                self._gone = True
                raise

    async def _restore(self) -> None:
        kept: list[_File] = []
        lost: list[str] = []
        for file in self._files:
            try:
                await self._upload(file.attach_id, str(file.source.path), file.path, unchanged=file.source)
                kept.append(file)
            except (AttachError, SandboxFileError) as error:
                lost.append(file.name)
                self._emit(
                    Notice(
                        level="warning",
                        text=f"The sandbox was replaced, and {file.name} could not be put back into it: {clean(str(error))} "
                        "Attach it again if it is needed.",
                    )
                )
        self._files = kept
        if kept:
            names = ", ".join(f"{file.name} ({file.path})" for file in kept)
            words = f"The sandbox was replaced; attached files were put back into it: {names}."
            self._emit(Notice(level="info", text=words))
            self._note(words)
        if lost:
            self._note(
                f"The sandbox was replaced; attached files that are gone with it: {', '.join(lost)}. The user was told."
            )

    async def _add(self, attach_id: str, given: str, target: str) -> None:
        name = clean_line(safe_name(os.path.basename(given.rstrip("/"))))  # noqa: PTH119 - it is only a name yet
        error = "stopped"
        source, path = None, ""
        try:
            source, path = await self._upload(attach_id, given, self._target(name, given, target))
            error = ""
        except asyncio.CancelledError:
            error = f"Attaching {name} was stopped before all of it was in the sandbox."
        except AttachError as problem:
            error = str(problem)
        except SandboxClosed:
            error = f"{name} was not attached: the sandbox was closed."
        except SandboxFileError as problem:
            error = f"{name} was not attached: {problem}"
        except SandboxError as problem:
            error = f"{name} was not attached, because the sandbox failed: {problem}"
        except OSError as problem:
            error = f"{name} was not attached: it could not be read to its end ({problem.strerror})."
        if source is not None:
            file = _File(attach_id, source, name, clean(path))
            self._files = [other for other in self._files if other.path != file.path] + [file]
            self._untold = [other for other in self._untold if other.path != file.path] + [file]
        self._emit(
            Attached(
                attach_id=attach_id,
                name=name,
                path=clean(path),
                size=source.size if source is not None else 0,
                kind=source.kind if source is not None else "",
                error=clean(self._settings.scrub(error)),
            )
        )

    async def _upload(
        self, attach_id: str, given: str, path: str, *, unchanged: Source | None = None
    ) -> tuple[Source, str]:
        if self._worker is None:
            raise AttachError(NO_SANDBOX.format(name=clean_line(given)))
        file, source = await asyncio.to_thread(open_source, given, self._settings.attach_limit)
        with file:
            if unchanged is not None and source != unchanged:
                raise AttachError(f"{clean_line(given)} has changed since.")
            label = clean_line(source.path.name)
            meter = Meter(asyncio.get_running_loop(), self._progress, attach_id, label)
            try:
                placed = await self._worker.upload(file, source.size, path, meter.take)
            finally:
                meter.close()
        return source, placed

    def _target(self, name: str, given: str, target: str) -> str:
        """Where in the sandbox a file goes: files of one name from two places do not get into each other's way."""
        if target.endswith("/"):
            return posixpath.join(target, name)
        if target:
            return target
        stem, dot, suffix = name.rpartition(".")
        if not stem:
            stem, dot, suffix = name, "", ""
        try:
            source = Path(given).expanduser().absolute()
        except RuntimeError:  # no such user; opening it will say so
            source = Path(given)
        number = 1
        while True:
            path = f"{FOLDER}/{name}" if number == 1 else f"{FOLDER}/{stem}-{number}{dot}{suffix}"
            if all(file.path != path or file.source.path == source for file in self._files):
                return path
            number += 1

    def _progress(self, subject: str, label: str, done: int, total: int, over: bool) -> None:
        self._emit(Progress(subject=subject, label=label, done=done, total=total, over=over))
