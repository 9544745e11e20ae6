"""The Messages API as it arrives: a request's JSON body read into plain, typed values.

The parser takes what the agent SDK's program really sends: ``system`` as text or blocks, the role
``system`` inside ``messages``, reminders injected into the user's turn, tool results as text or as
blocks with pictures, notes that the program itself puts into the user's mouth. What the user typed
is told apart from all that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

IMAGE_TOKENS = 1500
"""What a picture counts as, in tokens: its base64 text says nothing about its price."""
CHARS_PER_TOKEN = 4

_REMINDER = ("<system-reminder>", "</system-reminder>")
# What the agent's program says in the user's name; see Request.prompt.
_SYNTHETIC = (
    "[Request interrupted by user",
    "[Image: source:",
    "[Your previous response had no visible output",
    "Output token limit hit. Resume directly",
)


class WireError(Exception):
    """The request is not a valid Messages request; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that the model made: its id, the tool's full name, the arguments."""

    id: str
    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of a tool call: the text blocks joined by newlines, and the number of pictures."""

    tool_use_id: str
    text: str
    images: int = 0
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the history.

    ``text`` is what its author wrote (for the user: without reminders and notes of the program, and
    only what follows the last tool result).
    """

    role: str
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """One request for an answer. ``system`` is the whole of the system prompt, ``tools`` the tools' names."""

    model: str
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[str, ...] = ()
    stream: bool = False
    max_tokens: int = 0
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def prompt(self) -> str:
        """The last thing that the user typed, empty when there is none."""
        index = self.prompt_index
        return self.messages[index].text if index >= 0 else ""

    @property
    def prompt_index(self) -> int:
        """Index of the message with the last prompt, -1 when there is none."""
        for index in range(len(self.messages) - 1, -1, -1):
            if self.messages[index].role == "user" and self.messages[index].text:
                return index
        return -1

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results since the last prompt, in order."""
        since = self.messages[self.prompt_index + 1 :]
        return tuple(result for message in since for result in message.results)

    @property
    def is_probe(self) -> bool:
        """True for the one-token request with which the agent's program tries a new model's name."""
        return self.max_tokens == 1 and not self.stream and not self.tools

    def tool(self, name: str) -> str:
        """Full name of the offered tool ``name`` (``run_code`` finds ``mcp__sandbox__run_code``), or ``""``."""
        for full in self.tools:
            if full == name or full.endswith("__" + name):
                return full
        return ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request, named as on the wire."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


def parse_request(raw: bytes) -> Request:
    """Read the body of a ``/v1/messages`` request. Raises ``WireError`` with a sentence."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise WireError("The request body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise WireError("The request body is not a JSON object.")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise WireError("model: Field required")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise WireError("messages: at least one message is required")
    max_tokens = body.get("max_tokens", 0)
    return Request(
        model=model,
        messages=tuple(_message(item, index) for index, item in enumerate(messages)),
        system="\n\n".join(_texts(body.get("system"))),
        tools=tuple(_tool_names(body.get("tools"))),
        stream=body.get("stream") is True,
        max_tokens=max_tokens if isinstance(max_tokens, int) else 0,
        body=body,
    )


def _message(item: Any, index: int) -> Message:
    if not isinstance(item, dict) or item.get("role") not in ("user", "assistant", "system"):
        raise WireError(f"messages.{index}.role: Input should be 'user', 'assistant' or 'system'")
    role = str(item["role"])
    texts: list[str] = []
    calls: list[ToolCall] = []
    results: list[ToolResult] = []
    for block in _blocks(item.get("content")):
        kind = block.get("type")
        if kind == "text":
            text = str(block.get("text", ""))
            text = typed_text(text) if role == "user" else text
            if text:
                texts.append(text)
        elif kind == "tool_use":
            arguments = block.get("input")
            calls.append(
                ToolCall(
                    str(block.get("id", "")),
                    str(block.get("name", "")),
                    arguments if isinstance(arguments, dict) else {},
                )
            )
        elif kind == "tool_result":
            results.append(_tool_result(block))
            texts.clear()  # what comes before the results belongs to the turn that they end
    return Message(role, "\n".join(texts), tuple(calls), tuple(results))


def _tool_result(block: Mapping[str, Any]) -> ToolResult:
    content = block.get("content")
    texts = [without_reminders(text) for text in _texts(content)]
    return ToolResult(
        tool_use_id=str(block.get("tool_use_id", "")),
        text="\n".join(text for text in texts if text.strip() and not text.startswith("[Image: source:")),
        images=sum(1 for item in _blocks(content) if item.get("type") == "image"),
        is_error=block.get("is_error") is True,
    )


def typed_text(text: str) -> str:
    """Return what the user typed in ``text``: without reminders, empty for a note of the agent's program."""
    text = without_reminders(text).strip()
    return "" if text.startswith(_SYNTHETIC) else text


def without_reminders(text: str) -> str:
    """Return ``text`` without the reminders that the agent's program has put into it."""
    opening, closing = _REMINDER
    kept: list[str] = []
    start = 0
    while (begin := text.find(opening, start)) >= 0 and (end := text.find(closing, begin)) >= 0:
        kept.append(text[start:begin])
        start = end + len(closing)
    return "".join(kept) + text[start:]


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list):
        return [item for item in content if isinstance(item, dict)]
    return []


def _texts(content: Any) -> list[str]:
    return [str(item.get("text", "")) for item in _blocks(content) if item.get("type") == "text"]


def _tool_names(tools: Any) -> list[str]:
    if not isinstance(tools, list):
        return []
    return [str(tool["name"]) for tool in tools if isinstance(tool, dict) and tool.get("name")]


def count_tokens(body: Mapping[str, Any]) -> int:
    """Estimate the input tokens of a request body: about four characters a token, a fixed sum a picture."""
    return sum(_weigh(body.get(key)) for key in ("system", "tools", "messages"))


def input_usage(body: Mapping[str, Any]) -> Usage:
    """Estimate the input side of a request's usage.

    With cache marks in the request, what an earlier request of the chat has sent (all before the last
    answer) is read from the cache and the rest is put into it, as the real service does.
    """
    messages = body.get("messages")
    messages = messages if isinstance(messages, list) else []
    total = count_tokens(body)
    if '"cache_control"' not in json.dumps(body):
        return Usage(input_tokens=total)
    last = max(
        (i for i, item in enumerate(messages) if isinstance(item, dict) and item.get("role") == "assistant"),
        default=-1,
    )
    if last < 0:
        return Usage(input_tokens=min(total, 3), cache_creation_input_tokens=max(0, total - 3))
    fresh = _weigh(messages[last:])
    return Usage(
        input_tokens=min(fresh, 3),
        cache_creation_input_tokens=max(0, fresh - 3),
        cache_read_input_tokens=total - fresh,
    )


def text_tokens(text: str) -> int:
    """Estimate the tokens of a text; wide characters (Chinese, Japanese, Korean) count one each."""
    wide = sum(1 for char in text if char >= "\u2e80")
    return wide + -(-(len(text) - wide) // CHARS_PER_TOKEN)


def _weigh(value: Any) -> int:
    """Tokens of a part of a request body. Iterative: a hostile depth cannot exhaust the stack."""
    total = 0
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            total += text_tokens(item)
        elif isinstance(item, dict):
            if item.get("type") == "image":
                total += IMAGE_TOKENS
                continue
            total += 1
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
        elif item is not None:
            total += 1
    return total
