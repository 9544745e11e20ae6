"""The arguments of a tool call while the model writes them. Pure."""

from __future__ import annotations

import re

from sandbox_chat.text import clean

_PLAIN = re.compile(r'[^"\\]+')
_SKIP = re.compile(r'[^"{}\[\],:]+')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}
_UNFINISHED = re.compile(r"(?:\r|\x1b\[?[0-9;:]*|\x9b[0-9;:]*|[\ud800-\udbff])\Z")
"""The end of a piece that may mean something else together with what follows."""
_HELD = 64
"""Characters of such an end at most; a longer one is nothing that a terminal knows."""


class _Text:
    """A text argument that grows. What is known of it is cleaned once, piece by piece."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._held = ""

    def add(self, piece: str) -> None:
        piece = self._held + piece
        match = _UNFINISHED.search(piece, max(0, len(piece) - _HELD))
        self._held = match.group() if match is not None else ""
        ready = piece[: len(piece) - len(self._held)]
        if ready:
            self._pieces.append(clean(_paired(ready)))

    def end(self) -> None:
        if self._held:
            self._pieces.append(clean(self._held))
            self._held = ""

    @property
    def text(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""


def _paired(text: str) -> str:
    """Join surrogate pairs: an escape in JSON stands for half a character beyond the first 65,536."""
    if re.search(r"[\ud800-\udbff][\udc00-\udfff]", text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class PartialArguments:
    """Reads a JSON object that comes in pieces, each character once. ``texts`` has its text members as far as they came.

    They are cleaned: an escape in JSON may stand for a control byte. An escape that is not whole yet is left out.
    Members of inner objects are passed over. What is no JSON gives nothing, and never an error.
    """

    def __init__(self, draft: str = "") -> None:
        self._found: dict[str, _Text] = {}
        self._depth = 0
        self._in_string = False
        self._escape = ""  # of the string that is open: a backslash and what came of it
        self._key: str | None = None  # of the member whose value comes
        self._string: _Text | None = (
            None  # the open string: a key or a value; ``None`` inside of inner objects
        )
        self._value_next = False
        self.size = 0
        """Characters that came."""
        self.feed(draft)

    @property
    def texts(self) -> dict[str, str]:
        """The text members in their order."""
        return {key: value.text for key, value in self._found.items()}

    def feed(self, piece: str) -> None:
        """Take a piece."""
        self.size += len(piece)
        at = 0
        while at < len(piece):
            at = self._inside(piece, at) if self._in_string else self._between(piece, at)

    def _between(self, piece: str, at: int) -> int:
        """Take one sign between strings."""
        sign = piece[at]
        if sign == '"':
            self._begin()
        elif sign in "{[":
            self._depth += 1
            self._value_next = False
        elif sign in "}]":
            self._depth -= 1
        elif self._depth == 1 and sign == ":":
            self._value_next = self._key is not None
        elif self._depth == 1 and sign == ",":
            self._key, self._value_next = None, False
        else:
            match = _SKIP.match(piece, at)
            return match.end() if match is not None else at + 1
        return at + 1

    def _begin(self) -> None:
        self._in_string, self._escape, self._string = True, "", None
        if self._depth != 1:
            return
        self._string = _Text()
        if self._value_next and self._key is not None:
            self._found[self._key] = self._string

    def _inside(self, piece: str, at: int) -> int:
        """Take what comes next of an open string."""
        if self._escape:
            return self._escaped(piece, at)
        sign = piece[at]
        if sign == "\\":
            self._escape = sign
            return at + 1
        if sign == '"':
            self._end()
            return at + 1
        match = _PLAIN.match(piece, at)
        assert match is not None
        self._add(match.group())
        return match.end()

    def _escaped(self, piece: str, at: int) -> int:
        sign = piece[at]
        if self._escape == "\\":
            if sign == "u":
                self._escape = "\\u"
            else:
                self._escape = ""
                self._add(_ESCAPES.get(sign, f"\\{sign}"))
            return at + 1
        if sign not in "0123456789abcdefABCDEF":  # no JSON: shown as it is written
            written, self._escape = self._escape, ""
            self._add(written)
            return at
        self._escape += sign
        if len(self._escape) == 6:
            written, self._escape = self._escape, ""
            self._add(chr(int(written[2:], 16)))
        return at + 1

    def _add(self, text: str) -> None:
        if self._string is not None:
            self._string.add(text)

    def _end(self) -> None:
        self._in_string = False
        if self._string is None:
            return
        self._string.end()
        if self._value_next:
            self._value_next, self._key = False, None
        else:
            self._key = self._string.text
        self._string = None
