"""Texts of failures: whole in both languages, recorded in English, shown in the language that is set."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from sandbox_chat import failures, words
from sandbox_chat.event_json import from_json, to_json
from sandbox_chat.events import About, Notice, Retry, TurnFinished
from sandbox_chat.words.failures import EN

KINDS = [name.removeprefix("title_") for name in EN if name.startswith("title_")]
AGAIN = [name for name in EN if name.startswith("again_")]
ABOUT: About = (
    ("url", "https://gateway.example.com"), ("model", "some-model-1"), ("said", "slow down {x}"), ("status", "503"),
    ("seconds", "600"), ("steps", "30"), ("host", "gateway.example.com"), ("reason", "SIGKILL"), ("system", "Linux x86_64"),
    ("count", "3"), ("spent", "$1.02"), ("limit", "$1.00"), ("percent", "80"),
)  # fmt: skip


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    yield
    words.use("en")


def finished(kind: str, about: About = ABOUT, error: str = "") -> TurnFinished:
    return TurnFinished(
        turn_id="t", subtype="success", is_error=True, interrupted=False, num_turns=1, duration_ms=1, cost_usd=None,
        total_cost_usd=None, error=error or failures.recorded(kind, about), kind=kind, about=about,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_says_what_happened_and_what_to_do(kind: str) -> None:
    text = failures.recorded(kind, ABOUT)
    title, _, rest = text.partition(". ")
    assert len(title) <= 40
    assert 40 <= len(rest) <= 420
    assert not re.search(r"[{}](?!x)", text.replace("{x}", ""))
    assert not re.search(r"\s{2}|\s[.,;:]", text)
    words.use("zh")
    shown = failures.shown(finished(kind))
    assert shown != text
    assert re.match(r"[\u4e00-\u9fff\w ]+(（\d+）)?：", shown), shown
    assert not re.search(r"(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])|[，。；：！？]{2}", shown), shown


@pytest.mark.parametrize("kind", KINDS)
def test_without_an_address_it_is_claude_and_without_a_name_the_default_model(kind: str) -> None:
    about = tuple(pair for pair in ABOUT if pair[0] not in ("url", "model", "said"))
    for language in ("en", "zh"):
        words.use(language)
        text = failures.shown(finished(kind, about))
        assert "It said" not in text and "说明" not in text
        assert "  " not in text


@pytest.mark.parametrize("kind", AGAIN)
def test_reasons_of_a_retry(kind: str) -> None:
    event = Retry(reason=failures.recorded(kind, ABOUT), attempt=1, delay_ms=0, kind=kind, about=ABOUT)
    assert failures.shown(event) == event.reason
    words.use("zh")
    assert re.search("[\u4e00-\u9fff]", failures.shown(event))


def test_the_recorded_text_is_english_whatever_is_spoken() -> None:
    words.use("zh")
    assert failures.recorded("overloaded", ABOUT[3:4]).startswith(
        "Overloaded (503). Claude's endpoint is overloaded."
    )


@pytest.mark.parametrize(
    ("kind", "about"),
    [
        ("of a later version", ABOUT),
        ("", ()),
        ("server", ()),  # a value is missing
        ("server", (("status", "500"), ("said", "{0.__class__} {x!r}"))),
    ],
)
def test_what_cannot_be_translated_is_shown_as_recorded(kind: str, about: About) -> None:
    event = finished(kind, about, error="As it was recorded.")
    notice = Notice(level="error", text="As it was recorded.", kind=kind, about=about)
    words.use("zh")
    if about and kind == "server":
        assert "{0.__class__} {x!r}" in failures.shown(event)  # values are no templates
    else:
        assert failures.shown(event) == failures.shown(notice) == "As it was recorded."


def test_a_journal_keeps_kind_and_values_and_an_older_one_has_none() -> None:
    event = finished("rate_limit")
    assert from_json(to_json(event)) == event
    old = to_json(event).replace('"kind":"rate_limit",', "")
    old = re.sub(r',?"about":\[.*?\]\]', "", old)
    back = from_json(old)
    assert isinstance(back, TurnFinished)
    assert (back.kind, back.about, back.error) == ("", (), event.error)
    with pytest.raises(ValueError):
        from_json(re.sub(r'"about":\[.*?\]\]', '"about":[1]', to_json(event)))
