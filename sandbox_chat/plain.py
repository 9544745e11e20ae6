"""Words for numbers and tool calls, the same in every face."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox_chat.events import Content, TextContent, ToolFinished, TurnFinished

NOT_AVAILABLE = "n/a"
"""Stands for a cost whose price is not known."""

_SERVER = "mcp__sandbox__"


def cost_text(cost_usd: float | None) -> str:
    """Return a cost in US dollars, four decimals below one dollar; ``n/a`` where the price is not known."""
    if cost_usd is None:
        return NOT_AVAILABLE
    return f"${cost_usd:.4f}" if cost_usd < 0.99995 else f"${cost_usd:,.2f}"


def duration_text(duration_ms: float) -> str:
    """Return a duration with a precision that suits its length: ``0.42 s``, ``12.3 s``, ``2 min 05 s``, ``1 h 02 min``."""
    seconds = max(0, duration_ms) / 1000
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def tool_name(name: str) -> str:
    """Return a tool's name without the prefix of the program's own server."""
    return name.removeprefix(_SERVER)


def content_text(content: Iterable[Content]) -> str:
    """Return the text of a tool's result, without its pictures."""
    return "\n".join(part.text for part in content if isinstance(part, TextContent))


def last_line(text: str) -> str:
    """Return the last line that holds something: of a traceback, the line that names the error."""
    for line in reversed(text.splitlines()):
        if line.strip():
            return line.strip()
    return ""


def outcome(event: ToolFinished) -> str:
    """Return how a tool call ended: ``ok``, ``failed`` or ``interrupted``."""
    if event.interrupted:
        return "interrupted"
    return "failed" if event.is_error else "ok"


def turn_line(event: TurnFinished) -> str:
    """Return one line about a finished turn: how it ended, steps, time, cost, tokens."""
    how = "interrupted" if event.interrupted else event.subtype
    if event.is_error and how == "success":  # the agent's word for a request that an endpoint refused
        how = "failed"
    steps = "1 step" if event.num_turns == 1 else f"{event.num_turns} steps"
    read = event.usage.input + event.usage.cache_read + event.usage.cache_creation
    parts = [
        how,
        steps,
        duration_text(event.duration_ms),
        f"cost {cost_text(event.cost_usd)}",
        f"{read:,} tokens in, {event.usage.output:,} out",
    ]
    return " · ".join(parts)
