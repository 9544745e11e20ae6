"""What a cloud's code interpreter says of one cell, message by message, gathered within the limits of a run."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import re
import time
from collections.abc import Mapping
from typing import Any

from sandbox_chat.sandbox import e2b_prelude
from sandbox_chat.sandbox.e2b_prelude import Told
from sandbox_chat.sandbox.gather import STREAMS, Run

MAX_TEXT = 1_000_000
"""Characters of one result's text; plain text beyond is cut, other kinds are left out."""
MAX_HTML = 24 << 20
"""The same of one result's HTML: plots bring their whole library with them."""
MAX_PICTURE = 32 << 20
_DEATHS = (
    "ContextRestarting",
    "ContextRestarted",
    "KernelDied",
    "DeadKernelError",
    "UnexpectedEndOfExecution",
)
_SIGNS = (*STREAMS, "result", "error", "number_of_executions")
_SGR = re.compile(r"\x1b\[[0-9;:]*m")
_TEXT_KINDS = {
    "text": "text/plain",
    "html": "text/html",
    "markdown": "text/markdown",
    "latex": "text/latex",
    "svg": "image/svg+xml",
    "json": "application/json",
}
_PICTURE_KINDS = {"png": "image/png", "jpeg": "image/jpeg"}


class Cell:
    """What came of one cell: output and results go into ``run``, the rest is noted here."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.told: Told | None = None
        self.died = False
        self.heard_at = 0.0
        """When the kernel last said anything (monotonic seconds), 0 before it has begun."""
        self.count = 0
        """The kernel's own number of this cell, 0 when it was not said."""
        self.pictures = 0

    def take(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind in _SIGNS:
            self.heard_at = time.monotonic()
        if kind in STREAMS:
            self.run.take(kind, fit(str(message.get("text", ""))).encode())
        elif kind == "result":
            told = e2b_prelude.told(message.get("text"))
            if told is not None:
                self.told = told
            else:
                self.show(message)
        elif kind == "error":
            self._error(message)
        elif kind == "number_of_executions" and isinstance(message.get("execution_count"), int):
            self.count = message["execution_count"]
        elif kind == "unexpected_end_of_execution":
            self.died = True

    def show(self, message: Mapping[str, Any]) -> None:
        """Take a result or display, in the kinds that somebody can show."""
        text: dict[str, str] = {}
        sizes: list[list[Any]] = []
        blob = b""
        if isinstance(script := message.get("javascript"), str) and message.get("html") is None:
            script = script.replace("</script", "<\\/script")
            message = {**message, "html": f"<script>{script}</script>"}  # as the local shell does
        for key, mime in _TEXT_KINDS.items():
            value = message.get(key)
            if value is None:
                continue
            chars = fit(value if isinstance(value, str) else json.dumps(value))
            if len(chars) <= (MAX_HTML if mime == "text/html" else MAX_TEXT):
                text[mime] = chars
            elif mime == "text/plain":
                text[mime] = f"{chars[:MAX_TEXT]}\n[… {len(chars) - MAX_TEXT:,} more characters …]"
        for key, mime in _PICTURE_KINDS.items():
            value = message.get(key)
            if not isinstance(value, str) or len(value) > MAX_PICTURE * 4 // 3:
                continue
            with contextlib.suppress(binascii.Error, ValueError):
                part = base64.b64decode(value)
                blob += part
                sizes.append([mime, len(part)])
                self.pictures += 1
        self._display(text, sizes, blob, result=message.get("is_main_result") is True)

    def show_picture(self, data: bytes, mime: str) -> None:
        """Take a picture that came as a file."""
        self._display({}, [[mime, len(data)]], data, result=False)

    def _display(self, text: dict[str, str], sizes: list[list[Any]], blob: bytes, *, result: bool) -> None:
        frame = {"op": "display", "id": self.run.number, "text": text, "sizes": sizes, "result": result}
        self.run.accept(frame, blob)

    def _error(self, message: Mapping[str, Any]) -> None:
        name, value, trace = (fit(str(message.get(key) or "")) for key in ("name", "value", "traceback"))
        if name in _DEATHS and not trace:
            self.died = True
            return
        trace = _SGR.sub("", trace)
        if name == "SystemExit":
            value = f"the code ended itself with exit code {value}; the shell goes on"
            trace = f"{name}: {value}"
        error = {"name": name, "value": value, "traceback": trace}
        self.run.accept({"op": "done", "id": self.run.number, "error": error}, b"")


def fit(text: str) -> str:
    """Return ``text`` fit for UTF-8: surrogate pairs are joined, lone ones become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
