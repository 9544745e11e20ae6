"""Failures of the agent by their kind: what the agent's program says of them, read once, here."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from sandbox_chat.agent.endpoint import Endpoint
from sandbox_chat.events import About
from sandbox_chat.failures import recorded
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean, clean_line

DETAIL_LIMIT = 300
"""Characters of a server's own words that are quoted."""
TITLE_WITHIN = 10_000
"""Characters of a web page in which its title is looked for: that takes long where many begin and none ends."""
CLAUDE_HOST = "api.anthropic.com"
_PREFIX = re.compile(
    r"^(?:failed to authenticate\. )?api error: (?:\d{3} |request rejected \(\d{3}\) · )?", re.IGNORECASE
)
# What the CLI adds for its own users; it names settings and commands that this program has not.
_SUFFIX = re.compile(
    r"(?:This is a server-side issue, usually temporary|Learn more:|Request ID:).*$", re.DOTALL
)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_SIGNAL = re.compile(r"\bSIG[A-Z]+\b")
# Names of failures of the network, as the CLI's runtime writes them.
_NO_NAME = ("enotfound", "eai_again", "getaddrinfo")
_TLS = (
    "certificate",
    "self-signed",
    "unable_to_verify",
    "cert_",
    "_cert",
    "wrong version number",
    "ssl",
    "tls",
    "eproto",
)
_NO_MESSAGES = ("malformed response", "html", "unexpected token", "not valid json", "json parse")
_CUT = ("econnreset", "socket hang up", "terminated", "connection closed", "premature close", "aborted")
_NETWORK = (
    "unable to connect",
    "can't reach",
    "fetch failed",
    "network",
    "connection",
    "ehostunreach",
    "enetunreach",
)
_QUOTED = (
    "bad_request",
    "model_unknown",
    "forbidden",
    "rate_limit",
    "server",
    "refusal",
    "cli_failed",
)
"""Kinds in which the server's own words say more than ours."""
_CODED = ("tls", "proxy", "unreachable")
"""Kinds in which the system's name of the failure is quoted; the CLI's words about it are for its own users."""
_CODE = re.compile(r"\(([A-Z][A-Z0-9_]{3,60})\)")


class AgentError(Exception):
    """The agent could not be started or has failed. The message is a sentence for the user; ``kind`` as in ``Trouble``."""

    def __init__(self, text: str, kind: str = "", about: About = ()) -> None:
        super().__init__(text)
        self.kind = kind
        self.about = about


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is said of a failure: its kind (a name in ``words/failures.py``) and the values for that text."""

    kind: str
    about: About = ()

    @property
    def text(self) -> str:
        """The sentences, in English."""
        return recorded(self.kind, self.about)

    def as_error(self) -> AgentError:
        """Return it as an exception."""
        return AgentError(self.text, self.kind, self.about)


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


def trouble(kind: str, settings: Settings, **values: object) -> Trouble:
    """Return a trouble whose values are one clean line each, without credentials."""
    return Trouble(
        kind, tuple((name, clean_line(settings.scrub(str(value)), 500)) for name, value in values.items())
    )


def turn_trouble(failure: Failure, endpoint: Endpoint, settings: Settings, *, model: str) -> Trouble:
    """Return what to say of a failed turn, with the server's own words where they help."""
    kind = _kind(failure, endpoint)
    words = own_words(failure.text, settings)
    if kind == "unknown" and not words:
        words = failure.subtype or failure.reason or "no reason was given"
    values = {
        "url": endpoint.base_url,
        "host": urlsplit(endpoint.base_url).hostname or CLAUDE_HOST,
        "model": model,
        "said": _said(kind, words),
        "status": failure.status or _USUAL.get(kind, 0),
        "seconds": f"{settings.request_timeout:g}",
        "steps": settings.max_turns,
        "reason": words,
    }
    wanted = {"url", "model", *_USED.get(kind, ())} if kind not in _PLAIN else set(_USED.get(kind, ()))
    return trouble(kind, settings, **{name: value for name, value in values.items() if name in wanted})


_USUAL = {"model_unknown": 404, "overloaded": 529}
"""HTTP status of a kind when the CLI tells only the kind."""
_PLAIN = ("max_turns", "unknown", "declined", "no_login")
"""Kinds whose text names neither the endpoint nor the model."""
_USED = {
    **dict.fromkeys((*_QUOTED, *_CODED), ("said",)),
    "model_unknown": ("said", "status"),
    "server": ("said", "status"),
    "refusal": ("said", "status"),
    "overloaded": ("status",),
    "no_answer": ("seconds",),
    "no_name": ("host",),
    "max_turns": ("steps",),
    "unknown": ("reason",),
}
"""Values of a kind's text, beside where the model is and its name."""


def own_words(text: str, settings: Settings) -> str:
    """Return the words of a server or of the agent's program for a quotation: one line, bounded, without credentials.

    Of an error in JSON the message is left, of a web page its title.
    """
    words = _SUFFIX.sub("", _PREFIX.sub("", text.strip()))
    start = words.find("{")
    if start >= 0 and (found := _message(words[start:])):
        words = found
    if "<html" in words.lower() or "<!doctype" in words.lower():
        page = _TITLE.search(words, 0, TITLE_WITHIN)
        words = page[1] if page else ""
    return clean_line(settings.scrub(words), DETAIL_LIMIT).strip().rstrip(".")


def retry_trouble(status: int | None) -> Trouble:
    """Return in a few words why a request is tried again."""
    if status in (401, 408, 429, 529):
        return Trouble(f"again_{status}")
    if status is not None and status >= 500:
        return Trouble("again_server", (("status", str(status)),))
    if status:
        return Trouble("again_status", (("status", str(status)),))
    return Trouble("again_cut")


def not_started(words: str) -> AgentError:
    """Return that the agent's program could not be started, with its words."""
    return Trouble("cli_failed", (("said", clean_line(words, DETAIL_LIMIT).rstrip(".")),)).as_error()


def scrubbed(error: AgentError, settings: Settings) -> AgentError:
    """Return an error without credentials, and clean."""
    about = tuple((name, settings.scrub(value)) for name, value in error.about)
    return AgentError(clean(settings.scrub(str(error))), error.kind, about)


def unanswered(error: AgentError, settings: Settings) -> Trouble:
    """Return what to say of a prompt that the agent never got."""
    if error.kind:
        return Trouble(error.kind, error.about)
    return trouble("unknown", settings, reason=str(error).rstrip("."))


def loss_trouble(reason: str, settings: Settings) -> Trouble:
    """Return what to say when the agent's program ended in the middle of an answer; ``reason`` as its connection gives it."""
    if "too long or damaged" in reason:
        return Trouble("line_too_long")
    found = _SIGNAL.search(reason)
    return trouble("cli_lost", settings, reason=found[0] if found else reason or "no reason was given")


def _message(text: str) -> str:
    """Return the message of an error in JSON, empty if there is none."""
    try:
        body = json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):  # no JSON, or nested without end
        return ""
    for _ in range(3):
        if not isinstance(body, dict):
            break
        if isinstance(body.get("message"), str):
            return str(body["message"])
        body = body.get("error")
    return body if isinstance(body, str) else ""


def _said(kind: str, words: str) -> str:
    """What is quoted in a text of that kind: nothing where the CLI says no more than we do."""
    if kind in _CODED:
        found = _CODE.search(words)
        return found[1] if found else ""
    return words if kind in _QUOTED and "issue with the selected model" not in words else ""


def _kind(failure: Failure, endpoint: Endpoint) -> str:
    text, status = failure.text.lower(), failure.status
    if failure.subtype == "error_max_turns":
        return "max_turns"
    if failure.kind == "billing_error" or "credit balance" in text or status == 402:
        return "no_credit"
    if failure.reason == "prompt_too_long" or "prompt is too long" in text:
        return "too_long"
    if status == 413 or "request too large" in text:
        return "too_large"
    if failure.kind == "model_not_found" or status == 404 or (status == 400 and _names_model(text)):
        return "model_unknown"
    if status == 407:
        return "proxy"
    if status == 403:
        return "forbidden"
    if failure.kind == "authentication_failed" or status == 401 or "not logged in" in text:
        return _no_access(endpoint)
    if status == 429 or failure.kind == "rate_limit":
        return "rate_limit"
    if status == 529 or failure.kind == "overloaded" or (status >= 500 and "overloaded" in text):
        return "overloaded"
    if status >= 500:
        return "server"
    if status == 400:
        return "bad_request"
    if status > 400:
        return "refusal"
    return _network_kind(text)


def _names_model(text: str) -> bool:
    """True when a refusal is about the model's name."""
    return "model" in text and any(
        words in text for words in ("not support", "unsupported model", "unknown model", "not exist", "not found", "invalid model")
    )  # fmt: skip


def _network_kind(text: str) -> str:
    """The kind of a failure without an HTTP status, by the words of the CLI."""
    if "econnrefused" in text:
        return "refused"
    if any(word in text for word in _NO_NAME):
        return "no_name"
    if "err_proxy" in text or "through your proxy" in text:
        return "proxy"
    if "empty body" in text:
        return "empty"
    if any(word in text for word in _NO_MESSAGES):
        return "no_messages"
    if "timed out" in text or "timeout" in text:
        return "no_answer"
    if any(word in text for word in _TLS):
        return "tls"
    if any(word in text for word in _CUT):
        return "cut"
    if any(word in text for word in _NETWORK):
        return "unreachable"
    if "can't help with this" in text or "usage policy" in text:
        return "declined"
    return "unknown"


def _no_access(endpoint: Endpoint) -> str:
    if endpoint.use_login:
        return "no_login"
    if endpoint.auth_token:
        return "token_refused"
    return "key_refused" if endpoint.api_key else "no_credential"
