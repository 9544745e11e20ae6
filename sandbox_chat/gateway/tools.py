"""The tools of all servers as one list: each definition checked, each name clean and unique."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_TOOLS = 1000
"""Tools of one server that are offered."""
_LARGEST = 256 << 10  # characters of a definition
_LONGEST_NAME = 128
_DEEPEST = 100  # levels of a definition: the library writes none that has many more, and then no list at all
_MOST_PARTS = 5000  # objects, lists, and words "true" and "false" of a schema
_LONGEST_LIST = 1000  # of things that cannot be sorted, each of which is compared with each
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


def public(name: str) -> str:
    """Return the name that a tool is offered under: a clean one, or one that is made when nothing of its own is left."""
    if clean(name).strip("_"):
        return clean(name)
    return f"tool_{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def usable(
    tools: Sequence[Any], accepts: Callable[[Mapping[str, Any]], bool], say: Say
) -> list[dict[str, Any]]:
    """Return the definitions that can be offered, and tell ``say`` why each of the others cannot.

    ``accepts`` says whether the library that speaks with the clients takes a definition.
    """
    found: dict[str, dict[str, Any]] = {}
    for raw in tools[:MOST_TOOLS]:
        name = raw.get("name") if isinstance(raw, dict) else None
        if not isinstance(name, str) or (name.isascii() and not clean(name).strip("_")):
            say("a tool without a name is left out")
            continue
        shown = public(name)
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
            for name in _names(clean(server), public(original)):
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
    try:
        if len(json.dumps(raw)) > _LARGEST:
            return None, f"left out, its definition has more than {_LARGEST >> 10} KB"
    except (ValueError, RecursionError):
        return None, "left out, its definition is nested too deep"
    if _too_deep(raw):
        return None, "left out, its definition is nested too deep"
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


def intricate(schema: Any) -> bool:
    """Return whether a schema has so many parts that it would take long to check it."""
    parts = 0
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        inner = list(part.values()) if isinstance(part, Mapping) else part
        parts += 1 + sum(isinstance(each, bool) for each in inner)
        if parts > _MOST_PARTS or (
            isinstance(part, list) and len(part) > _LONGEST_LIST and not _sortable(part)
        ):
            return True
        waiting += [each for each in inner if isinstance(each, (Mapping, list))]
    return False


def _sortable(items: list[Any]) -> bool:
    try:
        sorted(items)
    except TypeError:
        return False
    return True


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        inner = (each.values() if isinstance(each, Mapping) else each for each in level)
        level = [part for parts in inner for part in parts if isinstance(part, (Mapping, list))]
        if not level:
            return False
    return True


def _fault(schema: Any) -> str:
    """What is wrong with a JSON schema of an object; empty when nothing is."""
    from jsonschema import FormatChecker
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "is not that of an object"
    if intricate(schema):
        return "has too many parts"
    try:  # without formats: patterns are those of JavaScript, which are not all Python's
        kind = validator_for(schema, default=Draft202012Validator)
        kind.check_schema(schema, format_checker=FormatChecker(()))
    except SchemaError as error:
        return f"is not valid ({error.message[:100]})"
    except RecursionError:
        return "is nested too deep"
    except Exception as error:  # what a schema of its own kind makes the library do
        return f"cannot be checked ({type(error).__name__})"
    return ""
