"""MCP servers inside the sandbox: what is asked for is checked before anything is made, and how they are reached."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sandbox_chat.gateway import catalog
from sandbox_chat.gateway.errors import ConfigError as Unfit
from sandbox_chat.mcp.base import Endpoint, McpError, ServerConfig
from sandbox_chat.mcp.checks import UNFIT, is_unfit, strings
from sandbox_chat.sandbox.base import SandboxError
from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import ConfigError, Secret, Settings
from sandbox_chat.text import clean_line

NAME = "gateway"
"""Name of the one server that stands for all of those in the sandbox."""
MOST = 64
"""Servers in one sandbox."""
LONGEST_NAME = 128
"""Characters of the name of one."""
WHERE = "sandbox_mcp"
_GITHUB = "github/"
_PART = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_START_SLACK = 30.0  # seconds beyond the servers' own, for the sandbox and the first connection


def check(settings: Settings) -> None:
    """Raise ``ConfigError`` when the servers of ``sandbox_mcp`` cannot be had, or are not described as they must be.

    Starts nothing. What only the sandbox can tell (whether a server is installed there) is told at the start.
    """
    servers = settings.sandbox_mcp
    if not servers:
        return
    if settings.sandbox in ("off", "unsafe-local"):
        raise ConfigError(
            f"{WHERE}: MCP servers run inside a sandbox, and with --sandbox {settings.sandbox} there is none. Use "
            "--sandbox local, docker or e2b, or start them on this machine with --mcp."
        )
    if len(servers) > MOST:
        raise ConfigError(f"{WHERE}: {len(servers)} servers are asked for; one sandbox runs at most {MOST}.")
    known = catalog.load(None)
    # A cloud's gateway, and that of an image of the user's own, may know more names.
    closed = settings.sandbox == "local" or (settings.sandbox == "docker" and not settings.docker_image)
    for name, properties in servers.items():
        _check_name(name)
        _check_properties(name, properties)
        if name.startswith(_GITHUB):
            continue
        if name in known:
            if settings.sandbox != "e2b":
                _check_values(known[name], properties)
        elif "runCmd" in properties:
            _command(name, properties)
        elif closed:
            raise ConfigError(
                f"{WHERE}: there is no server {_shown(name)} in the catalogue, which has {', '.join(sorted(known))}. "
                'Give it a runCmd, as {"name": {"runCmd": "my-server --stdio"}}.'
            )


def inside_config(settings: Settings, worker: SandboxWorker) -> ServerConfig:
    """Return how the gateway in the sandbox of ``worker`` is reached: asked at each start, for a sandbox can be a new one."""

    async def resolve() -> Endpoint:
        try:
            address = await worker.mcp_endpoint()
        except SandboxError as error:
            raise McpError(_scrubbed(str(error), settings)) from None
        bearer = Secret(f"Bearer {address.token.reveal()}")
        return Endpoint(url=address.url, headers={**address.headers, "Authorization": bearer})

    timeout = settings.sandbox_mcp_timeout + settings.start_timeout + _START_SLACK
    return ServerConfig(
        name=NAME,
        place="sandbox",
        resolve=resolve,
        on_call=worker.touch,
        start_timeout=timeout,
        source=f"{WHERE} in the settings",
    )


def secrets(servers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the values of the variables that the servers get, which are to be kept out of messages."""
    found: list[str] = []
    for properties in servers.values():
        envs = properties.get("envs")
        if isinstance(envs, Mapping):
            found += [value for value in envs.values() if isinstance(value, str)]
    return found


def _scrubbed(text: str, settings: Settings) -> str:
    for value in sorted(secrets(settings.sandbox_mcp), key=len, reverse=True):
        if len(value) >= 4:
            text = text.replace(value, "[secret]")
    return settings.scrub(text)


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise ConfigError(
            f"{WHERE}: {_shown(name)} cannot be the name of a server: it has 1 to {LONGEST_NAME} printable characters."
        )
    if name.startswith(_GITHUB):
        parts = name[len(_GITHUB) :].split("/")
        if len(parts) != 2 or not all(_PART.fullmatch(part) and part not in (".", "..") for part in parts):
            raise ConfigError(f"{WHERE}: {_shown(name)} must be of the form github/<owner>/<repo>.")


def _check_properties(name: str, properties: Any) -> None:
    if not isinstance(properties, Mapping):
        raise ConfigError(f"{WHERE}: the server {_shown(name)} must have an object of properties, as {{}}.")
    for key, each in properties.items():
        if is_unfit(str(key)) or (key != "envs" and any(map(is_unfit, strings(each)))):
            raise ConfigError(f"{WHERE}: {_plain(key)} of the server {_shown(name)} {UNFIT}.")
    if name.startswith(_GITHUB):
        _command(name, properties)
        install = properties.get("installCmd")
        if install is not None and not isinstance(install, str):
            raise ConfigError(f"{WHERE}: installCmd of the server {_shown(name)} must be a string.")
    envs = properties.get("envs")
    if envs is None:
        return
    if not isinstance(envs, Mapping):
        raise ConfigError(
            f"{WHERE}: envs of the server {_shown(name)} must be an object of variables and values."
        )
    for variable, value in envs.items():
        if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
            raise ConfigError(
                f"{WHERE}: {_shown(str(variable))} in envs of the server {_shown(name)} is not the name of a variable: "
                "letters, digits and underscores, no digit first."
            )
        if not isinstance(value, str) or is_unfit(value):
            wrong = UNFIT if isinstance(value, str) else "must be a string"
            raise ConfigError(
                f"{WHERE}: the value of {variable} in envs of the server {_shown(name)} {wrong}."
            )


def _check_values(entry: catalog.Entry, properties: Mapping[str, Any]) -> None:
    try:
        entry.values(properties)
    except Unfit as error:
        raise ConfigError(f"{WHERE}: {clean_line(str(error))}") from None


def _command(name: str, properties: Mapping[str, Any]) -> None:
    command = properties.get("runCmd")
    if not isinstance(command, str) or not command.strip():
        raise ConfigError(
            f"{WHERE}: the server {_shown(name)} needs a runCmd that is not empty: the command that starts it."
        )


def _shown(name: str) -> str:
    return repr(_plain(name))


def _plain(name: object) -> str:
    return clean_line(str(name), 60)
