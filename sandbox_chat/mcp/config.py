"""Which MCP servers there are, which of them are on, and how each is started.

They come from the catalogue, from the user's own file (``mcp.json`` beside ``config.toml``) and from the file of the
setting ``mcp_config``. Those of the two files are on unless they are disabled there; those of the catalogue are on when
the setting ``mcp`` names them. A ``.mcp.json`` in the working folder comes with whatever lies there, so nothing of it is
ever started: it is only told that it is there.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sandbox_chat.mcp.base import ServerConfig
from sandbox_chat.mcp.checks import name_problem
from sandbox_chat.mcp.entry import Entry, read_entry
from sandbox_chat.mcp.program import installed
from sandbox_chat.mcp.server_file import COUNT_LIMIT, read
from sandbox_chat.settings import ConfigError, Settings, config_path
from sandbox_chat.text import clean_line

if TYPE_CHECKING:
    from sandbox_chat.mcp.catalog import CatalogEntry

OWN_FILE = "mcp.json"
FOLDER_FILE = ".mcp.json"
CATALOGUE = "catalogue"
OFF = "off"
"""In the setting ``mcp``: none but the servers that are named beside it."""

Origin = Literal["own", "file", "catalogue", "folder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A server that is known here.

    ``origin``: the user's ``own`` file, the ``file`` of the setting, the ``catalogue``, or the working ``folder`` (never started).
    ``source`` is the path of the file, or ``catalogue``. ``named``: in the setting ``mcp``. ``entry`` is ``None`` for one of the
    catalogue, and when it is wrong; ``problem`` says why then. ``listed`` is the catalogue's part. ``hides`` are other sources of
    that name.
    """

    name: str
    origin: Origin
    source: str
    on: bool = False
    named: bool = False
    entry: Entry | None = None
    listed: CatalogEntry | None = None
    problem: str = ""
    hides: tuple[str, ...] = ()

    def config(self, environ: Mapping[str, str], data: Path) -> ServerConfig:
        """Return how it is started; ``data`` is the data folder. Raises ``ConfigError`` with a sentence when something is missing."""
        if self.problem:
            raise ConfigError(self.problem)
        if self.listed is None:
            assert self.entry is not None
            return self.entry.config(environ)
        listed, config = self.listed, self._of_catalogue(self.listed, environ, data)

        def renewed() -> ServerConfig:
            if (
                installed(listed, data, environ) is None
            ):  # removed meanwhile: not to be fetched behind the user's back
                return dataclasses.replace(config, renewed=renewed)
            return dataclasses.replace(self._of_catalogue(listed, environ, data), renewed=renewed)

        return dataclasses.replace(config, renewed=renewed) if installed(listed, data, environ) else config

    def _of_catalogue(self, listed: CatalogEntry, environ: Mapping[str, str], data: Path) -> ServerConfig:
        if self.entry is None:
            return listed.config({}, environ, data)
        given = self.entry.filled_env(environ)
        config = listed.config(self.entry.filled(environ), {**environ, **given}, data)
        return dataclasses.replace(
            config,
            name=self.name,
            env={**config.env, **self.entry.secret_env(environ)},
            cwd=self.entry.folder(environ) if self.entry.cwd else config.cwd,
            call_timeout=self.entry.timeout or config.call_timeout,
            source=self.source,
        )

    def unset(self, environ: Mapping[str, str]) -> list[str]:
        """Return the variables of its file that have neither a value nor a default."""
        return self.entry.unset(environ) if self.entry is not None else []


@dataclass(slots=True)
class Survey:
    """All servers that are known: ``servers`` by name, and what is wrong.

    ``unknown`` are sentences about names in the setting ``mcp`` that mean nothing, ``warnings`` about all else.
    """

    servers: dict[str, Known] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def on(self) -> list[Known]:
        """Return those that are on."""
        return [known for known in self.servers.values() if known.on]


def own_path(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's own file of servers."""
    return config_path(environ).parent / OWN_FILE


def load_servers(
    settings: Settings, environ: Mapping[str, str], folder: Path, warnings: list[str] | None = None
) -> list[ServerConfig]:
    """Return how each server is started that is on. ``folder`` is the working folder.

    A server that cannot be had is left out, with a sentence in ``warnings``; raises ``ConfigError`` when the setting ``mcp``
    names it, or when a whole file cannot be used.
    """
    said: list[str] = []
    if not settings.mcp and not settings.mcp_config and not own_path(environ).exists():
        return []
    if all(name == OFF for name in settings.mcp) and settings.mcp:
        return []
    survey = look(settings, environ, folder)
    if survey.unknown:
        raise ConfigError(survey.unknown[0])
    said += survey.warnings
    configs = []
    for known in survey.on():
        try:
            configs.append(known.config(environ, settings.data_path))
        except ConfigError as error:
            if known.named:
                raise
            if str(error) not in said:
                said.append(str(error))
    if len(configs) > COUNT_LIMIT:
        raise ConfigError(f"{len(configs)} MCP servers are on; {COUNT_LIMIT} are the most. Disable some.")
    if warnings is not None:
        warnings += said
    return configs


def look(settings: Settings, environ: Mapping[str, str], folder: Path) -> Survey:
    """Return all servers that are known, whether they are on or not. Raises ``ConfigError`` when a file cannot be used."""
    from sandbox_chat.mcp import catalog

    survey = Survey()
    listed = catalog.load()
    named = [name for name in settings.mcp if name != OFF]
    only_named = OFF in settings.mcp
    found: list[Known] = list(_of_file(own_path(environ), "own", listed, survey.warnings))
    further = _further_path(settings, folder)
    if further is not None and not _same(further, own_path(environ)):
        found += _of_file(further, "file", listed, survey.warnings, must=True)
    found += [
        Known(name=name, origin="catalogue", source=CATALOGUE, listed=entry) for name, entry in listed.items()
    ]
    for known in found:
        first = survey.servers.get(known.name)
        if first is not None:
            if first.entry is None or first.entry.catalogue != known.name or known.origin != "catalogue":
                survey.servers[known.name] = dataclasses.replace(first, hides=(*first.hides, known.source))
            continue
        is_named = known.name in named
        wanted = known.origin != "catalogue" and not only_named
        disabled = known.entry is not None and known.entry.disabled
        on = is_named or (wanted and not disabled)
        survey.servers[known.name] = dataclasses.replace(known, on=on, named=is_named)
        if known.problem and on and not is_named:
            survey.warnings.append(known.problem)
    survey.unknown = [
        _unknown(name, survey.servers, settings) for name in named if name not in survey.servers
    ]
    return survey


def not_taken(settings: Settings, folder: Path, warnings: list[str]) -> list[Known]:
    """Return the servers of the working folder's ``.mcp.json``, which are not started. What is wrong with it is added to ``warnings``."""
    from sandbox_chat.mcp import catalog

    path = folder / FOLDER_FILE
    further = _further_path(settings, folder)
    if further is not None and _same(path, further):
        return []
    try:
        return list(_of_file(path, "folder", catalog.load(), []))
    except ConfigError as error:
        warnings.append(str(error))
        return []


def program_problem(config: ServerConfig, environ: Mapping[str, str]) -> str:
    """Return why the program of a server cannot be started, empty when it can or when there is none to start."""
    if not config.command:
        return ""
    if config.cwd is not None and not config.cwd.is_dir():
        return f"its folder {clean_line(str(config.cwd), 300)} does not exist"
    program = config.command[0]
    if os.sep in program:
        path = (config.cwd or Path()) / program
        return (
            "" if os.access(path, os.X_OK) and path.is_file() else f"{clean_line(program, 300)} is no program"
        )
    where = config.env["PATH"].reveal() if "PATH" in config.env else environ.get("PATH", os.defpath)
    return (
        ""
        if shutil.which(program, path=where)
        else f"the program {clean_line(program, 300)} is not installed"
    )


def fault_of(known: Known, environ: Mapping[str, str], data: Path) -> str:
    """Return why a server cannot be started, as far as that can be told without doing so; empty when it can."""
    try:
        problem = program_problem(known.config(environ, data), environ)
    except ConfigError as error:
        return str(error)
    name = clean_line(known.name, 64)
    return f"The MCP server {name} cannot be started: {problem}." if problem else ""


def similar(name: str, known: Mapping[str, object]) -> str:
    """Return a question that names what was probably meant, or nothing."""
    near = difflib.get_close_matches(name, known, 1)
    return f" Did you mean {near[0]}?" if near else ""


def _of_file(
    path: Path,
    origin: Origin,
    listed: Mapping[str, CatalogEntry],
    warnings: list[str],
    *,
    must: bool = False,
) -> Iterator[Known]:
    """Yield the servers of a file, those that are wrong too. Raises ``ConfigError`` for the whole of it."""
    file = read(path)
    if file is None:
        if must:
            raise ConfigError(
                f"There is no file {clean_line(str(path), 500)} with MCP servers. Check SANDBOX_CHAT_MCP_CONFIG."
            )
        return
    for name in file.repeated:
        warnings.append(
            f"The server {clean_line(name, 60)} is twice in {clean_line(str(path), 500)}; the last one counts."
        )
    for name, raw in file.servers.items():
        known = Known(name=name, origin=origin, source=str(path))
        try:
            entry = read_entry(name, raw, path, warnings)
            of_catalogue = listed.get(entry.catalogue) if entry.catalogue else None
            if entry.catalogue and of_catalogue is None:
                raise ConfigError(
                    f"catalogue of the server {name} in {clean_line(str(path), 500)} is {clean_line(entry.catalogue, 60)!r}, "
                    f"which is not in the catalogue.{similar(entry.catalogue, listed)}"
                )
        except ConfigError as error:
            shown = name if not name_problem(name) else clean_line(name, 64)
            yield dataclasses.replace(known, name=shown, problem=str(error))
        else:
            yield dataclasses.replace(known, entry=entry, listed=of_catalogue)


def _further_path(settings: Settings, folder: Path) -> Path | None:
    """Return the file of the setting ``mcp_config``, which the working folder's ``.env`` cannot set."""
    return folder / settings.mcp_config if settings.mcp_config is not None else None


def _unknown(name: str, servers: Mapping[str, Known], settings: Settings) -> str:
    origin = settings.origins.get("mcp", "")
    where = f" (named by {clean_line(origin, 300)})" if origin else ""
    return f"There is no MCP server {clean_line(name, 60)!r}{where}.{similar(name, servers)} See: sandbox-chat mcp list"


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return one.absolute() == other.absolute()
