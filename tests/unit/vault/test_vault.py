"""Tokens in place of personal data: the same for the same spelling, exact on the way back, found in disguise."""

from __future__ import annotations

import base64
import json
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.personal import corpus, score

from sandbox_chat.settings import ConfigError, Secret, Settings, load
from sandbox_chat.values import Pattern
from sandbox_chat.vault import Vault
from sandbox_chat.vault.keeping import CannotOpen
from sandbox_chat.vault.vault import LONGEST_LINE, TOKEN

MAIL = "ann.lee@example.com"
ROWS = [row for name in ("first", "second", "third", "fourth") for row in corpus(name)]


def vault(**values: Any) -> Vault:
    return Vault(Settings(**values))


def test_there_are_enough_strings() -> None:
    assert len(corpus("first")) >= 100
    assert len(corpus("fourth")) >= 100
    texts = [row["text"] for row in ROWS]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("name", ["first", "second", "third", "fourth"])
def test_precision_and_recall(name: str) -> None:
    """``fourth`` was written after the patterns had been frozen; when it was first run, both were 0.974."""
    found = score(corpus(name))
    assert found.precision() >= 0.95, found.wrong
    assert found.recall() >= 0.95, found.wrong


def test_the_way_back_is_exact_on_the_whole_corpus() -> None:
    one = vault()
    hidden = [one.hide(row["text"]) for row in ROWS]
    assert [one.reveal(text) for text in hidden] == [row["text"] for row in ROWS]
    joined = "\n".join(row["text"] for row in ROWS)
    assert one.reveal(one.hide(joined)) == joined


def test_one_spelling_has_one_token() -> None:
    one = vault()
    first, second = one.hide(MAIL), one.hide(f"again {MAIL}!")
    assert second == f"again {first}!"
    assert TOKEN.fullmatch(first)
    assert one.hide(first) == first
    assert one.hide("Ann.Lee@example.com") != first
    assert one.count == 2
    assert dict(one.tokens()) == {"EMAIL": 2}


def test_tokens_say_nothing() -> None:
    assert vault().hide(MAIL) != vault().hide(MAIL)
    one = vault()
    one.hide(MAIL)
    assert MAIL not in repr(one)
    assert one.reveal("<EMAIL:aaaaaaaaaa>") == "<EMAIL:aaaaaaaaaa>"


def test_a_value_that_is_known_is_found_where_it_would_not_be() -> None:
    one = vault()
    token = one.hide("phone: 6505550188").removeprefix("phone: ")
    assert one.hide("column 6505550188 of the table") == f"column {token} of the table"


WAYS = {
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64, one byte later": lambda value: base64.b64encode(b"x" + value.encode()).decode(),
    "base64, two bytes later": lambda value: base64.b64encode(b"xy" + value.encode() + b"z").decode(),
    "base64 for URLs": lambda value: base64.urlsafe_b64encode(b"\xff\xfe" + value.encode()).decode(),
    "base64 in lines": lambda value: "\n".join(base64.b64encode(value.encode()).decode()),
    "base64 twice": lambda value: base64.b64encode(base64.b64encode(value.encode())).decode(),
    "base64 of the reversed": lambda value: base64.b64encode(value[::-1].encode()).decode(),
    "hexadecimal": lambda value: value.encode().hex(),
    "hexadecimal in capitals": lambda value: value.encode().hex(" ").upper(),
    "hexadecimal with 0x": lambda value: ", ".join(f"0x{byte:02x}" for byte in value.encode()),
    "a dump": lambda value: "00000000: " + value.encode().hex(" ", 2),
    "reversed": lambda value: value[::-1],
    "escaped for a URL": lambda value: quote(value, safe="").replace(".", "%2E"),
    "escaped": lambda value: "".join(f"\\u{ord(sign):04x}" for sign in value),
    "as entities": lambda value: "".join(f"&#{ord(sign)};" for sign in value),
    "with spaces": " ".join,
    "a sign a line": "\n".join,
    "with commas": ",".join,
    "with zero-width spaces": "\u200b".join,
    "as a list": lambda value: json.dumps(list(value)),
    "in capitals": str.upper,
    "full width": lambda value: "".join(
        chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in value
    ),
}


@pytest.mark.parametrize(
    "value", [MAIL, "4111 1111 1111 1111", "+1 212 736 5000", "11010519491231002X", "536-90-4399"]
)
@pytest.mark.parametrize("how", WAYS)
def test_disguises(how: str, value: str) -> None:
    one = vault()
    token = one.hide(value)
    assert TOKEN.fullmatch(token)
    text = f"so: {WAYS[how](value)} end"
    assert one.guard(f"so: {value} end") == (f"so: {token} end", [])
    found, findings = one.guard(text)
    assert TOKEN.search(found), found
    hidden = TOKEN.sub("", found)
    assert len([sign for sign in hidden if sign.isalnum()]) <= 24, found
    if token in found and WAYS[how](value) not in (value, value.upper()):
        assert {each.token for each in findings} >= {token}
    assert value not in repr(findings)


@pytest.mark.parametrize(
    "text",
    [
        "0" * 1_000_000,
        "@" * 200_000,
        "a@" * 100_000,
        "1." * 200_000,
        "1-" * 200_000,
        "+1 " * 100_000,
        "a" * 300_000 + "@example",
        ":" * 200_000,
        "<EMAIL:" * 50_000,
        "%40" * 100_000,
        "\\u0041" * 60_000,
        "QUJD" * 100_000,
        "(" * 100_000,
    ],
)
def test_hostile_text_takes_no_time(text: str) -> None:
    one = vault()
    one.hide(MAIL)
    start = time.process_time()
    one.guard(text)
    assert time.process_time() - start < 30  # a pattern that backtracks takes hours


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=30), st.sampled_from([row["text"] for row in ROWS])), max_size=6))
def test_any_text_comes_back(parts: list[str]) -> None:
    one = vault()
    text = "\n".join(parts)
    assert one.reveal(one.hide(text)) == text
    found, _ = one.guard(text)
    assert one.hide(found) == found or one.reveal(one.hide(found)) == one.reveal(found)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_live_output_in_any_pieces(data: Any) -> None:
    text = f"first line\nmail {MAIL} and\nlast 536-90-4399 end"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    one = vault()
    stream = one.stream()
    said = (
        "".join(stream.feed(text[a:b]) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))
        + stream.close()
    )
    assert MAIL not in said
    assert "536-90" not in said
    assert one.reveal(said) == text


def test_live_output_is_not_held_back_for_ever() -> None:
    stream = vault().stream()
    assert stream.feed("50 %\r") == "50 %\r"
    assert stream.feed("no end") == ""
    assert stream.feed(" x" * LONGEST_LINE) != ""


def test_json() -> None:
    one = vault()
    value = {"phone": "6505550188", "n": 13812345678, "list": [MAIL, 1.5, None, True], MAIL: 7, "small": 42}
    hidden = one.hide_json(value)
    words = json.dumps(hidden)
    for known in ("6505550188", "13812345678", MAIL):
        assert known not in words
    assert hidden["small"] == 42
    assert hidden["list"][1:] == [1.5, None, True]
    back = one.reveal_json(hidden)
    assert back["phone"] == "6505550188"
    assert back["list"][0] == MAIL


def test_kinds_and_patterns_of_the_user() -> None:
    one = vault(
        pii_kinds=("IP",), pii_patterns=(Pattern("STAFF", r"E-\d{6}"), Pattern("LUHN", r"\b\d{8}\b", "luhn"))
    )
    said = one.hide(f"{MAIL} E-123456 203.0.113.9 12345674 12345678")
    assert MAIL in said
    assert "<STAFF:" in said
    assert "<IP:" in said
    assert "<LUHN:" in said
    assert "12345678" in said


def test_a_pattern_that_never_ends_is_stopped(caplog: pytest.LogCaptureFixture) -> None:
    one = vault(pii_patterns=(Pattern("SLOW", r"(a+)+\$"),))
    start = time.process_time()
    said = one.hide("a" * 5000 + f" {MAIL}")
    assert time.process_time() - start < 20
    assert "<EMAIL:" in said
    assert "SLOW" in caplog.text or time.process_time() - start < 1


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("[", "a list in JSON"),
        ("{}", "must be a list"),
        ('[{"name": "STAFF"}]', "name, regex"),
        ('[{"name": "staff", "regex": "x"}]', "capital letters"),
        ('[{"name": "STAFF", "regex": "("}]', "is none"),
        ('[{"name": "STAFF", "regex": "x*"}]', "empty text"),
        ('[{"name": "STAFF", "regex": "x", "validator": "magic"}]', "validator"),
    ],
)
def test_wrong_patterns_are_refused(value: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        load(
            environ={"SANDBOX_CHAT_PII_PATTERNS": value, "SANDBOX_CHAT_CONFIG_DIR": str(tmp_path)},
            folder=tmp_path,
        )


def test_a_kept_vault() -> None:
    one = vault()
    token = one.hide(MAIL)
    data = one.export_encrypted(Secret("right"))
    assert MAIL.encode() not in data
    other = vault()
    other.take_encrypted(data, Secret("right"))
    assert other.reveal(token) == MAIL
    assert other.hide(MAIL) == token
    for wrong in (data[:-1], data[:30], b"", data[:-1] + bytes([data[-1] ^ 1])):
        with pytest.raises(CannotOpen):
            other.take_encrypted(wrong, Secret("right"))
    with pytest.raises(CannotOpen, match="another one"):
        other.take_encrypted(data, Secret("wrong"))


def test_many_threads() -> None:
    one = vault()
    said: list[str] = []

    def work() -> None:
        said.extend(one.guard(f"user{number}@example.com and {MAIL}")[0] for number in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.count == 51
    assert len(set(said)) == 50


# --- what an attack found ---------------------------------------------------------------------------------


def on() -> Vault:
    return Vault(Settings(pii="on"))


def test_members_that_become_alike_stay_two() -> None:
    vault = on()
    token = vault.hide("kim.lee@example.org")
    hidden = vault.hide_json({"kim.lee@example.org": "DROP TABLE users", token: "benign"})
    assert list(hidden.values()) == ["DROP TABLE users", "benign"]
    assert all("kim" not in name for name in hidden)


@pytest.mark.parametrize("depth", [150, 205, 400, 5000])
def test_nothing_is_too_deep_to_be_hidden(depth: int) -> None:
    value: Any = "kim.lee@example.org"
    for _ in range(depth):
        value = [value]
    hidden = on().hide_json(value)
    while isinstance(hidden, list):
        hidden = hidden[0]
    assert "kim" not in hidden


def test_what_only_looks_like_a_token_is_text() -> None:
    vault = on()
    vault.hide("call 13812345678")
    for forged in ("<P13812345678:aaaaaaaaaa>", "<X13812345678:bbbbbbbbbb>"):
        assert "13812345678" not in vault.hide(forged)
        assert "13812345678" not in vault.guard(forged)[0]
    token = vault.hide("13812345678")
    assert vault.hide(token) == token


@pytest.mark.parametrize(
    "text",
    [
        "/home/ann@corp.com/x",
        "https://x.org/u/ann@corp.com",
        "s3://bucket/ann@corp.com/f",
        "https://x.org?e=ann@corp.com",
        "https://x.org/#ann@corp.com",
        "-ann@corp.com",
        "4012888888881881.0",
    ],
)
def test_values_in_other_places(text: str) -> None:
    hidden = on().hide(text)
    assert "ann@corp.com" not in hidden
    assert "4012888888881881" not in hidden


@pytest.mark.parametrize(
    "text", ["postgres://ann@corp.com/db", "https://user@host.com/", "git@github.com:x/y"]
)
def test_users_of_addresses_stay(text: str) -> None:
    assert on().hide(text) == text


def test_numbers_of_json_that_are_no_text() -> None:
    hidden = on().hide_json(
        {
            "phone": 4155552671,
            "mobile": 13912345678.0,
            "ssn": 219099999,
            "rate": 0.5,
            "n": 12,
            "nan": float("nan"),
        }
    )
    for name in ("phone", "mobile", "ssn"):
        assert str(hidden[name]).startswith("<"), hidden
    assert (hidden["rate"], hidden["n"]) == (0.5, 12)


def test_a_long_line_is_not_cut_within_a_value() -> None:
    for before in (LONGEST_LINE - 30, LONGEST_LINE - 5, LONGEST_LINE + 5):
        stream = on().stream()
        line = ("ab" * before)[: before - 1] + "," + "user1003@example.com" + "," + "x," * LONGEST_LINE
        out = "".join(stream.feed(line[at : at + 7]) for at in range(0, len(line), 7)) + stream.close()
        assert "user1003" not in out
        assert "<EMAIL:" in out
