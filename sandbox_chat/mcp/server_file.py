"""Files with MCP servers in the form that the field shares: ``{"mcpServers": {"name": {…}}}``.

Reading is bounded and believes nothing: the file may have come with a repository. Writing changes only the named
entries, keeps what it does not know, and leaves the file whole and readable for its owner alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox_chat.settings import ConfigError
from sandbox_chat.text import clean_line

if sys.platform != "win32":  # there two programs that write at once are not kept apart
    import fcntl

SERVERS = "mcpServers"
"""Key of the servers in such a file."""
BYTES_LIMIT = 1_000_000
"""Bytes of the largest file that is read."""
COUNT_LIMIT = 64
"""Servers of one file at most."""
DEPTH_LIMIT = 16
"""How deep lists and objects may lie in each other."""
LOCK_SECONDS = 5.0
"""How long another program that writes the same file is waited for."""


@dataclass(frozen=True, slots=True)
class ServerFile:
    """What a file holds: ``servers`` by name, as they stand, and the names that it has more than once."""

    path: Path
    servers: Mapping[str, Any] = field(default_factory=dict)
    repeated: tuple[str, ...] = ()


class _Object(dict[str, Any]):
    """A JSON object that remembers which of its names came more than once."""

    repeated: tuple[str, ...] = ()


def read(path: Path) -> ServerFile | None:
    """Return the servers of the file at ``path``, ``None`` when there is no such file.

    Raises ``ConfigError`` with a sentence that names the file, and the line where JSON is broken.
    """
    raw = _bytes_of(path)
    if raw is None:
        return None
    data = _parse(raw, path)
    return ServerFile(path, _servers(data, path), _repeated(data))


def change(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Let ``edit`` change the servers of the file at ``path``; makes the file and its folder if needed.

    Raises ``ConfigError`` when the file cannot be read, understood or written, and what ``edit`` raises; the file is then as it was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target = path.resolve()
        with _alone(target.parent):
            raw = _bytes_of(target)
            data: dict[str, Any] = {} if raw is None else _parse(raw, path)
            if found := _all_repeated(data):
                raise ConfigError(
                    f"The file {_shown(path)} has {_shown(found)} twice in one place, so that it cannot be changed "
                    "without losing one. Mend it by hand first."
                )
            servers = data.setdefault(SERVERS, {})
            if not isinstance(servers, dict):
                raise ConfigError(_no_servers(path))
            edit(servers)
            if len(servers) > COUNT_LIMIT:
                raise ConfigError(f"The file {_shown(path)} would hold more than {COUNT_LIMIT} servers.")
            _write(target, data)
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ConfigError(f"The file {_shown(path)} could not be written ({reason}).") from None


def _bytes_of(path: Path) -> bytes | None:
    try:
        # Not to wait for the other end of a pipe that somebody put there.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is not valid"
        raise ConfigError(
            f"The file {_shown(path)} cannot be read ({reason}). Mend its permissions or remove it."
        ) from None
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise ConfigError(f"{_shown(path)} is not a file.")
        if info.st_mode & stat.S_IWOTH:
            raise ConfigError(
                f"The file {_shown(path)} can be changed by everybody on this machine, and it says which programs are "
                f"started. Take that right away: chmod o-w {_shown(path)}"
            )
        with os.fdopen(handle, "rb", closefd=False) as file:
            raw = file.read(BYTES_LIMIT + 1)
    except OSError as error:
        raise ConfigError(f"The file {_shown(path)} cannot be read ({error.strerror}).") from None
    finally:
        os.close(handle)
    if len(raw) > BYTES_LIMIT:
        raise ConfigError(
            f"The file {_shown(path)} is larger than {BYTES_LIMIT // 1_000_000} MB. Name a file that holds the servers alone."
        )
    return raw


def _parse(raw: bytes, path: Path) -> dict[str, Any]:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"The file {_shown(path)} is not UTF-8 text. Mend it or remove it.") from None
    if not text.strip():
        return {}
    try:
        data = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"The file {_shown(path)} is not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}. Mend that line."
        ) from None
    except RecursionError:
        raise ConfigError(_too_deep(path)) from None
    except ValueError:  # a number of thousands of digits
        raise ConfigError(f"The file {_shown(path)} holds a number that is too long.") from None
    if not isinstance(data, dict):
        raise ConfigError(_no_servers(path))
    if not _within(data, DEPTH_LIMIT):
        raise ConfigError(_too_deep(path))
    return data


def _servers(data: Mapping[str, Any], path: Path) -> dict[str, Any]:
    servers = data.get(SERVERS)
    if servers is None:
        if data:
            raise ConfigError(_no_servers(path))
        return {}
    if not isinstance(servers, dict):
        raise ConfigError(_no_servers(path))
    if len(servers) > COUNT_LIMIT:
        raise ConfigError(
            f"The file {_shown(path)} holds {len(servers):,} servers; {COUNT_LIMIT} are the most."
        )
    return dict(servers)


def _repeated(data: Mapping[str, Any]) -> tuple[str, ...]:
    return getattr(data.get(SERVERS), "repeated", ())


def _all_repeated(value: Any) -> str:
    """Return a name that comes twice in one object anywhere, empty if there is none."""
    if isinstance(value, _Object) and value.repeated:
        return value.repeated[0]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for each in inner if (found := _all_repeated(each))), "")


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object()
    repeated: dict[str, None] = {}
    for name, value in pairs:
        if name in made:
            repeated[name] = None
        made[name] = value
    made.repeated = tuple(repeated)
    return made


def _within(value: Any, depth: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_within(each, depth - 1) for each in inner)


def _too_deep(path: Path) -> str:
    return f"In the file {_shown(path)} objects lie deeper than {DEPTH_LIMIT} in each other."


def _no_servers(path: Path) -> str:
    return f'The file {_shown(path)} has no object of servers. Its form is {{"{SERVERS}": {{"name": {{"command": "…"}}}}}}.'


def _shown(value: object) -> str:
    return clean_line(str(value), 500)


# --- writing ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of ``folder``, so that of two programs that change a file in it neither loses what the other wrote."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        end = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise ConfigError(
                        f"Another program is writing in {_shown(folder)}. Try again when it is done."
                    ) from None
                time.sleep(0.05)
        yield
    finally:
        os.close(handle)


def _write(target: Path, data: Mapping[str, Any]) -> None:
    body = json.dumps(data, indent=2, ensure_ascii=False)
    try:
        encoded = body.encode()
    except UnicodeEncodeError:  # half a character, as JSON can hold it
        encoded = json.dumps(data, indent=2).encode()
    if len(encoded) >= BYTES_LIMIT:
        raise ConfigError(
            f"The file {_shown(target)} would become larger than {BYTES_LIMIT // 1_000_000} MB."
        )
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".mcp-")  # for the owner only
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(encoded + b"\n")
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except OSError:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
