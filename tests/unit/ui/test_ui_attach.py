"""What is a command to attach a file, and what is a prompt."""

from __future__ import annotations

import pytest

from sandbox_chat.ui.attach import AttachUsage, parse


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/attach a.csv", ("a.csv", "")),
        ("/attach 'my file.csv'", ("my file.csv", "")),
        ('/attach "my file.csv" data/', ("my file.csv", "data/")),
        ("/attach my\\ file.csv /tmp/x", ("my file.csv", "/tmp/x")),
        ("/attach ~/a", ("~/a", "")),
    ],
)
def test_a_command(text: str, command: tuple[str, str]) -> None:
    assert parse(text) == command


@pytest.mark.parametrize(
    "text",
    [
        "/attachment of the letter",
        "/clear",
        "/etc/passwd is what?",
        "please /attach a.csv",
        "@/etc/passwd",
        "/attach a.csv\nand more",
        "/Attach a",
        "",
    ],
)
def test_a_prompt_goes_to_the_letter(text: str) -> None:  # case A6
    assert parse(text) is None


@pytest.mark.parametrize("text", ["/attach", "/attach ", "/attach ''", "/attach a b c", "/attach 'open"])
def test_how_it_is_written_is_said(text: str) -> None:
    with pytest.raises(AttachUsage, match="/attach FILE"):
        parse(text)
