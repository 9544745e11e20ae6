"""Pictures as the screens use them: one painter for the transcript, the tools pane and the full view.

Everything that draws pictures is imported when the first one is to be shown.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.widget import Widget

from sandbox_chat.events import ImageContent
from sandbox_chat.settings import Settings

if TYPE_CHECKING:
    from sandbox_chat.ui.pictures import Painter, TerminalInfo
    from sandbox_chat.ui.transcript import TranscriptView


class Images:
    """Makes and fills picture widgets for the terminal described by ``info`` (``None``: half-cells)."""

    def __init__(self, settings: Settings, info: TerminalInfo | None = None) -> None:
        self.settings = settings
        self.info = info
        self._painter: Painter | None = None

    @property
    def painter(self) -> Painter:
        """The painter, made at first use."""
        if self._painter is None:
            from sandbox_chat.ui.pictures import Painter, TerminalInfo, choose

            info = self.info or TerminalInfo()
            self._painter = Painter(
                choose(self.settings.images, info),
                info,
                max_pixels=self.settings.image_pixels,
                max_rows=self.settings.image_rows,
            )
        return self._painter

    def connect(self, transcript: TranscriptView) -> None:
        """Give the transcript the painter."""
        transcript.set_images(self.painter)

    def make_view(self) -> Widget:
        """Make a widget that shows one picture."""
        from sandbox_chat.ui.pictures import PictureView

        return PictureView(self.painter)

    def show(self, view: Widget, image: ImageContent) -> None:
        """Show a picture in a widget of ``make_view``."""
        from sandbox_chat.ui.pictures import PictureView

        assert isinstance(view, PictureView)
        view.show(image.path, image.width, image.height)

    def open(self, app: App[Any], path: str) -> None:
        """Show the picture at ``path`` over the whole screen."""
        from sandbox_chat.ui.desktop import open_picture, save_copy
        from sandbox_chat.ui.pictures import PictureView
        from sandbox_chat.ui.screens.picture import PictureScreen

        view = PictureView(self.painter)
        view.show(path)

        async def copy(file: Path) -> None:
            app.notify(await asyncio.to_thread(save_copy, file, self.settings.downloads_path), markup=False)

        def save(file: Path) -> None:
            app.run_worker(copy(file))

        app.push_screen(
            PictureScreen(
                path,
                view,
                viewer=lambda file: open_picture(app, file),
                save=save,
            )
        )
