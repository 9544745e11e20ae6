"""Markdown trees to compare: what markdown-it-py makes of a text, and what our parser does, in one shape."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from sandbox_chat.ui.markdown.parser import BlockParser
from sandbox_chat.ui.markdown.tree import Container, Leaf

Tree = list[Any]

_TASK = re.compile(r"\[([ xX])\](?:\s+|\Z)")
_reference = MarkdownIt("commonmark", {"maxNesting": 10_000}).enable("table").disable("inline")


def expected(text: str) -> tuple[Tree, dict[str, Any]]:
    """Return markdown-it's tree of ``text`` and its link definitions."""
    env: dict[str, Any] = {}
    tokens = _reference.parse(text, env)
    nodes, _ = _read(tokens, 0, "")
    found = {key: (value["href"], value["title"]) for key, value in env.get("references", {}).items()}
    return nodes, found


def actual(pieces: Sequence[str]) -> tuple[Tree, dict[str, Any]]:
    """Return our tree of the text that comes in ``pieces``, and its link definitions."""
    parser = BlockParser()
    for piece in pieces:
        parser.feed(piece)
    parser.finish()
    found = {key: (value["href"], value["title"]) for key, value in parser.references.items()}
    return tree_of(parser.leaves), found


def tree_of(leaves: Sequence[Leaf]) -> Tree:
    """Return the tree that the leaves' paths describe."""
    root: Tree = []
    path: list[tuple[Container, Tree]] = []
    for leaf in leaves:
        common = 0
        while common < min(len(path), len(leaf.path)) and path[common][0] is leaf.path[common]:
            common += 1
        del path[common:]
        for container in leaf.path[common:]:
            children: Tree = []
            home = path[-1][1] if path else root
            home.append(_container(container, children))
            path.append((container, children))
        if leaf.kind != "empty":
            (path[-1][1] if path else root).append(_leaf(leaf))
    return [_judge(node) for node in root]


def _container(container: Container, children: Tree) -> list[Any]:
    if container.kind == "list":
        return ["list", container.delimiter, container.start, container.loose, children]
    if container.kind == "item":
        return ["item", container.task, container.start, children]
    return [container.kind, children]


def _judge(node: list[Any]) -> list[Any]:
    """Forget what markdown-it does not say: looseness shows only in paragraphs right in an item."""
    if node[0] == "list" and not any(child[0] == "paragraph" for item in node[-1] for child in item[-1]):
        node[3] = None
    if node[0] in ("list", "item", "quote"):
        node[-1] = [_judge(child) for child in node[-1]]
    return node


def _leaf(leaf: Leaf) -> list[Any]:
    if leaf.kind == "table":
        return ["table", list(leaf.aligns), [list(row) for row in leaf.cells]]
    if leaf.kind == "code":
        return ["code", leaf.fenced, leaf.info, leaf.text.removesuffix("\n")]
    return [leaf.kind, leaf.level, _trimmed(leaf.text)]


def _trimmed(text: str) -> str:
    return "\n".join(line.lstrip(" \t") for line in text.split("\n")).rstrip("\n")


def _read(tokens: Sequence[Token], index: int, until: str) -> tuple[Tree, int]:
    nodes: Tree = []
    while index < len(tokens):
        token = tokens[index]
        kind = token.type
        index += 1
        if kind == until:
            break
        if kind in ("paragraph_open", "heading_open"):
            level = int(token.tag[1:]) if kind == "heading_open" else 0
            nodes.append([kind.removesuffix("_open"), level, _trimmed(tokens[index].content)])
            if kind == "paragraph_open" and token.hidden:
                nodes[-1].append("tight")
            index += 2
        elif kind in ("fence", "code_block"):
            nodes.append(["code", kind == "fence", token.info, token.content.removesuffix("\n")])
        elif kind in ("bullet_list_open", "ordered_list_open"):
            items, index = _read(tokens, index, kind.replace("open", "close"))
            loose = None
            for item in items:
                for child in item[-1]:
                    if child[0] == "paragraph":
                        loose = child[-1] != "tight"
                        del child[3:]
            start = int(token.attrGet("start")) if token.attrGet("start") is not None else 1
            for number, item in enumerate(items):
                item[2] = start + number
            nodes.append(["list", token.markup, start, loose, items])
        elif kind == "list_item_open":
            first = tokens[index].map
            children, index = _read(tokens, index, "list_item_close")
            task = ""
            if (
                children
                and children[0][0] == "paragraph"
                and first
                and token.map
                and first[0] == token.map[0]
            ):
                match = _TASK.match(children[0][2])
                if match is not None:
                    task = "open" if match.group(1) == " " else "done"
                    children[0][2] = children[0][2][match.end() :]
            nodes.append(["item", task, 0, children])
        elif kind == "blockquote_open":
            children, index = _read(tokens, index, "blockquote_close")
            nodes.append(["quote", children])
        elif kind == "table_open":
            node, index = _table(tokens, index)
            nodes.append(node)
        elif kind == "hr":
            nodes.append(["rule", 0, ""])
        elif kind == "html_block":
            nodes.append(["html", 0, _trimmed(token.content)])
    return nodes, index


def _table(tokens: Sequence[Token], index: int) -> tuple[list[Any], int]:
    aligns: list[str] = []
    rows: list[list[str]] = []
    while tokens[index].type != "table_close":
        token = tokens[index]
        index += 1
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            if token.type == "th_open":
                style = str(token.attrGet("style") or "")
                aligns.append("right" if "right" in style else "center" if "center" in style else "left")
            rows[-1].append(tokens[index].content)
    return ["table", aligns, rows], index + 1
