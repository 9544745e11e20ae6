"""Failures of the agent in plain words: what happened, what it means, what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sandbox_chat.agent.endpoint import Endpoint
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean_line

DETAIL_LIMIT = 300
"""Characters of a server's own words that are quoted."""
_PREFIX = re.compile(r"^(?:failed to authenticate\. )?api error: (?:\d{3} )?", re.IGNORECASE)
# What the CLI adds for its own users; it names settings and commands that this program has not.
_SUFFIX = re.compile(
    r"\s*(?:This is a server-side issue, usually temporary|Learn more:|Request ID:).*$", re.DOTALL
)
_NO_WORDS = ("not logged in", "please run /login", "connection refused", "request timed out")


class AgentError(Exception):
    """The agent could not be started or has failed. The message is a sentence for the user."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How a turn failed, as the CLI reports it.

    ``kind`` is the error name of the synthetic answer, ``status`` the HTTP status (0 if there was none),
    ``reason`` the terminal reason, ``text`` the CLI's own words.
    """

    subtype: str = ""
    reason: str = ""
    status: int = 0
    kind: str = ""
    text: str = ""


def turn_error(failure: Failure, endpoint: Endpoint, settings: Settings, *, model: str) -> str:
    """Return the sentence to show for a failed turn, with the server's own words where they help."""
    where = f"the endpoint {endpoint.base_url}" if endpoint.base_url else "Claude's endpoint"
    named = f"the model {clean_line(model)}" if model else "the default model"
    words = _words(failure.text, settings)
    said = f' It said: "{words}".' if words else ""
    text = failure.text.lower()
    again = "Send the prompt again"

    if failure.subtype == "error_max_turns":
        return (
            f"The agent stopped after {settings.max_turns} steps, the limit for one prompt. "
            "Send another prompt to let it go on, or raise SANDBOX_CHAT_MAX_TURNS."
        )
    if failure.kind == "billing_error" or "credit balance" in text or failure.status == 402:
        return f"The account has no credit left, so {where} refused the request. Top it up, then send the prompt again."
    if failure.reason == "prompt_too_long" or "prompt is too long" in text:
        return (
            f"The conversation no longer fits into the context of {named}. Start a new session, "
            "or choose a model with a larger context."
        )
    if failure.status == 413 or "request too large" in text:
        return (
            f"The request was too large for {where}: pictures and long results add up. "
            "Start a new session to go on."
        )
    if failure.kind == "model_not_found" or failure.status == 404:
        return (
            f"{where[0].upper()}{where[1:]} does not know {named}, or does not offer it to this account.{_unless_own(said)} "
            "Set CLAUDE_MODEL (or --model) to a model that it offers; check ANTHROPIC_BASE_URL if you use a gateway."
        )
    if failure.status == 403:
        return f"{where[0].upper()}{where[1:]} refused access (403).{said} Check what the key may do, and the region."
    if failure.kind == "authentication_failed" or failure.status == 401 or "not logged in" in text:
        return _no_access(failure, endpoint, where)
    if failure.status == 429 or failure.kind == "rate_limit":
        return f"{where[0].upper()}{where[1:]} takes no more requests for now (429).{said} Wait a little. {again} then."
    if failure.status == 529 or failure.kind == "overloaded":
        return f"{where[0].upper()}{where[1:]} is overloaded (529). {again} in a moment."
    if failure.status >= 500:
        return (
            f"{where[0].upper()}{where[1:]} failed ({failure.status}), which is usually temporary.{said} "
            f"{again} in a moment; if it stays, look at the server's log."
        )
    if "refused" in text and "econnrefused" in text:
        return f"Nothing answers at {where}: the connection was refused. Check the address (ANTHROPIC_BASE_URL) and that the server runs."
    if "timed out" in text or "timeout" in text:
        return (
            f"No answer came from {where} within {settings.request_timeout:g} s. {again}; "
            "for a slow server raise SANDBOX_CHAT_REQUEST_TIMEOUT."
        )
    if any(word in text for word in ("enotfound", "eai_again", "getaddrinfo", "unable to connect", "econnreset", "fetch failed", "network", "connection")):  # fmt: skip
        return f"{where[0].upper()}{where[1:]} cannot be reached.{said} Check the network, the proxy and ANTHROPIC_BASE_URL."
    if "can't help with this" in text or "usage policy" in text:
        return "The model declined to answer because of its safety rules. Put the request differently, or start a new session."
    if failure.status == 400:
        return (
            f"{where[0].upper()}{where[1:]} did not accept the request (400).{said} "
            f"Often it does not support {named}: set CLAUDE_MODEL (or --model) to one that it offers."
        )
    if words:
        return f"The agent could not finish this turn: {words.rstrip('.')}. {again}."
    return f"The agent could not finish this turn ({failure.subtype or failure.reason or 'no reason was given'}). {again}."


def retry_reason(status: int | None, kind: str) -> str:
    """Return in a few words why a request is tried again."""
    reasons = {
        401: "the credentials were not accepted",
        408: "the request took too long",
        429: "too many requests for now",
        529: "the model is overloaded",
    }
    if status in reasons:
        return f"{reasons[status]} ({status})"
    if status is not None and status >= 500:
        return f"the server failed ({status})"
    if status:
        return f"the server answered {status}"
    return (
        "the connection was cut or got no answer"
        if kind in ("", "unknown")
        else clean_line(kind.replace("_", " "))
    )


def _no_access(failure: Failure, endpoint: Endpoint, where: str) -> str:
    if endpoint.use_login:
        return "The login of Claude Code was not found or has expired. Run `claude` and log in, then start again."
    if endpoint.auth_token:
        return f"{where[0].upper()}{where[1:]} did not accept the token (401). Check ANTHROPIC_AUTH_TOKEN, and that it belongs to this address."
    if endpoint.api_key:
        return f"{where[0].upper()}{where[1:]} did not accept the key (401). Check ANTHROPIC_API_KEY."
    return (
        f"{where[0].upper()}{where[1:]} wants a credential and none is set. "
        "Set ANTHROPIC_API_KEY, or ANTHROPIC_AUTH_TOKEN for a gateway."
    )


def _unless_own(said: str) -> str:
    """Drop the CLI's own sentence about a wrong model: ours says the same."""
    return "" if "issue with the selected model" in said else said


def _words(text: str, settings: Settings) -> str:
    words = _SUFFIX.sub("", _PREFIX.sub("", text.strip()))
    if any(part in words.lower() for part in _NO_WORDS):
        return ""
    return clean_line(settings.scrub(words), DETAIL_LIMIT).rstrip(".")
