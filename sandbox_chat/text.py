"""The border control of text: every way by which text comes in, and its bounding.

Text passes here once, at the border, before it becomes an event or a widget's content. Afterwards it holds nothing
that can act on a terminal: what could is made visible, not dropped, so that a reader sees what was there
(``signs.py``). There is one function for each way in:

* ``from_model``: what the model writes: answers, thinking, arguments, names of tools. ``ModelText`` for pieces.
* ``from_tool``: text of a tool's result that no program of ours made.
* ``from_output``: the whole output of a program; ``ansi.Output`` reads it in pieces and keeps its colours.
* ``from_file``: a file's text. ``from_paste``: what the user pastes, from whatever clipboard: terminals give no other way to it.
* ``from_key``: a character that is typed.
* ``from_name``: names and titles: of files, models, sessions. One line.

``clean`` and ``clean_line`` are their core, and serve for words of libraries and of the system.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from sandbox_chat.ansi import settle
from sandbox_chat.signs import clean

__all__ = [
    "ModelText", "bound", "bound_tail", "clean", "clean_line", "from_arguments", "from_file",
    "from_key", "from_model", "from_name", "from_output", "from_paste", "from_tool",
]  # fmt: skip

DEEPEST = 64
"""Levels of a call's arguments that stay data: what is nested a few hundred times can be written, but not everywhere read."""
CONTEXT = 16
"""Characters before a piece that decide how its first ones are read."""
_PICTURE = "\U0001f469"
_LARGE = "[^\x00-\u218f\ue000-\uffff]"
_CUT = re.compile(
    f"(?:\r|(?:\x1b\\[?|\x9b)[0-9;:]{{0,32}}|(?:{_LARGE}\ufe0f?\u200d)*{_LARGE}\ufe0f?\u200d?)\\Z"
)
"""What may go on in the next piece: a newline, a colour, a picture of several characters."""


def from_model(text: str) -> str:
    """Return what the model wrote, clean."""
    return clean(text)


def from_arguments(value: Any, *, deepest: int = DEEPEST) -> Any:
    """Return a tool call's arguments (JSON data) with every text in them clean, names too.

    What lies below ``deepest`` levels becomes a text of JSON.
    """
    if isinstance(value, str):
        return clean(value)
    if not isinstance(value, Mapping | list | tuple):
        return value
    if deepest < 1:
        return _as_json(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): from_arguments(item, deepest=deepest - 1) for key, item in value.items()}
    return [from_arguments(item, deepest=deepest - 1) for item in value]


def _as_json(value: Any) -> str:
    try:
        return clean(json.dumps(value, ensure_ascii=False))
    except (RecursionError, TypeError, ValueError):
        return "[… nested too deeply to be kept …]"


def from_tool(text: str) -> str:
    """Return the text of a tool's result, clean."""
    return settle(text)


def from_output(text: str) -> str:
    """Return the output of a program as it stands in the end: clean, without colours, progress lines settled."""
    return settle(text)


def from_file(text: str) -> str:
    """Return a file's text, clean, without a byte order mark."""
    return clean(text.removeprefix("\ufeff"))


def from_paste(text: str) -> str:
    """Return pasted text, clean. Terminals send a carriage return for a newline."""
    return clean(text.replace("\r\n", "\n").replace("\r", "\n"))


def from_key(character: str, before: str) -> str:
    """Return a character that is typed after ``before``, clean. What is to come may be what a joiner joins to."""
    if character.isascii():
        return clean(character)
    whole = clean(before[-CONTEXT:] + character + _PICTURE)
    return character if whole.endswith(character + _PICTURE) else clean(character)


def from_name(name: str, limit: int = 200) -> str:
    """Return a name or a title, clean, as a single line of at most ``limit`` characters."""
    return clean_line(name, limit)


class ModelText:
    """What the model writes, in pieces that may be cut anywhere: read together they are what ``from_model`` gives.

    What cannot be read before more is known is held back until ``end``: it is a few characters at most.
    """

    def __init__(self) -> None:
        self._before = ""
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what can be shown now."""
        text = self._held + piece
        found = _CUT.search(text, max(0, len(text) - 2 * CONTEXT))
        self._held = found[0] if found is not None else ""
        return self._read(text[: len(text) - len(self._held)])

    def end(self) -> str:
        """Return what was held back; the next piece begins a new text."""
        text = self._read(self._held)
        self._before = self._held = ""
        return text

    def _read(self, text: str) -> str:
        if not text:
            return ""
        before, self._before = self._before, (self._before + text)[-CONTEXT:]
        if text.isascii():
            return clean(text)
        head = clean(before)
        whole = clean(before + text)
        return whole[len(head) :] if whole.startswith(head) else clean(text)


def clean_line(text: str, limit: int = 200) -> str:
    """Return ``text`` cleaned as a single line of at most ``limit`` characters."""
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def bound(text: str, limit: int, *, what: str = "characters") -> str:
    """Return ``text`` cut to about ``limit`` characters: its head and its tail around a line that says what was cut."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}\n[… {len(text) - limit:,} {what} cut out of {len(text):,} …]\n{text[len(text) - tail :]}"


def bound_tail(text: str, limit: int, *, what: str = "characters") -> str:
    """Return the last ``limit`` characters of ``text`` after a line that says what was cut."""
    if len(text) <= limit:
        return text
    return f"[… {len(text) - limit:,} {what} cut out of {len(text):,} …]\n{text[len(text) - limit :]}"
