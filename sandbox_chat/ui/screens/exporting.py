"""What the chat's screen does to export the session: a document is written beside the loop, and told of."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.css.query import NoMatches

from sandbox_chat.settings import Settings
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.screens.panes import PaneScreen
from sandbox_chat.ui.work_thread import WorkThread
from sandbox_chat.words import tr

if TYPE_CHECKING:
    from sandbox_chat.journal.export.asked import Asked

SECOND = 1.0
"""Seconds between two words about an export that goes on."""
LONG = 12.0
"""Seconds that a sentence about a document is shown: it holds a path."""


class Exporting(PaneScreen):
    """The part of the chat's screen that exports."""

    chat: Chat
    settings: Settings
    _exports: WorkThread | None = None
    _exporting = False

    def action_export(self) -> None:
        """Export the session into the folder for downloads."""
        self.export_session("")

    def export_session(self, words: str, typed: str = "") -> None:
        """Export the session as ``words`` say; what was ``typed`` comes back when they cannot be understood."""
        from sandbox_chat.journal.export import ExportError
        from sandbox_chat.journal.export.asked import read

        if self.chat.engine is None:
            self.status.say(tr("export.nothing"))
            return
        if self._exporting:
            self.status.say(tr("export.busy"))
            return
        try:
            asked = read(words)
        except ExportError as wrong:
            self.status.say(str(wrong), LONG)
            if typed and not self.composer.draft.strip():
                self.composer.write_command(typed)
            return
        self._exporting = True
        self._tell_work(tr("export.working"))
        folder = self.settings.data_path / "sessions" / self.chat.engine.session_id
        self.run_worker(self._export(asked, folder), exit_on_error=False)

    async def _export(self, asked: Asked, folder: Path) -> None:
        from sandbox_chat.journal.export import ExportError, ExportStopped
        from sandbox_chat.journal.export.asked import Progress, carry_out, said

        self._exports = self._exports or WorkThread("export")
        stopped = threading.Event()
        settings = self.settings
        progress = Progress()
        alive = self.set_interval(SECOND, lambda: self._tell_work(progress.words()))
        work = partial(
            carry_out,
            asked,
            folder,
            settings.downloads_path,
            settings.secrets(),
            largest=settings.export_limit,
            stop=stopped.is_set,
            told=progress.told,
        )
        try:
            done = await self._exports.run(work)
        except ExportError as error:
            self._told(str(error), wrong=True)
        except ExportStopped:
            return
        except asyncio.CancelledError:
            stopped.set()
            raise
        else:
            self._told("\n".join(said(done)), wrong=False)
        finally:
            alive.stop()
            self._tell_work("")
            self._exporting = False

    def _tell_work(self, words: str) -> None:
        with contextlib.suppress(NoMatches):  # the screen is gone
            self.status.work = words
            self.status.changed()

    def _told(self, text: str, *, wrong: bool) -> None:
        self.app.notify(text, severity="error" if wrong else "information", timeout=LONG, markup=False)
