"""Writes settings that a person asked to remember into the user's ``config.toml``.

Only the lines of the given settings change; comments and the rest stay as they are. The file may
hold credentials, so only its owner can read it.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sandbox_chat.settings import ConfigError

_TABLE = re.compile(r"^\s*\[")


def remember(path: Path, values: Mapping[str, str | bool]) -> None:
    """Put ``values`` (by setting name) into the file at ``path``, making it and its folder if needed.

    Raises ``ConfigError`` with a sentence when the file cannot be read, changed or written; it is
    then as it was before.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target = path.resolve()
        try:
            before = target.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            before = ""
        after = changed(before, values)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".config-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:  # mkstemp made it for the owner only
                file.write(after)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(target)
        except OSError:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"The settings could not be kept in {path} ({reason}).") from None
    except ValueError as error:
        raise ConfigError(f"The settings could not be kept in {path}: {error}.") from None


def changed(text: str, values: Mapping[str, str | bool]) -> str:
    """Return the TOML ``text`` with ``values`` set. Raises ``ValueError`` when that cannot be done safely."""
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is not valid TOML ({error})") from None
    lines = text.splitlines()
    for key, value in values.items():
        entry = f"{key} = {_toml(value)}"
        pattern = re.compile(rf"^\s*(?:{re.escape(key)}|\"{re.escape(key)}\")\s*=")
        places = [number for number, line in enumerate(lines) if pattern.match(line)]
        if places:
            lines[places[0]] = entry
            continue
        # New keys go above the first table: below it they would belong to the table.
        first = next((n for n, line in enumerate(lines) if _TABLE.match(line)), len(lines))
        while first > 0 and not lines[first - 1].strip():
            first -= 1
        lines.insert(first, entry)
    result = "\n".join(lines) + "\n"
    try:
        after = tomllib.loads(result)
    except tomllib.TOMLDecodeError:
        raise ValueError("the line to change is not written on one line; please edit the file") from None
    old, new = _flat(before), _flat(after)
    if any(new.get(key) != value for key, value in values.items()) or any(
        new.get(key) != value for key, value in old.items() if key not in values
    ):
        raise ValueError("its layout is unusual; please edit the file")
    return result


def _flat(data: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in data.items():
        flat.update(value if isinstance(value, dict) else {key: value})
    return flat


def _toml(value: str | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    escaped = "".join(
        f"\\u{ord(c):04x}" if ord(c) < 0x20 or ord(c) == 0x7F else "\\" + c if c in '"\\' else c
        for c in value
    )
    return f'"{escaped}"'
