"""Names, descriptions and JSON Schemas of the tools, and the check of a call's arguments.

The limit of one run stands in three places that move together: the schema's maximum, the handler's
default (both here, from ``settings.run_timeout``) and the system prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox_chat.sandbox.base import Capabilities
from sandbox_chat.settings import Settings

SERVER_NAME = "sandbox"
TOOL_PREFIX = f"mcp__{SERVER_NAME}__"
LIST_LIMIT = 500
"""Entries that list_files gives; more is of no use to a model and costs its context."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it. ``read_only``: it changes nothing in the sandbox."""

    name: str
    description: str
    schema: Mapping[str, Any]
    read_only: bool = False

    @property
    def full_name(self) -> str:
        """The name under which the model calls it."""
        return TOOL_PREFIX + self.name


def tool_specs(settings: Settings, can: Capabilities | None = None) -> tuple[ToolSpec, ...]:
    """Return the six tools, with the limits of ``settings`` and of what the sandbox can do in their descriptions."""
    network = "The internet is reachable" if can is not None and can.network else "There is no network"
    seconds = settings.run_timeout
    characters = f"{settings.text_limit:,}"
    image_mb = f"{settings.image_limit / 1e6:g}"
    path = _text("Path in the sandbox; a relative one is under /tmp.")
    return (
        ToolSpec(
            "run_code",
            "Run Python code in the sandbox's persistent shell; use it to compute, analyse, plot and test. Variables and "
            f"imports persist from call to call. Hard limits: {seconds} s a call (split longer work), "
            f"about {characters} characters of output. {network}. Returns [success], [stdout], [stderr], [result] (value of the last "
            "expression), [error], [traceback]; open matplotlib figures come back as pictures.",
            _object(
                {
                    "code": _text("Python code."),
                    "timeout": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": seconds,
                        "default": seconds,
                        "description": "Seconds that the code may run.",
                    },
                },
                ["code"],
            ),
        ),
        ToolSpec(
            "write_file",
            "Write a text file in the sandbox, replacing it if it exists; folders are made. Use it for sources and data "
            "that code reads later. For binary files use run_code.",
            _object({"path": path, "content": _text("The whole text of the file.")}, ["path", "content"]),
        ),
        ToolSpec(
            "read_file",
            f"Read a text file of the sandbox. At most {characters} characters come back, the middle is cut. "
            "Binary files are refused: use read_image for pictures.",
            _object({"path": path}, ["path"]),
            read_only=True,
        ),
        ToolSpec(
            "read_image",
            "Look at a picture in the sandbox, such as a chart that was saved; the user sees it too. "
            f"PNG or JPEG, at most {image_mb} MB.",
            _object({"path": path}, ["path"]),
            read_only=True,
        ),
        ToolSpec(
            "list_files",
            f"List a folder of the sandbox with sizes in bytes, at most {LIST_LIMIT} entries.",
            _object({"path": _text("Folder; /tmp when left out.")}, []),
            read_only=True,
        ),
        ToolSpec(
            "download_file",
            "Copy a file from the sandbox to the user's computer, into their downloads folder. Use it when the user asks "
            f"to have or keep a file. At most {settings.download_limit / 1e6:g} MB. The user is asked before a file of that name is replaced.",
            _object(
                {"path": path, "name": _text("Name to save it under; the file's own when left out.")},
                ["path"],
            ),
        ),
    )


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }


def check_arguments(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments of a call, as a sentence for the model; empty when nothing is."""
    properties: Mapping[str, Mapping[str, Any]] = spec.schema["properties"]
    for name in spec.schema["required"]:
        if name not in arguments:
            return f"The argument {name!r} of {spec.name} is missing."
    for name, value in arguments.items():
        rule = properties.get(name)
        if rule is None:
            return f"{spec.name} has no argument {name!r}; it takes {', '.join(properties)}."
        if rule["type"] == "string" and not isinstance(value, str):
            return f"The argument {name!r} of {spec.name} must be text."
        if rule["type"] == "integer":
            if isinstance(value, bool) or not isinstance(value, int):
                return f"The argument {name!r} of {spec.name} must be a whole number."
            if not rule["minimum"] <= value <= rule["maximum"]:
                return (
                    f"The argument {name!r} of {spec.name} must be from {rule['minimum']} to {rule['maximum']}; "
                    "split longer work into several calls, variables persist."
                )
    return ""
