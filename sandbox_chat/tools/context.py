"""What a tool needs and what it gives: the context of a call and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandbox_chat.events import Content, ImageContent, Stream, TextContent
from sandbox_chat.settings import Settings
from sandbox_chat.text import bound

if TYPE_CHECKING:
    from sandbox_chat.sandbox.worker import SandboxWorker


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text for the model."""

    text: str


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """A picture for the model: the bytes of a PNG or JPEG file."""

    data: bytes
    mime: str


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of a tool call.

    ``model`` goes to the model, ``display`` into the ``tool_finished`` event. ``is_error`` tells both.
    ``interrupted``: the user stopped the call; then nothing of ``model`` is read any more.
    """

    model: tuple[TextBlock | ImageBlock, ...]
    display: tuple[Content, ...]
    is_error: bool = False
    interrupted: bool = False

    @property
    def text(self) -> str:
        """The text that goes to the model, all blocks joined."""
        return "\n".join(block.text for block in self.model if isinstance(block, TextBlock))


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The surroundings of the tools of one session. All callbacks are called on the session's loop.

    ``save_picture(data, mime)`` saves a PNG or JPEG and returns where. ``started(id, name, input)``,
    ``output(id, stream, text, late)`` and ``finished(id, outcome, duration_ms)`` tell of a call; their first
    argument is the model's tool use id, the name is the tool's full one. ``late``: after the call had ended.
    """

    worker: SandboxWorker
    settings: Settings
    save_picture: Callable[[bytes, str], ImageContent]
    started: Callable[[str, str, Mapping[str, Any]], None]
    output: Callable[[str, Stream, str, bool], None]
    finished: Callable[[str, ToolOutcome, int], None]


def text_outcome(text: str, *, limit: int, is_error: bool = False) -> ToolOutcome:
    """Return an outcome of one text, the same for the model and the screen, cut to ``limit`` characters."""
    text = bound(text, limit)
    return ToolOutcome((TextBlock(text),), (TextContent(text),), is_error=is_error)
