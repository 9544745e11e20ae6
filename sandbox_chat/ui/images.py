"""Pictures as the screens use them: one painter for the transcript, the tools pane and the full view.

Everything that draws pictures is imported when the first one is to be shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import App
from textual.widget import Widget

from sandbox_chat.events import ImageContent
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean_line
from sandbox_chat.ui import glyphs
from sandbox_chat.words import tr

if TYPE_CHECKING:
    from sandbox_chat.ui.pictures import Painter, TerminalInfo
    from sandbox_chat.ui.transcript import TranscriptView

SHOWN = 500
"""Characters of a path that are shown."""


class Images:
    """Makes and fills picture widgets for the terminal described by ``info`` (``None``: characters)."""

    def __init__(self, settings: Settings, info: TerminalInfo | None = None) -> None:
        self.settings = settings
        self.info = info
        self._painter: Painter | None = None
        self._system_cell = (0, 0)

    @property
    def painter(self) -> Painter:
        """The painter, made at first use."""
        if self._painter is None:
            from sandbox_chat.ui.pictures import Painter, TerminalInfo, choose
            from sandbox_chat.ui.pictures.terminal import screen_cell

            info = self.info or TerminalInfo()
            self._system_cell = screen_cell()
            self._painter = Painter(
                choose(self.settings.images, info, ascii_only=glyphs.is_ascii()),
                info,
                max_pixels=self.settings.image_pixels,
                max_rows=self.settings.image_rows,
            )
        return self._painter

    def connect(self, transcript: TranscriptView) -> None:
        """Give the transcript the painter."""
        transcript.set_images(self.painter)

    def resized(self, event: events.Resize) -> None:
        """The terminal has another size, and perhaps another font: measure its cells again."""
        if self._painter is None or self.info is None or not self.info.is_tty:
            return
        from sandbox_chat.ui.pictures.terminal import cell_within, screen_cell

        cell = screen_cell()
        if event.pixel_size is not None:
            cell = cell_within(event.pixel_size, event.size)
        # What the terminal said of its cells at the start is more exact, and is kept while nothing changes.
        if all(cell) and cell != self._system_cell:
            self._system_cell = cell
            self._painter.cell = cell

    def make_pager(self) -> Widget:
        """Make a widget that shows one of several pictures; it posts ``PicturePager.Large``."""
        from sandbox_chat.ui.pictures.pager import PicturePager

        return PicturePager(self.painter)

    def show(self, pager: Widget, images: Sequence[ImageContent]) -> None:
        """Show pictures in a widget of ``make_pager``."""
        from sandbox_chat.ui.pictures.pager import PicturePager

        assert isinstance(pager, PicturePager)
        pager.show(images)

    def open(self, app: App[Any], path: str, paths: Sequence[str] = ()) -> None:
        """Show the picture at ``path`` over the whole screen; ``paths`` are all that can be turned to."""
        from sandbox_chat.ui.pictures import PictureView
        from sandbox_chat.ui.screens.picture import PictureScreen

        known = list(dict.fromkeys(paths))
        if path not in known:
            known = [path]
        app.push_screen(
            PictureScreen(
                known,
                known.index(path),
                PictureView(self.painter),
                viewer=lambda file: self.view(app, file),
                save=lambda file: self.save(app, file),
                copy=lambda file: self.copy_path(app, file),
            )
        )

    def view(self, app: App[Any], path: Path) -> None:
        """Open a picture in the system's viewer; what goes wrong is said."""
        from sandbox_chat.ui.outside import open_path

        async def run() -> None:
            if problem := await asyncio.to_thread(open_path, path):
                app.notify(problem, severity="warning", markup=False)

        app.run_worker(run())

    def save(self, app: App[Any], path: Path) -> None:
        """Copy a picture into the folder for downloads under a name that is free, and say where it is."""
        from sandbox_chat.ui.desktop import save_copy

        async def run() -> None:
            app.notify(await asyncio.to_thread(save_copy, path, self.settings.downloads_path), markup=False)

        app.run_worker(run())

    def copy_path(self, app: App[Any], path: Path) -> None:
        """Put the path of a picture on the clipboard, and say so."""
        from sandbox_chat.ui.outside import copy_text

        copy_text(app, str(path))
        app.notify(tr("pictures.copied", path=clean_line(str(path), SHOWN)), markup=False)
