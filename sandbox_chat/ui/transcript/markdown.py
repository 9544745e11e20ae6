"""Markdown blocks → a small tree of nodes with their place in the source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from .inline import parser

if TYPE_CHECKING:
    from markdown_it.token import Token

Kind = Literal["paragraph", "heading", "fence", "list", "item", "quote", "table", "rule", "html"]
Align = Literal["left", "center", "right"]

_TASK = re.compile(r"\[([ xX])\](?=\s|\Z)")
_CLOSING_FENCE = re.compile(r"[ >]*(`{3,}|~{3,})[ \t]*\Z")


@dataclass(slots=True)
class Node:
    """One Markdown block.

    ``start`` and ``end`` are lines of the parsed text (``end`` is the first line after it).
    ``content`` is inline Markdown (paragraph, heading), code (fence) or text (html).
    """

    kind: Kind
    start: int = 0
    end: int = 0
    content: str = ""
    language: str = ""
    level: int = 0
    ordered: bool = False
    number: int = 1
    mark: str = ""
    """A list's kind of mark; lists with different ones are different lists."""
    task: str = ""
    gap: bool = False
    """Item: an empty line stands before it in the source."""
    closed: bool = True
    continued: bool = False
    """List: its first items were cut off and stand in an earlier node."""
    children: list[Node] = field(default_factory=list)
    cells: list[list[str]] = field(default_factory=list)
    aligns: list[Align] = field(default_factory=list)


def parse(text: str) -> tuple[list[Node], dict[str, Any]]:
    """Return the top-level blocks of ``text`` and its link definitions."""
    env: dict[str, Any] = {}
    tokens = parser().parse(text, env)
    nodes, _ = _read(tokens, 0, "", text.split("\n"))
    return nodes, env.get("references", {})


def _read(tokens: Sequence[Token], index: int, until: str, lines: list[str]) -> tuple[list[Node], int]:
    nodes: list[Node] = []
    while index < len(tokens):
        token = tokens[index]
        kind = token.type
        if kind == until:
            return nodes, index + 1
        start, end = token.map or (0, 0)
        index += 1
        if kind in ("paragraph_open", "heading_open"):
            node = Node("paragraph", start, end, tokens[index].content)
            if kind == "heading_open":
                node.kind, node.level = "heading", int(token.tag[1:])
            nodes.append(node)
            index += 2
        elif kind in ("fence", "code_block"):
            words = token.info.split()
            closed = kind == "code_block" or _fence_is_closed(token, lines)
            nodes.append(Node("fence", start, end, token.content, words[0] if words else "", closed=closed))
        elif kind in ("bullet_list_open", "ordered_list_open"):
            children, index = _read(tokens, index, kind.replace("open", "close"), lines)
            node = Node("list", start, end, ordered=kind[0] == "o", mark=token.markup, children=children)
            first = token.attrGet("start")
            node.number = int(first) if first is not None else 1
            for child in children[1:]:
                child.gap = child.start > 0 and not lines[child.start - 1].strip(" \t>")
            nodes.append(node)
        elif kind == "list_item_open":
            children, index = _read(tokens, index, "list_item_close", lines)
            item = Node("item", start, end, children=children)
            if children and children[0].kind == "paragraph":
                match = _TASK.match(children[0].content)
                if match is not None:
                    item.task = "done" if match.group(1) in "xX" else "open"
                    children[0].content = children[0].content[match.end() :].lstrip()
            nodes.append(item)
        elif kind == "blockquote_open":
            children, index = _read(tokens, index, "blockquote_close", lines)
            nodes.append(Node("quote", start, end, children=children))
        elif kind == "table_open":
            node = Node("table", start, end)
            index = _read_table(tokens, index, node)
            nodes.append(node)
        elif kind == "hr":
            nodes.append(Node("rule", start, end))
        elif kind == "html_block":
            nodes.append(Node("html", start, end, token.content.rstrip("\n")))
    return nodes, index


def _fence_is_closed(token: Token, lines: list[str]) -> bool:
    start, end = token.map or (0, 0)
    if end - start < 2 or end - 1 >= len(lines):
        return False
    match = _CLOSING_FENCE.match(lines[end - 1])
    # The content's last line may itself look like a fence's end: then the body has one line more.
    body = token.content.count("\n")
    return (
        match is not None
        and match.group(1)[0] == token.markup[0]
        and len(match.group(1)) >= len(token.markup)
        and body <= end - start - 2
    )


def _read_table(tokens: Sequence[Token], index: int, node: Node) -> int:
    row: list[str] = []
    while index < len(tokens):
        token = tokens[index]
        index += 1
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            row = []
            node.cells.append(row)
        elif token.type in ("th_open", "td_open"):
            if token.type == "th_open":
                style = str(token.attrGet("style") or "")
                node.aligns.append("right" if "right" in style else "center" if "center" in style else "left")
            row.append(tokens[index].content)
    return index
