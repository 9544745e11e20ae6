"""JSON schemas of tools: which can be offered, and the check of a call's arguments. A schema is a stranger's: nothing
in one makes a check slow or endless."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from sandbox_chat.gateway.tools import intricate

SCHEMA_LIMIT = 100_000
"""Characters of the largest schema that is offered."""
DEPTH_LIMIT = 60
"""How deep a schema may be nested."""
SECONDS = 0.25
"""Time of the processor that one check of arguments takes at most."""
COMPARED = 500
"""Elements of the longest list that are compared with each other."""
_COMBINED = ("oneOf", "anyOf", "allOf")
_DATA = frozenset({"enum", "const", "default", "examples"})
"""Words whose values are data and no schemas."""
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of arguments that endpoints take."""
_LEFT = ("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "format")
"""Words of a schema that are left to the server."""
_VALUE_LIMIT = 300
"""Characters of what a message repeats."""


class SchemaError(Exception):
    """A schema cannot be offered. The message says why."""


def offered(schema: Any) -> dict[str, Any]:
    """Return a tool's schema as it is offered. Raises ``SchemaError``.

    Endpoints refuse a request as a whole when one schema is not to their liking, so such a schema loses its tool here.
    """
    if schema is None:
        raise SchemaError("it has no schema")
    if not isinstance(schema, Mapping):
        raise SchemaError("its schema is not an object")
    if _too_deep(schema):
        raise SchemaError(f"its schema is nested more than {DEPTH_LIMIT} levels deep")
    size = len(json.dumps(schema, ensure_ascii=False, default=str))
    if size > SCHEMA_LIMIT:
        raise SchemaError(f"its schema has {size:,} characters, more than {SCHEMA_LIMIT:,}")
    if intricate(schema):
        raise SchemaError("its schema has too many parts")
    found = {"type": "object", **schema}
    if found["type"] != "object":
        raise SchemaError("its schema is not one of an object")
    anchors = set(_anchors(found))
    for reference in _references(found):
        if not _resolves(reference, found, anchors):
            raise SchemaError(f"its schema refers to {reference[:60]!r}, which is not in it")
    found = _renewed(found)
    _check(found)
    found = _flat(found)
    properties = found.get("properties", {})
    for name in properties:
        if not _KEY.fullmatch(name):
            raise SchemaError(f"it has an argument with the name {name[:60]!r}")
    return found


def _too_deep(schema: Any) -> bool:
    level = [schema]
    for _ in range(DEPTH_LIMIT):
        level = [item for each in level for item in _within(each)]
        if not level:
            return False
    return True


def _within(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [item for item in value.values() if isinstance(item, Mapping | list)]
    return [item for item in value if isinstance(item, Mapping | list)]


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            yield each
        waiting += _within(each)


def _references(schema: Any) -> Iterator[str]:
    for part in _parts(schema):
        for word in ("$ref", "$dynamicRef"):
            if isinstance(reference := part.get(word), str):
                yield reference


def _anchors(schema: Any) -> Iterator[str]:
    for part in _parts(schema):
        for word in ("$anchor", "$dynamicAnchor", "$id", "id"):
            if isinstance(anchor := part.get(word), str):
                yield anchor


def _resolves(reference: str, schema: Mapping[str, Any], anchors: set[str]) -> bool:
    if reference in ("#", "#/"):
        return True
    if not reference.startswith("#"):
        return False
    if not reference.startswith("#/"):
        return reference in anchors or reference[1:] in anchors
    from urllib.parse import unquote

    at: Any = schema
    for step in reference[2:].split("/"):
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(at, Mapping) and key in at:
            at = at[key]
        elif isinstance(at, list) and _is_index(key) and int(key) < len(at):
            at = at[int(key)]
        else:
            return False
    return isinstance(at, Mapping | bool)


def _is_index(key: str) -> bool:
    return key.isascii() and key.isdecimal() and len(key) < 6


def _renewed(value: Any) -> Any:
    """Return a schema with what older drafts say otherwise in the words of the newest, which endpoints want."""
    if isinstance(value, list):
        return [_renewed(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    found = {key: item if key in _DATA else _renewed(item) for key, item in value.items()}
    if isinstance(found.get("items"), list):
        found["prefixItems"] = found.pop("items")
        if "additionalItems" in found:
            found["items"] = found.pop("additionalItems")
    for word, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(flag := found.get(word), bool):
            del found[word]
            if flag and limit in found:
                found[word] = found.pop(limit)
    return found


def _check(schema: Mapping[str, Any]) -> None:
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.exceptions import SchemaError as Wrong

    try:  # without formats: patterns are those of JavaScript, which are not all Python's
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(()))
    except Wrong as error:
        where = "/".join(str(step) for step in error.absolute_path)
        raise SchemaError(f"its schema is not valid at {where or 'its top'}") from None
    except Exception:  # whatever a stranger's schema makes the library do
        raise SchemaError("its schema cannot be read") from None


def _flat(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without alternatives at its top, which endpoints refuse; their properties are taken into it.

    What they ask for is not lost: the server itself still asks for it.
    """
    if not any(word in schema for word in _COMBINED):
        return schema
    found = {key: value for key, value in schema.items() if key not in _COMBINED}
    properties: dict[str, Any] = {}
    for word in _COMBINED:
        for branch in schema.get(word, ()):
            if isinstance(branch, Mapping) and isinstance(branch.get("properties"), Mapping):
                for name, rule in branch["properties"].items():
                    properties.setdefault(name, rule)
    found["properties"] = {**properties, **found.get("properties", {})}
    if properties:
        found.pop("additionalProperties", None)
        found.pop("unevaluatedProperties", None)
    return found


class _TooMuch(Exception):
    """A check took too long."""


def wrong_arguments(tool: str, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments of a call, as a sentence for the model; empty when nothing is.

    Patterns are left to the server: they may be written so that a check of them never ends. So is all that takes longer
    than ``SECONDS``.
    """
    from jsonschema.exceptions import best_match

    try:
        error = best_match(_checker(schema).iter_errors(arguments))
    except Exception:  # what cannot be checked here is checked by the server
        return ""
    if error is None:
        return ""
    where = ".".join(str(step) for step in error.absolute_path)
    place = f"The argument {where!r} of {tool} is" if where else f"The arguments of {tool} are"
    expected = json.dumps(error.validator_value, ensure_ascii=False, default=str)
    return (
        f"{place} not as its schema says: {_short(error.message)}. "
        f"Expected is {_short(f'{error.validator}: {expected}')}."
    )


def _checker(schema: Mapping[str, Any]) -> Any:
    """Return what checks arguments against ``schema``: it raises ``_TooMuch`` when it takes too long, and fetches nothing."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend
    from referencing import Registry

    rules = dict(Draft202012Validator.VALIDATORS)
    end = time.thread_time() + SECONDS

    def look() -> None:
        if time.thread_time() > end:
            raise _TooMuch

    def timed(rule: Any) -> Any:
        def check(*given: Any) -> Any:
            look()
            return rule(*given)

        return check

    def only_names(validator: Any, rule: Any, instance: Any, schema: Any) -> Any:
        return (
            ()
            if "patternProperties" in schema
            else rules["additionalProperties"](validator, rule, instance, schema)
        )

    def few(validator: Any, rule: Any, instance: Any, schema: Any) -> Any:
        return () if len(instance) > COMPARED else rules["uniqueItems"](validator, rule, instance, schema)

    def nothing(*_: Any) -> Any:
        return ()

    changed = dict.fromkeys(_LEFT, nothing) | {"additionalProperties": only_names, "uniqueItems": few}
    kind: Any = extend(Draft202012Validator, {name: timed(rule) for name, rule in (rules | changed).items()})
    descend, evolve = kind.descend, kind.evolve

    def timed_descend(self: Any, *given: Any, **named: Any) -> Any:
        look()
        return descend(self, *given, **named)

    def timed_evolve(self: Any, **changes: Any) -> Any:
        look()
        part = changes.get("schema")
        if (
            isinstance(part, Mapping) and "$schema" in part
        ):  # it would be checked by the rules of another draft
            changes["schema"] = {name: value for name, value in part.items() if name != "$schema"}
        return evolve(self, **changes)

    kind.descend, kind.evolve = timed_descend, timed_evolve
    return kind(schema, registry=Registry())


def _short(text: str) -> str:
    return text if len(text) <= _VALUE_LIMIT else text[: _VALUE_LIMIT - 1] + "…"
