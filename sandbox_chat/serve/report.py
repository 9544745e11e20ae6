"""The structured log of the server: a JSON line for each request and each task, with ids and numbers and nothing that was said."""

from __future__ import annotations

import logging
import sys
from typing import Any

from sandbox_chat.logs import JsonFormatter
from sandbox_chat.serve.task import Task
from sandbox_chat.serve.users import hash_of
from sandbox_chat.settings import Settings

_log = logging.getLogger("sandbox_chat.serve")


def set_up(settings: Settings, *, on_stderr: bool) -> None:
    """Write lines to the log file if there is one, and to stderr where ``on_stderr``."""
    _log.setLevel(logging.INFO)
    if on_stderr:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonFormatter(settings.scrub))
        _log.addHandler(handler)


def note(event: str, **fields: Any) -> None:
    """Write a line."""
    _log.info("", extra={"fields": {"event": event, **fields}})


def request_ended(method: str, route: str, status: int, seconds: float, **more: Any) -> None:
    """Write the line of a request. ``route`` is its pattern, not what was asked for."""
    note("request", method=method, route=route, status=status, ms=round(seconds * 1000), **more)


def task_ended(task: Task, user: str) -> None:
    """Write the line of a task. The user's id may be an address: its hash is written, as the user's folder has it."""
    turn = task.finished
    more = (
        {}
        if turn is None
        else {"subtype": turn.subtype, "is_error": turn.is_error, "cost_usd": turn.cost_usd}
    )
    note(
        "task",
        task=task.id,
        user=hash_of(user),
        session=task.session_id,
        turn=task.turn_id,
        outcome=task.outcome,
        code=task.problem.code if task.problem is not None else "",
        wait_ms=round(task.waited * 1000),
        run_ms=round(task.ran * 1000),
        **more,
    )
