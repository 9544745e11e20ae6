"""What is said of a cloud's errors: recognised by status and kind, never with a credential in it."""

from __future__ import annotations

import pytest
from e2b import exceptions

from sandbox_chat.sandbox import e2b_errors
from sandbox_chat.sandbox.e2b_errors import CloudError
from sandbox_chat.settings import Secret, Settings

SETTINGS = Settings(sandbox="e2b", e2b_api_key=Secret("e2b_0123456789abcdef"), e2b_domain="cloud.example")


class SandboxException(Exception):
    """As the client's, which older versions give no status."""


def test_addresses() -> None:
    assert e2b_errors.api_url(SETTINGS) == "https://api.cloud.example"
    assert e2b_errors.api_url(Settings()) == "https://api.e2b.app"
    assert e2b_errors.api_url(Settings(e2b_api_url="https://x.example/api")) == "https://x.example/api"


def test_status_of() -> None:
    assert e2b_errors.status_of(CloudError(502, "x")) == 502
    assert e2b_errors.status_of(SandboxException("405: Method Not Allowed")) == 405
    assert e2b_errors.status_of(SandboxException("127.0.0.1 refused")) == 0
    assert e2b_errors.status_of(ValueError("405: x")) == 0
    assert e2b_errors.status_of(exceptions.AuthenticationException("x")) == 401
    assert e2b_errors.status_of(exceptions.RateLimitException("x")) == 429
    assert e2b_errors.status_of(exceptions.ServiceBusyException("x")) == 503
    assert e2b_errors.status_of(exceptions.SandboxNotFoundException("x")) == 404


def test_gone_and_timeouts_are_told_apart() -> None:
    assert e2b_errors.is_gone(exceptions.SandboxNotFoundException("x"))
    assert e2b_errors.is_gone(CloudError(502, "The sandbox was not found"))
    assert not e2b_errors.is_gone(CloudError(502, "Bad gateway"))
    assert not e2b_errors.is_gone(CloudError(500, "not found"))
    assert e2b_errors.is_timeout(exceptions.TimeoutException("x"))
    assert e2b_errors.is_timeout(TimeoutError())
    assert not e2b_errors.is_timeout(exceptions.SandboxNotRunningException("x"))


def test_no_credential_and_no_control_byte_is_repeated() -> None:
    key = SETTINGS.e2b_api_key.reveal()
    for status in (400, 401, 403, 418, 429, 500):
        text = e2b_errors.create_failed(CloudError(status, f"key {key} \x1b[2J " + "x" * 5000), SETTINGS)
        assert key not in text
        assert "\x1b" not in text
        assert len(text) < 1200
        assert str(status) in text


def test_an_old_server_is_told_from_an_unknown_template() -> None:
    assert e2b_errors.old_api(CloudError(405, "Method Not Allowed"))
    assert e2b_errors.old_api(CloudError(404, "404 page not found"))
    assert not e2b_errors.old_api(CloudError(404, "template 'x' not found"))
    assert not e2b_errors.old_api(CloudError(401, ""))


def test_each_sentence_ends_and_says_what_to_do() -> None:
    texts = [
        e2b_errors.create_failed(CloudError(status), SETTINGS)
        for status in (400, 401, 403, 404, 405, 429, 500)
    ]
    texts += [e2b_errors.unreachable(OSError("refused"), SETTINGS), e2b_errors.gateway(30), e2b_errors.cut(3)]
    assert len(set(texts)) == len(texts)
    assert [text for text in texts if not text.endswith(".") or ".." in text or "  " in text] == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("invalid peer certificate: UnknownIssuer", "its certificate is not accepted"),
        ("received corrupt message of type InvalidContentType", "does not speak TLS"),
        ("dns error: failed to lookup address", "is not known"),
        ("Connection refused (os error 111)", "refused the connection"),
        ("something else", "cannot be reached (something else)"),
    ],
)
def test_unreachable(words: str, expected: str) -> None:
    assert expected in e2b_errors.unreachable(OSError(words), SETTINGS)
