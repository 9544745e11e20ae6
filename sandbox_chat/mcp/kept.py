"""Small JSON files of the MCP servers: what their tools were, and which tools were allowed. Private to the user."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sandbox_chat.mcp.base import ServerConfig, ToolDefinition
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean

FILE_LIMIT = 20_000_000
"""Bytes of the largest such file that is read."""
LOCK_SECONDS = 1.0
"""How long another program that changes the same file is waited for."""
VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


if sys.platform != "win32":  # there two programs that write at once are not kept apart
    import fcntl


class Damaged(Exception):
    """A file is there and cannot be used."""


def read_json(path: Path) -> dict[str, Any]:
    """Return the object of a file, empty when there is none. Raises ``Damaged``."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_LIMIT + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Damaged(error.strerror or type(error).__name__) from None
    if len(data) > FILE_LIMIT:
        raise Damaged("it is too large")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise Damaged("it is no JSON") from None
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise Damaged("it is of another kind")
    return found


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a file as a whole or not at all, for the user alone. Raises ``OSError``."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem[:40]}-")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            json.dump({"version": VERSION, **value}, file)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the lock beside the file at ``path``, so that of two programs that change it neither loses what the other wrote.

    Raises ``OSError`` when another program holds it for longer than ``LOCK_SECONDS``, or when there is no room for it.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if sys.platform == "win32":
        yield
        return
    handle = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + LOCK_SECONDS
        while not _lock(handle):
            if time.monotonic() >= end:
                raise TimeoutError(errno.ETIMEDOUT, "another program is writing it", str(path))
            time.sleep(0.01)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Take the lock; false while another program holds it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


def config_key(config: ServerConfig, settings: Settings) -> str:
    """Return what changes when a server may be another one: its command or address, and the names of its variables."""
    inside = (
        {name: dict(each) for name, each in settings.sandbox_mcp.items()} if config.place == "sandbox" else {}
    )
    endpoint = config.endpoint
    said = [
        config.name, config.place, config.command, str(config.cwd), sorted(config.env), inside,
        endpoint.url if endpoint is not None else "", sorted(endpoint.headers) if endpoint is not None else [],
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()[:32]


def read_tools(path: Path, key: str, server: str) -> list[ToolDefinition] | None:
    """Return the tools that a server had, ``None`` when that is not known for it as it is configured now."""
    with contextlib.suppress(Damaged, KeyError, TypeError, ValueError):
        found = read_json(path)
        if found.get("key") == key and isinstance(found["tools"], list):
            return [_definition(each, server) for each in found["tools"]]
    return None


def write_tools(path: Path, key: str, tools: list[ToolDefinition]) -> None:
    """Keep the tools of a server. Raises ``OSError``."""
    write_json(path, {"key": key, "tools": [asdict(tool) for tool in tools]})


def _definition(found: Mapping[str, Any], server: str) -> ToolDefinition:
    name, original, description = found["name"], found["original"], found["description"]
    schema, output = found["schema"], found["output_schema"]
    texts = all(isinstance(each, str) for each in (name, original, description))
    if (
        not texts
        or not _NAME.fullmatch(name)
        or not isinstance(schema, dict)
        or not isinstance(output, dict | None)
    ):
        raise ValueError("not a tool")
    return ToolDefinition(
        server=server,
        name=name,
        original=original,
        description=clean(description),
        schema=schema,
        output_schema=output,
        read_only=found["read_only"] is True,
    )
