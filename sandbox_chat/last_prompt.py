"""The prompt that was given last, and what became of it: for sending it again, which only the user may order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sandbox_chat.events import Event, TurnFinished, TurnStarted

COMPACT = "/compact"
"""The order of the CLI that replaces what the agent remembers by a summary; it is given as a prompt."""

State = Literal["running", "answered", "interrupted", "failed"]


@dataclass(frozen=True, slots=True)
class LastPrompt:
    """A prompt, its turn, and what became of it.

    ``reached``: the model may have got it, so that sending it again may do or cost something twice.
    """

    turn_id: str
    prompt: str
    state: State = "running"
    reached: bool = True


def follow(last: LastPrompt | None, event: Event) -> LastPrompt | None:
    """Return the last prompt after one more event."""
    if isinstance(event, TurnStarted):
        return LastPrompt(event.turn_id, event.prompt)
    if isinstance(event, TurnFinished) and last is not None and event.turn_id == last.turn_id:
        state: State = "interrupted" if event.interrupted else "failed" if event.is_error else "answered"
        reached = state == "answered" or event.cost_usd != 0 or event.num_turns > 0
        return LastPrompt(last.turn_id, last.prompt, state, reached)
    return last


def is_order(prompt: str) -> bool:
    """True for the prompt of a turn that was an order to the CLI and no words for the model."""
    return prompt.partition(" ")[0] == COMPACT
