"""Textual takes the looks of a class along one line of bases: each first base that is a widget."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from textual.app import App
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget

import sandbox_chat.ui

NODES = (App, Screen, Widget)


def own_nodes() -> list[type[DOMNode]]:
    """Every widget, screen and app of the interface."""
    found: dict[str, type[DOMNode]] = {}
    for module in pkgutil.walk_packages(sandbox_chat.ui.__path__, "sandbox_chat.ui."):
        for item in vars(importlib.import_module(module.name)).values():
            if isinstance(item, type) and issubclass(item, NODES) and item.__module__ == module.name:
                found[f"{item.__module__}.{item.__qualname__}"] = item
    return [found[name] for name in sorted(found)]


@pytest.mark.parametrize("node", own_nodes(), ids=lambda node: node.__name__)
def test_no_base_hides_the_looks_of_another(node: type[DOMNode]) -> None:
    """A mixin that is a widget and stands first would take away layout, ground and the name in style sheets."""
    looks = node._css_bases(node)
    for base in node.__mro__:
        if issubclass(base, NODES) and base.__module__.startswith("textual."):
            assert base in looks, f"{node.__name__} loses the looks of {base.__name__}"
