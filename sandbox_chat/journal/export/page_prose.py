"""Markdown and code as HTML in which nothing comes from outside but text."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from sandbox_chat.journal.export.prose import NESTED, SCHEMES, read_blocks
from sandbox_chat.text import clean

MAX_HIGHLIGHT = 100_000
"""Characters of one piece of code that are coloured; a longer one is plain."""
_LANGUAGE = re.compile(r"[\w+#.-]{1,40}")
_SCHEME = re.compile(rf"(?:(?:{'|'.join(SCHEMES[:2])})://|{SCHEMES[2]}:)", re.IGNORECASE)
_ALIGNED = {"text-align:right": "right", "text-align:center": "center"}


def answer(text: str) -> str:
    """Return Markdown as HTML; what is nested very deeply, or would take long to read, as it was written."""
    if read_blocks(text) is None:
        return code(text)
    return str(_parser().render(text))


def code(text: str, language: str = "") -> str:
    """Return a block of code; coloured if its language is known."""
    return f"<pre><code>{_coloured(text.rstrip(chr(10)), language)}</code></pre>\n"


def _coloured(text: str, language: str) -> str:
    lexer = _lexer(language) if len(text) <= MAX_HIGHLIGHT else None
    if lexer is None:
        return html.escape(text)
    from pygments import highlight
    from pygments.formatters import HtmlFormatter

    try:
        return str(highlight(text, lexer, HtmlFormatter(nowrap=True))).rstrip("\n")
    except Exception:  # lexers are many, and colours are not worth a document
        return html.escape(text, quote=False)


@lru_cache(maxsize=32)
def _lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    name = language.strip().lower()
    if _LANGUAGE.fullmatch(name) is None or name in ("text", "plain", "plaintext", "none"):
        return None
    try:
        return get_lexer_by_name(name, stripnl=False)
    except (ClassNotFound, ImportError):
        return None


class _Renderer(RendererHTML):
    """Writes code without the words of its fence, pictures as text, and columns with classes of our own."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Write a fence."""
        words = tokens[idx].info.split(maxsplit=1)
        return code(tokens[idx].content, words[0] if words else "")

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Write indented code."""
        return code(tokens[idx].content)

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Write words. Characters may have been written by their numbers, so they come to the border only here."""
        return html.escape(clean(tokens[idx].content), quote=False)

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Write a picture from elsewhere as its words and its address: it is not loaded."""
        words = self.renderInlineAsText(tokens[idx].children or (), options, env)
        place = str(tokens[idx].attrGet("src") or "")
        return html.escape(clean(f"{words} ({place})" if place else words))

    def renderToken(  # noqa: N802 - the library's name
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        """Write a tag. Alignment is a class: the page allows no styles of elements."""
        token = tokens[idx]
        if token.type in ("th_open", "td_open"):
            name = _ALIGNED.get(str(token.attrGet("style") or ""))
            return f'<{token.tag} class="{name}">' if name else f"<{token.tag}>"
        if token.type == "link_open":
            href = html.escape(str(token.attrGet("href") or ""))
            return f'<a href="{href}" rel="noopener noreferrer nofollow">'
        return super().renderToken(tokens, idx, options, env)


class _Parser(MarkdownIt):
    """Links lead to the web only; what leads elsewhere stays the text that it is."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        """Whether a link may lead to ``url``."""
        return _SCHEME.match(url) is not None


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    options = {"html": False, "linkify": False, "xhtmlOut": False, "maxNesting": NESTED}
    return _Parser("commonmark", options, renderer_cls=_Renderer).enable(["table", "strikethrough"])
