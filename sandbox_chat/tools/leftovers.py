"""Sandboxes that a crashed run left in a cloud or in Docker: told at the start of the next, which offers to end them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from sandbox_chat.events import Choice, Notice, Sink
from sandbox_chat.sandbox.base import SandboxError
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean
from sandbox_chat.tools.context import Ask, Question

log = logging.getLogger(__name__)
T = TypeVar("T")

LISTED = 10
"""Sandboxes that the question names one by one."""


async def offer(settings: Settings, session_id: str, emit: Sink, ask: Ask | None) -> None:
    """Look for what is left, also by another run of this session, and offer to end it; without ``ask``, say how. What cannot be looked for is only logged.

    The first use of the sandbox will meet the same trouble and say it.
    """
    from sandbox_chat import sandbox

    try:
        found = await _aside(lambda: sandbox.leftovers(settings, session_id=session_id))
    except (SandboxError, OSError) as error:
        log.info("sandboxes that are left could not be looked for: %s", settings.scrub(str(error)))
        return
    if not found:
        return
    many = len(found) > 1
    it = "them" if many else "it"
    said = f"{len(found)} sandboxes of a crashed run are" if many else "One sandbox of a crashed run is"
    if ask is None:
        text = f"{said} still alive. End {it} with: sandbox-chat sandboxes kill --left"
        emit(Notice(level="warning", text=text))
        return
    names = [clean(f"{each.kind} {each.id}{_since(each.started)}") for each in found[:LISTED]]
    if len(found) > LISTED:
        names.append(f"and {len(found) - LISTED} more")
    question = Question(
        kind="leftovers",
        question=f"{said} still alive. End {it}?",
        detail="\n".join(names),
        choices=(Choice("end", "e", f"end {it}"), Choice("leave", "l", f"leave {it}")),
        default="leave",
    )
    if await ask(question) != "end":
        return
    try:
        gone = await _aside(lambda: sandbox.end(settings, found))
    except (SandboxError, OSError) as error:
        words = clean(settings.scrub(str(error)))
        emit(Notice(level="warning", text=f"Not all of them could be ended: {words}"))
        return
    if len(gone) < len(found):
        text = (
            f"{len(gone)} of {len(found)} sandboxes of a crashed run were ended. "
            "See what is left with: sandbox-chat sandboxes list"
        )
        emit(Notice(level="warning", text=text))
        return
    ended = f"{len(found)} sandboxes" if many else "One sandbox"
    emit(Notice(level="info", text=f"{ended} of a crashed run {'were' if many else 'was'} ended."))


def _since(started: datetime | None) -> str:
    return f", started {started.astimezone():%Y-%m-%d %H:%M}" if started is not None else ""


async def _aside(work: Callable[[], T]) -> T:
    """Run ``work`` on a thread that the end of the program does not wait for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # there is one when there is no error

    def run() -> None:
        result, failed = None, None
        try:
            result = work()
        except Exception as error:
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, result, failed)

    threading.Thread(target=run, name="leftovers", daemon=True).start()
    return await done
