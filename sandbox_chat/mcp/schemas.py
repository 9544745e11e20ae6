"""JSON schemas of tools: which can be offered, and the check of a call's arguments. A schema is a stranger's: nothing
in one makes a check slow or endless."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

SCHEMA_LIMIT = 100_000
"""Characters of the largest schema that is offered."""
DEPTH_LIMIT = 60
"""How deep a schema may be nested."""
REFERENCES = 2_000
"""References that one check follows at most."""
_COMBINED = ("oneOf", "anyOf", "allOf")
_DATA = frozenset({"enum", "const", "default", "examples"})
"""Words whose values are data and no schemas."""
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of arguments that endpoints take."""
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
    found = {"type": "object", **schema}
    if found["type"] != "object":
        raise SchemaError("its schema is not one of an object")
    for reference in _references(found):
        if not _resolves(reference, found):
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


def _resolves(reference: str, schema: Mapping[str, Any]) -> bool:
    if reference in ("#", "#/"):
        return True
    if not reference.startswith("#"):
        return False
    if not reference.startswith("#/"):
        anchors = ("$anchor", "$dynamicAnchor", "$id", "id")
        return any(
            part.get(word) in (reference, reference[1:]) for part in _parts(schema) for word in anchors
        )
    from urllib.parse import unquote

    at: Any = schema
    for step in reference[2:].split("/"):
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(at, Mapping) and key in at:
            at = at[key]
        elif isinstance(at, list) and key.isdigit() and int(key) < len(at):
            at = at[int(key)]
        else:
            return False
    return isinstance(at, Mapping | bool)


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
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError as Wrong

    try:
        Draft202012Validator.check_schema(schema)
    except Wrong as error:
        where = "/".join(str(step) for step in error.absolute_path)
        raise SchemaError(f"its schema is not valid at {where or 'its top'}") from None
    except (RecursionError, re.error, TypeError, ValueError):
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
    """A check followed too many references."""


def wrong_arguments(tool: str, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments of a call, as a sentence for the model; empty when nothing is.

    Patterns are left to the server: they may be written so that a check of them never ends.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match
    from jsonschema.validators import extend
    from referencing.exceptions import Unresolvable

    rules = dict(Draft202012Validator.VALIDATORS)
    follow, names = rules["$ref"], rules["additionalProperties"]
    left = REFERENCES

    def counted(validator: Any, reference: Any, instance: Any, schema: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise _TooMuch
        return follow(validator, reference, instance, schema)

    def only_names(validator: Any, rule: Any, instance: Any, schema: Any) -> Any:
        return () if "patternProperties" in schema else names(validator, rule, instance, schema)

    def nothing(*_: Any) -> Any:
        return ()

    changed: dict[str, Any] = dict.fromkeys(
        (
            "pattern",
            "patternProperties",
            "unevaluatedProperties",
            "unevaluatedItems",
            "$dynamicRef",
            "format",
        ),
        nothing,
    )
    changed |= {"$ref": counted, "additionalProperties": only_names}
    checker = extend(Draft202012Validator, changed)(schema)
    try:
        error = best_match(checker.iter_errors(arguments))
    except (_TooMuch, RecursionError, Unresolvable, re.error, TypeError, ValueError):
        return ""  # what cannot be checked here is checked by the server
    if error is None:
        return ""
    where = ".".join(str(step) for step in error.absolute_path)
    place = f"The argument {where!r} of {tool} is" if where else f"The arguments of {tool} are"
    expected = json.dumps(error.validator_value, ensure_ascii=False, default=str)
    return (
        f"{place} not as its schema says: {_short(error.message)}. "
        f"Expected is {_short(f'{error.validator}: {expected}')}."
    )


def _short(text: str) -> str:
    return text if len(text) <= _VALUE_LIMIT else text[: _VALUE_LIMIT - 1] + "…"
