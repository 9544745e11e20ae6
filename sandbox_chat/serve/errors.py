"""What can go wrong with a request: one table of codes, each with its status, for the answers and for the description."""

from __future__ import annotations

ERRORS: dict[str, tuple[int, str]] = {
    "not_json": (400, "The body is not JSON in UTF-8, or an object in it has a key twice."),
    "unauthorized": (401, "The token is missing or wrong."),
    "wrong_origin": (403, "The request comes from a web page of another site."),
    "not_found": (404, "There is no such path."),
    "no_session": (404, "The user has no such session, or it was removed."),
    "no_file": (404, "The user has no such session, or it has no such file."),
    "method_not_allowed": (405, "The path does not know this method; the header Allow names those that it knows."),
    "slow_body": (408, "The body did not come in time."),
    "session_in_use": (409, "Another program has this session open."),
    "session_removed": (409, "The session was removed while the task waited for it."),
    "too_large": (413, "The body is larger than the setting http_body_kb allows."),
    "not_json_type": (415, "The Content-Type is not application/json in UTF-8, or the body is compressed."),
    "wrong_host": (421, "The header Host names another machine; the server listens on loopback."),
    "invalid": (422, "A field or parameter is missing, unknown, or not as it must be; the message names it."),
    "queue_full": (429, "As many tasks wait as the setting http_queue allows; Retry-After says when to come again."),
    "internal": (500, "A fault of the server; its log says more."),
    "draining": (503, "The server is ending; Retry-After says when another one may be there."),
    "unavailable": (503, "The session or its sandbox could not be started; the message says why."),
}  # fmt: skip
"""Codes of errors: the HTTP status, and what it means."""


class Refused(Exception):
    """A request that is not carried out. ``code`` is one of ``ERRORS``; ``message`` is a sentence for its sender."""

    def __init__(self, code: str, message: str = "", *, retry_after: int = 0, allow: str = "") -> None:
        self.code = code
        self.status, about = ERRORS[code]
        self.message = message or about
        self.retry_after = retry_after
        self.allow = allow
        super().__init__(self.message)

    @property
    def body(self) -> dict[str, dict[str, str]]:
        """The answer's body."""
        return {"error": {"code": self.code, "message": self.message}}
