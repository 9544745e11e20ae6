"""Every action has a name, a key that is its own, and exists; palette, bindings and help agree."""

from __future__ import annotations

import re

import pytest
from textual.binding import Binding

from sandbox_chat.ui.actions import APP_ACTIONS, CHAT_ACTIONS, Action, key_name
from sandbox_chat.ui.app import ChatApp
from sandbox_chat.ui.commands import COMPOSER_ACTIONS
from sandbox_chat.ui.screens.chat import ChatScreen

ALL = [*APP_ACTIONS, *CHAT_ACTIONS, *COMPOSER_ACTIONS]


@pytest.mark.parametrize("action", ALL, ids=lambda action: action.action)
def test_the_action_exists(action: Action) -> None:
    found = re.fullmatch(r"(app|screen)\.(\w+)(?:\(.*\))?", action.action)
    assert found is not None
    where, name = found.groups()
    assert hasattr({"app": ChatApp, "screen": ChatScreen}[where], f"action_{name}")


def test_names_and_keys_are_unique() -> None:
    keys = [key for action in ALL for key in action.keys.split(",")]
    assert len(keys) == len(set(keys))
    titles = [action.title for action in ALL]
    assert len(titles) == len(set(titles))
    assert all(action.title and action.help and action.keys for action in ALL)


def test_bindings_come_from_the_table() -> None:
    bound = {(item.key, item.action) for item in ChatScreen.BINDINGS if isinstance(item, Binding)}
    assert {(a.keys, a.action.removeprefix("screen.")) for a in CHAT_ACTIONS} <= bound


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("ctrl+p", "^P"),
        ("f1", "F1"),
        ("alt+enter", "alt+⏎"),
        ("escape", "esc"),
        ("ctrl+up", "ctrl+↑"),
        ("k", "k"),
        ("shift+up", "shift+↑"),
    ],
)
def test_key_names(key: str, name: str) -> None:
    assert key_name(key) == name
