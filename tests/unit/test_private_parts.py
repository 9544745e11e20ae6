"""Private parts of a library are used in one file, where each has its reason (rule 8 of the architecture)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import sandbox_chat

HOME = Path(sandbox_chat.__file__).parent
TREES = {path.relative_to(HOME).as_posix(): ast.parse(path.read_bytes()) for path in HOME.rglob("*.py")}
PLACES = ("agent/private.py", "guest/zygote.py", "sandbox/e2b_client.py", "ui/private.py")
"""The files: of the SDK, of matplotlib, of the cloud's client, of Textual."""
PUBLIC = {"_exit", "_replace"}
"""Names that are public in spite of their underscore: ``os._exit``, a named tuple's ``_replace``."""


def own_names() -> set[str]:
    """Names that the program itself gives: what begins with an underscore and is not here is another's."""
    found: set[str] = set()
    for tree in TREES.values():
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    found.add(name)
                case ast.Attribute(attr=name, ctx=ast.Store()) | ast.Name(id=name, ctx=ast.Store()):
                    found.add(name)
                case ast.arg(arg=name):
                    found.add(name)
                case _:
                    pass
    return found


def foreign(tree: ast.AST, own: set[str]) -> set[str]:
    """Private names of libraries that a file uses."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr not in own | PUBLIC:
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module != "__future__":
            found.update((node.module or "").split("."), (name.name for name in node.names))
            found -= own
        elif isinstance(node, ast.Import):
            found.update(part for name in node.names for part in name.name.split("."))
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def test_private_parts_are_used_in_one_file_only() -> None:
    own = own_names()
    used = {path: names for path, tree in TREES.items() if (names := foreign(tree, own))}
    assert sorted(used) == sorted(PLACES), used


@pytest.mark.parametrize("place", PLACES)
def test_each_private_part_has_its_reason(place: str) -> None:
    [names] = [foreign(tree, own_names()) for path, tree in TREES.items() if path == place]
    reasons = ast.get_docstring(TREES[place]) or ""
    assert names
    assert [name for name in names if name not in reasons] == []
