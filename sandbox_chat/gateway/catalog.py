"""The gateway's catalogue: servers that are started by name, their properties, and how their programs are found."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import ConfigError

EXTRA = Path("/etc/mcp-gateway/catalog.json")

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
}
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_LIMIT = 1 << 20  # bytes of a catalogue file
_HINT = {
    "pypi": "Install it with: pip install {package} (or install uv, which fetches it when it is needed).",
    "npm": "Install it with: npm install -g {package} (or install Node.js with npx, which fetches it when it is needed).",
}


@dataclass(frozen=True)
class Property:
    """One property of a server. ``type``: ``string``, ``number``, ``boolean`` or ``array`` (of strings or numbers)."""

    type: str = "string"
    required: bool = False
    default: Any = None
    description: str = ""


@dataclass(frozen=True)
class Entry:
    """A server of the catalogue.

    ``registry`` is ``pypi`` or ``npm`` for a ``package``; without one ``command`` is started as it is. ``arguments``
    holds strings, lists of strings, and ``{"if": PROPERTY, "arguments": [...]}``; ``{{PROPERTY}}`` in them is replaced,
    and a string or list with an unset property falls away. ``constraints`` are requirements that go with the package.
    """

    name: str
    description: str = ""
    registry: str = ""
    package: str = ""
    executable: str = ""
    command: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    arguments: tuple[Any, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, Property] = field(default_factory=dict)

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the properties that are set, the defaults among them. Raises ``ConfigError``."""
        found: dict[str, Any] = {}
        for name, prop in self.properties.items():
            value = given.get(name)
            if value is None:
                value = prop.default
            if value is None:
                if prop.required:
                    raise ConfigError(f"{self.name}: the property {name} is required ({prop.type}).")
                continue
            _check(self.name, name, prop.type, value)
            if prop.required and value in ("", []):
                raise ConfigError(f"{self.name}: the property {name} is empty.")
            found[name] = value
        return found

    def command_line(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the command that starts the server. Raises ``ConfigError`` when its program is not there."""
        return (*self._program(), *_expanded(self.arguments, values))

    def variables(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Return the environment variables that its properties set."""
        filled = {name: _filled(text, values) for name, text in self.environment.items()}
        return {name: texts[0] for name, texts in filled.items() if texts}

    def _program(self) -> tuple[str, ...]:
        if not self.registry:
            if find(self.command[0]) is None:
                raise ConfigError(f"{self.name}: there is no program {self.command[0]}.")
            return (str(find(self.command[0])), *self.command[1:])
        installed = find(self.executable)
        if installed is not None:
            return (installed,)
        runner = find("uvx" if self.registry == "pypi" else "npx")
        if runner is None:
            hint = _HINT[self.registry].format(package=" ".join([self.package, *map(repr, self.constraints)]))
            raise ConfigError(f"{self.name}: {self.executable} is not installed. {hint}")
        if self.registry == "npm":
            return (runner, "-y", self.package)
        extra = [part for constraint in self.constraints for part in ("--with", constraint)]
        if self.executable != self.package:
            return (runner, *extra, "--from", self.package, self.executable)
        return (runner, *extra, self.package)


def find(program: str) -> str | None:
    """Return the path of a program: beside this Python first, then on PATH."""
    beside = Path(sys.executable).parent / program
    if "/" not in program and shutil.which(str(beside)):
        return str(beside)
    return shutil.which(program)


def load(extra: Path | None = EXTRA) -> dict[str, Entry]:
    """Return the catalogue by name; ``extra`` is a file that adds entries or replaces them, if it is there.

    Raises ``ConfigError`` when that file is not a catalogue.
    """
    entries = read(json.loads(Path(__file__).with_name("catalog.json").read_text("utf-8")))
    if extra is None:
        return entries
    try:
        with extra.open("rb") as file:
            data = file.read(_LIMIT + 1)
    except FileNotFoundError:
        return entries
    except OSError as error:
        raise ConfigError(f"The catalogue {extra} cannot be read: {error.strerror}.") from None
    if len(data) > _LIMIT:
        raise ConfigError(f"The catalogue {extra} is larger than {_LIMIT >> 20} MB.")
    try:
        more = read(json.loads(data))
    except (ValueError, RecursionError):
        raise ConfigError(f"The catalogue {extra} is not JSON.") from None
    except ConfigError as error:
        raise ConfigError(f"The catalogue {extra} is not valid: {error}") from None
    return {**entries, **more}


def read(data: Any) -> dict[str, Entry]:
    """Return the entries of a catalogue document. Raises ``ConfigError``."""
    servers = data.get("servers") if isinstance(data, dict) else None
    if not isinstance(servers, dict):
        raise ConfigError('It must be an object with an object "servers".')
    return {name: _entry(name, raw) for name, raw in servers.items()}


def _entry(name: str, raw: Any) -> Entry:
    if not isinstance(raw, dict):
        raise ConfigError(f"{name}: not an object.")
    registry = raw.get("registry", "")
    command = raw.get("command", [])
    if registry not in ("", *_HINT):
        raise ConfigError(f"{name}: registry must be pypi or npm.")
    if registry and not (isinstance(raw.get("package"), str) and raw["package"]):
        raise ConfigError(f"{name}: a package is needed.")
    if not registry and not (_texts(command) and command):
        raise ConfigError(f"{name}: a registry with a package, or a command (a list of strings), is needed.")
    arguments = raw.get("arguments", [])
    if not isinstance(arguments, list) or not all(map(_argument, arguments)):
        raise ConfigError(f"{name}: arguments must be a list of strings, lists of strings, and conditions.")
    environment = raw.get("environment", {})
    if not isinstance(environment, dict) or not _texts(list(environment.values())):
        raise ConfigError(f"{name}: environment must be an object of strings.")
    constraints = raw.get("with", [])
    if not _texts(constraints):
        raise ConfigError(f"{name}: with must be a list of strings.")
    properties = raw.get("properties", {})
    if not isinstance(properties, dict):
        raise ConfigError(f"{name}: properties must be an object.")
    return Entry(
        name=name,
        description=str(raw.get("description", "")),
        registry=registry,
        package=str(raw.get("package", "")),
        executable=str(raw.get("executable") or raw.get("package", "")),
        command=tuple(command),
        constraints=tuple(constraints),
        arguments=tuple(arguments),
        environment=environment,
        properties={key: _property(f"{name}.{key}", value) for key, value in properties.items()},
    )


def _property(name: str, raw: Any) -> Property:
    if not isinstance(raw, dict) or raw.get("type", "string") not in _TYPES:
        raise ConfigError(f"{name}: a property has a type: {', '.join(_TYPES)}.")
    prop = Property(
        type=raw.get("type", "string"),
        required=raw.get("required") is True,
        default=raw.get("default"),
        description=str(raw.get("description", "")),
    )
    if prop.default is not None:
        server, _, own = name.rpartition(".")
        _check(server, own, prop.type, prop.default)
    return prop


def _argument(raw: Any) -> bool:
    if isinstance(raw, dict):
        return isinstance(raw.get("if"), str) and _texts(raw.get("arguments"))
    return isinstance(raw, str) or _texts(raw)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _check(server: str, name: str, kind: str, value: Any) -> None:
    wrong = not isinstance(value, _TYPES[kind]) or (kind == "number" and isinstance(value, bool))
    if kind == "array" and not wrong:
        wrong = not all(isinstance(item, (str, int, float)) and not isinstance(item, bool) for item in value)
    if wrong:
        raise ConfigError(f"{server}: the property {name} must be of the type {kind}.")
    if any("\0" in item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)):
        raise ConfigError(f"{server}: the property {name} holds a NUL character.")


def _expanded(arguments: Sequence[Any], values: Mapping[str, Any]) -> Iterator[str]:
    for argument in arguments:
        if isinstance(argument, dict):
            if not values.get(argument["if"]):
                continue
            group = argument["arguments"]
        else:
            group = [argument] if isinstance(argument, str) else argument
        texts = [_filled(text, values) for text in group]
        if all(text is not None for text in texts):
            yield from (part for text in texts for part in text or ())


def _filled(template: str, values: Mapping[str, Any]) -> list[str] | None:
    """The template with its properties, several texts when one is an array; ``None`` when one is unset."""
    texts = [""]
    for number, piece in enumerate(_PLACE.split(template)):
        if number % 2 == 0:
            texts = [text + piece for text in texts]
            continue
        value = values.get(piece)
        if value is None:
            return None
        parts = [_text(part) for part in value] if isinstance(value, list) else [_text(value)]
        texts = [text + part for text in texts for part in parts]
    return texts


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
