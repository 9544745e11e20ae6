"""Failures of the agent: their kinds by what the agent's program says, and sentences that are clean."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.agent.endpoint import Endpoint
from sandbox_chat.agent.errors import (
    AgentError,
    Failure,
    loss_trouble,
    not_started,
    own_words,
    retry_trouble,
    scrubbed,
    turn_trouble,
    unanswered,
)
from sandbox_chat.agent.ledger import Ledger
from sandbox_chat.agent.turns import Reporter
from sandbox_chat.settings import Secret, Settings

CANARY = "sk-canary-123456"
CLAUDE = Endpoint("", Secret(""), Secret(CANARY), "m")
SETTINGS = Settings(anthropic_api_key=Secret(CANARY))


def kind(text: str = "", status: int = 0, **failure: str) -> str:
    return turn_trouble(Failure(status=status, text=text, **failure), CLAUDE, SETTINGS, model="m").kind


@pytest.mark.parametrize(
    ("text", "status", "expected"),
    [
        ("API Error: 400 model: no-such is not supported by this server", 400, "model_unknown"),
        ("API Error: 400 The model `x` does not exist", 400, "model_unknown"),
        ("API Error: 400 messages: too many", 400, "bad_request"),
        ("API Error: 418 a teapot", 418, "refusal"),
        ("API Error: 407 Proxy Authentication Required", 407, "proxy"),
        ("API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)", 0, "refused"),
        ("API Error: Unable to connect to API (ENOTFOUND)", 0, "no_name"),
        ("API Error: getaddrinfo EAI_AGAIN x", 0, "no_name"),
        ("API Error: Unable to connect to API: self signed certificate", 0, "tls"),
        ("API Error: Unable to connect to API (UNABLE_TO_VERIFY_LEAF_SIGNATURE)", 0, "tls"),
        ("Request timed out. Check your internet connection", 0, "no_answer"),
        ("API Error: Connection closed mid-response", 0, "cut"),
        ("API Error: Unexpected token '<', \"<!doctype\" is not valid JSON", 0, "no_messages"),
        ("API Error: fetch failed", 0, "unreachable"),
        ("something else", 0, "unknown"),
    ],
)  # fmt: skip
def test_kinds(text: str, status: int, expected: str) -> None:
    assert kind(text, status) == expected


def test_a_credential_is_in_no_value_and_no_text() -> None:
    endpoint = Endpoint(f"http://localhost:1/{CANARY}", Secret(""), Secret(CANARY), "m")
    failure = Failure(status=400, text=f"API Error: 400 bad key {CANARY} given")
    found = turn_trouble(failure, endpoint, SETTINGS, model=CANARY)
    assert CANARY not in f"{found.about} {found.text}"
    assert "[secret]" in found.text
    lost = scrubbed(not_started(f"no {CANARY}"), SETTINGS)
    assert CANARY not in f"{lost} {lost.about}"


def test_unknown_failures_quote_the_agent() -> None:
    found = turn_trouble(Failure(text="odd thing"), CLAUDE, SETTINGS, model="")
    assert found.kind == "unknown" and "odd thing" in found.text
    silent = turn_trouble(Failure(subtype="error_during_execution"), CLAUDE, SETTINGS, model="")
    assert "error_during_execution" in silent.text


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ('API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', "Overloaded"),
        ('API Error: 500 {"error":"plain"}', "plain"),
        ('API Error: 500 {"error":{"message":"deep \\u001b[2J"}} Request ID: x', "deep ␛[2J"),
        ("API Error: 502 <html><head><title>502\nBad Gateway</title></head></html>", "502 Bad Gateway"),
        ("API Error: 502 <!DOCTYPE html><p>no title", ""),
        ("Failed to authenticate. API Error: 403 no access.", "no access"),
        ("API Error: 400 {not json", "{not json"),
        ("x" * 1000, "x" * 299 + "…"),
    ],
)  # fmt: skip
def test_what_is_quoted(raw: str, words: str) -> None:
    assert own_words(raw, SETTINGS) == words


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("x" + "\n" * 40_000 + "y", "x y"),
        ("x" + "\n" * 40_000 + "Request ID: z", "x"),
        ("<html>" + "<title>" * 40_000, ""),
        ("bad " + '{"error":' * 40_000, None),
        ("bad " + "[{" * 40_000, None),
    ],
    ids=["blank", "blank-id", "titles", "errors", "lists"],
)
def test_no_words_of_a_server_take_long_to_be_read(raw: str, words: str | None) -> None:
    began = time.process_time()
    said = own_words(raw, SETTINGS)
    assert time.process_time() - began < 1.0
    assert said == words if words is not None else said.startswith("bad ")


@given(
    st.builds(
        Failure,
        subtype=st.sampled_from(["success", "error_max_turns", "error_during_execution", ""]),
        reason=st.sampled_from(["api_error", "prompt_too_long", "image_error", ""]),
        status=st.sampled_from([0, 400, 401, 402, 403, 404, 407, 413, 422, 429, 500, 503, 529]),
        kind=st.sampled_from(
            ["", "unknown", "rate_limit", "overloaded", "authentication_failed", "billing_error"]
        ),
        text=st.one_of(
            st.text(max_size=2000),
            st.builds(lambda text: json.dumps({"error": {"message": text}}), st.text(max_size=50)),
        ),
    ),
    st.text(max_size=50),
)
def test_always_clean_bounded_sentences(failure: Failure, model: str) -> None:
    found = turn_trouble(failure, CLAUDE, SETTINGS, model=model)
    assert 20 < len(found.text) < 1000
    assert "\n" not in found.text and "\x1b" not in found.text
    assert all("\n" not in value for _, value in found.about)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "credentials"),
        (429, "too many"),
        (529, "overloaded"),
        (503, "failed (503)"),
        (409, "409"),
        (None, "cut"),
    ],
)
def test_reasons_of_a_retry(status: int | None, words: str) -> None:
    assert words in retry_trouble(status).text


def test_the_agents_program_is_lost() -> None:
    assert "SIGKILL" in loss_trouble("it was ended by SIGKILL", SETTINGS).text
    assert "status 3" in loss_trouble("it ended with status 3", SETTINGS).text
    long = loss_trouble("it sent a message that was too long or damaged", SETTINGS)
    assert long.kind == "line_too_long"
    assert "no reason was given" in loss_trouble("", SETTINGS).text


def test_a_prompt_that_the_agent_never_got() -> None:
    assert unanswered(not_started("no room."), SETTINGS).kind == "cli_failed"
    other = unanswered(AgentError("The session is closed."), SETTINGS)
    assert other.kind == "unknown" and "The session is closed. Send" in other.text


def test_a_turn_tells_kind_and_values_with_its_sentence() -> None:
    secret = Secret("canary-123456")
    endpoint = Endpoint("http://localhost:1/canary-123456", secret, Secret(""), "m")
    told: list[Any] = []
    settings = Settings(anthropic_auth_token=secret)
    report = Reporter(settings, endpoint, told.append, Ledger(resumed=False, earlier=None))
    report.translator = cast(
        Any, SimpleNamespace(failure=lambda _: Failure(status=404), context_used=0, anchor="")
    )
    result: Any = SimpleNamespace(
        model_usage=None, total_cost_usd=None, usage={}, is_error=True, subtype="success", num_turns=1
    )
    turn: Any = SimpleNamespace(turn_id="t", start=0.0, steps=0)
    report.finish(turn, result, aborted=False, context={}, model="m")
    assert told[-1].kind == "model_unknown"
    assert dict(told[-1].about)["model"] == "m"
    assert "canary" not in f"{told[-1].error} {told[-1].about}"
    assert "[secret]" in told[-1].error
