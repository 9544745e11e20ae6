"""Highlighting of code by Pygments: whole pieces, and lexing that goes on where it stopped.

Private parts of a library are used here: ``RegexLexer._tokens``, the tables of a lexer's states. Pygments takes a
stack of states at the start of lexing, but does not give it back at the end. To be removed when it does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sandbox_chat.ui.transcript.cells import Run

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MAX_HIGHLIGHT = 100_000
"""Characters of one piece of code that are highlighted; what stands behind is plain."""

MAX_PART = 8_000
"""Characters that are lexed on the terminal's loop in one go, while code comes; more at once stays plain for now."""

LOOP_SECONDS = 0.1
"""Time of the processor that lexing takes on the terminal's loop at most. Ordinary code takes a tenth of it; some
lexers take the square of the length of an odd line."""
THREAD_SECONDS = 3.0
"""The same in a thread."""

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
_SAMPLE = [
    "def f(x): # 1",
    "    return \"a\" + f'{x:>2}' + 1.5",
    "{ key: [1, true] } /* b */ <p>",
    "SELECT a FROM b;",
    "import c.d as e",
]
"""Code that takes a lexer through its usual states."""
_COMMON = ("python", "pytb", "bash", "json", "javascript", "sql", "html", "yaml", "toml", "diff")

Line = tuple[Run, ...]
"""The runs of one line of code; their ``at`` counts from the line's start."""


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
            Lexing(name).add(_SAMPLE)


@lru_cache(maxsize=1024)
def _style(kind: Any) -> tuple[str, ...]:
    name = str(kind).removeprefix("Token.")
    while name:
        found = _TOKENS.get(name)
        if found is not None:
            return (f"tok-{found}",)
        name = name.rpartition(".")[0]
    return ()


def plain_line(text: str) -> Line:
    """Return a line without colours."""
    return (Run(text, (), "", 0),) if text else ()


def highlight(code: str, language: str, seconds: float = LOOP_SECONDS) -> list[Line]:
    """Return the lines of ``code`` as runs; plain when the language is unknown, and behind ``MAX_HIGHLIGHT``.

    What is not lexed after ``seconds`` of the processor's time stays plain.
    """
    lexer = lexer_for(language) if language else None
    if lexer is None:
        return [plain_line(line) for line in code.split("\n")]
    rest = ""
    if len(code) > MAX_HIGHLIGHT:
        cut = code.rfind("\n", 0, MAX_HIGHLIGHT) + 1
        code, rest = code[:cut], code[cut:]
        if not cut:
            return [plain_line(line) for line in rest.split("\n")]
    lines = list(_lines(_within(seconds, lexer.get_tokens(code), code)))
    wanted = code.count("\n") + 1
    del lines[wanted:]  # the lexer makes sure of a newline at the end
    lines.extend(() for _ in range(wanted - len(lines)))
    if rest:
        lines.pop()
        lines.extend(plain_line(line) for line in rest.split("\n"))
    return lines


def _within(seconds: float, tokens: Iterable[tuple[Any, str]], code: str) -> Iterator[tuple[Any, str]]:
    """Yield the tokens of ``code`` until the time is up, then the rest of it as one without colour."""
    until = time.thread_time() + seconds
    at = 0
    for number, (kind, value) in enumerate(tokens):
        yield kind, value
        at += len(value)
        if not number % _LOOKS and time.thread_time() > until:
            yield "", code[at:]
            return


_LOOKS = 8
"""Tokens between two looks at the clock."""


def _lines(tokens: Iterable[tuple[Any, str]]) -> Iterator[Line]:
    """Put tokens together to lines, neighbours of one style to one run."""
    line: list[Run] = []
    at = 0
    for kind, value in tokens:
        names = _style(kind)
        first = True
        for part in value.split("\n") if "\n" in value else (value,):
            if not first:
                yield tuple(line)
                line, at = [], 0
            first = False
            if not part:
                continue
            if line and line[-1].names == names:
                line[-1] = Run(line[-1].text + part, names, "", line[-1].at)
            else:
                line.append(Run(part, names, "", at))
            at += len(part)
    yield tuple(line)


class Lexing:
    """Lexing of code that comes line by line: each line once, in the state in which the line before ended."""

    def __init__(self, language: str) -> None:
        from pygments.lexer import ExtendedRegexLexer, RegexLexer

        lexer = lexer_for(language) if language else None
        self._whole: Lexer | None = (
            None  # a lexer without states: it lexes a few lines before the new ones again
        )
        self._by_state: Any = None
        self._stack: list[str] = ["root"]
        self._in_comment = False
        self._opening, self._closing = _block_comment(language)
        if isinstance(lexer, RegexLexer) and not isinstance(lexer, ExtendedRegexLexer):
            self._by_state = lexer
        else:
            self._whole = lexer
        self._before = ""  # for other lexers: complete lines that are lexed again with what is new
        self._size = 0

    def add(self, lines: list[str]) -> list[Line]:
        """Return the runs of the next complete lines."""
        text = "\n".join(lines) + "\n"
        self._size += len(text)
        if len(text) > MAX_PART or self._size > MAX_HIGHLIGHT:
            return [plain_line(line) for line in lines]
        if self._by_state is not None:
            try:
                return self._timed(self._run(self._by_state, text), text)[: len(lines)]
            except (
                Exception
            ):  # a lexer that does more than its tables say: colours come when the code has ended
                self._by_state = None
        if self._whole is None:
            return [plain_line(line) for line in lines]
        found = self._timed(self._whole.get_tokens(self._before + text), self._before + text)
        skip = self._before.count("\n")
        found = found[skip : skip + len(lines)]
        found.extend(plain_line(line) for line in lines[len(found) :])
        self._before = _end_of(self._before + text)
        return found

    def _timed(self, tokens: Iterable[tuple[Any, str]], text: str) -> list[Line]:
        """Return the lines of ``text``; when they take too long, this lexer is not asked again."""
        begun = time.thread_time()
        found = list(_lines(_within(LOOP_SECONDS, tokens, text)))
        if time.thread_time() - begun > LOOP_SECONDS:
            self._by_state = self._whole = None
        return found

    def _run(self, lexer: Any, text: str) -> Iterator[tuple[Any, str]]:
        """Lex ``text`` as ``RegexLexer.get_tokens_unprocessed`` does, from the stack and to the stack.

        Comments of several lines are found here: most lexers find them only when they are complete.
        """
        from pygments.token import Comment, Error, Whitespace

        kind: Any = type(lexer)
        stack = self._stack
        pos, end = 0, len(text)
        while pos < end:
            if self._in_comment or (self._opening and text.startswith(self._opening, pos)):
                stop = text.find(self._closing, pos if self._in_comment else pos + len(self._opening))
                self._in_comment = stop < 0
                stop = end if stop < 0 else stop + len(self._closing)
                yield Comment.Multiline, text[pos:stop]
                pos = stop
                continue
            found = _first(_rules(kind, stack[-1]), text, pos)
            if found is None:
                if text[pos] == "\n":
                    stack[:] = ["root"]
                    yield Whitespace, "\n"
                else:
                    yield Error, text[pos]
                pos += 1
                continue
            match, action, new_state = found
            if action is not None:
                if type(action) is type(Comment):
                    yield action, text[pos : match.end()]
                else:
                    for _, token, value in action(lexer, match):
                        yield token, value
            pos = match.end()
            if new_state is not None:
                _change(stack, new_state)


_NOT_TOGETHER = re.compile(r"\\[1-9]|\(\?(?:P|\(|[aiLmsux]+[-)])")
"""References to groups, named groups and flags: a pattern with one of them is not put together with others."""

_Rule = tuple[Any, Any, Any]
_Rules = list[tuple[Any, list[_Rule]]]


@lru_cache(maxsize=512)
def _rules(lexer: Any, state: str) -> _Rules:
    """Return a state's rules, neighbours put together to one pattern each, which finds the first that matches.

    A state has some thirty rules, and trying them one by one is what lexing takes its time for.
    """
    together: _Rules = []
    row: list[_Rule] = []
    texts: list[str] = []
    same = 0  # flags of the row

    def close() -> None:
        if row:
            together.append((_joined(texts, same), list(row)))
            row.clear()
            texts.clear()

    for rule in lexer._tokens[state]:
        pattern = getattr(rule[0], "__self__", None)
        text, flags = _scoped(pattern) if isinstance(pattern, re.Pattern) else ("", 0)
        if not text or _NOT_TOGETHER.search(text):
            close()
            together.append((None, [rule]))
            continue
        if row and same != flags:
            close()
        row.append(rule)
        texts.append(text)
        same = flags
    close()
    return together


def _scoped(pattern: re.Pattern[str]) -> tuple[str, int]:
    """Return a pattern's text and flags; letters of either case at its beginning become a matter of the text alone."""
    text = pattern.pattern
    if text.startswith("(?i)"):
        return f"(?i:{text[4:]})", pattern.flags & ~re.IGNORECASE
    return text, pattern.flags


def _joined(texts: list[str], flags: int) -> Any:
    """Return ``match`` of one pattern for all, whose last closed group tells which it was; ``None``: try each."""
    if len(texts) < 2:
        return None
    groups = [f"(?P<r{number}>{text})" for number, text in enumerate(texts)]
    verbose = "\n|" if flags & re.VERBOSE else "|"
    try:
        return re.compile(verbose.join(groups), flags & ~re.DEBUG).match
    except (re.error, OverflowError):
        return None


def _first(rules: _Rules, text: str, pos: int) -> _Rule | None:
    """Return match, action and new state of the first rule that matches at ``pos``."""
    for joined, row in rules:
        if joined is not None:
            hit = joined(text, pos)
            if hit is None:
                continue
            match_at, action, new_state = row[int(hit.lastgroup[1:])]
            # A plain token needs only the end; groups are counted within the rule's own pattern.
            return (
                (match_at(text, pos) if callable(action) and not isinstance(action, tuple) else hit),
                action,
                new_state,
            )
        for match_at, action, new_state in row:
            match = match_at(text, pos)
            if match:
                return match, action, new_state
    return None


_COMMENTS = (("/*", "*/"), ("<!--", "-->"), ("(*", "*)"), ("{-", "-}"))


@lru_cache(maxsize=64)
def _block_comment(language: str) -> tuple[str, str]:
    """Return what begins and ends a comment of several lines, two empty strings for a language that has none."""
    lexer = lexer_for(language)
    if lexer is None:
        return "", ""
    for opening, closing in _COMMENTS:
        text = f"{opening} a {closing}"
        if any("Comment" in str(kind) and value == text for kind, value in lexer.get_tokens(text)):
            return opening, closing
    return "", ""


def _change(stack: list[str], new_state: Any) -> None:
    if isinstance(new_state, tuple):
        for state in new_state:
            if state == "#pop":
                if len(stack) > 1:
                    stack.pop()
            elif state == "#push":
                stack.append(stack[-1])
            else:
                stack.append(state)
    elif isinstance(new_state, int):
        if abs(new_state) >= len(stack):
            del stack[1:]
        else:
            del stack[new_state:]
    else:
        stack.append(stack[-1])


_CONTEXT = 240


def _end_of(text: str) -> str:
    """Return the last lines of ``text`` from one on that probably begins a statement."""
    if len(text) <= _CONTEXT:
        return text
    start = text.find("\n", len(text) - _CONTEXT) + 1
    at = start
    while at < len(text) - 1:
        if not text[at].isspace() and text[at] not in ")]}\"'*":
            return text[at:]
        at = text.find("\n", at) + 1
        if not at:
            break
    return text[start:]
