"""The MCP servers of a session: which of them are on, and the one object that holds them all. Starts none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sandbox_chat.events import Sink
from sandbox_chat.settings import Settings
from sandbox_chat.settings_sources import working_folder

if TYPE_CHECKING:
    from sandbox_chat.mcp.base import ServerConfig
    from sandbox_chat.mcp.host import Servers
    from sandbox_chat.sandbox.worker import SandboxWorker


def server_configs(settings: Settings, warnings: list[str]) -> list[ServerConfig]:
    """Return the MCP servers of this machine that are on, after those in the sandbox were checked too.

    ``warnings`` gets what deserves a word. Raises ``ConfigError``.
    """
    from sandbox_chat.mcp.config import load_servers

    if settings.sandbox_mcp:
        from sandbox_chat.mcp import inside

        inside.check(settings)
    return load_servers(settings, os.environ, working_folder(), warnings)


def servers_on(settings: Settings) -> list[str]:
    """Return the names of the MCP servers that are on, as the user knows them and in the order of ``make_servers``.

    All those in the sandbox stand behind one. Raises ``ConfigError``.
    """
    return names_of(server_configs(settings, []), settings)


def names_of(configs: Sequence[ServerConfig], settings: Settings) -> list[str]:
    """Return the names of the servers of ``configs``, and of that which stands for those in the sandbox."""
    names = [config.name for config in configs]
    if settings.sandbox_mcp:
        from sandbox_chat.mcp.inside import NAME

        names.append(NAME)
    return names


def make_servers(
    configs: Sequence[ServerConfig], settings: Settings, worker: SandboxWorker | None, emit: Sink
) -> Servers | None:
    """Return the servers of ``configs`` and those in the sandbox of ``worker``; ``None`` when there are none.

    ``emit`` takes their events; it is called on the loop on which they are begun.
    """
    wanted = list(configs)
    if settings.sandbox_mcp and worker is not None:
        from sandbox_chat.mcp.inside import inside_config

        wanted.append(inside_config(settings, worker))
    if not wanted:
        return None
    from sandbox_chat.mcp.host import Servers

    return Servers(wanted, settings, emit, settings.data_path / "logs" / "mcp")
