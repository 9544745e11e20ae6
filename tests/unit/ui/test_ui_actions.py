"""Every action has a name, a place, keys and texts, and exists; palette, bindings and help agree."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from textual.binding import Binding

from sandbox_chat.ui import actions
from sandbox_chat.ui.actions import Action, all_actions, bindings_of, key_name, key_of, keys_of, names_of
from sandbox_chat.ui.app import ChatApp
from sandbox_chat.ui.keymap import normal
from sandbox_chat.ui.screens.chat import ChatScreen
from sandbox_chat.ui.screens.help import PLACES
from sandbox_chat.words import tr

ALL = list(all_actions().values())
TABLE = (*actions.APP_ACTIONS, *actions.CHAT_ACTIONS, *actions.WIDGET_ACTIONS)


@pytest.fixture(autouse=True)
def no_keys_of_ones_own() -> None:
    actions.use_keys({})


def test_names_are_unique_and_have_a_place() -> None:
    assert len(TABLE) == len(ALL)
    assert all(re.fullmatch(r"[a-z]+\.[a-z_]+", item.name) for item in ALL)
    assert all(tr(f"actions.place.{place}") for place in {item.place for item in ALL} | set(PLACES))


@pytest.mark.parametrize("action", ALL, ids=lambda action: action.name)
def test_every_action_has_words_and_keys_that_textual_knows(action: Action) -> None:
    assert action.title and action.help
    for key in filter(None, action.keys.split(",")):
        assert key == normal(key)


def test_keys_are_unique_in_each_place() -> None:
    counted = Counter((item.place, key) for item in ALL for key in item.keys.split(",") if key)
    assert [found for found, count in counted.items() if count > 1] == []


@pytest.mark.parametrize(
    "action", [*actions.APP_ACTIONS, *actions.CHAT_ACTIONS], ids=lambda action: action.name
)
def test_the_actions_of_app_and_chat_exist(action: Action) -> None:
    found = re.fullmatch(r"(app|screen)\.(\w+)(?:\(.*\))?", action.action)
    assert found is not None
    where, name = found.groups()
    assert hasattr({"app": ChatApp, "screen": ChatScreen}[where], f"action_{name}")


def test_titles_in_the_palette_are_unique() -> None:
    titles = [item.title for item in ALL if item.listed]
    assert len(titles) == len(set(titles))


def test_bindings_come_from_the_table() -> None:
    for cls, place in ((ChatApp, "app"), (ChatScreen, "chat")):
        bound = [item for item in cls.BINDINGS if isinstance(item, Binding)]
        assert bound == bindings_of(place)
        assert [item.id for item in bound] == [item.name for item in actions.of(place)]


def test_the_keys_of_the_user_are_the_ones_that_are_shown() -> None:
    assert key_of("chat.tools") == "F2"
    actions.use_keys({"chat.tools": ("ctrl+b", "f12"), "chat.cost": ()})
    assert keys_of("chat.tools") == ("ctrl+b", "f12")
    assert (key_of("chat.tools"), names_of("chat.tools")) == ("^B", "^B, F12")
    assert (key_of("chat.cost"), names_of("chat.cost")) == ("", "")


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
        ("question_mark", "?"),
        ("left_square_bracket", "["),
        ("ctrl+slash", "^/"),
        ("tab", "tab"),
    ],
)
def test_key_names(key: str, name: str) -> None:
    assert key_name(key) == name
