"""The arguments of a tool call while the model writes them. Pure."""

from __future__ import annotations

import contextlib
import json
import re

from sandbox_chat.text import clean

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:\s*"((?:[^"\\]|\\.)*)', re.DOTALL)
_BROKEN_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u[0-9a-fA-F]{0,3}\Z")


def partial_arguments(draft: str) -> dict[str, str]:
    """Return the text arguments in a piece of JSON that is still being written, as far as they came.

    They are cleaned: an escape in JSON may stand for a control byte. One that is not whole yet is left out.
    """
    found: dict[str, str] = {}
    for match in _STRING.finditer(draft):
        value = _BROKEN_ESCAPE.sub(r"\1", match.group(2))
        with contextlib.suppress(ValueError):  # what is no JSON is shown as it is written
            value = json.loads(f'"{value}"', strict=False)
        found[match.group(1)] = clean(value)
    return found
