"""Words for numbers and tool calls, the same in every face."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from sandbox_chat.events import (
    ApprovalAnswered,
    ApprovalRequested,
    Attached,
    Content,
    Progress,
    TextContent,
    ToolFinished,
    TurnFinished,
)
from sandbox_chat.words.questions import EN

NOT_AVAILABLE = "n/a"
"""Stands for a cost whose price is not known."""

_OWN = "sandbox"
"""The program's own server, whose tools need no other name."""
ARGUMENT = 200
"""Characters of one argument on a line."""
ARGUMENTS = 20
"""Arguments on a line at most."""
_SECTION = re.compile(
    r"^\[(success|stdout|stderr|result|error|traceback|note|tool_error)\](?: |$)(.*)$", re.MULTILINE
)
_TYPE = re.compile(r"^(?:Sandbox[A-Za-z]*|GatewayTimeout): ")
"""The kind of a failure of the sandbox, which is for the model."""
_TRACEBACK = re.compile(r"Traceback\b")
_LIMIT = re.compile(r"\(SANDBOX_CHAT_SANDBOX_[A-Z_]+\)")
"""Stands in a note that says which limit of the sandbox struck."""


def cost_text(cost_usd: float | None) -> str:
    """Return a cost in US dollars, four decimals below one dollar; ``n/a`` where the price is not known."""
    if cost_usd is None:
        return NOT_AVAILABLE
    return f"${cost_usd:.4f}" if cost_usd < 0.99995 else f"${cost_usd:,.2f}"


def whole_percent(share: float) -> int:
    """Return a share in whole per cent that have been reached: 99.9 % are not 100."""
    return int(100 * share + 1e-6)


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


def local_time(time: datetime) -> str:
    """Return a time as date and time of day where the user is."""
    try:
        return f"{time.astimezone():%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):  # a damaged record may name a year that no clock knows
        return f"{time:%Y-%m-%d %H:%M}"


def size_text(size: int) -> str:
    """Return a number of bytes for reading: ``999 bytes``, ``1.2 kB``, ``340 MB``."""
    if size < 1000:
        return "1 byte" if size == 1 else f"{size} bytes"
    value = float(size)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.5 or unit == "GB":
            break
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:,.0f} {unit}"


def progress_text(event: Progress) -> str:
    """Return how far a transfer has come: ``120 of 300 MB, 40 %``."""
    if event.total <= 0:
        return size_text(event.done)
    return f"{size_text(event.done)} of {size_text(event.total)}, {100 * event.done // event.total} %"


def attached_text(event: Attached) -> str:
    """Return a sentence about a file that was put into the sandbox, or was not."""
    if event.error:
        return event.error
    kind = f", {event.kind}" if event.kind else ""
    return f"Attached {event.name} ({size_text(event.size)}{kind}): it is at {event.path} in the sandbox."


def answer_text(asked: ApprovalRequested, answer: ApprovalAnswered) -> str:
    """Return in a few words how a question was answered, and by whom if not by the user."""
    if answer.by == "cancelled":
        return EN["withdrawn"]
    label = next((choice.label for choice in asked.choices if choice.name == answer.choice), answer.choice)
    return EN.get(f"by_{answer.by}", "{label}").format(label=label)


def tool_parts(name: str) -> tuple[str, str]:
    """Return the MCP server of a tool and the tool's name there; without a server for the program's own and for others."""
    server, separator, tool = name.removeprefix("mcp__").partition("__")
    if not name.startswith("mcp__") or not (server and separator and tool):
        return "", name
    return ("", tool) if server == _OWN else (server, tool)


def tool_name(name: str) -> str:
    """Return a tool's name for people: ``run_code``, or ``git · git_log`` for one of another server."""
    server, tool = tool_parts(name)
    return f"{server} · {tool}" if server else tool


def arguments_line(arguments: Mapping[str, Any], separator: str = " · ") -> str:
    """Return arguments on one line, with their names where there are several: ``repo: /src · max_count: 5``."""
    found = [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
        for name, value in list(arguments.items())[:ARGUMENTS]
    ]
    words = [f"{name}: {value[:ARGUMENT]}" if len(found) > 1 else value[:ARGUMENT] for name, value in found]
    return separator.join(filter(None, (" ".join(word.split()) for word in words)))


def arguments_json(arguments: Mapping[str, Any]) -> str:
    """Return arguments as JSON for reading; empty when there are none."""
    return json.dumps(dict(arguments), indent=2, ensure_ascii=False, default=str) if arguments else ""


def content_text(content: Iterable[Content]) -> str:
    """Return the text of a tool's result, without its pictures."""
    return "\n".join(part.text for part in content if isinstance(part, TextContent))


def last_line(text: str) -> str:
    """Return the last line that holds something: of a traceback, the line that names the error."""
    for line in reversed(text.splitlines()):
        if line.strip():
            return line.strip()
    return ""


def sections(content: TextContent) -> list[tuple[str, str]]:
    """Return the parts of a tool's answer as ``(name, text)``; an answer without parts is one named ``""``."""
    text = content.text
    return [(name, text[start:end].strip("\n")) for name, start, end in places(content)]


def places(content: TextContent) -> list[tuple[str, int, int]]:
    """Return the parts of a tool's answer as ``(name, start, end)`` of what stands under each title."""
    text, titles = content.text, content.titles
    found = [match for match in _SECTION.finditer(text) if titles is None or match.start() in titles]
    if not found or found[0].start() != 0:
        return [("", 0, len(text))]
    ends = [match.start() for match in found[1:]] + [len(text)]
    return [(match[1], match.start(2), end) for match, end in zip(found, ends, strict=True)]


def told_apart(text: str, titles: Collection[int]) -> TextContent:
    """Return an answer whose parts begin at ``titles``, whatever else in it looks like the title of a part."""
    looks = [match.start() for match in _SECTION.finditer(text)]
    return TextContent(text, None if looks == list(titles) else tuple(titles))


def all_sections(content: Iterable[Content]) -> list[tuple[str, str]]:
    """Return the parts of all texts of an answer."""
    return [found for part in content if isinstance(part, TextContent) for found in sections(part)]


def was_stopped(found: dict[str, str]) -> bool:
    """Whether a traceback only shows what stopped the code, which says nothing beside its error."""
    return last_line(found.get("traceback", "")) == "KeyboardInterrupt" and "error" in found


def error_line(content: Iterable[Content]) -> str:
    """Return the line of an answer that says best why the call failed: the reason, never advice to the model."""
    found = dict(all_sections(content))
    if was_stopped(found):
        del found["traceback"]
    error = next(iter(_lines(found.get("error", ""))), "")
    last = last_line(found.get("traceback", ""))
    named = error.partition(":")[0] == last.partition(":")[0] and last != f"{error}:"
    if last and error and not named:
        return error  # the traceback ends within a long message, with the last of a group, or bare
    for name in ("tool_error", "traceback", "error", ""):
        if lines := _lines(found.get(name, "")):
            words = name == "tool_error" or (not name and not any(map(_TRACEBACK.match, lines)))
            return _TYPE.sub("", lines[0 if words else -1])
    return ""


def ends_with(traceback: str, error: str) -> bool:
    """Whether the last lines of a traceback say the same as ``error``."""
    end = traceback.rstrip().removesuffix(":")  # an error without a message
    return f"\n{end}".endswith(f"\n{error.strip()}")


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def limit_notes(content: Iterable[Content]) -> list[str]:
    """Return what an answer says of limits of the sandbox that struck, as sentences that name the setting."""
    notes = [" ".join(text.split()) for name, text in all_sections(content) if name == "note"]
    return list(dict.fromkeys(note for note in notes if _LIMIT.search(note)))


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
