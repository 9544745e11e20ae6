"""The SDK's messages as events: a small state machine without side effects.

Imports the SDK: import this module where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    Message,
    RateLimitEvent,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from sandbox_chat.agent.calls import Calls
from sandbox_chat.agent.errors import Failure, Trouble, retry_trouble
from sandbox_chat.agent.requests import Requests
from sandbox_chat.agent.totals import turn_usage
from sandbox_chat.events import (
    Compacted,
    Content,
    Event,
    Notice,
    Retry,
    Text,
    TextContent,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from sandbox_chat.text import ModelText, bound, clean_line, from_model, from_name, from_tool

SYNTHETIC = "<synthetic>"
ABORTED = ("aborted_streaming", "aborted_tools")
_PIECES = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""Kinds of pieces that a block comes in, and the field that holds the text."""
RESULT_LIMIT = 20_000
"""Characters of a result that does not come from our own tools."""


class Translator:
    """Translates the messages of one session, in order.

    ``calls`` drops what is told twice of a tool call. Messages of subagents are left out, and so are
    prompts that the CLI writes in the user's name.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._reply = ""
        self._open: list[str] = []
        self._thought = False
        self._tools: dict[int, tuple[str, str]] = {}
        self._pieces: dict[int, tuple[str, ModelText]] = {}
        self._error: tuple[str, str] = ("", "")
        self.anchor = ""
        """The CLI's own id of the last message of the conversation."""
        self.requests = Requests()
        self._stop_reason = ""  # of the last reply
        self.model = ""
        """Name of the model that was asked for; empty for the default."""
        self.context_used: int | None = None
        """Tokens that the last request read, from the cache or not, by its own usage; ``None`` before one."""

    def begin(self) -> None:
        """A turn begins."""
        self._forget("")
        self.requests.begin()
        self._stop_reason = ""
        self._error = ("", "")

    def _forget(self, reply: str) -> None:
        """Nothing is unfinished; what comes next is of the reply with the id ``reply``."""
        self._reply = reply
        self._open.clear()
        self._tools.clear()
        self._pieces.clear()
        self._thought = False

    def _begin_reply(self, reply: str) -> Iterator[Event]:
        """A reply begins. What the one before left unfinished was cut, and is withdrawn: it is written anew.

        The CLI tells of that only when it asks again in a stream, not when it asks for the whole reply at once.
        """
        drafts = any(not self._calls.known(call_id) for call_id, _ in self._tools.values())
        if self._open or self._thought or drafts:
            yield _retry(Trouble("again_reply"), 1, 0)
        self._forget(reply)

    def feed(self, message: Message) -> list[Event]:
        """Return the events that ``message`` stands for, in order; none for most."""
        return list(self._events(message))

    @property
    def answered(self) -> bool:
        """Whether the last reply was the end of the answer, and not a call or a cut."""
        return self._stop_reason in ("end_turn", "stop_sequence")

    def close(self) -> list[Event]:
        """A turn ends: return what is left open of the answer as a whole block."""
        rest = "".join(self._open)
        self._open.clear()
        return [Text(text=rest)] if rest.strip() else []

    def failure(self, result: ResultMessage) -> Failure:
        """Return how a turn failed, from its result and the synthetic answer before it."""
        kind, words = self._error
        errors = [text for text in result.errors or () if not text.startswith("[ede_diagnostic]")]
        return Failure(
            subtype=result.subtype,
            reason=result.terminal_reason or "",
            status=result.api_error_status or 0,
            kind=kind,
            text="; ".join(errors) or result.result or words,
        )

    def _events(self, message: Message) -> Iterator[Event]:
        if isinstance(message, StreamEvent):
            if message.parent_tool_use_id is None:
                self.requests.take(message.event, self.model)
                yield from self._stream(message.event)
        elif isinstance(message, AssistantMessage):
            if message.parent_tool_use_id is None:
                self.anchor = message.uuid or self.anchor
                yield from self._assistant(message)
        elif isinstance(message, UserMessage):
            if message.parent_tool_use_id is None:
                self.anchor = message.uuid or self.anchor
                if not isinstance(message.content, str):
                    yield from self._results(message.content)
        elif isinstance(message, SystemMessage):
            yield from self._system(message.subtype, message.data)
        elif isinstance(message, RateLimitEvent) and message.rate_limit_info.status != "allowed":
            yield Notice(
                level="warning",
                text="The account is near or at its limit of use for now; requests may be refused until it is renewed.",
            )

    def _stream(self, event: Mapping[str, Any]) -> Iterator[Event]:
        match event.get("type"):
            case "message_start":
                reply = event.get("message", {})
                yield from self._begin_reply(str(reply.get("id") or ""))
                self._note_usage(reply.get("usage"))
            case "content_block_start":
                block = event.get("content_block", {})
                if block.get("type") == "tool_use":
                    call = (str(block.get("id")), from_name(str(block.get("name"))))
                    self._tools[int(event.get("index", 0))] = call
                    yield ToolInputDelta(tool_use_id=call[0], name=call[1], text="")
            case "content_block_delta":
                yield from self._delta(int(event.get("index", 0)), event.get("delta", {}))
            case "content_block_stop":
                index = int(event.get("index", 0))
                kind, pieces = self._pieces.pop(index, ("", None))
                if pieces is not None and (rest := pieces.end()):
                    yield from self._piece(index, kind, rest)
            case "message_delta":
                self._note_usage(event.get("usage"), least=self.context_used or 0)
                self._stop_reason = str((event.get("delta") or {}).get("stop_reason") or "")

    def _delta(self, index: int, delta: Mapping[str, Any]) -> Iterator[Event]:
        kind = str(delta.get("type"))
        given = delta.get(_PIECES.get(kind, ""))
        if given and (kind != "input_json_delta" or index in self._tools):
            _, pieces = self._pieces.setdefault(index, (kind, ModelText()))
            if text := pieces.feed(str(given)):
                yield from self._piece(index, kind, text)

    def _piece(self, index: int, kind: str, text: str) -> Iterator[Event]:
        match kind:
            case "text_delta":
                self._open.append(text)
                yield TextDelta(text=text)
            case "thinking_delta":
                self._thought = True
                yield ThinkingDelta(text=text)
            case "input_json_delta":
                call_id, name = self._tools[index]
                yield ToolInputDelta(tool_use_id=call_id, name=name, text=text)

    def _note_usage(self, usage: Any, *, least: int = 0) -> None:
        """Note what a request read. Its end may tell less of it than its beginning, which is ``least`` then."""
        if isinstance(usage, Mapping):
            used = turn_usage(usage)
            read = max(used.input + used.cache_read + used.cache_creation, least)
            self.context_used = read or self.context_used

    def _let_go(self) -> Iterator[Event]:
        """The whole of a block comes before its stream says that it ended: nothing may follow it from its pieces."""
        for index, (kind, pieces) in self._pieces.items():
            if kind == "thinking_delta" and (rest := pieces.end()):
                yield from self._piece(index, kind, rest)  # its whole is not told again
        self._pieces.clear()

    def _assistant(self, message: AssistantMessage) -> Iterator[Event]:
        if message.model == SYNTHETIC or message.error:
            words = " ".join(block.text for block in message.content if isinstance(block, TextBlock))
            self._error = (message.error or "", words)
            return
        if message.message_id and message.message_id != self._reply:
            yield from self._begin_reply(message.message_id)
            self._note_usage(message.usage)  # of a reply that came whole; of a streamed one it is known
        yield from self._let_go()
        for block in message.content:
            if isinstance(block, TextBlock):
                self._open.clear()
                self._thought = False
                if block.text.strip():
                    yield Text(text=from_model(block.text))
            elif isinstance(block, ThinkingBlock):
                if not self._thought and block.thinking:
                    yield ThinkingDelta(text=from_model(block.thinking))
                self._thought = False
            elif isinstance(block, ToolUseBlock):
                self._thought = False
                started = self._calls.started(block.id, block.name, block.input)
                if started is not None:
                    yield started

    def _results(self, blocks: Iterable[Any]) -> Iterator[Event]:
        for block in blocks:
            if isinstance(block, ToolResultBlock):
                finished = self._calls.result(
                    block.tool_use_id, _content(block.content), is_error=bool(block.is_error)
                )
                if finished is not None:
                    yield finished

    def _compacted(self, told: Any) -> Compacted:
        """The CLI replaced what it remembers by a summary, and tells the tokens before and after."""
        facts: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
        before, after = _whole(facts.get("pre_tokens")), _whole(facts.get("post_tokens"))
        self.context_used = after or None
        return Compacted(before=before, after=after, automatic=facts.get("trigger") == "auto")

    def _system(self, subtype: str, data: Mapping[str, Any]) -> Iterator[Event]:
        match subtype:
            case "api_retry":
                self._forget("")
                status = data.get("error_status")
                reason = retry_trouble(status if isinstance(status, int) else None)
                yield _retry(reason, _whole(data.get("attempt")), _whole(data.get("retry_delay_ms")))
            case "compact_boundary":
                yield self._compacted(data.get("compact_metadata"))
            case "model_fallback":
                yield Notice(
                    level="warning", text="The model could not be used; another one answers in its place."
                )
            case "informational" if data.get("content"):
                yield Notice(level="info", text=clean_line(str(data["content"]), 500))


def was_aborted(result: ResultMessage) -> bool:
    """True when a turn ended because it was interrupted."""
    return result.terminal_reason in ABORTED


def _retry(reason: Trouble, attempt: int, delay_ms: int) -> Retry:
    return Retry(reason=reason.text, kind=reason.kind, about=reason.about, attempt=attempt, delay_ms=delay_ms)


def _content(content: str | list[dict[str, Any]] | None) -> tuple[Content, ...]:
    """The texts of a result that the CLI tells of; pictures are left out, ours are told of by the handler."""
    if isinstance(content, str):
        texts = [content]
    else:
        texts = [str(part.get("text", "")) for part in content or () if part.get("type") == "text"]
    text = "\n".join(texts)
    text = text.replace("<tool_use_error>", "").replace("</tool_use_error>", "").strip()
    return (TextContent(bound(from_tool(text), RESULT_LIMIT)),) if text else ()


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0
