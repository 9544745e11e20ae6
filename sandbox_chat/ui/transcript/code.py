"""Highlighted code: lexed once per complete line, wrapped once per width."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from sandbox_chat.text import clean

from .cells import Row, Run, expand_tabs, wrap_code

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from textual.strip import Strip

    from .palette import Palette

MAX_HIGHLIGHT = 20_000
"""Characters of one piece of code that are highlighted; lexing more would hold up the terminal's loop."""

HEAD = 1000
"""Characters of the first line that are lexed for a folded call: wider is no screen."""

_RELEX = 4_000
"""While code is being written: characters before the end from which it is lexed again at most."""

PREFIX = Run(" ", ("block",))
"""The margin at the left of code."""

# Pygments' token types, the longest name that fits wins.
_TOKENS = {
    "Keyword": "keyword",
    "Keyword.Constant": "constant",
    "Operator.Word": "keyword",
    "Operator": "operator",
    "Literal.String": "string",
    "Literal.String.Interpol": "builtin",
    "Literal.Number": "number",
    "Comment": "comment",
    "Name.Function": "function",
    "Name.Class": "class",
    "Name.Exception": "class",
    "Name.Builtin": "builtin",
    "Name.Decorator": "decorator",
    "Name.Tag": "keyword",
    "Name.Attribute": "function",
    "Name.Constant": "constant",
    "Generic.Inserted": "inserted",
    "Generic.Deleted": "deleted",
    "Generic.Error": "error",
    "Generic.Traceback": "error",
    "Generic.Heading": "keyword",
    "Generic.Subheading": "keyword",
}
_COMMON = ("python", "pytb", "bash", "json", "javascript", "sql", "html", "yaml", "toml", "diff")


@lru_cache(maxsize=64)
def lexer_for(language: str) -> Lexer | None:
    """Return the lexer of a fence's language, ``None`` for plain or unknown ones."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    name = language.strip().lower()
    if not re.fullmatch(r"[\w+#.-]{1,40}", name) or name in ("text", "plain", "plaintext", "none"):
        return None
    try:
        lexer: Lexer = get_lexer_by_name(name, stripnl=False, stripall=False, ensurenl=True)
    except (ClassNotFound, ImportError):
        return None
    return lexer


def warm_lexers() -> None:
    """Load the lexers of common languages. Meant for a thread: the first use of one costs up to 80 ms."""
    for name in _COMMON:
        lexer = lexer_for(name)
        if lexer is not None:
            list(lexer.get_tokens("x = 1\n"))


@lru_cache(maxsize=512)
def _token_style(name: str) -> tuple[str, ...]:
    while name:
        found = _TOKENS.get(name)
        if found is not None:
            return (f"tok-{found}",)
        name = name.rpartition(".")[0]
    return ()


def highlight(code: str, language: str) -> list[list[Run]]:
    """Return the lines of ``code`` as runs; plain when the language is unknown or the code too long."""
    lexer = lexer_for(language) if language and len(code) <= MAX_HIGHLIGHT else None
    if lexer is None:
        return [[Run(line)] if line else [] for line in code.split("\n")]
    lines: list[list[Run]] = [[]]
    for kind, value in lexer.get_tokens(code):
        names = _token_style(str(kind).removeprefix("Token."))
        first, *rest = value.split("\n")
        if first:
            lines[-1].append(Run(first, names))
        for part in rest:
            lines.append([Run(part, names)] if part else [])
    wanted = code.count("\n") + 1
    del lines[wanted:]  # the lexer makes sure of a newline at the end
    lines.extend([] for _ in range(wanted - len(lines)))
    return lines


class CodeRows:
    """Code that may still grow, its highlighting and its rows.

    ``update`` may be called with any text; when the new one begins with the old one, only what was added
    is lexed, together with a little before it. ``closed`` code is lexed as a whole once more, because
    a token may reach over lines, but only when its rows are wanted: a folded call shows one line.
    """

    def __init__(self, language: str = "") -> None:
        self.language = language
        self._code = ""
        self._closed = False
        self._due = False  # the whole is still to be lexed
        self._lines: list[list[Run]] = [[]]
        self._good = 0  # lines before this one are lexed and not touched again while the code grows
        self._key: tuple[object, ...] = ()
        self._strips: list[Strip] = []
        self._strip_ends: list[int] = []  # number of strips up to the end of each line
        self._changed = 0  # first line that changed since the strips were made

    @property
    def text(self) -> str:
        """The code, as shown."""
        return self._code

    @property
    def line_count(self) -> int:
        """Number of lines."""
        return self._code.count("\n") + 1

    def update(self, code: str, *, closed: bool = True) -> None:
        """Take the whole code as it is now."""
        code = expand_tabs(clean(code)).rstrip("\n") if closed else expand_tabs(clean(code))
        if code == self._code and closed == self._closed:
            return
        self._due = closed
        if not closed:
            if self._closed or not code.startswith(self._code):
                self._good = 0
            self._grow(code)
        self._code, self._closed = code, closed

    def _lex(self) -> None:
        """Lex the whole, if that is still to be done."""
        if not self._due:
            return
        self._due = False
        lines = highlight(self._code, self.language)
        same = 0
        for old, new in zip(self._lines, lines, strict=False):
            if old != new:
                break
            same += 1
        self._lines = lines
        self._changed = min(self._changed, same)

    def _grow(self, code: str) -> None:
        """Lex the new complete lines; the line that is being written stays plain."""
        head, newline, last = code.rpartition("\n")
        plain_last = [Run(last)] if last else []
        if not newline:
            self._lines = [plain_last]
            self._changed = 0
            return
        lines = head.split("\n")
        start = min(self._good, len(lines))
        known = len(self._lines) - 1
        if len(lines) > known or start == 0:
            fresh = highlight("\n".join(lines[start:]), self.language if len(head) <= MAX_HIGHLIGHT else "")
            same = start
            for old, new in zip(self._lines[start:known], fresh, strict=False):
                if old != new:
                    break
                same += 1
            self._lines = [*self._lines[:start], *fresh]
            self._changed = min(self._changed, same)
        else:
            self._lines = self._lines[:known]
            self._changed = min(self._changed, known)
        self._lines.append(plain_last)
        self._advance(lines)

    def _advance(self, lines: list[str]) -> None:
        """Move the point from which is lexed again: to the last line that surely begins a statement."""
        size = 0
        for index in range(len(lines) - 1, self._good, -1):
            size += len(lines[index]) + 1
            line = lines[index]
            top = bool(line) and not line[0].isspace() and line[0] not in ")]}\"'"
            if (size > _RELEX // 4 and top) or size > _RELEX:
                self._good = index
                return

    def tail(self, width: int, count: int) -> list[Row]:
        """Return the last ``count`` rows that hold something, of at most ``width`` cells, without margin."""
        self._lex()
        found: list[Row] = []
        for line in reversed(self._lines):
            found = [*(row for row in wrap_code(line, width) if row), *found]
            if len(found) >= count:
                break
        return found[-count:]

    def head(self) -> list[Run]:
        """Return the first line that holds something."""
        line = next((line for line in self._code.split("\n") if line.strip()), "")
        return highlight(line[:HEAD], self.language)[0]

    def strips(self, width: int, palette: Palette, prefix: tuple[Run, ...] = ()) -> list[Strip]:
        """Return the rows as strips of ``width`` cells after ``prefix``; unchanged lines are kept."""
        self._lex()
        key = (width, palette.version, prefix)
        if key != self._key:
            self._key, self._strips, self._strip_ends = key, [], []
            self._changed = 0
        keep = min(self._changed, len(self._strip_ends))
        del self._strip_ends[keep:]
        del self._strips[self._strip_ends[-1] if self._strip_ends else 0 :]
        room = width - sum(len(run.text) for run in prefix) - 2
        for line in self._lines[keep:]:
            for row in wrap_code(line, room):
                inner = [PREFIX, *(run._replace(names=("block", *run.names)) for run in row)]
                self._strips.append(palette.strip([*prefix, *inner], width, ("block",)))
            self._strip_ends.append(len(self._strips))
        self._changed = len(self._lines)
        return self._strips
