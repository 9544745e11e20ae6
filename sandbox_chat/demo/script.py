"""A script in place of a model: the answers of a test, in order, with the faults it wants."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from sandbox_chat.demo.reply import ErrorReply, Reply, Text
from sandbox_chat.demo.wire import Request

Answer = Reply | ErrorReply | str
Step = Answer | Callable[[Request], Answer]
"""One entry of a script: an answer (a plain text is a reply of one block) or a function that makes it."""


class Script:
    """Answers the requests of a test one after the other.

    ``steps`` is a list with one entry for each request, or one function for all of them. When the
    list is used up, ``after`` answers; without it, status 400 says so. ``requests`` are the requests in
    the order in which they came (also kept, with headers, in ``MessagesServer.requests``).

    When a client changes its model, the agent's program first tries the name with a request of its own
    (``Request.is_probe``). ``probe`` answers those; they use up no step and are in no list of requests.
    """

    record = True

    def __init__(
        self,
        steps: Sequence[Step] | Callable[[Request], Answer],
        *,
        after: Step | None = None,
        probe: Step = "Hi",
    ) -> None:
        self._function = steps if callable(steps) else None
        self._steps = [] if callable(steps) else list(steps)
        self._after = after
        self._probe = probe
        self._lock = threading.Lock()
        self.requests: list[Request] = []

    @property
    def left(self) -> int:
        """Number of entries that have not been used."""
        return len(self._steps)

    def add(self, *steps: Step) -> None:
        """Append entries, also while requests come in."""
        with self._lock:
            self._steps.extend(steps)

    def reply(self, request: Request) -> Reply | ErrorReply:
        """Answer with the next entry."""
        with self._lock:
            step: Step
            if not request.is_probe:
                self.requests.append(request)
            if request.is_probe:
                step = self._probe
            elif self._function is not None:
                step = self._function
            elif self._steps:
                step = self._steps.pop(0)
            elif self._after is not None:
                step = self._after
            else:
                number = len(self.requests)
                return ErrorReply(400, message=f"The script has no reply for request {number}.")
        answer = step(request) if callable(step) else step
        return Reply((Text(answer),)) if isinstance(answer, str) else answer
