"""The vocabulary of MCP servers: how one is reached, what its tools are, and what can go wrong."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from sandbox_chat.events import ServerPlace
from sandbox_chat.settings import Secret

Transport = Literal["stdio", "http"]


class McpError(Exception):
    """An MCP server cannot be had, or did not answer. The message is a sentence for the user and the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where an MCP server answers over streamable HTTP. ``headers`` hold its credential."""

    url: str
    headers: Mapping[str, Secret] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """How one MCP server is started or reached.

    A program: ``command`` with its arguments, ``env`` (added to the few variables that every server gets), ``cwd``.
    An address: ``endpoint``. One that is only known when it is needed: ``resolve``, which is awaited at each start.
    Exactly one of the three is given. ``on_call`` is called at each call of a tool. ``start_timeout`` and ``call_timeout`` in seconds, ``None``: as in the settings.
    ``source`` says where it comes from, for people: ``catalogue``, or the path of a file.
    ``hidden`` are further credentials, such as those in the arguments. ``renewed`` is asked at each start for how it is
    started by now: what was installed may have been installed anew, in another folder.
    """

    name: str
    place: ServerPlace = "host"
    command: tuple[str, ...] = ()
    env: Mapping[str, Secret] = field(default_factory=dict)
    cwd: Path | None = None
    endpoint: Endpoint | None = None
    resolve: Callable[[], Awaitable[Endpoint]] | None = None
    on_call: Callable[[], None] | None = None
    start_timeout: float | None = None
    call_timeout: float | None = None
    source: str = ""
    hidden: tuple[Secret, ...] = ()
    renewed: Callable[[], ServerConfig] | None = field(default=None, compare=False, repr=False)

    @property
    def transport(self) -> Transport:
        """How it is spoken to."""
        return "stdio" if self.command else "http"

    def secrets(self) -> list[str]:
        """The values of its variables and headers and its other credentials, to be kept out of logs and messages."""
        headers = self.endpoint.headers if self.endpoint is not None else {}
        return [value.reveal() for value in (*self.env.values(), *headers.values(), *self.hidden) if value]


class Reveals(Protocol):
    """Knows in which arguments tokens that stand for personal data become the data again; see ``bridge/private.py``."""

    def shows(self, config: ServerConfig, tool: ToolDefinition) -> Sequence[str]:
        """Return the names of those arguments of a tool."""

    def note(self, names: Sequence[str]) -> str:
        """Return what the user is told where they are asked about the call."""

    def revealed(self, arguments: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Return arguments as they are sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool of an MCP server as it is offered here.

    ``server`` and ``name`` are those that the model knows (``[A-Za-z0-9_-]``, unique), ``original`` is the server's own
    name of it. ``schema`` is a JSON schema of an object, ``output_schema`` the one of its structured results, if any.
    """

    server: str
    name: str
    original: str
    description: str
    schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    read_only: bool = False

    @property
    def full_name(self) -> str:
        """The name that the agent calls it by."""
        return f"mcp__{self.server}__{self.name}"

    @property
    def fingerprint(self) -> str:
        """The digest of the name, the description and the schema.

        It is a whole one: a server that may choose both definitions finds two with the same few digits.
        """
        said = [self.original, self.description, self.schema, self.output_schema, self.read_only]
        text = json.dumps(said, sort_keys=True, default=str, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()
