"""What is taken out of texts, and what is not."""

from __future__ import annotations

import pytest

from sandbox_chat.journal.export.scrub import Scrubber

SCRUB = {"homes": ["/home/alice"], "user": "alice", "host": "alices-laptop.lan"}


def scrubbed(text: str) -> str:
    return Scrubber(secrets=["own-canary-value"], **SCRUB)(text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("own-canary-value", "[secret]"),
        ("sk-ant-api03-AbCdEf0123456789_-xyz", "[secret]"),
        ("sk-proj-AbCdEf0123456789", "[secret]"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "[secret]"),
        ("github_pat_11ABCDEFG0123456789_abc", "[secret]"),
        ("glpat-AbCdEf0123456789_-x", "[secret]"),
        ("xoxb-123456789012-abcdef", "[secret]"),
        ("hf_AbCdEfGhIjKlMnOpQrStUv", "[secret]"),
        ("e2b_0123456789abcdef0123", "[secret]"),
        ("AKIAIOSFODNN7EXAMPLE", "[secret]"),
        ("AIzaSyA0123456789abcdefghijklmnopqrstuv", "[secret]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF_1", "[secret]"),
        ("sk_live_0123456789abcdefXYZ", "[secret]"),
        (
            "x\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----\ny",
            "x\n[secret]\ny",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIE cut", "[secret]"),
        ("Authorization: Bearer abc.DEF-123_456~7890", "Authorization: Bearer [secret]"),
        ("authorization: basic YWxpY2U6aHVudGVyMg==", "authorization: basic [secret]"),
        ("postgres://bob:hunter2@db/x", "postgres://bob:[secret]@db/x"),
        ("password=hunter2", "password=[secret]"),
        ("PASSWORD: hunter2,", "PASSWORD: [secret],"),
        ("passwd = 'hunter two'", "passwd = '[secret]'"),
        ('"password": "hunter2"', '"password": "[secret]"'),
        (r"{\"password\": \"hunter2\"}", r"{\"password\": \"[secret]\"}"),
        ("password = 12345678", "password = [secret]"),
        ('db_password: str = "hunter2"', 'db_password: str = "[secret]"'),
        ("MY_API_KEY=abcd1234", "MY_API_KEY=[secret]"),
        (
            "aws_secret_access_key = wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
            "aws_secret_access_key = [secret]",
        ),
        ("client_secret: 'a.b.c'", "client_secret: '[secret]'"),
        ("os.environ['API_TOKEN'] = 'abc'", "os.environ['API_TOKEN'] = '[secret]'"),
        ("--token=abcdef", "--token=[secret]"),
        ("/home/alice/data.csv", "[home]/data.csv"),
        ("'/home/alice'", "'[home]'"),
        ("-home-alice-work", "[home]-work"),
        ("I am alice, on alices-laptop.lan (alices-laptop).", "I am [user], on [host] ([host])."),
        ("alice@alices-laptop:~$", "[user]@[host]:~$"),
    ],
)
def test_taken_out(text: str, left: str) -> None:
    assert scrubbed(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "",
        "total = sum(range(1, 101))",
        "max_tokens=1000, tokens: 412",
        "token = next(tokens)",
        "token = tokens[0]",
        "if token == value:",
        "password = getpass()",
        "password = os.environ['X']",
        "password = settings.database.password",
        "password = None",
        "key = 'abc'; monkey=12; keys: 3",
        "the secret of the sea, a token of thanks",
        "/home/alicea/x and /home/bob",
        "malice, alicex, alice_y",
        "skeleton-key risk-averse ask-ant-x",
        "square root, user manual",
        "a@b.example http://example.org:80/x",
        "[secret] password=[secret]",
        "0123456789abcdef0123456789abcdef01234567",
    ],
)
def test_left_as_it_is(text: str) -> None:
    assert scrubbed(text) == text


def test_what_was_taken_out_is_counted() -> None:
    scrub = Scrubber(secrets=["own-canary-value", "abc"], **SCRUB)  # type: ignore[arg-type]
    scrub("own-canary-value abc password=hunter2 /home/alice alice")
    scrub.data({"a": ["/home/alice/x", 3], "/home/alice": None})
    assert scrub.counts == {"[secret]": 2, "[home]": 3, "[user]": 1}


def test_data_is_scrubbed_by_its_names_too() -> None:
    scrub = Scrubber()
    given = {"password": "hunter2", "nested": [{"api_key": "ab'c-not-quoted"}, {"token": "y" * 9}], "max": 1}
    assert scrub.data(given) == {
        "password": "[secret]",
        "nested": [{"api_key": "[secret]"}, {"token": "[secret]"}],
        "max": 1,
    }


def test_scrubbing_twice_changes_nothing_more() -> None:
    text = (
        "password=hunter2 /home/alice/x alice@alices-laptop bearer abcdefgh12345678 sk-ant-0123456789abcdef"
    )
    once = scrubbed(text)
    assert scrubbed(once) == once


@pytest.mark.parametrize("name", ["root", "user", "ubuntu", "ab", "", "123"])
def test_names_that_are_words_stay(name: str) -> None:
    assert Scrubber(user=name, host=name)(f"the {name} of it") == f"the {name} of it"


def test_one_that_is_off_changes_nothing() -> None:
    off = Scrubber.none()
    assert off("password=hunter2") == "password=hunter2"
    assert off.data({"password": "hunter2"}) == {"password": "hunter2"}
    assert off.counts == {}


def test_this_computer_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/carol")
    monkeypatch.setattr("getpass.getuser", lambda: "carol")
    monkeypatch.setattr("socket.gethostname", lambda: "carols-desk.example.org")
    scrub = Scrubber.of_here(["own-canary-value"])
    assert scrub("/home/carol/a carol carols-desk own-canary-value") == "[home]/a [user] [host] [secret]"


def test_long_texts_take_no_longer_than_their_length() -> None:
    """Counts work, not time: a pattern that looks back and forth would not come to an end here."""
    for piece in (
        "a",
        "_a",
        "-",
        "password",
        "password ",
        "eyJ",
        "sk-",
        "-----BEGIN ",
        "://",
        "a:/",
        "' \\'",
    ):
        scrubbed(piece * (200_000 // len(piece)))
