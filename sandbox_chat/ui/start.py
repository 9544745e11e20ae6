"""Opens the terminal application and cleans up after it. Imports Textual as late as it can."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sandbox_chat import words
from sandbox_chat.events import Sink
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean
from sandbox_chat.words import tr

if TYPE_CHECKING:
    from sandbox_chat.ui.app import ChatApp
    from sandbox_chat.ui.controller import EngineLike

FRAMES_PER_SECOND = "240"
"""Textual's default of 60 lets a key wait 16 ms for its frame; this lets it wait 4, and is free when idle."""

SWITCH_SECONDS = 0.001
"""Python's default lets a thread keep the interpreter for 5 ms; a key would wait so long for the engine's thread."""


def make_engine(
    settings: Settings,
    sink: Sink,
    *,
    resume: str | None = None,
    replay: Sink | None = None,
    fork: bool = False,
    read_only: bool = False,
) -> EngineLike:
    """Make the real engine."""
    from sandbox_chat.engine import Engine

    return Engine(
        settings,
        sink,
        resume=resume,
        replay=replay,
        asks=True,
        tail_first=True,
        fork=fork,
        read_only=read_only,
    )


def run_terminal(
    settings: Settings, *, resume: str | None = None, opening: Mapping[str, bool] | None = None
) -> int:
    """Run the chat; see ``sandbox_chat.ui.run``."""
    from sandbox_chat.ui import face
    from sandbox_chat.ui.pictures import Probe

    words.use(words.choose(settings.language, os.environ))  # for what is wrong with the keys
    settings = dataclasses.replace(settings, warnings=(*settings.warnings, *face.faults(settings)))
    # Importing and laying out makes no garbage, and looking for some takes a quarter of the time to the
    # first frame. The application turns the collector on again when the engine starts.
    gc.disable()
    sys.setswitchinterval(SWITCH_SECONDS)
    probe = Probe()
    probe.start()
    try:
        app_class = _import_app()
    finally:
        info = probe.finish(settings.probe_timeout)
    typed = probe.typed.decode("utf-8", "replace")
    opening = opening or {}
    ask = not settings.demo and not settings.has_model and not opening.get("read_only")
    return run_app(
        app_class(settings, make_engine, resume=resume, opening=opening, ask=ask, info=info, typed=typed)
    )


def run_app(app: ChatApp) -> int:
    """Run an application to its end and return the exit code; its engine is closed whatever happens.

    Raises the engine's refusal to be made, or the exception that ended the interface, after the
    terminal is as it was before and the session is closed.
    """
    code: int | None = None
    failure: BaseException | None = None
    try:
        code = app.run()
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        failure = error
    gc.enable()
    app.outward.restore()
    engine = app.chat.engine
    if engine is not None:
        with contextlib.suppress(Exception):  # an end that fails must not hide how it came to it
            engine.close()
    for left in list(app.former.values()):
        with contextlib.suppress(Exception):
            left.close()
    app.prompts.close()
    app.keeping.close()
    failed = (app.refused or app.failure or failure) is not None
    app.drafts.close(keep=failed or not app.prompts.keeps(app.unsent))
    if engine is not None and app.chat.state.turns:
        with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
            said = engine.problem or tr("app.saved", session=engine.session_id)
            sys.stdout.write(clean(said) + "\n")
            sys.stdout.flush()
    failure = app.refused or app.failure or failure
    if failure is not None:
        raise failure
    return app.signal_code or code or app.return_code or 0


def _import_app() -> type[ChatApp]:
    # The variable is Textual's public one, read once at its import. It is taken away again so that
    # children do not inherit it.
    chosen = "TEXTUAL_FPS" in os.environ
    if not chosen:
        os.environ["TEXTUAL_FPS"] = FRAMES_PER_SECOND
    try:
        from sandbox_chat.ui.app import ChatApp
    finally:
        if not chosen:
            del os.environ["TEXTUAL_FPS"]
    return ChatApp
