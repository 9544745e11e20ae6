"""The answers that hold for the rest of a session, as its events tell: what every face can show of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sandbox_chat.events import (
    ApprovalAnswered,
    ApprovalForgotten,
    ApprovalRequested,
    Event,
    SessionStarted,
)

_DIGEST = re.compile(r"(?<= #[0-9a-f]{12})[0-9a-f]+\Z")


def about(asked: ApprovalRequested) -> str:
    """Return what an answer is about, for people: of a tool's digest the first digits."""
    return _DIGEST.sub("", asked.subject)


@dataclass
class Allowed:
    """``answers`` are the questions by their ids and the label of the choice, oldest first. Changed only by ``take``."""

    answers: dict[str, tuple[ApprovalRequested, str]] = field(default_factory=dict)
    _open: dict[str, ApprovalRequested] = field(default_factory=dict, repr=False, compare=False)

    def take(self, event: Event) -> None:
        """Take one event. None of the answers outlives the run of the program that they were given in."""
        match event:
            case ApprovalRequested() if event.lasting and event.subject:
                self._open[event.approval_id] = event
            case ApprovalAnswered():
                asked = self._open.pop(event.approval_id, None)
                if asked is not None and event.choice in asked.lasting and event.by != "remembered":
                    label = next((each.label for each in asked.choices if each.name == event.choice), "")
                    self.answers[event.approval_id] = (asked, label)
            case ApprovalForgotten():
                self.answers.pop(event.approval_id, None)
            case SessionStarted():
                self.answers.clear()
                self._open.clear()
            case _:
                return
