"""Keys of one's own: what is understood, what is refused and said, what they hide."""

from __future__ import annotations

import re
import string

import pytest
from textual.keys import _character_to_key

from sandbox_chat import words
from sandbox_chat.ui.actions import NO_KEY
from sandbox_chat.ui.keymap import keymap, normal, read


@pytest.mark.parametrize("sign", [*string.ascii_letters, *string.digits, *string.punctuation, "é", "中"])
def test_a_sign_is_called_as_textual_calls_it(sign: str) -> None:
    assert normal(sign) == _character_to_key(sign)


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("Ctrl+N", "ctrl+n"),
        ("control+n", "ctrl+n"),
        ("shift+alt+x", "alt+shift+x"),
        ("esc", "escape"),
        ("PgUp", "pageup"),
        ("F12", "f12"),
        ("ctrl++", "ctrl+plus"),
        ("ctrl+/", "ctrl+slash"),
        ("ctrl+i", "tab"),
        (" alt+enter ", "alt+enter"),
    ],
)
def test_keys_as_people_write_them(written: str, key: str) -> None:
    assert normal(written) == key


@pytest.mark.parametrize(
    "wrong", ["", " ", "ctrl+", "strg+n", "f25", "boo", "ctrl+ctrl+n", "\x1b", "ctrl+é+n"]
)
def test_what_is_no_key(wrong: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        normal(wrong)


def test_good_keys_are_taken_without_a_word() -> None:
    chosen, faults = read({"composer.newline": ("ctrl+n", "alt+enter"), "app.theme": ()})
    assert (chosen, faults) == ({"composer.newline": ("ctrl+n", "alt+enter"), "app.theme": ()}, [])
    assert keymap(chosen) == {"composer.newline": "ctrl+n,alt+enter", "app.theme": NO_KEY}


def test_unknown_names_and_keys_are_told_and_cost_nothing_else() -> None:
    chosen, faults = read(
        {"composer.newlin": ("ctrl+n",), "chat.tools": ("f13", "nokey"), "chat.cost": ("xx",)}
    )
    assert chosen == {"chat.tools": ("f13",)}
    assert faults == [
        "There is no action 'composer.newlin' to give keys to, so they were ignored. Did you mean composer.newline?",
        "The key 'nokey' of chat.tools is not known and was ignored. Write it like ctrl+n, f5 or ?.",
        "The key 'xx' of chat.cost is not known and was ignored. Write it like ctrl+n, f5 or ?.",
    ]


def test_two_actions_that_want_one_key() -> None:
    chosen, faults = read({"chat.tools": ("f12",), "chat.model": ("f12",)})
    assert chosen == {"chat.tools": ("f12",)}
    assert faults == ["The key f12 is given to chat.tools and to chat.model; only chat.tools has it."]


def test_an_action_that_loses_its_key_is_told_of() -> None:
    chosen, faults = read({"chat.tools": ("f3",)})
    assert chosen == {"chat.tools": ("f3",), "chat.cost": ()}
    assert faults == [
        "The key f3 now means chat.tools and no longer chat.cost. Give chat.cost another one if you need it."
    ]


def test_an_action_that_keeps_another_key_is_not_told_of() -> None:
    chosen, faults = read({"composer.send": ("ctrl+j",)})
    assert chosen == {"composer.send": ("ctrl+j",), "composer.newline": ("alt+enter", "shift+enter")}
    assert faults == []


def test_a_key_that_has_priority_elsewhere_is_taken_from_there() -> None:
    chosen, _ = read({"composer.newline": ("ctrl+l",)})
    assert chosen["chat.attach"] == ()


def test_the_same_key_may_mean_something_else_in_another_place() -> None:
    assert read({"tabs.next": ("f2",), "link.copy": ("f6",)})[1] == []


def test_swapped_keys_are_no_conflict() -> None:
    chosen, faults = read({"chat.tools": ("f3",), "chat.cost": ("f2",)})
    assert (chosen, faults) == ({"chat.tools": ("f3",), "chat.cost": ("f2",)}, [])


def test_faults_are_told_in_the_language_of_the_interface() -> None:
    wanted = {"composer.newlin": ("ctrl+n",), "chat.tools": ("f3", "nokey"), "chat.model": ("f3",)}
    words.use("zh")
    try:
        faults = read(wanted)[1]
    finally:
        words.use("en")
    assert len(faults) == len(read(wanted)[1]) == 4
    assert all(
        re.search("[\u3400-\u9fff]", fault) and not re.search(r"\b(the|key|is)\b", fault) for fault in faults
    )
