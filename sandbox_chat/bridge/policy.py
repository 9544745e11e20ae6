"""What code may call without asking: for each server ``ask``, ``read-only`` (what says that it only reads) or ``free``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from sandbox_chat.mcp.base import ServerConfig, ToolDefinition
from sandbox_chat.settings import ConfigError, Settings

Mode = Literal["ask", "read-only", "free"]
MODES = get_args(Mode)
ALL = "*"


class Policy:
    """The policy of the settings. Raises ``ConfigError`` for words that are none."""

    def __init__(self, settings: Settings) -> None:
        self._modes: dict[str, str] = {}
        for word in settings.code_mode_policy:
            server, sign, mode = word.rpartition("=")
            if not sign or not server or mode not in MODES:
                raise ConfigError(
                    f"code_mode_policy: {word!r} must be of the form server={'|'.join(MODES)}, as in git=read-only "
                    "or *=ask."
                )
            self._modes[server] = mode

    def check(self, servers: Sequence[str]) -> None:
        """Raise ``ConfigError`` when a server is named that is not on."""
        for name in self._modes:
            if name != ALL and name not in servers:
                there = ", ".join(servers) or "none"
                raise ConfigError(
                    f"code_mode_policy: no MCP server {name!r} is on in this session; there are {there}."
                )

    def is_free(self, config: ServerConfig, tool: ToolDefinition) -> bool:
        """Whether code may call the tool without asking."""
        mode = self._modes.get(config.name) or self._modes.get(tool.server) or self._modes.get(ALL, "ask")
        return mode == "free" or (mode == "read-only" and tool.read_only)
