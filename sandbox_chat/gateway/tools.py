"""The tools of all servers as one list: each definition checked, each name clean and unique."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_TOOLS = 1000
"""Tools of one server that are offered."""
_LARGEST = 256 << 10  # characters of a definition
_LONGEST_NAME = 128
_UNCLEAN = re.compile(r"[^A-Za-z0-9_.-]+")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Offered:
    """A tool as clients see it: ``definition`` has its public name, ``original`` is what its server calls it."""

    server: str
    original: str
    definition: Mapping[str, Any]


def clean(name: str) -> str:
    """Return a name with nothing but letters of ASCII, digits, ``_``, ``.`` and ``-``."""
    return _UNCLEAN.sub("_", name)[:_LONGEST_NAME]


def usable(
    tools: Sequence[Any], accepts: Callable[[Mapping[str, Any]], bool], say: Say
) -> list[dict[str, Any]]:
    """Return the definitions that can be offered, and tell ``say`` why each of the others cannot.

    ``accepts`` says whether the library that speaks with the clients takes a definition.
    """
    found: dict[str, dict[str, Any]] = {}
    for raw in tools[:MOST_TOOLS]:
        name = raw.get("name") if isinstance(raw, dict) else None
        if not isinstance(name, str) or not clean(name).strip("_"):
            say("a tool without a name is left out")
            continue
        shown = clean(name)
        if name in found:
            say(f"the tool {shown} is there twice; the first is kept")
            continue
        definition, fault = _definition(raw, accepts)
        if fault:
            say(f"the tool {shown}: {fault}")
        if definition is not None:
            found[name] = definition
    if len(tools) > MOST_TOOLS:
        say(f"of {len(tools):,} tools the first {MOST_TOOLS:,} are offered")
    return list(found.values())


def merged(lists: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Offered]:
    """Return all tools by their public names.

    The first server by name keeps a name that several have; the others' become ``<server>_<tool>``.
    """
    offered: dict[str, Offered] = {}
    for server in sorted(lists):
        for definition in lists[server]:
            original = definition["name"]
            for name in _names(clean(server), clean(original)):
                if name not in offered:
                    offered[name] = Offered(server, original, {**definition, "name": name})
                    break
    return offered


def _names(server: str, tool: str) -> Iterator[str]:
    yield tool
    yield f"{server}_{tool}"[:_LONGEST_NAME]
    for number in range(2, 2 * MOST_TOOLS):
        ending = f"_{number}"
        yield f"{server}_{tool}"[: _LONGEST_NAME - len(ending)] + ending


def _definition(
    raw: dict[str, Any], accepts: Callable[[Mapping[str, Any]], bool]
) -> tuple[dict[str, Any] | None, str]:
    """What is offered of a tool, and what is wrong with it."""
    schema = raw.get("inputSchema")
    schema = {"type": "object"} if schema is None else schema
    if isinstance(schema, dict) and "type" not in schema:
        schema = {"type": "object", **schema}
    fault = _fault(schema)
    if fault:
        return None, f"left out, its schema {fault}"
    definition = {**raw, "inputSchema": schema}
    complaint = ""
    results = definition.pop("outputSchema", None)
    if results is not None:
        fault = _fault(results)
        if fault:
            complaint = f"the schema of its results {fault}, and is left out"
        else:
            definition["outputSchema"] = results
    try:
        if len(json.dumps(definition)) > _LARGEST:
            return None, f"left out, its definition has more than {_LARGEST >> 10} KB"
    except (ValueError, RecursionError):
        return None, "left out, its definition is nested too deep"
    if accepts(definition):
        return definition, complaint
    description = raw.get("description")
    least = {
        "name": raw["name"],
        "inputSchema": schema,
        **({"description": description} if isinstance(description, str) else {}),
    }
    if accepts(least):
        return least, "its definition is not valid; only name, description and schema are offered"
    return None, "left out, its definition is not valid"


def _fault(schema: Any) -> str:
    """What is wrong with a JSON schema of an object; empty when nothing is."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "is not that of an object"
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return f"is not valid ({error.message[:100]})"
    except RecursionError:
        return "is nested too deep"
    except Exception as error:  # what a schema of its own kind makes the library do
        return f"cannot be checked ({type(error).__name__})"
    return ""
