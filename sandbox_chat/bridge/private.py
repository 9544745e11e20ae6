"""Personal data on the way between code and tools: hidden from the sandbox, put back only where the user allows it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from sandbox_chat.mcp import catalog
from sandbox_chat.mcp.base import ServerConfig, ToolDefinition
from sandbox_chat.settings import ConfigError, Settings
from sandbox_chat.vault import Vault

log = logging.getLogger(__name__)


class Private:
    """The vault of a session, as code mode uses it. Raises ``ConfigError`` when ``pii_reveal`` is not as it must be."""

    def __init__(self, vault: Vault, settings: Settings) -> None:
        self._vault = vault
        self._reveal: dict[tuple[str, str], list[str]] = {}
        for word in settings.pii_reveal:
            parts = word.split("/")
            if len(parts) != 3 or not all(parts):
                raise ConfigError(
                    f"pii_reveal: {word!r} must be of the form server/tool/argument, as in mail/send/to."
                )
            self._reveal.setdefault((parts[0], parts[1]), []).append(parts[2])

    def shows(self, config: ServerConfig, tool: ToolDefinition) -> Sequence[str]:
        """Return the arguments of a tool in which tokens become real values.

        None of a server in the sandbox, nor of one whose results or files code could read the values from.
        """
        names: list[str] = []
        for server in {config.name, tool.server}:
            for each in {tool.name, tool.original}:
                names += self._reveal.get((server, each), [])
        if names and reads_back(config):
            log.warning(
                "personal data is not put back for the server %s: code could read it from there", config.name
            )
            return ()
        return tuple(dict.fromkeys(names))

    def note(self, names: Sequence[str]) -> str:
        """Return what the user is told where they are asked about such a call."""
        return f"Tokens in {', '.join(names)} are sent as the personal data that they stand for."

    def revealed(self, arguments: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Return arguments with the real values in those of ``names``."""
        return {
            name: self._vault.reveal_json(value) if name in names else value
            for name, value in arguments.items()
        }

    async def hidden(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments as they are shown and recorded."""
        hidden: dict[str, Any] = await asyncio.to_thread(self._vault.hide_json, dict(arguments))
        return hidden

    async def safe(self, text: str, *, strict: bool) -> str:
        """Return a text for the sandbox. ``strict``: the server has got real values, and may have written them in any way."""
        return str((await self.safe_value({"value": text}, strict=strict))["value"])

    async def safe_value(self, answer: dict[str, Any], *, strict: bool) -> dict[str, Any]:
        """Return a result for the sandbox; bytes are passed on as they are, but not by a server that has got real values."""
        if not strict:
            return await asyncio.to_thread(self._hide, answer)
        found, findings = await asyncio.to_thread(self._vault.guard_json, _without_bytes(answer))
        for finding in findings:
            log.warning("personal data came back from a tool: %s, %s", finding.kind, finding.how)
        return dict(found)

    def _hide(self, answer: dict[str, Any]) -> dict[str, Any]:
        if "parts" not in answer:
            return {**answer, "value": self._vault.hide_json(answer.get("value"))}
        parts = [
            {"text": self._vault.hide(part["text"])} if "text" in part else part for part in answer["parts"]
        ]
        return {**answer, "parts": parts}


def _without_bytes(answer: dict[str, Any]) -> dict[str, Any]:
    if "parts" not in answer:
        return answer
    withheld = {"text": "(bytes are withheld: the server has got personal data)"}
    return {**answer, "parts": [part if "text" in part else withheld for part in answer["parts"]]}


def reads_back(config: ServerConfig) -> bool:
    """Whether code may read back what it gives a server: one in the sandbox, or any of the catalogue.

    All of those keep what they are given, repeat it in their answers, or fetch what is named by it.
    """
    if config.place == "sandbox":
        return True
    words = " ".join(config.command).lower()
    known = {name for entry in catalog.load().values() for name in (entry.package, entry.program) if name}
    return any(name.lower() in words for name in known)
