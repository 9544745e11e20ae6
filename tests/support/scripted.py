"""A scripted model for tests: the real endpoint with a script behind it, and short ways to write one.

from support.scripted import call, serve, text

with serve(call("run_code", code="1+1"), text("It is 2.")) as server:
    server.url, server.token      # for ANTHROPIC_BASE_URL and ANTHROPIC_AUTH_TOKEN
    ...
    server.requests[-1].body      # the last request, as JSON
    tool_results(server)          # what the tools answered
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sandbox_chat.demo.reply import Block, ErrorReply, Faults, Reply, Text, Thinking, ToolUse
from sandbox_chat.demo.script import Answer, Script, Step
from sandbox_chat.demo.server import MessagesServer, RecordedRequest
from sandbox_chat.demo.wire import Request, ToolResult, Usage

__all__ = [
    "Answer",
    "ErrorReply",
    "Faults",
    "MessagesServer",
    "RecordedRequest",
    "Reply",
    "Request",
    "Script",
    "Step",
    "Text",
    "Thinking",
    "ToolUse",
    "Usage",
    "call",
    "cli_env",
    "error",
    "rate_limited",
    "reply",
    "serve",
    "text",
    "tool_results",
    "wait_for",
]


def text(answer: str, *, thinking: str = "", **options: Any) -> Reply:
    """A reply of one text, after some thinking if wanted. Options are those of ``Reply``, or of ``Faults``."""
    blocks: tuple[Block, ...] = (Thinking(thinking), Text(answer)) if thinking else (Text(answer),)
    return reply(*blocks, **options)


def call(tool: str, *, before: str = "", id: str = "", **arguments: Any) -> Reply:
    """A reply that calls ``tool`` (``run_code`` means ``mcp__sandbox__run_code``) after the words ``before``."""
    name = tool if "__" in tool else "mcp__sandbox__" + tool
    use = ToolUse(name, arguments, id)
    return Reply((Text(before), use) if before else (use,))


def reply(*blocks: Block, **options: Any) -> Reply:
    """A reply of these blocks. Options are those of ``Reply``, or of ``Faults`` (``cut_at=5``)."""
    faults = {name: options.pop(name) for name in list(options) if name in Faults.__dataclass_fields__}
    if faults:
        options["faults"] = Faults(**faults)
    return Reply(tuple(blocks), **options)


def error(status: int, message: str = "scripted", **options: Any) -> ErrorReply:
    """A refusal with the error type that goes with the status."""
    return ErrorReply(status, message=message, **options)


def rate_limited(retry_after: float = 0.1, message: str = "slow down") -> ErrorReply:
    """Status 429 that asks to come again in ``retry_after`` seconds."""
    return ErrorReply(429, message=message, headers={"retry-after": f"{retry_after:g}"})


@contextmanager
def serve(
    *steps: Step | Callable[[Request], Answer],
    function: Callable[[Request], Answer] | None = None,
    after: Step | None = None,
    probe: Step = "Hi",
    token: str | None = None,
) -> Iterator[MessagesServer]:
    """A started server that answers with ``steps`` in order, or with ``function``; closed at the end.

    ``server.responder`` is the ``Script`` (``add`` appends more).
    """
    script = Script(function if function is not None else list(steps), after=after, probe=probe)
    with MessagesServer(script, token=token) as server:
        yield server


def tool_results(server: MessagesServer, request: int = -1) -> list[ToolResult]:
    """The tool results since the last prompt, as the ``request``-th request carried them."""
    parsed = server.requests[request].request
    assert parsed is not None
    return list(parsed.results)


def cli_env(server: MessagesServer, home: Path, *, model: str = "") -> dict[str, str]:
    """Environment with which the SDK's program talks to ``server`` only and writes under ``home`` only."""
    for name in ("config", "tmp"):
        (home / name).mkdir(parents=True, exist_ok=True)
    env = {
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / "config"),
        "CLAUDE_CODE_TMPDIR": str(home / "tmp"),
        "TMPDIR": str(home / "tmp"),
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_AUTH_TOKEN": server.token,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "API_TIMEOUT_MS": "60000",
    }
    if model:
        env["ANTHROPIC_MODEL"] = model
    return env


def wait_for(condition: Callable[[], object], timeout: float = 10.0) -> None:
    """Wait (blocking) until ``condition`` is true; fails the test after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        pause.wait(0.01)
