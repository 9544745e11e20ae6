"""Sentences about failed turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.agent.endpoint import Endpoint
from sandbox_chat.agent.errors import Failure, retry_reason, turn_error
from sandbox_chat.settings import Secret, Settings

CLAUDE = Endpoint("", Secret(""), Secret("sk-canary-123456"), "m")


def test_a_credential_in_the_servers_words_is_scrubbed() -> None:
    settings = Settings(anthropic_api_key=Secret("sk-canary-123456"))
    failure = Failure(status=400, text="API Error: 400 bad key sk-canary-123456 given")
    sentence = turn_error(failure, CLAUDE, settings, model="m")
    assert "sk-canary" not in sentence
    assert "[secret]" in sentence


def test_unknown_failures_quote_the_agent() -> None:
    assert "odd thing" in turn_error(Failure(text="odd thing"), CLAUDE, Settings(), model="")
    assert "error_during_execution" in turn_error(
        Failure(subtype="error_during_execution"), CLAUDE, Settings(), model=""
    )


@given(
    st.builds(
        Failure,
        subtype=st.sampled_from(["success", "error_max_turns", "error_during_execution", ""]),
        reason=st.sampled_from(["api_error", "prompt_too_long", "image_error", ""]),
        status=st.sampled_from([0, 400, 401, 402, 403, 404, 413, 422, 429, 500, 503, 529]),
        kind=st.sampled_from(
            ["", "unknown", "rate_limit", "overloaded", "authentication_failed", "billing_error"]
        ),
        text=st.text(max_size=2000),
    )
)
def test_always_one_clean_bounded_sentence(failure: Failure) -> None:
    sentence = turn_error(failure, CLAUDE, Settings(), model="m")
    assert 20 < len(sentence) < 900
    assert "\n" not in sentence
    assert "\x1b" not in sentence


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (429, "rate_limit", "too many"),
        (529, "overloaded", "overloaded"),
        (503, "server_error", "failed (503)"),
        (None, "unknown", "cut"),
        (409, "x", "409"),
        (None, "some_thing", "some thing"),
    ],
)
def test_reasons_of_a_retry(status: int | None, kind: str, words: str) -> None:
    assert words in retry_reason(status, kind)


def test_a_credential_in_the_address_is_scrubbed_from_the_turns_error() -> None:
    from types import SimpleNamespace
    from typing import Any, cast

    from sandbox_chat.agent.ledger import Ledger
    from sandbox_chat.agent.translate import Translator
    from sandbox_chat.agent.turns import Reporter

    secret = Secret("canary-123456")
    endpoint = Endpoint("http://localhost:1/canary-123456", secret, Secret(""), "m")
    told: list[Any] = []
    settings = Settings(anthropic_auth_token=secret)
    report = Reporter(settings, endpoint, told.append, Ledger(resumed=False, earlier=None))
    report.translator = cast(
        Translator, SimpleNamespace(failure=lambda _: Failure(status=404), context_used=0, context_max=0)
    )
    result: Any = SimpleNamespace(
        model_usage=None, total_cost_usd=None, usage={}, is_error=True, subtype="success", num_turns=1
    )
    turn: Any = SimpleNamespace(turn_id="t", start=0.0)
    report.finish(turn, result, aborted=False, context={}, model="m")
    assert "canary" not in told[-1].error
    assert "[secret]" in told[-1].error
