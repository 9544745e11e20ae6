"""Files of a cloud sandbox, moved piece by piece by the client's own calls."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, BinaryIO

from sandbox_chat.sandbox import e2b_errors
from sandbox_chat.sandbox.base import FileEntry, Progress, SandboxError, SandboxFileError, SandboxLost
from sandbox_chat.sandbox.e2b_client import PATIENCE, Cloud
from sandbox_chat.sandbox.e2b_errors import ThisSide
from sandbox_chat.settings import Settings

HOME = "/tmp"  # noqa: S108 - the sandbox's own folder, where relative paths begin
CHUNK = 1 << 20
_GATEWAY = (502, 503, 504)
_PROBE_TIMEOUT = 5.0
_SMALL = 8 << 20  # files up to this size go in one request with a deadline of its own


def absolute(path: str) -> str:
    """Return ``path`` as an absolute one; relative ones are under ``/tmp``. Raises ``SandboxFileError``."""
    if not path or "\0" in path:
        raise SandboxFileError("The path is empty or holds a null byte.")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise SandboxFileError("The path holds a character that no file name can have.") from None
    if path == "~" or path.startswith("~/"):
        raise SandboxFileError(
            "The home folder '~' is not known here. Give the path from the root on, as /tmp/x."
        )
    return posixpath.normpath(posixpath.join(HOME, path))


class Files:
    """File operations on one sandbox."""

    def __init__(self, settings: Settings, cloud: Cloud) -> None:
        self._settings = settings
        self._streams = cloud.takes_pieces
        self._cloud = cloud
        self._files = cloud.box.files
        self._timeout = settings.e2b_request_timeout

    async def upload(self, source: BinaryIO, size: int, path: str, on_progress: Progress | None) -> str:
        """See ``Sandbox.upload``."""
        full = absolute(path)
        await self._no_folder(full)
        done = 0
        problem: SandboxFileError | ThisSide | None = None

        async def pieces() -> AsyncIterator[bytes]:
            nonlocal done, problem
            while done < size:
                try:
                    part = await asyncio.to_thread(source.read, min(CHUNK, size - done))
                except OSError as error:
                    problem = ThisSide(error)
                    raise problem from None
                if not part:
                    problem = SandboxFileError(f"The source ended after {done:,} of {size:,} bytes.")
                    raise problem
                yield part
                done += len(part)
                if on_progress is not None:
                    on_progress(done, size)

        try:
            if size <= _SMALL or not self._streams:
                data = b"".join([part async for part in pieces()])
                await self._files.write(full, data, request_timeout=self._long(size))
            else:
                await self._files.write(full, pieces(), use_octet_stream=True)
        except Exception as error:
            if problem is not None:
                raise problem from None
            raise await self._failed(error, full, "written") from error
        if on_progress is not None and size == 0:
            on_progress(0, 0)
        return full

    async def download(
        self, path: str, target: BinaryIO, max_bytes: int, on_progress: Progress | None
    ) -> int:
        """See ``Sandbox.download``."""
        full = absolute(path)
        info = await self._regular(full)
        if info.size > max_bytes:
            raise too_large(full, info.size, max_bytes)
        done = 0
        try:
            async with await self._files.read(full, format="stream") as stream:
                async for part in stream:
                    done += len(part)
                    if done > max_bytes:  # it grew meanwhile
                        raise too_large(full, done, max_bytes)
                    try:
                        target.write(part)
                    except OSError as error:
                        raise ThisSide(error) from None
                    if on_progress is not None:
                        on_progress(done, max(info.size, done))
        except (SandboxFileError, ThisSide):
            raise
        except Exception as error:
            raise await self._failed(error, full, "read") from error
        if on_progress is not None and not done:
            on_progress(0, 0)
        return done

    async def list(self, path: str, limit: int) -> list[FileEntry]:
        """See ``Sandbox.list_files``."""
        full = absolute(path)
        try:
            rows = await self._files.list(full, request_timeout=self._timeout)
        except Exception as error:
            raise await self._failed(error, full, "listed") from error
        rows = sorted(rows, key=lambda row: row.name)[:limit]
        found = []
        for row in rows:
            folder = _kind(row) == "dir"
            size = 0 if folder else max(int(row.size), 0)
            found.append(
                FileEntry(f"{full.rstrip('/')}/{row.name}", folder, size, _is_link(row), _changed(row))
            )
        return found

    async def _regular(self, full: str) -> Any:
        try:
            info = await self._files.get_info(full, request_timeout=self._timeout)
        except Exception as error:
            raise await self._failed(error, full, "read") from error
        if _kind(info) == "dir":
            raise SandboxFileError(f"{full} is a folder, not a file.")
        if not _is_regular(info):
            raise SandboxFileError(f"{full} is not a regular file.")
        return info

    async def _no_folder(self, full: str) -> None:
        """Refuse to write to what is no file: a cloud's own words for that are its secret."""
        try:
            info = await self._files.get_info(full, request_timeout=self._timeout)
        except Exception as error:
            if e2b_errors.status_of(error) == 404 and not _sandbox_gone(error):
                return
            raise await self._failed(error, full, "written") from error
        if _kind(info) == "dir":
            raise SandboxFileError(f"{full} cannot be written in the sandbox: is a directory.")
        if not _is_regular(info):
            raise SandboxFileError(f"{full} is not a regular file.")

    def _long(self, size: int) -> float:
        return self._timeout + size / CHUNK

    async def _failed(self, error: Exception, full: str, what: str) -> SandboxError:
        """Return the error to raise: the file's fault, or the sandbox's, or one of the way to it, which may pass."""
        names = {kind.__name__ for kind in type(error).__mro__}
        if _sandbox_gone(error):
            return SandboxLost(e2b_errors.GONE)
        status = e2b_errors.status_of(error)
        if "FileNotFoundException" in names or status == 404:
            return SandboxFileError(f"There is no file or folder {full} in the sandbox.")
        said = e2b_errors.said(error, self._settings)
        if "NotEnoughSpaceException" in names or status == 507:
            return SandboxFileError(f"{full} cannot be {what} in the sandbox: no space left on device.")
        if "AuthenticationException" in names:
            return SandboxError(
                f"The cloud's sandbox no longer takes our word ({said}). A new one is made at the next call."
            )
        if not (_on_the_way(error, names) or e2b_errors.is_nonsense(error)):
            return SandboxFileError(f"{full} cannot be {what} in the sandbox: {said[:1].lower()}{said[1:]}.")
        lives = await self._cloud.lives(min(self._timeout, _PROBE_TIMEOUT))
        if lives is False:
            return SandboxLost(e2b_errors.GONE)
        self._cloud.troubles += lives is True
        words = e2b_errors.why(error, self._settings)
        if self._cloud.troubles >= PATIENCE:
            return SandboxError(
                f"The cloud's sandbox failed {PATIENCE} times in a row ({words}). Try again; a new sandbox is made."
            )
        if "TimeoutException" in names:
            words = f"no answer within {self._timeout:g} s"
        return SandboxFileError(
            f"{full} could not be {what}: the connection to the cloud's sandbox failed ({words}). The sandbox and its "
            "variables are kept. Try again."
        )


def _on_the_way(error: Exception, names: set[str]) -> bool:
    text = str(error).lower()
    return (
        bool(
            names & {"TimeoutException", "TransportError", "ConnectionError", "NetworkError", "ProtocolError"}
        )
        or e2b_errors.status_of(error) in _GATEWAY
        or any(sign in text for sign in ("bad gateway", "could not be reached", "sending request"))
    )


def too_large(full: str, size: int, max_bytes: int) -> SandboxFileError:
    """The error for a file that is larger than what may be taken."""
    return SandboxFileError(f"{full} has {size:,} bytes; at most {max_bytes:,} can be taken.")


def _sandbox_gone(error: Exception) -> bool:
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"SandboxNotFoundException", "SandboxNotRunningException"})


def _kind(info: Any) -> str:
    if info.type is not None and str(info.type.value) != "symlink":
        return str(info.type.value)
    mode = int(getattr(info, "mode", 0) or 0)
    return "dir" if mode & 0o170000 == 0o040000 else "file"


def _is_link(info: Any) -> bool:
    kind = "" if info.type is None else str(info.type.value)
    return kind == "symlink" or bool(getattr(info, "symlink_target", None))


def _changed(info: Any) -> int:
    """When it was changed, in microseconds; 0 where the cloud does not tell."""
    when = getattr(info, "modified_time", None)
    return int(when.timestamp() * 1_000_000) if isinstance(when, datetime) else 0


def _is_regular(info: Any) -> bool:
    """False for what is surely no plain file. Clouds give the whole mode, or only its permissions."""
    kind = int(getattr(info, "mode", 0) or 0) & 0o170000
    return kind in (0, 0o100000, 0o120000)
