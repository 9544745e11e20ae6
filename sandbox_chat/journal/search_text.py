"""What of a session can be searched: prompts, answers, code and output, turn by turn, as text.

The record is read line by line, and only the lines that hold such text are decoded: most of a long record are pieces
that a later event holds as a whole. What is very long is taken in part.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from sandbox_chat.text import clean, clean_line

COLUMNS = ("prompt", "answer", "code", "output")
"""The kinds of text of a turn, in the order in which a place is looked for."""

PROMPT_LIMIT = 20_000
ANSWER_LIMIT = 100_000
CODE_LIMIT = 60_000
OUTPUT_LIMIT = 40_000
"""Characters of one turn that are taken of each kind."""
OUTPUT_HEAD, OUTPUT_TAIL = 6_000, 2_000
"""Characters of one result that are taken: from its beginning and from its end."""
TITLE_LIMIT = 200
LINE_LIMIT = 16 << 20
"""Bytes of the longest line that is read; a longer one is no event of ours."""
PIECES_LIMIT = 8 * ANSWER_LIMIT
"""Bytes of pieces of an answer that are kept while its whole has not come."""

_HEAD = re.compile(rb'[\0 \t]*\{"type":"([a-z_]{1,40})"')
_WANTED = frozenset(
    (
        b"turn_started", b"text_delta", b"text", b"tool_started", b"tool_finished", b"retry", b"nested_started", b"nested_finished", b"steered",
        b"session_renamed", b"turn_finished",
    )
)  # fmt: skip


@dataclass(slots=True)
class TurnText:
    """The text of one turn. ``number`` counts from 1, ``offset`` is the place of its first byte in the record."""

    number: int
    offset: int
    prompt: str = ""
    answer: str = ""
    code: str = ""
    output: str = ""

    def columns(self) -> tuple[str, str, str, str]:
        """Return the texts in the order of ``COLUMNS``."""
        return self.prompt, self.answer, self.code, self.output

    @property
    def size(self) -> int:
        """Characters in all."""
        return sum(map(len, self.columns()))


class SessionText:
    """Reads the turns of a record from the byte ``offset`` on, which is the beginning of turn ``turns + 1``.

    Afterwards ``end`` is the place behind the last whole line that was read, and ``title`` what the session was
    renamed to on the way (``None``: it was not).
    """

    def __init__(self, path: Path, *, offset: int = 0, turns: int = 0) -> None:
        self.path = path
        self.end = offset
        self.title: str | None = None
        self._turns = turns
        self._turn: _Growing | None = None

    def turns(self) -> Iterator[TurnText]:
        """Yield each turn when it is known to be whole, the last one at the end. Raises ``OSError``."""
        with self.path.open("rb") as file:
            file.seek(self.end)
            for place, line in self._lines(file):
                kind = _kind(line)
                if kind not in _WANTED:
                    continue
                if kind == b"text_delta":
                    if self._turn is not None:
                        self._turn.piece(line)
                    continue
                event = _decoded(line)
                if event is None:
                    continue
                if kind == b"turn_started":
                    if self._turn is not None:
                        yield self._turn.whole()
                    self._turns += 1
                    self._turn = _Growing(self._turns, place, event)
                elif kind == b"session_renamed":
                    self.title = clean_line(_text(event, "title"), TITLE_LIMIT)
                elif self._turn is not None:
                    self._turn.take(kind, event)
        if self._turn is not None:
            turn, self._turn = self._turn, None
            yield turn.whole()

    def _lines(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        """Yield whole lines with their places; one that is still being written, or was cut, is left for later."""
        while line := file.readline(LINE_LIMIT):
            place = self.end
            whole = line.endswith(b"\n")
            size = len(line)
            while not whole:
                more = file.readline(LINE_LIMIT)
                if not more:
                    return
                size += len(more)
                whole = more.endswith(b"\n")
                line = b""
            self.end = place + size
            if line:
                yield place, line


class _Growing:
    """The text of a turn while its events are read."""

    def __init__(self, number: int, offset: int, event: Mapping[str, Any]) -> None:
        self._turn = TurnText(number, offset)
        self._prompt = _Bounded(PROMPT_LIMIT)
        self._answer = _Bounded(ANSWER_LIMIT)
        self._code = _Bounded(CODE_LIMIT)
        self._output = _Bounded(OUTPUT_LIMIT)
        self._pieces: list[bytes] = []
        self._pieces_size = 0
        self._prompt.add(_text(event, "prompt"))

    def piece(self, line: bytes) -> None:
        """Keep a piece of the answer as it stands: its whole is likely to come."""
        if self._pieces_size < PIECES_LIMIT:
            self._pieces.append(line)
            self._pieces_size += len(line)

    def take(self, kind: bytes, event: Mapping[str, Any]) -> None:
        match kind:
            case b"text":
                self._drop_pieces()
                self._answer.add(_text(event, "text"))
            case b"retry":
                self._drop_pieces()
            case b"steered":
                self._prompt.add(_text(event, "prompt"))
            case b"nested_started":
                self._code.add(_text(event, "name"))
                self._arguments(event.get("input"))
            case b"tool_started":
                self._settle_pieces()
                self._arguments(event.get("input"))
            case b"tool_finished" | b"nested_finished":
                content = event.get("content")
                for part in content if isinstance(content, list) else ():
                    if isinstance(part, dict) and part.get("type", "text") == "text":
                        self._output.add(_ends(_text(part, "text")))
            case b"turn_finished":
                self._settle_pieces()

    def whole(self) -> TurnText:
        self._settle_pieces()
        turn = self._turn
        turn.prompt, turn.answer = self._prompt.text, self._answer.text
        turn.code, turn.output = self._code.text, self._output.text
        return turn

    def _arguments(self, arguments: object) -> None:
        if isinstance(arguments, dict):
            for value in arguments.values():
                if isinstance(value, str):
                    self._code.add(value)

    def _drop_pieces(self) -> None:
        self._pieces.clear()
        self._pieces_size = 0

    def _settle_pieces(self) -> None:
        """The whole of these pieces did not come: they are all that there is of the answer."""
        pieces = [event for line in self._pieces if (event := _decoded(line)) is not None]
        self._drop_pieces()
        self._answer.add("".join(_text(event, "text") for event in pieces))


class _Bounded:
    """Gathers texts up to a number of characters, clean."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._parts: list[str] = []

    def add(self, text: str) -> None:
        if self._left > 0 and text:
            self._parts.append(clean(text[: self._left]))
            self._left -= len(text) + 1

    @property
    def text(self) -> str:
        return "\n".join(self._parts)


def _kind(line: bytes) -> bytes:
    found = _HEAD.match(line)
    if found is not None:
        return found[1]
    event = _decoded(line) if b'"type"' in line else None  # of a program that writes another order
    return _text(event, "type").encode("utf-8", "replace") if event is not None else b""


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line.strip(b"\0 \t\r\n"))
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _text(event: Mapping[str, Any], name: str) -> str:
    value = event.get(name)
    return value if isinstance(value, str) else ""


def _ends(text: str) -> str:
    if len(text) <= OUTPUT_HEAD + OUTPUT_TAIL:
        return text
    return f"{text[:OUTPUT_HEAD]}\n{text[-OUTPUT_TAIL:]}"


def agent_ids(path: Path) -> set[str]:
    """Return the ids under which the agent keeps its own record of a session, beside the session's. Never raises.

    Files and folders of these names are removed with the session, and a record is not trusted: so only what is an id.
    """
    found: set[str] = set()
    try:
        with path.open("rb") as file:
            while line := file.readline(LINE_LIMIT):
                if _kind(line) in (b"cleared", b"session_forked") and (event := _decoded(line)) is not None:
                    if _kind(line) == b"session_forked":
                        found.clear()  # those before are of the session that it comes from
                    found.add(_text(event, "agent_id"))
    except OSError:
        return set()
    return {name for name in found if _is_id(name)}


def _is_id(name: str) -> bool:
    """Whether ``name`` is a UUID as it is always written, and so no name that anything else has."""
    try:
        return str(uuid.UUID(name)) == name
    except ValueError:
        return False
