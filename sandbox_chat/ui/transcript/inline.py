"""Markdown inside a paragraph → runs of styled text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sandbox_chat.text import clean

from .cells import TAB, Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_CACHED = 300
"""Characters up to which the outcome is kept: cells and items are drawn again and again, paragraphs once."""

_OPEN = {"strong_open": "strong", "em_open": "emphasis", "s_open": "strike"}
_CLOSE = {"strong_close": "strong", "em_close": "emphasis", "s_close": "strike"}
_URL = re.compile(r"\bhttps?://[^\s<>\"'`\[\](){}|\\^]+[^\s<>\"'`\[\](){}|\\^.,;:!?*_]")
_PLAIN = re.compile(r"[^\\`*_~\[\]<>&!\n]*\Z")


@lru_cache(maxsize=1)
def parser() -> MarkdownIt:
    """Return the parser: CommonMark with tables and strikethrough; inline content is parsed when shown."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"linkify": False}).enable(["table", "strikethrough"]).disable(["inline"])


@lru_cache(maxsize=1)
def _inline_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"linkify": False}).enable(["strikethrough"])


@lru_cache(maxsize=4096)
def _cached(text: str, names: tuple[str, ...]) -> tuple[Run, ...]:
    return tuple(_runs(text, names, {}))


def inline_runs(
    text: str, names: tuple[str, ...] = (), references: Mapping[str, Any] | None = None
) -> tuple[Run, ...]:
    """Return the runs of a paragraph's Markdown, laid over the styles ``names``.

    ``references`` are the link definitions of the document, as the block parser found them. Text that
    holds nothing special takes a short way. A single newline breaks the row: models write it on purpose.
    """
    if _PLAIN.match(text) and "://" not in text:
        return (Run(clean(text).replace("\t", TAB), names),) if text else ()
    if references or len(text) > _CACHED:
        return tuple(_runs(text, names, references or {}))
    return _cached(text, names)


def _runs(text: str, names: tuple[str, ...], references: Mapping[str, Any]) -> list[Run]:
    env = {"references": dict(references)} if references else {}
    children: list[Token] = []
    for token in _inline_parser().parseInline(text, env):
        children.extend(token.children or ())
    return list(_walk(children, names))


def _walk(children: list[Token], names: tuple[str, ...]) -> Iterator[Run]:
    stack = list(names)
    href = ""
    for token in children:
        kind = token.type
        if kind == "text":
            yield from _text(token.content, tuple(stack), href)
        elif kind == "code_inline":
            yield Run(_clean(token.content), (*stack, "code"), href)
        elif kind in ("softbreak", "hardbreak"):
            yield Run("\n", tuple(stack))
        elif kind in _OPEN:
            stack.append(_OPEN[kind])
        elif kind in _CLOSE:
            _drop(stack, _CLOSE[kind])
        elif kind == "link_open":
            href = clean(str(token.attrGet("href") or ""))
            stack.append("link")
        elif kind == "link_close":
            href = ""
            _drop(stack, "link")
        elif kind == "image":
            target = clean(str(token.attrGet("src") or ""))
            alt = "".join(run.text for run in _walk(token.children or [], ()))
            yield Run(f"[{alt or target}]", (*stack, "link"), href or target)
        else:  # html_inline and anything unknown: to the letter
            yield Run(_clean(token.content), (*stack, "html"), href)


def _drop(stack: list[str], name: str) -> None:
    for index in range(len(stack) - 1, -1, -1):
        if stack[index] == name:
            del stack[index]
            return


def _clean(text: str) -> str:
    # Character references (&#x202e;) are resolved by the parser, after the text was cleaned at the border.
    return clean(text).replace("\t", TAB)


def _text(text: str, names: tuple[str, ...], href: str) -> Iterator[Run]:
    text = _clean(text)
    if href or "://" not in text:
        if text:
            yield Run(text, names, href)
        return
    done = 0
    for match in _URL.finditer(text):
        if match.start() > done:
            yield Run(text[done : match.start()], names)
        yield Run(match.group(), (*names, "link"), match.group())
        done = match.end()
    if done < len(text):
        yield Run(text[done:], names)


def heal(text: str) -> str:
    """Return the Markdown of a paragraph that is still being written, with what it leaves open closed.

    So ``some **bold`` is shown bold at once instead of flickering from ``**`` to bold when the end comes.
    """
    out = re.sub(r"(?<!\\)(\*{1,3}|_{1,3}|~~?|`+)\Z", "", text)  # marks alone at the end open nothing yet
    plain = re.sub(r"\\.|`+[^`]*`+", lambda m: "x" * len(m.group()), out)
    tick = plain.rfind("`")
    if tick >= 0:
        return out + "`"
    link = re.search(r"\[([^\[\]\n]*)\]\([^()\s]*\Z", plain)
    if link is not None:
        out = out[: link.start()] + out[link.start() + 1 : link.end(1)]
    closing = ""
    for mark in ("**", "~~"):
        if plain.count(mark) % 2 and not re.search(re.escape(mark) + r"\s*\Z", plain):
            closing += mark
    singles = re.findall(r"(?<![*\w\\])\*(?=[^*\s])|(?<=[^*\s])\*(?!\*)", plain.replace("**", "  "))
    if len(singles) % 2:
        closing = "*" + closing
    return out.rstrip() + closing if closing else out
