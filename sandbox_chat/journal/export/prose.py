"""Text from outside as Markdown that shows what it shows and does nothing.

Markdown of the model's stays Markdown, but HTML in it becomes text, pictures become links, and links lead to the web
only. Whether that is so is not trusted to the rules that make it so: the reference parser reads the outcome, and a
text that still holds something else is shown as it was written, in a fence.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import unescape
from typing import TYPE_CHECKING

from sandbox_chat.text import clean

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

SCHEMES = ("http", "https", "mailto")
"""What a link may lead to."""
LONG_LINES = 12
"""Lines of words above which they are shown as they were written."""

NESTED = 100
"""Levels of lists and quotations below which the parser reads nothing."""
SIGNS = 2_000
"""Signs that may begin something within words, and perhaps do not end it, that are read: each one costs time."""
_SAFE = re.compile(r"(?:https?://|mailto:)[^\s]*", re.IGNORECASE)
_RUN = re.compile(r"`+")
_SPECIAL = re.compile(r"[\\`*_\[\]<>&|~$#!{}]")
_LINE_START = re.compile(r"^([-+=:]|\d{1,9}(?=[.)]))", re.MULTILINE)
_OPENS = re.compile(r"(?<!\\)<(?=[A-Za-z/!?])(?!(?:https?://|mailto:)[^\s<>]*>)")
_PICTURE = re.compile(r"(?<!\\)!(?=\[)")
_ELSEWHERE = re.compile(r"\](?=\((?!\s*<?(?:https?://|mailto:)))", re.IGNORECASE)
_DEFINED = re.compile(
    r"^([ >]{0,12}(?:[-+*] |\d{1,9}[.)] )?\[(?:[^\[\]\\\n]|\\.){1,999}\])(?=:(?!\s*<?(?:https?://|mailto:)))",
    re.IGNORECASE | re.MULTILINE,
)
_DEEP = re.compile(r"^(?:[ \t]*(?:>|[-+*][ \t]|\d{1,9}[.)][ \t])){12,}", re.MULTILINE)
_INFO = re.compile(r"[\w+#.-]*(?:[ \t].*)?")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_END = "the end of this text"


def escape(text: str) -> str:
    """Return plain text as Markdown, on one line."""
    return _SPECIAL.sub(r"\\\g<0>", " ".join(text.splitlines()))


def code_span(text: str) -> str:
    """Return a short text as code within a line."""
    flat = " ".join(text.split()) or " "
    mark = "`" * (max((len(run) for run in _RUN.findall(flat)), default=0) + 1)
    blank = " " if flat[0] == "`" or flat[-1] == "`" else ""
    return f"{mark}{blank}{flat}{blank}{mark}"


def fence(text: str, language: str = "") -> str:
    """Return a text as a block of code, to the letter."""
    mark = "`" * max(3, max((len(run) for run in _RUN.findall(text)), default=0) + 1)
    body = text.removesuffix("\n")
    return f"{mark}{language}\n{body}\n{mark}"


def quote(text: str) -> str:
    """Return plain words as a quotation; many lines, or indented ones, to the letter."""
    lines = text.strip("\n").split("\n")
    if len(lines) > LONG_LINES or any(line[:1] in (" ", "\t") for line in lines):
        return fence("\n".join(lines), "text")
    out: list[str] = []
    for number, line in enumerate(lines):
        shown = _LINE_START.sub(_escaped_start, escape(line.rstrip()))
        follows = number + 1 < len(lines) and lines[number + 1].strip()
        out.append(f"> {shown}{chr(92) if shown and follows else ''}" if shown else ">")
    return "\n".join(out)


def _escaped_start(match: re.Match[str]) -> str:
    sign = match[1]
    return f"{sign}\\" if sign.isdigit() else f"\\{sign}"


def safe_markdown(text: str) -> str:
    """Return Markdown from outside such that nothing in it acts, and nothing in it goes on after its end."""
    text = text.strip("\n")
    if (blocks := read_blocks(text)) is None:
        return fence(text, "text")
    made = _defused(text, blocks)
    blocks = _reader(words=False).parse(made)
    if _is_slow(blocks):
        return fence(text, "text")
    for end in ("", *_closing(blocks)):
        whole = f"{made}{end}"
        if _harmless(whole):
            return whole
    return fence(text, "text")


def read_blocks(text: str) -> list[Token] | None:
    """Return the blocks of Markdown from outside; ``None`` for what is to be shown as it was written.

    That is so of what is nested so deeply that a part of it would be lost, and of what would take long to read.
    """
    if _DEEP.search(text):
        return None
    blocks = _block_reader().parse(text)
    return None if _is_deep(blocks) or _is_slow(blocks) else blocks


def _is_deep(tokens: list[Token]) -> bool:
    return any(token.level >= NESTED - 1 for token in tokens)


def _is_slow(blocks: list[Token]) -> bool:
    """Whether the time to read the words in ``blocks`` is beyond what an answer may cost.

    A bracket costs the same wherever it stands, what emphasises costs more the more of it stands in one paragraph.
    """
    words = [block.content for block in blocks if block.type == "inline"]
    brackets = sum(text.count("[") for text in words)
    return brackets > SIGNS or any(sum(map(text.count, "*_~")) > SIGNS for text in words)


@lru_cache(maxsize=2)
def _reader(*, words: bool = True) -> MarkdownIt:
    """Return a parser that lets everything through, so that everything is seen; without ``words`` only blocks."""
    from markdown_it import MarkdownIt

    class Reader(MarkdownIt):
        def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
            return True

    reader = Reader("commonmark", {"html": True, "maxNesting": NESTED}).enable(["table", "strikethrough"])
    return reader if words else reader.disable("inline")


def _harmless(text: str) -> bool:
    """Whether the parser finds nothing in ``text`` that acts, and ``text`` has ended where it ends."""
    tokens = _reader().parse(f"{text}\n\n{_END}\n")
    last = tokens[-3:]
    if [token.type for token in last] != ["paragraph_open", "inline", "paragraph_close"]:
        return False
    if last[0].level or last[1].content != _END or _is_deep(tokens):
        return False
    return all(_allowed(token) for token in tokens)


def _allowed(token: Token) -> bool:
    if token.type in ("html_block", "html_inline", "image"):
        return False
    if token.type == "fence" and _INFO.fullmatch(token.info.strip()) is None:
        return False
    if token.type == "link_open" and _SAFE.fullmatch(str(token.attrGet("href") or "")) is None:
        return False
    return all(_allowed(child) for child in token.children or ())


def _closing(blocks: list[Token]) -> list[str]:
    """Return what may close a fence that is still open at the end of a text."""
    fences = [token for token in blocks if token.type == "fence"]
    return [f"\n{fences[-1].markup}"] if fences else []


def _defused(text: str, blocks: list[Token]) -> str:
    """Return Markdown whose HTML, pictures and links to elsewhere are text. Code stays as it is."""
    lines = text.split("\n")
    code: set[int] = set()
    for token in blocks:
        if token.map is None or token.type not in ("fence", "code_block"):
            continue
        start, end = token.map
        if token.type == "fence" and start < len(lines):
            lines[start] = re.sub(r"[{}=]", "", lines[start])
        code.update(range(start, min(end, len(lines))))
    out: list[str] = []
    words: list[str] = []
    for number, line in enumerate(lines):
        if number in code:
            out += _lines_defused(words)
            words = []
            out.append(line)
        else:
            words.append(line)
    return "\n".join(out + _lines_defused(words))


@lru_cache(maxsize=1)
def _block_reader() -> MarkdownIt:
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False, "maxNesting": NESTED})
    return reader.enable(["table"]).disable("inline")


def _lines_defused(lines: list[str]) -> list[str]:
    """Defuse lines outside blocks of code; a span of code does not go beyond a blank line."""
    if not lines:
        return []
    paragraphs = re.split(r"(\n[ \t]*\n)", "\n".join(lines))
    return "".join(map(_paragraph_defused, paragraphs)).split("\n")


def _paragraph_defused(text: str) -> str:
    out: list[str] = []
    at = 0
    while (run := _RUN.search(text, at)) is not None:
        escaped = run.start() > at and text[run.start() - 1] == "\\"
        close = None if escaped else re.compile(rf"(?<!`){run[0]}(?!`)").search(text, run.end())
        if close is None:
            out.append(_words_defused(text[at : run.end()]))
            at = run.end()
        else:
            out += [_words_defused(text[at : run.start()]), text[run.start() : close.end()]]
            at = close.end()
    out.append(_words_defused(text[at:]))
    return "".join(out)


def _clean_entity(match: re.Match[str]) -> str:
    """Keep a character that is written by its number or name, unless it acts or hides: then it stays so written."""
    character = unescape(match[0])
    return match[0] if clean(character) == character else f"&amp;{match[0][1:]}"


def _words_defused(text: str) -> str:
    text = _ENTITY.sub(_clean_entity, text)
    text = _OPENS.sub("&lt;", text)
    text = _PICTURE.sub(r"\\!", text)
    text = _ELSEWHERE.sub(r"\\]", text)
    return _DEFINED.sub(lambda match: f"{match[1][:-1]}\\]", text)
