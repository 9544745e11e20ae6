"""A prompt on its way through the agent."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from claude_agent_sdk import ResultMessage


@dataclass(slots=True, eq=False)
class Turn:
    """A prompt and what has become of it.

    ``order``: it is an order to the CLI, not words for the model. ``begun``: its ``TurnStarted`` was emitted.
    ``sent``: the CLI has got it, or may have. ``result`` gets the CLI's result, or ``None`` when none will come.
    ``pending`` are the ids of its prompts that no result has covered; ``steered``: there was more than one.
    ``partial`` is a result after which another is to come, ``steps`` what those before took; ``goes_on``: the CLI has
    taken up what waits since.
    ``stopped``: the user interrupted it, at ``stopped_at`` (``time.monotonic``). Then ``reacted``: the CLI answered to that;
    ``frozen``: it did not in time; ``all_stopped``: it has nothing more to do.
    """

    turn_id: str
    prompt: str
    result: asyncio.Future[ResultMessage | None]
    order: bool = False
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    start: float = field(default_factory=time.monotonic)
    stopped_at: float = 0.0
    begun: bool = False
    sent: bool = False
    first: str = ""
    pending: set[str] = field(default_factory=set)
    steered: bool = False
    partial: ResultMessage | None = None
    steps: int = 0
    goes_on: bool = False
    reacted: bool = False
    frozen: bool = False
    all_stopped: bool = False
    stopper: asyncio.Task[None] | None = None

    @property
    def takes_more(self) -> bool:
        """True while a further prompt can be sent into it."""
        return self.sent and not self.order and not self.stopped.is_set() and not self.result.done()

    def add(self, prompt_id: str) -> None:
        """A prompt of it goes to the CLI."""
        self.steered = bool(self.first)
        self.first = self.first or prompt_id
        self.pending.add(prompt_id)

    def take(self, result: ResultMessage) -> bool:
        """Take a result. Returns true if another one is to come, because a prompt that was sent into the turn waits."""
        if self.result.done():
            return False
        self.pending -= {self.first, result.user_message_uuid or "", *(result.user_message_uuids or ())}
        if not self.pending or self.stopped.is_set():
            self.result.set_result(result)
            return False
        self.partial = result
        self.steps += result.num_turns
        self.goes_on = False
        return True

    def give_up_waiting(self) -> None:
        """Nothing has come after a result: it was the last one. Does nothing when the CLI works on what waits."""
        if self.partial is not None and not self.goes_on and not self.result.done():
            self.steps -= self.partial.num_turns
            self.result.set_result(self.partial)
