"""The configuration of the gateway: checked as a whole, before anything is started."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from . import catalog
from .errors import ConfigError

MOST_SERVERS = 64
_LONGEST_NAME = 128
_LIMIT = 1 << 20  # characters of a configuration
_SHOWN = 10  # complaints that are told
_PART = re.compile(r"[A-Za-z0-9_.-]+")
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
_GITHUB = "github/"
_LOCAL = {"runCmd", "envs"}
_CLONED = {"runCmd", "envs", "installCmd"}


@dataclass(frozen=True)
class Plan:
    """How one server is started: ``command``, and ``environment`` on top of the gateway's own.

    ``repository`` (``owner/name``) is cloned first, and the command runs in the clone, after ``install`` (a shell
    command).
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    repository: str = ""
    install: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        """Return a plan from what ``to_json`` gave."""
        return cls(**{**data, "command": tuple(data["command"])})


def parse(text: str) -> dict[str, Any]:
    """Return the configuration in ``text``, a JSON object. Raises ``ConfigError``."""
    if len(text) > _LIMIT:
        raise ConfigError(f"The configuration is larger than {_LIMIT >> 20} MB.")
    try:
        config = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"The configuration is not valid JSON: {error}.") from None
    if not isinstance(config, dict):
        raise ConfigError(
            "The configuration must be a JSON object: the name of each server, and its properties."
        )
    return config


def plans(config: Any, entries: Mapping[str, catalog.Entry]) -> tuple[list[Plan], list[str]]:
    """Return how each server is started, sorted by name, and warnings. Raises ``ConfigError`` with all complaints."""
    if not isinstance(config, Mapping):
        raise ConfigError(
            "The configuration must be a JSON object: the name of each server, and its properties."
        )
    if len(config) > MOST_SERVERS:
        raise ConfigError(f"There are {len(config)} servers; at most {MOST_SERVERS} are allowed.")
    made: list[Plan] = []
    warnings: list[str] = []
    wrong: list[str] = []
    for name in sorted(config, key=str):
        try:
            made.append(_plan(name, {} if config[name] is None else config[name], entries, warnings))
        except ConfigError as error:
            wrong.append(str(error))
    if wrong:
        more = [f"… and {len(wrong) - _SHOWN} more."] if len(wrong) > _SHOWN else []
        raise ConfigError("\n".join([*wrong[:_SHOWN], *more]))
    return made, warnings


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the name {name[:_LONGEST_NAME]!r} stands twice")
        found[name] = value
    return found


def _plan(name: Any, raw: Any, entries: Mapping[str, catalog.Entry], warnings: list[str]) -> Plan:
    if not isinstance(name, str) or not name.strip():
        raise ConfigError("A server has an empty name.")
    if len(name) > _LONGEST_NAME:
        raise ConfigError(f"{name[:40]!r}…: a name has at most {_LONGEST_NAME} characters.")
    if _CONTROL.search(name):
        raise ConfigError(f"{name!r}: a name has no control characters.")
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{name}: the properties must be an object.")
    environment = _environment(name, raw.get("envs"))
    if name.startswith(_GITHUB):
        return _github(name, raw, environment, warnings)
    if name in entries:
        return _listed(entries[name], raw, environment, warnings)
    if "runCmd" not in raw:
        known = ", ".join(sorted(entries))
        raise ConfigError(
            f"{name}: no server of this name is in the catalogue, and it has no runCmd. The catalogue has: {known}."
        )
    _warn_unknown(name, raw, _LOCAL, warnings)
    return Plan(name, _shell(name, raw), environment)


def _listed(
    entry: catalog.Entry, raw: Mapping[str, Any], environment: dict[str, str], warnings: list[str]
) -> Plan:
    _warn_unknown(entry.name, raw, {*entry.properties, "envs"}, warnings)
    values = entry.values(raw)
    return Plan(entry.name, entry.command_line(values), {**entry.variables(values), **environment})


def _github(name: str, raw: Mapping[str, Any], environment: dict[str, str], warnings: list[str]) -> Plan:
    parts = name[len(_GITHUB) :].split("/")
    if len(parts) != 2 or not all(_PART.fullmatch(part) and part not in (".", "..") for part in parts):
        raise ConfigError(f"{name}: must be of the form github/<owner>/<repo>.")
    install = raw.get("installCmd")
    if install is not None:
        if not isinstance(install, str):
            raise ConfigError(f"{name}: installCmd must be a string.")
        _check_signs(name, "installCmd", install)
    _warn_unknown(name, raw, _CLONED, warnings)
    return Plan(name, _shell(name, raw), environment, "/".join(parts), (install or "").strip())


def _shell(name: str, raw: Mapping[str, Any]) -> tuple[str, ...]:
    command = raw.get("runCmd")
    if not isinstance(command, str) or not command.strip():
        raise ConfigError(f"{name}: runCmd is required, a shell command that starts the server.")
    _check_signs(name, "runCmd", command)
    return ("/bin/sh", "-c", command)


def _environment(name: str, raw: Any) -> dict[str, str]:
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{name}: envs must be an object: the name of each variable, and its value.")
    for key, value in raw.items():
        if not isinstance(key, str) or not _VARIABLE.fullmatch(key):
            raise ConfigError(f"{name}: {str(key)[:_LONGEST_NAME]!r} in envs is not the name of a variable.")
        if not isinstance(value, str):
            raise ConfigError(f"{name}: the value of {key} in envs must be a string.")
        _check_signs(name, f"the value of {key} in envs", value)
    return dict(raw)


def _check_signs(name: str, place: str, value: str) -> None:
    """Raise ``ConfigError`` for what no program can be given: NUL characters and half characters."""
    try:
        if b"\0" not in os.fsencode(value):
            return
    except UnicodeEncodeError:
        pass
    raise ConfigError(f"{name}: {place} must not hold NUL characters or half characters.")


def _warn_unknown(name: str, raw: Mapping[str, Any], known: set[str], warnings: list[str]) -> None:
    for key in raw:
        if key not in known:
            shown = _CONTROL.sub("?", str(key))[:_LONGEST_NAME]
            warnings.append(f"{name}: there is no property {shown!r}; it is ignored.")
