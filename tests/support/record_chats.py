"""Records the events of a real chat for the tests of the phases: python tests/support/record_chats.py

Engine, CLI and sandbox are real, the model is scripted: a tool call, a question, a cut reply, interruptions,
a prompt into the running turn, a summary, a new conversation, a CLI that is killed.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "tests" / "unit" / "golden" / "chat.jsonl"


def main() -> None:
    """Record the chat and write its events, one a line."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.engines import Running, engine
    from support.scripted import Text as Said
    from support.scripted import call, reply, text

    from sandbox_chat import events as ev
    from sandbox_chat.event_json import to_json

    long = reply(Said("word " * 400), pace=0.02)
    steps: list[Any] = [
        call("run_code", before="Let me see.", code="print(6 * 7)"),
        text("It is 42.", thinking="Six times seven."),
        call("run_code", code="open('/tmp/a.txt', 'w').write('new')"),
        call("download_file", path="/tmp/a.txt"),
        text("Saved."),
        text("One two three four five", cut_at=12, pace=0.05),
        text("Whole."),
        long,
        call("run_code", code="import time; time.sleep(30)"),
        text("word " * 30, pace=0.03),
        text("That too."),
        text("<summary>Numbers.</summary>"),
        text("I remember numbers."),
        long,
        text("Still here."),
    ]

    def asked(running: Running, event: ev.Event) -> None:
        if isinstance(event, ev.ApprovalRequested):
            running.engine.answer(event.approval_id, event.default)

    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "downloads" / "a.txt"
        saved.parent.mkdir()
        saved.write_text("old")
        with engine(Path(folder), *steps, on_event=asked, request_retries=1) as chat:

            def stopped(kind: type[ev.Event], act: Callable[[], Any]) -> None:
                count = len(chat.of(kind))
                turn = chat.engine.send("Go on.")
                chat.until(lambda: len(chat.of(kind)) > count)
                act()
                chat.finished(turn)

            for prompt in ("What is 6 times 7?", "Save it.", "Count."):
                chat.ask(prompt)
            stopped(ev.TextDelta, chat.engine.interrupt)
            stopped(ev.ToolStarted, chat.engine.interrupt)
            stopped(ev.TextDelta, lambda: chat.engine.steer("And the rest?"))
            chat.finished(chat.engine.compact())
            chat.engine.clear()
            chat.ask("What do you remember?")
            session = chat.engine._session
            assert session is not None
            stopped(ev.TextDelta, lambda: os.kill(session.cli_pid, signal.SIGKILL))
            chat.ask("Are you there?")
        events = [to_json(event).replace(folder, "/home/someone") for event in chat.events]
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("\n".join(events) + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(events)} events\n")


if __name__ == "__main__":
    main()
