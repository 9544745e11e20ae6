"""Commands that are typed: which there are, what is one, and what stays a prompt."""

from __future__ import annotations

import pytest

from sandbox_chat.ui.slash import commands, offered, parse, unescaped


def test_each_command_is_an_action_with_a_name() -> None:
    every = commands()
    asked = "model effort thinking clear compact new resume fork rewind retry rename export attach sandbox budget copy help quit"
    assert set(asked.split()) <= {item.word for item in every}
    assert all(item.title and item.action.action for item in every)
    assert [item.word for item in every] == sorted(item.word for item in every)


def test_the_beginning_of_a_word_comes_before_its_inside() -> None:
    assert [item.word for item in offered("to")] == ["tools"]
    assert [item.word for item in offered("ode")] == ["model"]
    assert [item.word for item in offered("HEL")] == ["help"]
    assert offered("clearest") == []
    assert len(offered("")) == len(commands())


@pytest.mark.parametrize(
    ("text", "word", "rest"),
    [
        ("/help", "help", ""),
        ("/help ", "help", ""),
        ("/model claude-x", "model", "claude-x"),
        ("/model", "model", ""),
        ("/attach 'my file' in/", "attach", "'my file' in/"),
    ],
)
def test_commands(text: str, word: str, rest: str) -> None:
    found = parse(text)
    assert found is not None
    assert (found[0].word, found[1]) == (word, rest)


@pytest.mark.parametrize(
    "text",
    ["/context", "/", "//help", " /help", "/help me", "/tools\n", "/usr/bin/env", "help", "", "/helpx"],
)
def test_prompts(text: str) -> None:  # case A6
    assert parse(text) is None


def test_two_strokes_send_the_words_of_a_command() -> None:
    assert unescaped("//help") == "/help"
    assert unescaped("//model x") == "/model x"
    assert unescaped("//context") == "//context"
    assert unescaped("// a comment") == "// a comment"
