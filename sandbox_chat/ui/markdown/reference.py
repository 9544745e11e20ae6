"""Inline Markdown as markdown-it-py reads it, and the parts of it that the short way uses. Loaded at the first use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .autolink import math_end

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

Node = str | tuple[str, ...]
"""Text (``\\n`` is a break), or ``("open", style)``, ``("close", style)``, ``("code", text)``, ``("html", text)``,
``("link", target)``, ``("end",)`` of a link, ``("image", text, target)``."""

_ORDINARY = re.compile(r"https?://[a-z0-9.-]+(?::\d+)?(?:/[A-Za-z0-9._~/?#@!$&'()*+,;=-]*)?\Z")
_TOKEN = re.compile(r"[A-Z][A-Z0-9_]{1,20}:[a-z2-7]{10}")
"""What stands between ``<`` and ``>`` for personal data: it reads like an address, and is none."""
_OPEN = {"strong_open": "strong", "em_open": "emphasis", "s_open": "strike"}
_CLOSE = {"strong_close": "strong", "em_close": "emphasis", "s_close": "strike"}


@lru_cache(maxsize=1)
def reference_parser() -> MarkdownIt:
    """Return markdown-it as it is the reference: CommonMark with strikethrough, formulas left as they are."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"linkify": False}).enable(["strikethrough"])
    parser.inline.ruler.before("escape", "formula", _formula)
    parser.inline.ruler.before("autolink", "token", _token)
    return parser


def _formula(state: StateInline, silent: bool) -> bool:
    start = state.pos
    mark = state.src[start]
    if mark != "$" and not (mark == "\\" and state.src[start + 1 : start + 2] in ("(", "[")):
        return False
    end = math_end(state.src, start, state.posMax)
    if end <= 0:
        if mark != "$":
            return False
        end = start + 2 if state.src.startswith("$$", start) and start + 1 < state.posMax else start + 1
    if not silent:
        state.append_pending(state.src[start:end])
    state.pos = end
    return True


def _token(state: StateInline, silent: bool) -> bool:
    start = state.pos
    if state.src[start] != "<":
        return False
    match = _TOKEN.match(state.src, start + 1, state.posMax)
    if match is None or state.src[match.end() : match.end() + 1] != ">":
        return False
    if not silent:
        state.append_pending(state.src[start : match.end() + 1])
    state.pos = match.end() + 1
    return True


def reference_nodes(text: str, references: Mapping[str, Any] | None = None) -> list[Node]:
    """Return what the reference parser reads in ``text``."""
    env = {"references": dict(references)} if references else {}
    nodes: list[Node] = []
    for token in reference_parser().parseInline(text, env):
        _walk(token.children or (), nodes)
    return nodes


def _walk(tokens: Iterable[Token], nodes: list[Node]) -> None:
    for token in tokens:
        kind = token.type
        if kind == "text":
            nodes.append(token.content)
        elif kind == "code_inline":
            nodes.append(("code", token.content))
        elif kind in ("softbreak", "hardbreak"):
            nodes.append("\n")
        elif kind in _OPEN:
            nodes.append(("open", _OPEN[kind]))
        elif kind in _CLOSE:
            nodes.append(("close", _CLOSE[kind]))
        elif kind == "link_open":
            nodes.append(("link", str(token.attrGet("href") or "")))
        elif kind == "link_close":
            nodes.append(("end",))
        elif kind == "image":
            inner: list[Node] = []
            _walk(token.children or (), inner)
            alt = "".join(map(_words, inner))
            nodes.append(("image", alt, str(token.attrGet("src") or "")))
        else:
            nodes.append(("html", token.content))


def _words(node: Node) -> str:
    """Return what a node adds to the description of an image."""
    if isinstance(node, str):
        return node
    if node[0] == "image":
        return f"[{node[1] or node[2]}]"
    return node[1] if node[0] in ("code", "html") else ""


# -- parts of it ---------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _library() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"linkify": False})


@lru_cache(maxsize=1024)
def normal_link(target: str) -> str | None:
    """Return a link's target as the reference parser writes it, ``None`` for one that it refuses."""
    if _ORDINARY.match(target):
        return target
    found = str(_library().normalizeLink(target))
    return found if _library().validateLink(found) else None


@lru_cache(maxsize=512)
def entity(reference: str) -> str | None:
    """Return the characters of ``&amp;`` and its like, ``None`` when there is no such name."""
    from markdown_it.common.entities import entities
    from markdown_it.common.utils import fromCodePoint, isValidEntityCode

    name = reference[1:-1]
    if name[0] == "#":
        code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
        return str(fromCodePoint(code if isValidEntityCode(code) else 0xFFFD))
    found = entities.get(name)
    return None if found is None else str(found)


@lru_cache(maxsize=512)
def autolink(inner: str) -> tuple[str, str] | None:
    """Return text and target of what stands between ``<`` and ``>`` when it is an address."""
    if _TOKEN.fullmatch(inner) is not None:
        return None
    from markdown_it.rules_inline.autolink import AUTOLINK_RE, EMAIL_RE

    if AUTOLINK_RE.search(inner) is not None:
        target = inner
    elif EMAIL_RE.search(inner) is not None:
        target = "mailto:" + inner
    else:
        return None
    library = _library()
    href = str(library.normalizeLink(target))
    return (str(library.normalizeLinkText(inner)), href) if library.validateLink(href) else None


def html_end(text: str, start: int, end: int) -> int:
    """Return where the HTML tag ends that begins at ``start``, 0 when none does."""
    if text.find(">", start, end) < 0:
        return 0
    from markdown_it.common.html_re import HTML_TAG_RE

    match = HTML_TAG_RE.match(text, start)
    return match.end() if match is not None else 0


def link_target(text: str, start: int, end: int) -> tuple[str, int] | None:
    """Return target and end of ``(target "title")`` at ``start``, in the way of the reference parser."""
    from markdown_it.helpers import parseLinkDestination, parseLinkTitle

    def skip(at: int) -> int:
        while at < end and text[at] in " \t\n":
            at += 1
        return at

    at = skip(start + 1)
    if at >= end:
        return None
    href = ""
    found = parseLinkDestination(text, at, end)
    if found.ok:
        href = str(_library().normalizeLink(found.str))
        if _library().validateLink(href):
            at = found.pos
        else:
            href = ""
        before = at
        at = skip(at)
        title = parseLinkTitle(text, at, end)
        if at < end and before != at and title.ok:
            at = skip(title.pos)
    if at >= end or text[at] != ")":
        return None
    return href, at + 1


def normal_label(label: str) -> str:
    """Return the name of a link definition as it is looked up."""
    from markdown_it.common.utils import normalizeReference

    return str(normalizeReference(label))
