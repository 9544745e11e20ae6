"""What tests and scripts import from the program is there: a slow test that nobody ran lately does not rot unseen."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "screenshots").rglob("*.py")])


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Modules and names that a file takes from the program, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sandbox_chat":
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (
                (alias.name, "") for alias in node.names if alias.name.split(".")[0] == "sandbox_chat"
            )


def missing(path: Path) -> list[str]:
    """Those of them that are not there."""
    gone = []
    for module, name in imported(path):
        try:
            found = importlib.import_module(module)
            if name and name != "*" and not hasattr(found, name):
                importlib.import_module(f"{module}.{name}")
        except ImportError:
            gone.append(f"{module}.{name}".rstrip("."))
    return gone


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_imported_exists(path: Path) -> None:
    assert missing(path) == []


def test_it_would_be_noticed(tmp_path: Path) -> None:
    file = tmp_path / "test_old.py"
    file.write_text(
        "def test() -> None:\n    from sandbox_chat.ui.screens.gone import X\n    import sandbox_chat.nothing\n"
    )
    assert missing(file) == ["sandbox_chat.ui.screens.gone.X", "sandbox_chat.nothing"]
