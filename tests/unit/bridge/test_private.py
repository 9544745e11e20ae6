"""Personal data in code mode: hidden from the sandbox, and shown only to the tools that the user named."""

from __future__ import annotations

import base64
import logging

import pytest
from support.bridging import tool

from sandbox_chat.bridge.private import Private, reads_back
from sandbox_chat.events import ServerPlace
from sandbox_chat.mcp import catalog
from sandbox_chat.mcp.base import ServerConfig
from sandbox_chat.settings import ConfigError, Settings
from sandbox_chat.vault import Vault

MAIL, OTHER = "ann.lee@example.com", "bob@example.org"
SEND = tool("send", server="mail", original="send-mail")


def private(*reveal: str) -> Private:
    settings = Settings(pii_reveal=reveal)
    return Private(Vault(settings), settings)


def config(
    name: str = "mail", *command: str, place: ServerPlace = "host"
) -> ServerConfig:  # one of the user's own
    return ServerConfig(name=name, command=command or ("my-mail-server",), place=place)


def token_of(one: Private, value: str = MAIL) -> str:
    return one._vault.hide(value)


# -- where it is shown -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word", ["mail", "mail/send", "mail/send/", "/send/to", "mail//to", "mail/send/to/x", "", "//"]
)
def test_words_that_are_none(word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        private("mail/send/to", word)
    assert str(caught.value) == (
        f"pii_reveal: {word!r} must be of the form server/tool/argument, as in mail/send/to."
    )


def test_only_arguments_that_are_named_are_shown() -> None:
    one = private("mail/send/to", "mail/send/cc", "mail/read/from", "other/send/body")
    assert sorted(one.shows(config(), SEND)) == ["cc", "to"]
    assert list(one.shows(config("post"), tool("send", server="post"))) == []
    assert list(private().shows(config(), SEND)) == []


def test_by_either_name_of_server_and_tool_and_once_only() -> None:
    assert list(private("my mail/send-mail/to").shows(config("my mail"), SEND)) == ["to"]
    assert list(private("mail/send-mail/to", "mail/send/to").shows(config(), SEND)) == ["to"]


@pytest.mark.parametrize(
    "reader",
    [
        config(place="sandbox"),
        config("mail", "npx", "-y", "@modelcontextprotocol/server-filesystem", "/home"),
        config("mail", "uvx", "mcp-server-sqlite", "--db-path", "x"),
        config("mail", "/opt/MCP-Server-Fetch/bin/run"),
    ],
)
def test_nothing_is_shown_where_code_could_read_it_back(
    reader: ServerConfig, caplog: pytest.LogCaptureFixture
) -> None:
    assert reads_back(reader)
    caplog.set_level(logging.WARNING)
    assert list(private("mail/send/to").shows(reader, SEND)) == []
    assert "not put back for the server mail" in caplog.text
    caplog.clear()
    assert list(private("mail/other/to").shows(reader, SEND)) == []
    assert caplog.text == ""


def test_all_of_the_catalogue_read_back() -> None:
    for entry in catalog.load().values():
        assert reads_back(config(entry.name, "run", entry.package or entry.program)), entry.name


def test_a_server_of_the_users_own_does_not() -> None:
    assert not reads_back(config())
    assert not reads_back(config("filesystem", "my-own"))  # by what is started, not by its name


def test_what_the_user_is_told() -> None:
    said = private().note(["to", "cc"])
    assert said == "Tokens in to, cc are sent as the personal data that they stand for."


def test_only_what_is_named_is_revealed() -> None:
    one = private()
    token = token_of(one)
    given = {"to": [token, {"a": f"<{token}>"}], "body": token, "n": 3}
    assert one.revealed(given, ["to"]) == {"to": [MAIL, {"a": f"<{MAIL}>"}], "body": token, "n": 3}
    assert given["to"] == [token, {"a": f"<{token}>"}]  # the arguments that are shown stay as they were
    assert one.revealed({"to": "<EMAIL:aaaaaaaaaaaa>"}, ["to"]) == {"to": "<EMAIL:aaaaaaaaaaaa>"}


# -- where it is hidden ------------------------------------------------------------------------------------


async def test_arguments_as_they_are_shown() -> None:
    one = private()
    found = await one.hidden({"to": MAIL, "many": [OTHER], "n": 1})
    assert found == {"to": token_of(one), "many": [token_of(one, OTHER)], "n": 1}


@pytest.mark.parametrize("strict", [False, True])
async def test_results_are_hidden(strict: bool) -> None:
    one = private()
    found = await one.safe_value({"value": {"from": MAIL, "n": [1, None, True]}}, strict=strict)
    assert found == {"value": {"from": token_of(one), "n": [1, None, True]}}
    assert await one.safe(f"no {MAIL}", strict=strict) == f"no {token_of(one)}"


@pytest.mark.parametrize(
    "written",
    [base64.b64encode(MAIL.encode()).decode(), MAIL.encode().hex(), MAIL[::-1]],
    ids=["base64", "hex", "reversed"],
)
async def test_a_server_that_got_values_may_write_them_in_another_way(
    written: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    one = private()
    token_of(one)
    assert written not in await one.safe(f"It is {written} there.", strict=True)
    assert written not in str(await one.safe_value({"value": [written]}, strict=True))
    assert "personal data came back from a tool: EMAIL" in caplog.text
    assert MAIL not in caplog.text


async def test_bytes_are_passed_on_but_not_by_one_that_got_values() -> None:
    one = private()
    answer = {"parts": [{"text": f"of {MAIL}"}, {"data": "AAEC"}]}
    assert await one.safe_value(answer, strict=False) == {
        "parts": [{"text": f"of {token_of(one)}"}, {"data": "AAEC"}]
    }
    strict = await one.safe_value(answer, strict=True)
    assert strict["parts"][0] == {"text": f"of {token_of(one)}"}
    assert strict["parts"][1] == {"text": "(bytes are withheld: the server has got personal data)"}
    assert "AAEC" not in str(strict)


async def test_nothing_stays_nothing() -> None:
    assert await private().safe_value({"value": None}, strict=False) == {"value": None}
    assert await private().safe_value({"value": None}, strict=True) == {"value": None}
