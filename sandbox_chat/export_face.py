"""Writes a session to a file: ``sandbox-chat export``."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from sandbox_chat import words
from sandbox_chat.journal import resolve
from sandbox_chat.journal.export import Scrubber, TargetExists, export, kind_of
from sandbox_chat.journal.export.asked import Progress, said
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean
from sandbox_chat.words import tr

QUIET = 0.5
"""Seconds after which an export says how far it is, and between two words about that."""
_ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def run(
    settings: Settings,
    wanted: str | None,
    to: Path,
    *,
    include_failed: bool = False,
    scrub: bool = False,
    force: bool = False,
    beside: bool = False,
) -> int:
    """Export the session that ``wanted`` names (``None``: the newest) to ``to``; return the exit code.

    Where a file of that name exists, the user is asked at a terminal. Raises ``SessionError`` with a sentence.
    """
    words.use(words.choose(settings.language, os.environ))
    kind_of(to)
    root = settings.data_path / "sessions"
    folder = root / resolve(root, wanted)
    while True:
        try:
            with _ending_in_order(), _progress() as told:
                done = export(
                    folder,
                    to,
                    include_failed=include_failed,
                    beside=beside,
                    scrub=Scrubber.of_here(settings.secrets()) if scrub else None,
                    force=force,
                    largest=settings.export_limit,
                    told=told,
                )
        except TargetExists:
            if force or not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise
            if not _replace(to):
                _say(tr("export.kept"))
                return 1
            force = True
            continue
        break
    first, *rest = said(done)
    sys.stdout.write(f"{first}\n")
    sys.stdout.flush()
    for line in rest:
        _say(line)
    return 0


@contextlib.contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let a signal that ends the program raise ``SystemExit``, so that no half-written document stays."""

    def leave(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    kept = [(each, signal.signal(each, leave)) for each in _ENDS if signal.getsignal(each) == signal.SIG_DFL]
    try:
        yield
    finally:
        for each, handler in kept:
            signal.signal(each, handler)


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[float], None]]:
    """Say at a terminal how far the export has come, from half a second on; yields what is told of it."""
    progress, over = Progress(), threading.Event()

    def tell() -> None:
        clear = ""
        with contextlib.suppress(OSError, ValueError):  # the terminal is gone
            while not over.wait(QUIET):
                clear = "\r\x1b[K"
                sys.stderr.write(f"{clear}{progress.words()}")
                sys.stderr.flush()
            sys.stderr.write(clear)
            sys.stderr.flush()

    thread = threading.Thread(target=tell, name="progress", daemon=True)
    if sys.stderr.isatty():
        thread.start()
    try:
        yield progress.told
    finally:
        over.set()
        if thread.is_alive():
            thread.join(1.0)


def _replace(to: Path) -> bool:
    sys.stderr.write(clean(tr("export.replace", path=str(to.absolute()))))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _say(line: str) -> None:
    sys.stderr.write(f"sandbox-chat: {clean(line)}\n")
    sys.stderr.flush()
