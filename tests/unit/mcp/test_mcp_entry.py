"""One server of a file: what is understood, what is refused with which sentence, and how variables are filled in."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox_chat.mcp.checks import name_problem
from sandbox_chat.mcp.entry import Entry, read_entry
from sandbox_chat.mcp.variables import Unset, expand, like_a_credential, masked, masked_address, references
from sandbox_chat.settings import ConfigError

PATH = Path("/conf/mcp.json")
CANARY = "canary-7f3e9c1b5d8a2046"


def entry(raw: Any, name: str = "mine") -> Entry:
    warnings: list[str] = []
    found = read_entry(name, raw, PATH, warnings)
    assert warnings == []
    return found


def refused(raw: Any, name: str = "mine") -> str:
    with pytest.raises(ConfigError) as caught:
        read_entry(name, raw, PATH, [])
    line = str(caught.value)
    assert "\n" not in line
    assert str(PATH) in line
    assert len(line) < 1500
    return line


def test_a_program() -> None:
    found = entry({
        "type": "stdio", "command": "${HOME}/bin/x", "args": ["--in", "${DIR:-/tmp}", "a\nb"],
        "env": {"TOKEN": "${TOKEN}", "MODE": "fast"}, "cwd": "work", "timeout": 30, "description": "mine",
    })  # fmt: skip
    config = found.config({"HOME": "/home/u", "TOKEN": CANARY})
    assert config.command == ("/home/u/bin/x", "--in", "/tmp", "a\nb")
    assert {name: value.reveal() for name, value in config.env.items()} == {"TOKEN": CANARY, "MODE": "fast"}
    assert config.cwd == Path("/conf/work")
    assert (config.name, config.place, config.transport, config.source) == (
        "mine",
        "host",
        "stdio",
        "/conf/mcp.json",
    )
    assert config.call_timeout == 30
    assert CANARY not in repr(config) + repr(found)


@pytest.mark.parametrize("kind", [None, "http", "streamable-http", "streamableHttp"])
def test_an_address(kind: str | None) -> None:
    raw = {"url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    found = entry(raw if kind is None else {**raw, "type": kind})
    config = found.config({"HOST": "example.com", "TOKEN": CANARY})
    assert config.endpoint is not None
    assert config.endpoint.url == "https://example.com/mcp"
    assert config.endpoint.headers["Authorization"].reveal() == f"Bearer {CANARY}"
    assert config.transport == "http"
    assert CANARY not in repr(config) + repr(found)


def test_one_of_the_catalogue() -> None:
    found = entry({"catalogue": "git", "properties": {"paths": ["${A}", "b"]}, "env": {"X": "${A:-1}"}})
    assert found.filled({"A": "a"}) == {"paths": ["a", "b"]}
    assert found.filled_env({}) == {"X": "1"}
    with pytest.raises(ConfigError, match=r"needs the variable A \(properties\), which is not set"):
        found.filled({})


@pytest.mark.parametrize(
    ("raw", "disabled"),
    [({}, False), ({"disabled": True}, True), ({"disabled": False}, False), ({"enabled": False}, True)],
)
def test_disabled(raw: dict[str, Any], disabled: bool) -> None:
    assert entry({"command": "x", **raw}).disabled is disabled


@pytest.mark.parametrize(
    ("value", "seconds"), [(1, 1), (999, 999), (1000, 1), (60_000, 60), (86_400_000, 86_400), (2.5, 2.5)]
)
def test_timeouts_in_seconds_or_milliseconds(value: float, seconds: float) -> None:
    assert entry({"command": "x", "timeout": value}).timeout == seconds


# --- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        (None, "must be an object"),
        ([], "must be an object"),
        ({}, "has neither a command nor a url"),
        ({"command": "", "url": ""}, "has neither a command nor a url"),
        ({"command": "x", "url": "https://h/"}, "has both command and url"),
        ({"command": 3}, "command of the server mine in /conf/mcp.json must be text."),
        ({"command": "  "}, "command of the server mine in /conf/mcp.json is empty."),
        ({"command": ["x"]}, "command of the server mine"),
        ({"command": "x\0y"}, "must not hold control characters"),
        ({"command": "x", "args": "y"}, "args of the server mine in /conf/mcp.json must be a list"),
        ({"command": "x", "args": [1]}, "args[0] of the server mine in /conf/mcp.json must be text."),
        ({"command": "x", "args": ["\ud800"]}, "args[0]"),
        ({"command": "x", "args": ["a"] * 257}, "at most 256 texts"),
        ({"command": "x", "args": ["a" * 40_000]}, "must not be longer than 32,000 characters"),
        ({"command": "x", "env": []}, "env of the server mine"),
        ({"command": "x", "env": {"A": 1}}, "env.A of the server mine in /conf/mcp.json must be text."),
        ({"command": "x", "env": {"A B": "1"}}, "holds 'A B', which is not the name of a variable"),
        ({"command": "x", "env": {"A=B": "1"}}, "which is not the name of a variable"),
        ({"command": "x", "cwd": 1}, "cwd of the server mine"),
        ({"command": "x", "disabled": "yes"}, "disabled of the server mine in /conf/mcp.json must be true or false."),
        ({"command": "x", "timeout": "1"}, "timeout of the server mine"),
        ({"command": "x", "timeout": True}, "timeout of the server mine"),
        ({"command": "x", "timeout": float("nan")}, "timeout of the server mine"),
        ({"command": "x", "timeout": 10**400}, "timeout of the server mine"),
        ({"command": "x", "timeout": 0}, "timeout of the server mine"),
        ({"command": "x", "type": "http"}, "is http, which does not go with command"),
        ({"url": "https://h/", "type": "stdio"}, "is stdio, which does not go with url"),
        ({"url": "https://h/", "type": "sse"}, "is sse, a transport that is not spoken here"),
        ({"url": "https://h/", "type": ["sse"]}, 'must be "stdio" or "http"'),
        ({"url": 5}, "url of the server mine in /conf/mcp.json must be text."),
        ({"url": "ftp://h/"}, "must be an address such as https://host/mcp"),
        ({"url": "https://"}, "must be an address such as https://host/mcp"),
        ({"url": "https://h:x/"}, "must be an address such as https://host/mcp"),
        ({"url": "https://[::1/"}, "must be an address such as https://host/mcp"),
        ({"url": "https://h/a b"}, "of plain letters, digits and signs"),
        ({"url": "https://еxample.com/"}, "of plain letters, digits and signs"),
        ({"url": "https://u:p@h/"}, "must not hold a user name or password"),
        ({"url": "https://h/#x"}, "must not hold a #"),
        ({"url": "http://h/"}, "is not encrypted"),
        ({"url": "http://localhost.example.com/"}, "is not encrypted"),
        ({"url": "http://127.0.0.1.example.com/"}, "is not encrypted"),
        ({"url": "https://h/", "headers": {"A B": "x"}}, "cannot be a header of yours"),
        ({"url": "https://h/", "headers": {"Host": "x"}}, "cannot be a header of yours"),
        ({"url": "https://h/", "headers": {"A": "x\ny"}}, "headers.A of the server mine"),
        ({"url": "https://h/", "headers": {"A": "é"}}, "headers.A of the server mine"),
        ({"url": "https://h/", "headers": {"A": None}}, "headers.A of the server mine"),
        ({"catalogue": "git", "properties": []}, "properties of the server mine"),
        ({"catalogue": 4}, "catalogue of the server mine"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence_with_its_place(raw: Any, part: str) -> None:
    assert part in refused(raw)


@pytest.mark.parametrize("url", ["http://localhost:8/x", "http://127.0.0.1/", "http://127.9.9.9/", "http://[::1]:8/", "http://a.localhost/"])  # fmt: skip
def test_this_machine_may_be_reached_without_encryption(url: str) -> None:
    assert entry({"url": url}).config({}).endpoint is not None


def test_another_machine_only_when_it_is_said() -> None:
    found = entry({"url": "http://${HOST}/", "insecure": True})
    assert found.config({"HOST": "h.example"}).endpoint is not None
    with pytest.raises(ConfigError, match="is not encrypted"):
        entry({"url": "http://${HOST}/"}).config({"HOST": "h.example"})
    with pytest.raises(ConfigError, match="must be an address"):
        entry({"url": "${HOST}"}).config({"HOST": "file:///etc/passwd"})


@pytest.mark.parametrize("name", ["a", "A_b.c-d", "_x", "9", "x" * 64])
def test_names(name: str) -> None:
    assert name_problem(name) == ""


@pytest.mark.parametrize("name", ["", "-x", "..", ".x", "a/b", "a b", "é", "x" * 65, "a\n", "\x1b[31m", "sandbox", "GATEWAY", "off"])  # fmt: skip
def test_names_that_cannot_be(name: str) -> None:
    assert name_problem(name)
    line = refused({"command": "x"}, name)
    assert "\x1b" not in line


@pytest.mark.parametrize(
    ("key", "part"),
    [("comand", "Did you mean command?"), ("autoApprove", "SANDBOX_CHAT_MCP_ALLOW"), ("\x1b[2J", "␛[2J")],
)
def test_unknown_keys_are_a_warning(key: str, part: str) -> None:
    warnings: list[str] = []
    read_entry("mine", {"command": "x", key: ["*"]}, PATH, warnings)
    [warning] = warnings
    assert part in warning
    assert "/conf/mcp.json" in warning


# --- variables -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("", ""),
        ("$A $$ {A} ${A", "$A $$ {A} ${A"),
        ("${A}", "1"),
        ("x${A}y${A}", "x1y1"),
        ("${A:-2}", "1"),
        ("${B:-2}", "2"),
        ("${EMPTY:-2}${EMPTY}", "2"),
        ("${B:-}", ""),
        ("${B:-a:-b c}", "a:-b c"),
        ("${LOOP}", "${LOOP}"),
        ("$${A}", "${A}"),
        ("$$${A}${A}", "$${A}1"),
        ("$${A%b} $${ $${", "${A%b} ${ ${"),
    ],
)
def test_expansion(text: str, result: str) -> None:
    assert expand(text, {"A": "1", "EMPTY": "", "LOOP": "${LOOP}"}) == result


@pytest.mark.parametrize("text", ["${}", "${env:A}", "${input:token}", "${A-b}", "${A:+b}", "${1A}"])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(Unset) as caught:
        expand(text, {"A": "1"})
    assert caught.value.text == text
    with pytest.raises(ConfigError, match=r"is not understood; write \$\{NAME\}"):
        entry({"command": "x", "args": [text]}).config({})


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        ({"command": "${NO}"}, "command"),
        ({"command": "x", "args": ["a", "${NO}"]}, "args[1]"),
        ({"command": "x", "env": {"B": "${NO}"}}, "env.B"),
        ({"command": "x", "cwd": "${NO}"}, "cwd"),
        ({"url": "https://${NO}/"}, "url"),
        ({"url": "https://h/", "headers": {"B": "${NO}"}}, "headers.B"),
    ],
)
def test_a_variable_that_is_not_set(raw: dict[str, Any], place: str) -> None:
    found = entry(raw)
    assert found.unset({}) == ["NO"]
    assert found.unset({"NO": "x"}) == []
    with pytest.raises(ConfigError) as caught:
        found.config({})
    assert str(caught.value) == (
        f"The server mine in /conf/mcp.json needs the variable NO ({place}), which is not set. "
        "Set it in the environment, or write a default: ${NO:-…}."
    )


def test_a_value_cannot_make_a_header_of_its_own() -> None:
    found = entry({"url": "https://h/", "headers": {"A": "${X}"}})
    with pytest.raises(ConfigError, match="cannot carry") as caught:
        found.config({"X": f"{CANARY}\r\nHost: evil"})
    assert CANARY not in str(caught.value)


def test_an_empty_program_is_said() -> None:
    with pytest.raises(ConfigError, match=r"command of the server mine in /conf/mcp\.json is empty"):
        entry({"command": "${X}"}).config({"X": ""})


def test_credentials_in_arguments_are_known() -> None:
    found = entry({"command": "x", "args": ["--dsn=${MY_DSN}", "${HOME}/y", "${API_KEY}"]})
    config = found.config({"MY_DSN": "postgres://u:p@h/d", "HOME": "/home/u", "API_KEY": CANARY})
    assert config.secrets() == ["postgres://u:p@h/d", CANARY]


@pytest.mark.parametrize(
    ("name", "value"),
    [("TOKEN", "x"), ("apiKey", "x"), ("X", "sk-ant-0123456789ab"), ("X", "a1" * 15), ("DB", "pg://u:p@h/d"), ("Authorization", "Bearer x")],
)  # fmt: skip
def test_what_looks_like_a_credential(name: str, value: str) -> None:
    assert like_a_credential(name, value)


@pytest.mark.parametrize(("name", "value"), [("LOG_LEVEL", "debug"), ("TOKEN", "${TOKEN}"), ("Authorization", "Bearer ${TOKEN}"), ("KEYBOARD", "de"), ("DIR", "/a/long/path/of/some/folder"), ("X", "")])  # fmt: skip
def test_what_does_not(name: str, value: str) -> None:
    assert not like_a_credential(name, value)


def test_what_is_shown_holds_no_credential() -> None:
    raw = {"command": "x", "args": ["--api-key", CANARY, f"pg://u:{CANARY}@h/d", "--header", f"Authorization: Bearer {CANARY}", "é\nz"], "env": {"MY_TOKEN": CANARY, "NODE_OPTIONS": "--require ./x.js"}}  # fmt: skip
    found = entry(raw)
    shown = found.how() + " ".join(found.given())
    assert CANARY not in shown
    assert "NODE_OPTIONS=--require ./x.js" in shown
    assert "é⏎z" in shown
    address = entry({"url": f"https://h/p?key={CANARY}"})
    assert address.how() == "https://h/p?key=[secret]"
    assert (
        masked("npx -y @modelcontextprotocol/server-filesystem@1 /a")
        == "npx -y @modelcontextprotocol/server-filesystem@1 /a"
    )


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://h/p", "https://h/p"),
        ("https://h/p?k=${ANTHROPIC_API_KEY}", "https://h/p?k=${ANTHROPIC_API_KEY}"),
        ("https://h/p?token=${A}&x=1&api_key=abc=d", "https://h/p?token=${A}&x=1&api_key=[secret]"),
        ("https://h/p?token=ab${A}cd", "https://h/p?token=[secret]${A}[secret]"),
        ("https://h/p?x=ghp_0123456789${A}", "https://h/p?x=[secret]${A}"),
        ("https://h/p?token=${A:-x&y=z?}", "https://h/p?token=${A:-x&y=z?}"),
        ("https://h:8443?a=b@c", "https://h:8443?a=b@c"),
        (f"https://h/p?{'a1' * 20}", "https://h/p?[secret]"),
        ("https://h/p?to%6ben=x", "https://h/p?to%6ben=[secret]"),
    ],
)
def test_an_address_is_shown_with_its_query(url: str, shown: str) -> None:
    assert masked_address(url) == shown == entry({"url": url}).how()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("db://u:${PASS}@h/d", "db://u:${PASS}@h/d"),
        ("db://u:a${PASS}b@h/d", "db://u:[secret]${PASS}[secret]@h/d"),
        ("x ${ghp_0123456789} ${A:-sk-0123456789}", "x ${ghp_0123456789} ${A:-[secret]}"),
        ("$${ghp_0123456789}", "$${[secret]}"),
    ],
)
def test_a_variable_is_never_left_out(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_what_is_written_as_a_variable_and_is_none() -> None:
    found = entry({"command": "sh", "args": ["-c", "echo ${X%y} ${UNSET}"]})
    with pytest.raises(
        ConfigError, match=r"^args\[1\] of the server mine .* holds \$\{X%y\}.* \$\$\{ for a literal"
    ):
        found.check_variables()
    found = entry({"command": "sh", "args": ["-c", "echo $${X%y} ${A}"], "env": {"TOKEN": "$${x}"}})
    found.check_variables()
    assert found.variables() == found.unset({}) == ["A"]
    assert found.config({"A": "1", "X": "2"}).command[2] == "echo ${X%y} 1"
    assert found.given() == ["TOKEN=[secret]"]


@pytest.mark.parametrize(
    "piece", ["-", "-token", "${", "${A", "://a:", "a:", "sk-", "bearer ", "1a", "\u0301", " "]
)
def test_long_texts_made_to_be_slow_are_not(piece: str) -> None:
    """What takes time that grows with the square of the length would not come back from this."""
    text = piece * (30_000 // len(piece))
    found = entry({"command": "x", "args": [text] * 30, "env": {"A": text}})
    assert len(found.how()) <= 4000
    found.given()
    assert like_a_credential("x", text) in (True, False)
    with contextlib.suppress(ConfigError):
        found.config({"A": "1"})


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.sampled_from(["${A}", "${", "x\0", "https://h/"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
RAW = st.dictionaries(
    st.sampled_from(["command", "args", "env", "cwd", "type", "url", "headers", "insecure", "disabled", "timeout", "catalogue", "properties", "x"]),
    ANY,
    max_size=6,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=8) | st.just("mine"), ANY | RAW, st.dictionaries(st.just("A"), st.text(max_size=4)))
def test_whatever_stands_there_nothing_else_is_raised(name: str, raw: Any, environ: dict[str, str]) -> None:
    try:
        found = read_entry(name, raw, PATH, [])
        found.how(), found.given(), found.unset(environ), list(references(found.url))
        if found.catalogue:
            found.filled(environ), found.filled_env(environ)
        else:
            config = found.config(environ)
            assert bool(config.command) != (config.endpoint is not None)
    except ConfigError as error:
        assert "\n" not in str(error)
