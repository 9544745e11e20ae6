"""envd's file calls: ``/files`` (whole contents) and ``filesystem.Filesystem`` (everything else)."""

from __future__ import annotations

import asyncio
import base64
import datetime
import grp
import gzip
import hashlib
import mimetypes
import os
import pwd
import shutil
import stat
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from .connect import ConnectError, Message, unary

METADATA = "x-metadata-"
CHUNK = 1 << 18


class Files:
    """The calls; relative paths are under ``home``. ``token`` is set when the sandbox is given out."""

    def __init__(self, home: str) -> None:
        self.home = Path(home)
        self.token = ""

    def routes(self) -> list[Route]:
        calls = {
            "Stat": self.stat,
            "MakeDir": self.make_dir,
            "Move": self.move,
            "ListDir": self.list_dir,
            "Remove": self.remove,
        }
        found = [
            Route(f"/filesystem.Filesystem/{name}", unary(call), methods=["POST"])
            for name, call in calls.items()
        ]
        found += [
            Route(f"/filesystem.Filesystem/{name}", unary(unimplemented), methods=["POST"])
            for name in ("WatchDir", "CreateWatcher", "GetWatcherEvents", "RemoveWatcher")
        ]
        return [*found, Route("/files", self.download), Route("/files", self.upload, methods=["POST"])]

    def path(self, name: str) -> Path:
        if name == "~" or name.startswith("~/"):
            name = f"./{name[1:]}"
        if "\0" in name:
            raise ConnectError("invalid_argument", "a path may not hold a NUL character")
        return Path(os.path.normpath(self.home / name))

    # Whole contents

    async def download(self, request: Request) -> Response:
        if refused := self._signature(request, "read"):
            return refused
        try:
            path = self.path(request.query_params.get("path", ""))
        except ConnectError as error:
            return problem(400, error.message)
        try:
            info = path.stat()
            if stat.S_ISDIR(info.st_mode):
                return problem(400, f"path '{path}' is a directory")
            if not stat.S_ISREG(info.st_mode):
                return problem(400, f"path '{path}' is not a regular file")
            path.open("rb").close()
        except FileNotFoundError:
            return problem(404, f"path '{path}' does not exist")
        except OSError as error:
            return problem(
                403 if isinstance(error, PermissionError) else 500, f"error opening file '{path}': {error}"
            )
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        if "gzip" in request.headers.get("accept-encoding", "") and kind.startswith("text/"):
            return Response(
                gzip.compress(path.read_bytes()), media_type=kind, headers={"Content-Encoding": "gzip"}
            )
        return FileResponse(path, media_type=kind)

    async def upload(self, request: Request) -> Response:
        if refused := self._signature(request, "write"):
            return refused
        named = request.query_params.get("path")
        metadata = {k[len(METADATA) :]: v for k, v in request.headers.items() if k.startswith(METADATA)}
        written = []
        try:
            if request.headers.get("content-type", "").startswith("multipart/form-data"):
                async with request.form(max_files=1000) as form:
                    uploads = [part for part in form.getlist("file") if isinstance(part, UploadFile)]
                    if not uploads:
                        return problem(400, "no file in the request")
                    if named and len(uploads) > 1:
                        return problem(400, "path is given, but more than one file")
                    for part in uploads:
                        written.append(await self._write(named or part.filename or "", parts(part), metadata))
            elif not named:
                return problem(400, "path is missing")
            else:
                body: AsyncIterator[bytes] = request.stream()
                if request.headers.get("content-encoding") == "gzip":
                    body = unzipped(body)
                written.append(await self._write(named, body, metadata))
        except ConnectError as error:
            return problem(400, error.message)
        except IsADirectoryError as error:
            return problem(400, f"path is a directory: {error.filename}")
        except (NotADirectoryError, FileExistsError) as error:
            return problem(400, f"path is not a directory: {error.filename}")
        except PermissionError as error:
            return problem(403, f"error opening file: {error}")
        except OSError as error:
            full = isinstance(error, OSError) and error.errno == 28
            return problem(507 if full else 500, "not enough disk space available" if full else str(error))
        return JSONResponse(written)

    async def _write(
        self, name: str, chunks: AsyncIterator[bytes], metadata: dict[str, str]
    ) -> dict[str, Any]:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            async for chunk in chunks:
                await asyncio.to_thread(file.write, chunk)
        entry = {"name": path.name, "type": "file", "path": str(path)}
        if metadata:
            for key, value in metadata.items():
                try:
                    os.setxattr(path, f"user.e2b.{key}", value.encode())
                except OSError:
                    break  # the file system has no attributes of users
        return {**entry, "metadata": metadata} if metadata else entry

    def _signature(self, request: Request, operation: str) -> Response | None:
        """A signed address stands for the token; None when the call may go on."""
        if not self.token or request.headers.get("x-access-token") == self.token:
            return None
        given = request.query_params.get("signature")
        if given is None:
            return problem(401, "unauthenticated: no access token")
        ends = request.query_params.get("signature_expiration")
        fields = [
            request.query_params.get("path", ""),
            operation,
            request.query_params.get("username", ""),
            self.token,
        ]
        digest = hashlib.sha256(":".join([*fields, *([ends] if ends else [])]).encode()).digest()
        if given != "v1_" + base64.b64encode(digest).decode().rstrip("="):
            return problem(401, "invalid signature")
        if ends and int(ends) < datetime.datetime.now().timestamp():
            return problem(401, "signature is already expired")
        return None

    # Everything else

    async def stat(self, message: Message, request: Request) -> Message:
        return {"entry": entry(self.existing(message))}

    async def make_dir(self, message: Message, request: Request) -> Message:
        path = self.path(message.get("path", ""))
        if path.is_dir():
            raise ConnectError("already_exists", f"directory already exists: {path}")
        try:
            path.mkdir(parents=True)
        except (FileExistsError, NotADirectoryError):
            raise ConnectError(
                "invalid_argument", f"path already exists but it is not a directory: {path}"
            ) from None
        except OSError as error:
            raise failure(error) from error
        return {"entry": entry(path)}

    async def move(self, message: Message, request: Request) -> Message:
        source = self.existing({"path": message.get("source", "")})
        target = self.path(message.get("destination", ""))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
        except OSError as error:
            raise failure(error) from error
        return {"entry": entry(target)}

    async def list_dir(self, message: Message, request: Request) -> Message:
        top = self.existing(message)
        if not top.is_dir():
            raise ConnectError("invalid_argument", f"path is not a directory: {top}")
        depth = message.get("depth") or 1

        def walk(folder: Path, left: int) -> list[Message]:
            found: list[Message] = []
            for child in sorted(folder.iterdir()):
                try:
                    found.append(entry(child))
                    if left > 1 and child.is_dir() and not child.is_symlink():
                        found += walk(child, left - 1)
                except FileNotFoundError:
                    continue  # removed meanwhile
            return found

        try:
            return {"entries": walk(top, depth)}
        except OSError as error:
            raise failure(error) from error

    async def remove(self, message: Message, request: Request) -> Message:
        path = self.path(message.get("path", ""))
        try:
            if path.is_dir() and not path.is_symlink():
                await asyncio.to_thread(shutil.rmtree, path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise failure(error) from error
        return {}

    def existing(self, message: Message) -> Path:
        path = self.path(message.get("path", ""))
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            raise ConnectError("not_found", f"path not found: {path}") from None
        except OSError as error:
            raise failure(error) from error
        return path


async def unimplemented(message: Message, request: Request) -> Message:
    raise ConnectError("unimplemented", f"the test cloud has no {request.url.path}")


def problem(status: int, message: str) -> Response:
    return JSONResponse({"code": status, "message": message}, status)


def failure(error: OSError) -> ConnectError:
    code = {PermissionError: "permission_denied", FileNotFoundError: "not_found"}.get(type(error), "internal")
    return ConnectError(code, str(error))


async def parts(upload: UploadFile) -> AsyncIterator[bytes]:
    while chunk := await upload.read(CHUNK):
        yield chunk


async def unzipped(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    stream = zlib.decompressobj(wbits=31)
    async for chunk in chunks:
        yield stream.decompress(chunk)
    yield stream.flush()


def entry(path: Path) -> Message:
    """An ``EntryInfo``; of a link: the target's kind, with ``isSymlink``."""
    info = path.lstat()
    is_link = stat.S_ISLNK(info.st_mode)
    kind = "FILE_TYPE_DIRECTORY" if path.is_dir() else "FILE_TYPE_FILE"
    changed = datetime.datetime.fromtimestamp(info.st_mtime, datetime.UTC)
    found: Message = {
        "name": path.name,
        "type": kind,
        "path": str(path),
        "size": str(info.st_size),
        "mode": stat.S_IMODE(info.st_mode),
        "permissions": stat.filemode(info.st_mode),
        "owner": owner(info.st_uid),
        "group": group(info.st_gid),
        "modifiedTime": changed.isoformat(timespec="microseconds").replace("+00:00", "Z"),
    }
    if is_link:
        found |= {"isSymlink": True, "symlinkTarget": str(path.readlink())}
    try:
        marks = {
            n[9:]: os.getxattr(path, n).decode() for n in os.listxattr(path) if n.startswith("user.e2b.")
        }
    except OSError:
        marks = {}
    return {**found, "metadata": marks} if marks else found


def owner(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
