"""What is entered on the welcome screen: checked, and made into settings."""

from __future__ import annotations

import re

import pytest

from sandbox_chat import words
from sandbox_chat.settings import Secret, Settings
from sandbox_chat.ui.screens.welcome import CHOICES, apply, check

BY_ID = {choice.id: choice for choice in CHOICES}


def test_demo_is_first_and_needs_nothing() -> None:
    assert CHOICES[0].id == "demo"
    assert check(CHOICES[0], {}) == ({}, {})
    assert apply(Settings(), CHOICES[0], {}).demo


def test_a_key() -> None:
    good, bad = check(BY_ID["key"], {"anthropic_api_key": " sk-ant-1 ", "model": ""})
    assert (good, bad) == ({"anthropic_api_key": "sk-ant-1"}, {})
    settings = apply(Settings(), BY_ID["key"], good)
    assert settings.anthropic_api_key == Secret("sk-ant-1")
    assert settings.has_model


def test_a_local_server() -> None:
    good, bad = check(BY_ID["local"], {"anthropic_base_url": "http://127.0.0.1:11434/", "model": "qwen"})
    assert not bad
    settings = apply(Settings(), BY_ID["local"], good)
    assert (settings.anthropic_base_url, settings.model) == ("http://127.0.0.1:11434", "qwen")


@pytest.mark.parametrize(
    ("choice", "values", "name"),
    [
        ("key", {}, "anthropic_api_key"),
        ("key", {"anthropic_api_key": "sk ant"}, "anthropic_api_key"),
        ("key", {"anthropic_api_key": "sk-\x1b[2J"}, "anthropic_api_key"),
        ("gateway", {"anthropic_base_url": "gateway.example.com"}, "anthropic_base_url"),
        ("gateway", {"anthropic_base_url": "https://u:p@example.com"}, "anthropic_base_url"),
        ("local", {"anthropic_base_url": "http://127.0.0.1:11434"}, "model"),
    ],
)
def test_what_is_wrong_is_said_without_repeating_a_secret(
    choice: str, values: dict[str, str], name: str
) -> None:
    _, bad = check(BY_ID[choice], values)
    assert list(bad) == [name]
    assert bad[name].endswith((".", "?"))
    assert "sk" not in bad[name]


@pytest.mark.parametrize(
    "values",
    [
        {"anthropic_base_url": "gateway.example.com"},
        {"anthropic_base_url": "https://u:p@example.com"},
        {"anthropic_base_url": "https://example.com/?a"},
        {"anthropic_base_url": "https://example.com", "model": "a\x1bb"},
    ],
)
def test_what_is_wrong_is_said_in_one_language(values: dict[str, str]) -> None:
    words.use("zh")
    try:
        _, bad = check(BY_ID["gateway"], values)
    finally:
        words.use("en")
    (sentence,) = bad.values()
    assert not re.search(r"[a-z]+ [a-z]+", sentence)
