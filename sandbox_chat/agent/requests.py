"""The requests of a turn by the endpoint's own count, for a turn of which the agent's program tells no total."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox_chat.agent.totals import NAME_LIMIT, add, turn_usage
from sandbox_chat.events import Usage
from sandbox_chat.text import clean_line


class Requests:
    """Counts the requests of the running turn that were answered to their end, from the events of their streams.

    ``answered`` are their tokens by model. A request that was cut is not in it: its end tells what was written.
    """

    def __init__(self) -> None:
        self.answered: dict[str, Usage] = {}
        self._open: dict[str, Any] | None = None
        self._model = ""

    def begin(self) -> None:
        """A turn begins."""
        self.answered, self._open = {}, None

    def take(self, event: Mapping[str, Any], model: str) -> None:
        """Take an event of a stream. ``model`` is the name that was asked for, empty for the default."""
        match event.get("type"):
            case "message_start":
                message = event.get("message") or {}
                self._model = clean_line(model or str(message.get("model") or ""), NAME_LIMIT)
                self._open = dict(message.get("usage") or {})
            case "message_delta" if self._open is not None and event.get("usage"):
                told = {name: value for name, value in event["usage"].items() if value is not None}
                usage = turn_usage({**self._open, **told})
                self._open = None
                self.answered[self._model] = add(self.answered.get(self._model, Usage()), usage)
