"""The properties of a server of the catalogue: what is told about them, how they are read, and where they go."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from sandbox_chat.settings import ConfigError
from sandbox_chat.text import clean_line

Kind = Literal["text", "number", "flag", "list", "folder", "folders", "file", "url"]
Value = str | tuple[str, ...] | bool
KINDS: tuple[str, ...] = get_args(Kind)
LISTS = ("list", "folders")
DATA = "{{data}}"
"""Stands in a default for the folder of a server's own files."""
MOST = 256
"""Elements of a list at most."""
LONGEST = 8192
"""Characters of one value at most."""
_PLACE = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """Something that a server is told at its start.

    ``variable``: the variable of the environment that it is taken from when it is not given. ``programs``: names of
    programs, the first of which that is installed is the default. ``secret``: a credential, or may hold one; it is
    never put on a command line. ``default`` is used when nothing is given.
    """

    name: str
    kind: Kind
    about: str
    required: bool = False
    default: str | tuple[str, ...] | bool | None = None
    secret: bool = False
    variable: str = ""
    programs: tuple[str, ...] = ()

    def found(self, given: Mapping[str, Any], environ: Mapping[str, str]) -> Any:
        """Return the value as it is given, or from the environment, or its default; ``None`` when there is none."""
        value = given.get(self.name)
        if value is None or value == "":
            value = environ.get(self.variable) if self.variable else None
        if value is None or value == "":
            paths = (shutil.which(name, path=environ.get("PATH")) for name in self.programs)
            value = next((path for path in paths if path), self.default)
        return value

    def read(self, value: Any, server: str) -> Value:
        """Return a value in its right form. Raises ``ConfigError`` with one sentence that does not repeat a credential."""
        try:
            return self._read(value)
        except ValueError as error:
            raise ConfigError(f"{self.name} of the MCP server {server} {error}.") from None

    def _read(self, value: Any) -> Value:
        if self.kind == "flag":
            return _flag(value)
        if self.kind in LISTS:
            items = _items(value)
            if self.kind == "folders":
                return tuple(str(_folder(item)) for item in items)
            return items
        word = _text(value)
        if self.kind == "number":
            return _number(word)
        if self.kind == "folder":
            return str(_folder(word))
        if self.kind == "file":
            return str(_file(word))
        if self.kind == "url" and not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*://\S+", word):
            raise ValueError("must be an address such as scheme://host/path")
        return word


def values(
    properties: Mapping[str, Property],
    given: Mapping[str, Any],
    environ: Mapping[str, str],
    server: str,
    data: Path | None,
) -> dict[str, Value]:
    """Return the values of all properties that have one, checked.

    ``data`` is the folder of the server's own files, for defaults that lie there; it is made when one does. Raises
    ``ConfigError`` for an unknown name, a wrong value, and a required one that is missing.
    """
    for name in given:
        if name not in properties:
            raise ConfigError(_unknown(str(name), properties, server))
    read: dict[str, Value] = {}
    for item in properties.values():
        value = item.found(given, environ)
        if isinstance(value, str) and value.startswith(DATA):
            value = _in_data(value, data)
        if value is None or value == "" or (item.kind in LISTS and not value and value is not False):
            if item.required:
                raise ConfigError(_missing(item, server))
            continue
        read[item.name] = item.read(value, server)
    return read


def expand(groups: Sequence[Sequence[str]], found: Mapping[str, Value]) -> list[str]:
    """Return the arguments that templates give.

    A group with a property that is unset (or a flag that is off) falls away. ``{{name}}`` alone becomes as many
    arguments as the property has: each element of a list, none of a flag.
    """
    arguments: list[str] = []
    for group in groups:
        named = [name for part in group for name in _PLACE.findall(part)]
        if any(not found.get(name) for name in named):
            continue
        for part in group:
            alone = _PLACE.fullmatch(part)
            value = found[alone[1]] if alone else None
            if isinstance(value, tuple):
                arguments += value
            elif not isinstance(value, bool):
                arguments.append(fill(part, found))
    return arguments


def fill(template: str, found: Mapping[str, Value]) -> str:
    """Return ``template`` with its places filled; lists with commas between."""

    def word(match: re.Match[str]) -> str:
        value = found[match[1]]
        if isinstance(value, bool):
            return str(value).lower()
        return ",".join(value) if isinstance(value, tuple) else value

    return _PLACE.sub(word, template)


def spot(name: str) -> str:
    """Return the place of a property in a template."""
    return "{{" + name + "}}"


def named(template: str) -> list[str]:
    """Return the names of the properties in a template."""
    return _PLACE.findall(template)


def _unknown(name: str, properties: Mapping[str, Property], server: str) -> str:
    import difflib

    shown = clean_line(name, 40)
    if not properties:
        return f"The MCP server {server} has no properties, but {shown} is given."
    near = difflib.get_close_matches(name, properties, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"The MCP server {server} has no property {shown}; it has {', '.join(properties)}.{hint}"


def _missing(item: Property, server: str) -> str:
    about = item.about[:1].lower() + item.about[1:].rstrip(".")
    if item.programs:
        return (
            f"The MCP server {server} needs the program {item.programs[0]}, which is not installed. Install it, or name "
            f"it with: sandbox-chat mcp add {server} --property {item.name}=PATH"
        )
    if item.variable:
        how = f"set {item.variable} in the environment"
        add = f"sandbox-chat mcp add {server} --env {item.variable}"
        return f"The MCP server {server} needs {item.variable} ({about}): {how}, or keep it with: {add}"
    return (
        f"The MCP server {server} needs {item.name} ({about}): "
        f"sandbox-chat mcp add {server} --property {item.name}=…"
    )


def _in_data(value: str, data: Path | None) -> str | None:
    """Return a default that lies among the server's own files; ``None`` where there is no place for them."""
    if data is None:
        return None
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigError(
            f"The folder {data} for an MCP server's files cannot be made ({error.strerror})."
        ) from None
    return str(data) + value.removeprefix(DATA)


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be text")
    word = str(value).strip()
    if any(ord(sign) < 0x20 or ord(sign) == 0x7F or 0xD800 <= ord(sign) < 0xE000 for sign in word):
        raise ValueError("must be plain text without control characters")
    if len(word) > LONGEST:
        raise ValueError(f"must have at most {LONGEST} characters")
    return word


def _items(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("must be a list, as JSON if it begins with [") from None
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list of texts")
    if len(value) > MOST:
        raise ValueError(f"must have at most {MOST} elements")
    items = tuple(_text(item) for item in value)
    if not all(items):
        raise ValueError("must not have empty elements")
    return items


def _flag(value: Any) -> bool:
    word = str(value).strip().lower()
    if word in ("true", "yes", "on", "1"):
        return True
    if word in ("false", "no", "off", "0"):
        return False
    raise ValueError("must be true or false")


def _number(word: str) -> str:
    if not re.fullmatch(r"-?\d{1,15}(\.\d{1,6})?", word, re.ASCII):
        raise ValueError("must be a number")
    return word


def _path(word: str) -> Path:
    try:
        return Path(word).expanduser().absolute()
    except RuntimeError:
        raise ValueError("names a home folder that is not known") from None


def _folder(word: str) -> Path:
    path = _path(word)
    if not _is(path, folder=True):
        raise ValueError(f"must be a folder that exists; {clean_line(word, 200)} is none")
    return path


def _file(word: str) -> Path:
    path = _path(word)
    if _is(path, folder=True) or not _is(path.parent, folder=True):
        raise ValueError(f"must be a file in a folder that exists; {clean_line(word, 200)} is none")
    return path


def _is(path: Path, *, folder: bool) -> bool:
    try:
        return path.is_dir() if folder else path.exists()
    except OSError:  # a name that is too long, a folder that may not be entered
        return False
