"""Faults on demand: what the cloud does instead of answering properly."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import JSONResponse, Response

KINDS = (
    "create", "connect", "kill", "timeout", "list", "info", "pause", "resume",
    "run", "contexts", "files", "commands", "health", "any",
)  # fmt: skip

MESSAGES = {
    400: "Invalid request",
    401: "Invalid API key, please visit https://e2b.dev/docs/api-key for more information.",
    403: "You don't have access to this team",
    404: "Not found",
    405: "Method Not Allowed",
    409: "Conflict",
    429: "Rate limit exceeded, please try again later.",
    500: "Internal server error",
    502: "Bad gateway",
    503: "Service unavailable",
    504: "Gateway timeout",
}


@dataclass
class Fault:
    """One rule; see ``Cloud.fail``."""

    kind: str
    status: int
    times: int | None
    hang: bool
    after: float | None
    cut: bool
    delay: float
    message: str | None
    page: str | None
    headers: dict[str, str]

    def answer(self) -> Response:
        """As E2B words an error, or a proxy's page."""
        if self.page is not None:
            return Response(self.page, self.status, self.headers, media_type="text/html")
        body = {"code": self.status, "message": self.message or MESSAGES.get(self.status, "Error")}
        return JSONResponse(body, self.status, self.headers)


class Faults:
    """The rules that still hold, oldest first."""

    def __init__(self) -> None:
        self._rules: list[Fault] = []

    def add(self, fault: Fault) -> None:
        if fault.kind not in KINDS:
            raise ValueError(f"{fault.kind!r} is none of {', '.join(KINDS)}")
        self._rules.append(fault)

    def clear(self) -> None:
        self._rules.clear()

    def take(self, kind: str) -> Fault | None:
        """The rule for this request, used up by one."""
        for rule in self._rules:
            if rule.kind in (kind, "any"):
                if rule.times is not None:
                    rule.times -= 1
                    if rule.times <= 0:
                        self._rules.remove(rule)
                return rule
        return None
