"""The catalogue: MCP servers that were tried, how each is started, what it can do to a machine, and what was found.

``catalog.json`` holds it. What stands there under ``checked`` is written by the check that installs each server, starts
it and calls it; nobody types it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from sandbox_chat.mcp.base import ServerConfig
from sandbox_chat.mcp.properties import KINDS, Property, Value, expand, fill, named, spot, values
from sandbox_chat.settings import ConfigError, Secret

FORMAT = 1
"""Version of the form of ``catalog.json``."""
FILE = Path(__file__).with_name("catalog.json")
AT = Path("/")
"""Folder that servers are started in: not the working one, whose ``.npmrc`` or modules would decide what is run."""
Registry = Literal["npm", "pypi"]
Status = Literal["active", "archived", "deprecated"]
Reach = Literal["files", "network", "database", "browser", "processes"]
STATUSES: tuple[str, ...] = get_args(Status)
REACHES: tuple[str, ...] = get_args(Reach)
REGISTRIES: tuple[str, ...] = get_args(Registry)
NETWORK_VARIABLES = (
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
)  # fmt: skip
"""What a program needs to reach the network where that goes through a proxy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the check found: the ``tools`` of the server, the one it ``called`` and what its answer held (``found``).

    ``size``: characters of the definitions of all tools. ``notes``: what of its list is not offered, and why. ``reason`` says why it was not started, or not called.
    """

    tools: tuple[str, ...] = ()
    size: int = 0
    notes: tuple[str, ...] = ()
    called: str = ""
    found: str = ""
    reason: str = ""

    @property
    def started(self) -> bool:
        """Whether it was started and told its tools."""
        return bool(self.tools)

    @property
    def answered(self) -> bool:
        """Whether a call was answered."""
        return bool(self.found)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One server of the catalogue.

    ``program``: the name of its executable. ``arguments``: groups of templates, ``environment``: templates of variables
    (``properties.expand``, ``fill``). ``requires``: what is installed beside it, as pip writes it (``mcp<2``); ``from_source``:
    packages that have to be built for that; ``instead``: what is installed in the place of a package that it asks for in
    vain. ``runtime``: the oldest version of Python or node. ``install_environment``: variables while it is installed.
    ``successor``: what replaces it.
    ``risk``: what it can do to the machine, one sentence for people. ``reaches``: the kinds of things it can reach.
    """

    name: str
    title: str
    about: str
    registry: Registry
    package: str
    version: str
    program: str
    runtime: str
    status: Status
    risk: str
    reaches: tuple[Reach, ...]
    arguments: tuple[tuple[str, ...], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, Property] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    from_source: tuple[str, ...] = ()
    instead: Mapping[str, str] = field(default_factory=dict)
    install_environment: Mapping[str, str] = field(default_factory=dict)
    successor: str = ""
    license: str = ""
    checked: Checked = field(default_factory=Checked)

    @property
    def variables(self) -> tuple[Property, ...]:
        """The properties that are taken from variables of the environment when they are not given."""
        return tuple(item for item in self.properties.values() if item.variable)

    def missing(self, properties: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
        """Return what it needs and does not have: variables by their names, other properties and programs by theirs."""
        found = (
            (item, item.found(properties, environ)) for item in self.properties.values() if item.required
        )
        return [item.variable or item.name for item, value in found if value in (None, "", (), [])]

    def config(
        self, properties: Mapping[str, Any], environ: Mapping[str, str], data: Path | None = None
    ) -> ServerConfig:
        """Return how it is started. ``data`` is the data folder, where servers are installed and keep files.

        Raises ``ConfigError`` with a sentence when a property is wrong or missing, or when nothing can start it.
        """
        from sandbox_chat.mcp import program

        found = values(
            self.properties,
            properties,
            program.with_own(self, environ, data) if data else environ,
            self.name,
            program.own_files(self, data) if data else None,
        )
        arguments, secret = self._arguments(found)
        start = program.start(self, environ, data, list(secret))
        env = {**start.environment, **secret}
        for name, template in self.environment.items():
            if all(each in found for each in named(template)):
                env[name] = fill(template, found)
        if "network" in self.reaches:
            env |= {name: environ[name] for name in NETWORK_VARIABLES if environ.get(name)}
        return ServerConfig(
            name=self.name,
            command=(*start.command, *arguments),
            env={name: Secret(value) for name, value in env.items()},
            cwd=AT,
            source="catalogue",
        )

    def _arguments(self, found: Mapping[str, Value]) -> tuple[list[str], dict[str, str]]:
        """Return the arguments, with the names of variables in the place of credentials, and those variables."""
        secret: dict[str, str] = {}
        shown = dict(found)
        for name in {name for group in self.arguments for part in group for name in named(part)}:
            item = self.properties[name]
            if item.secret and name in found:
                secret[item.variable] = fill(spot(name), found)
                shown[name] = spot(item.variable)
        return expand(self.arguments, shown), secret


def load(file: Path = FILE) -> dict[str, CatalogEntry]:
    """Return the servers of the catalogue by name, in its order. Raises ``ConfigError`` when the file is damaged."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise ConfigError(
                f"The catalogue {file} has the form {data['format']}; this program reads {FORMAT}."
            )
        return {name: _entry(name, raw) for name, raw in data["servers"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"The catalogue {file} cannot be used ({error!r}). Install the program again."
        ) from None


def _entry(name: str, raw: Mapping[str, Any]) -> CatalogEntry:
    told = dict(raw)
    told["arguments"] = tuple(
        (group,) if isinstance(group, str) else tuple(group) for group in told.get("arguments", ())
    )
    told["properties"] = {key: _property(key, item) for key, item in told.get("properties", {}).items()}
    told["requires"] = tuple(told.get("requires", ()))
    told["from_source"] = tuple(told.get("from_source", ()))
    told["reaches"] = tuple(told["reaches"])
    checked = dict(told.get("checked", {}))
    for key in ("tools", "notes"):
        checked[key] = tuple(checked.get(key, ()))
    told["checked"] = Checked(**checked)
    entry = CatalogEntry(name=name, **told)
    templates = [*(part for group in entry.arguments for part in group), *entry.environment.values()]
    for word, choices in ((entry.status, STATUSES), (entry.registry, REGISTRIES)):
        if word not in choices:
            raise ValueError(f"{name}: {word}")
    if any(word not in REACHES for word in entry.reaches):
        raise ValueError(f"{name}: {entry.reaches}")
    if wrong := [each for part in templates for each in named(part) if each not in entry.properties]:
        raise ValueError(f"{name}: {wrong}")
    in_arguments = [each for group in entry.arguments for part in group for each in named(part)]
    if wrong := [
        each for each in in_arguments if (item := entry.properties[each]).secret and not item.variable
    ]:
        raise ValueError(f"{name}: {wrong}")
    return entry


def _property(name: str, raw: Mapping[str, Any]) -> Property:
    told = dict(raw)
    if told["kind"] not in KINDS:
        raise ValueError(f"{name}: {told['kind']}")
    told["programs"] = tuple(told.get("programs", ()))
    if isinstance(told.get("default"), list):
        told["default"] = tuple(told["default"])
    return Property(name=name, **told)
