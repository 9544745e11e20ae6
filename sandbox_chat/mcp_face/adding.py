"""Adds MCP servers to the user's own file and removes them: one of the catalogue, a program, an address, or those of a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox_chat.mcp.checks import name_problem
from sandbox_chat.mcp.config import look, own_path, program_problem, similar
from sandbox_chat.mcp.entry import LONGEST_CALL, Entry, read_entry
from sandbox_chat.mcp.server_file import change, read
from sandbox_chat.mcp_face.credentials import warn_of_credentials
from sandbox_chat.mcp_face.foreign import fit_to_judge, show_foreign
from sandbox_chat.mcp_face.said import reach_of, risk_of, say, show, status_of, tell
from sandbox_chat.settings import ConfigError, Settings
from sandbox_chat.text import clean_line
from sandbox_chat.words import tr

if TYPE_CHECKING:
    import argparse

    from sandbox_chat.mcp.catalog import CatalogEntry

OK, FAILED = 0, 1
_WHOLE = ("/", "~", "$")
"""How a path begins that does not depend on a folder."""


def add(settings: Settings, options: argparse.Namespace, environ: Mapping[str, str], folder: Path) -> int:
    """Add what the arguments say; return the exit code: 1 when the user said no or an installation failed. Raises ``ConfigError``."""
    from sandbox_chat.mcp import catalog

    path = own_path(environ)
    if options.from_file:
        return _take_over(settings, options, path, folder)
    [name] = options.names
    _check_name(name)
    _check_free(name, path, force=options.force)
    if not options.server_command and not options.url:
        return _add_of_catalogue(settings, options, path, environ, folder)
    raw = _of_command(options, folder) if options.server_command else _of_url(options)
    entry = _checked(name, raw, path)
    if not entry.unset(environ):
        entry.config(environ)  # what is wrong with it is said before it is written
    warn_of_credentials(settings, entry)
    _write(path, {name: raw}, force=options.force)
    show(tr("mcp_face.added", name=name, path=path))
    if problem := _program_problem(entry, environ):
        say(settings, f"{problem[:1].upper()}{problem[1:]}.")
    if name in catalog.load():
        say(settings, f"It is used in place of {name} of the catalogue.")
    return OK


def remove(settings: Settings, name: str, environ: Mapping[str, str], folder: Path) -> int:
    """Remove a server from the user's own file, and what was installed for it; return the exit code. Raises ``ConfigError``."""
    from sandbox_chat.mcp import catalog, install
    from sandbox_chat.mcp.base import McpError

    def take_out(found: dict[str, Any]) -> None:
        found.pop(name, None)

    path = own_path(environ)
    file = read(path)
    servers = dict(file.servers) if file is not None else {}
    raw = servers.pop(name, None)
    listed = catalog.load()
    done = False
    if file is not None and name in file.servers:
        change(path, take_out)
        show(tr("mcp_face.removed", name=clean_line(name, 64), path=path))
        done = True
    of = raw.get("catalogue") if isinstance(raw, dict) else name if raw is None else None
    entry = listed.get(of) if isinstance(of, str) else None
    used = any(isinstance(each, dict) and each.get("catalogue") == of for each in servers.values())
    if entry is not None and not used:
        try:
            if install.remove(entry, settings.data_path):
                show(tr("mcp_face.uninstalled", name=entry.name))
                done = True
        except McpError as error:
            say(settings, str(error))
            return FAILED
    if done:
        return OK
    shown = clean_line(name, 60)
    survey = look(settings, environ, folder)
    known = survey.servers.get(name)
    if known is not None and known.origin == "file":
        raise ConfigError(
            f"The server {shown} is in {clean_line(known.source, 500)}, which is not changed from here. Edit that file."
        )
    if known is not None:
        raise ConfigError(
            f"The server {shown} of the catalogue was not added, so there is nothing to remove."
        )
    raise ConfigError(f"There is no MCP server {shown!r}.{similar(name, servers)} See: sandbox-chat mcp list")


# --- the four ways ---------------------------------------------------------------------------------------


def _add_of_catalogue(
    settings: Settings, options: argparse.Namespace, path: Path, environ: Mapping[str, str], folder: Path
) -> int:
    from sandbox_chat.mcp import catalog, install
    from sandbox_chat.mcp.base import McpError

    [name] = options.names
    listed = catalog.load()
    entry = listed.get(name)
    if entry is None:
        raise ConfigError(
            f"There is no server {name!r} in the catalogue.{similar(name, listed)} See: sandbox-chat mcp list; a program of "
            f"your own is added with: sandbox-chat mcp add {name} -- COMMAND"
        )
    raw: dict[str, Any] = {"catalogue": name}
    if properties := _properties(options.property, entry, folder):
        raw["properties"] = properties
    _add_shared(raw, options, folder)
    read_back = _checked(name, raw, path)
    given = read_back.filled_env(environ)
    if missing := entry.missing(read_back.filled(environ), {**environ, **given}):
        _refuse_missing(entry, missing)
    warn_of_credentials(settings, read_back, entry)
    _show_entry(entry, raw)
    if not _agreed(1, yes=options.yes):
        return FAILED
    try:
        install.install(
            entry,
            settings.data_path,
            lambda line: tell(settings, line),
            timeout=settings.mcp_install_timeout,
        )
    except McpError as error:
        say(settings, str(error))
        show(tr("mcp_face.nothing_added"))
        return FAILED
    except KeyboardInterrupt:
        say(settings, tr("mcp_face.nothing_added"))
        raise
    _write(path, {name: raw}, force=options.force)
    show(tr("mcp_face.added", name=name, path=path))
    return OK


def _of_command(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    first, *args = options.server_command
    if os.sep in first and not first.startswith(_WHOLE) and (folder / first).exists():
        first = str(folder / first)  # a chat may be opened in another folder
    raw: dict[str, Any] = {"command": first}
    if args:
        raw["args"] = args
    if any(_is_relative(word, folder) for word in args):
        raw["cwd"] = str(folder)
    return _add_shared(raw, options, folder)


def _of_url(options: argparse.Namespace) -> dict[str, Any]:
    raw: dict[str, Any] = {"type": "http", "url": options.url}
    headers: dict[str, str] = {}
    for header in options.header:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise ConfigError("A header is given as --header 'NAME: VALUE'.")
        headers[name.strip()] = value.strip()
    if headers:
        raw["headers"] = headers
    if options.insecure:
        raw["insecure"] = True
    if options.timeout is not None:
        raw["timeout"] = _timeout(options.timeout)
    return raw


def _program_problem(entry: Entry, environ: Mapping[str, str]) -> str:
    """Return why the program of a new server cannot be started, as far as that is known already."""
    return "" if entry.unset(environ) else program_problem(entry.config(environ), environ)


def _add_shared(raw: dict[str, Any], options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    env: dict[str, str] = {}
    for word in options.env:
        name, given, value = word.partition("=")
        env[name] = value if given else f"${{{name}}}"
    if env:
        raw["env"] = env
    if options.cwd:
        raw["cwd"] = str(folder / Path(options.cwd).expanduser())
        if not Path(raw["cwd"]).is_dir():
            raise ConfigError(f"The folder {clean_line(raw['cwd'], 500)} does not exist.")
    if options.timeout is not None:
        raw["timeout"] = _timeout(options.timeout)
    return raw


def _timeout(seconds: float) -> int | float:
    """Return a time as the file has it: from a thousand on it counts in milliseconds there. Raises ``ConfigError``."""
    if not 1 <= seconds <= LONGEST_CALL:
        raise ConfigError(f"--timeout must be a number of seconds from 1 to {LONGEST_CALL:g}.")
    return seconds if seconds < 1000 else int(seconds * 1000)


def _take_over(settings: Settings, options: argparse.Namespace, path: Path, folder: Path) -> int:
    """Copy servers of another file, after showing what each would run."""
    from sandbox_chat.mcp import catalog

    listed = catalog.load()
    source = folder / Path(options.from_file).expanduser()
    file = read(source)
    if file is None:
        raise ConfigError(f"There is no file {clean_line(str(source), 500)}.")
    for name in file.repeated:
        say(settings, f"The server {clean_line(name, 60)} is twice in {source}; the last one counts.")
    names = list(dict.fromkeys(options.names)) or list(file.servers)
    chosen: dict[str, Any] = {}
    entries: list[Entry] = []
    for name in names:
        if name not in file.servers:
            raise ConfigError(
                f"There is no server {clean_line(name, 60)!r} in {source}.{similar(name, file.servers)}"
            )
        warnings: list[str] = []
        try:
            entry = fit_to_judge(read_entry(name, file.servers[name], source, warnings))
            _check_free(name, path, force=options.force)
        except ConfigError as error:
            if options.names:
                raise
            say(settings, str(error))
            continue
        for warning in warnings:
            say(settings, warning)
        entries.append(entry)
        chosen[name] = _moved(file.servers[name], entry, source)
    if not entries:
        show(tr("mcp_face.nothing_added"))
        return FAILED
    for entry in entries:
        show_foreign(entry, chosen[entry.name], listed.get(entry.catalogue))
    if not _agreed(len(entries), yes=options.yes):
        return FAILED
    _write(path, chosen, force=options.force)
    for entry in entries:
        show(tr("mcp_face.added", name=entry.name, path=path))
    return OK


def _moved(raw: Mapping[str, Any], entry: Entry, source: Path) -> dict[str, Any]:
    """Return a server of another file as it stands in the user's own: what is relative stays where it was meant."""
    moved = dict(raw)
    moved.pop("disabled", None)
    moved.pop("enabled", None)
    first, *args = entry.command or ("",)
    relative = os.sep in first and not first.startswith(_WHOLE)
    if entry.cwd or relative or any(_is_relative(word, source.absolute().parent) for word in args):
        inner = entry.cwd or "."
        moved["cwd"] = inner if inner.startswith(_WHOLE) else str(source.absolute().parent / inner)
    return moved


def _is_relative(word: str, folder: Path) -> bool:
    """Whether an argument is a path that means something in ``folder`` only."""
    if word.startswith(("./", "../")) or word in (".", ".."):
        return True
    try:
        return bool(word) and not word.startswith((*_WHOLE, "-")) and (folder / word).exists()
    except (OSError, ValueError):
        return False


# --- properties and names ----------------------------------------------------------------------


def _properties(words: Sequence[str], entry: CatalogEntry, folder: Path) -> dict[str, Any]:
    """Return what ``--property`` says; paths are made whole, because a chat may be opened in another folder."""
    found: dict[str, Any] = {}
    for word in words:
        name, given, value = word.partition("=")
        name = name.strip()
        if not given or not name:
            raise ConfigError("A property is given as --property NAME=VALUE.")
        listed = entry.properties.get(name)
        if listed is None:
            there = ", ".join(entry.properties) or "none"
            raise ConfigError(
                f"The MCP server {entry.name} has no property {clean_line(name, 60)!r}; it has: {there}.{similar(name, entry.properties)}"
            )
        if listed.kind in ("folder", "folders", "file") and value and not value.startswith(("$", "[")):
            value = str(folder / Path(value).expanduser())
        if listed.kind in ("list", "folders"):
            found.setdefault(name, []).append(value)
        elif name in found:
            raise ConfigError(
                f"The property {name} of the MCP server {entry.name} is given twice; it takes one value."
            )
        else:
            found[name] = value
    for name, value in found.items():
        if "${" not in str(value):
            entry.properties[name].read(value, entry.name)
    return found


def _refuse_missing(entry: CatalogEntry, missing: Iterable[str]) -> None:
    variables = {item.variable: item for item in entry.properties.values() if item.variable}
    words = []
    for name in missing:
        if name in variables:
            words.append(f"the variable {name}: set it in the environment and add --env {name}")
        else:
            about = entry.properties[name].about if name in entry.properties else ""
            words.append(f"--property {name}=…" + (f" ({about.rstrip('.')})" if about else ""))
    raise ConfigError(f"The MCP server {entry.name} needs {'; '.join(words)}.")


def _check_name(name: str) -> None:
    if problem := name_problem(name):
        raise ConfigError(f"A server cannot be called {clean_line(name, 60)!r}: {problem}.")


def _check_free(name: str, path: Path, *, force: bool) -> None:
    file = read(path)
    if file is not None and name in file.servers and not force:
        raise ConfigError(
            f"There is a server {name} already, in {clean_line(str(path), 500)}. Replace it with --force."
        )


def _checked(name: str, raw: Mapping[str, Any], path: Path) -> Entry:
    """Return what a new server is when it is read back. Raises ``ConfigError`` when it is wrong."""
    entry = read_entry(name, raw, path, [])
    entry.check_variables()
    return entry


# --- showing, asking, writing ----------------------------------------------------------------------------


def _show_entry(entry: CatalogEntry, raw: Mapping[str, Any]) -> None:
    show(tr("mcp_face.about.what", name=entry.name, what=f"{entry.title}. {entry.about}"))
    show(tr("mcp_face.about.runs", how=f"{entry.registry} {entry.package} {entry.version}"))
    if entry.reaches:
        show(tr("mcp_face.about.reaches", reach=reach_of(entry)))
    show(tr("mcp_face.about.risk", risk=risk_of(entry)))
    show(tr("mcp_face.about.status", status=status_of(entry)))
    if given := raw.get("env"):
        show(tr("mcp_face.about.gets", given=", ".join(given)))


def _agreed(count: int, *, yes: bool) -> bool:
    """Ask whether to go on. Raises ``ConfigError`` when nobody can be asked."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError(
            "Nothing was added: nobody can be asked here. Add --yes when you agree to what is shown above."
        )
    sys.stdout.write(tr("mcp_face.ask.one") if count == 1 else tr("mcp_face.ask.many", count=count))
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    show(tr("mcp_face.nothing_added"))
    return False


def _write(path: Path, servers: Mapping[str, Any], *, force: bool) -> None:
    def put(found: dict[str, Any]) -> None:
        for name, raw in servers.items():
            if name in found and not force:  # another program has been quicker
                raise ConfigError(f"There is a server {name} already, in {path}. Replace it with --force.")
            found[name] = dict(raw)

    change(path, put)
