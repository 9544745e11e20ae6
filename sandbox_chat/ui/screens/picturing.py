"""What the chat's screen does for pictures: showing them large."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.images import Images
from sandbox_chat.ui.screens.panes import PaneScreen
from sandbox_chat.ui.transcript import TranscriptView
from sandbox_chat.words import tr

if TYPE_CHECKING:
    from sandbox_chat.ui.pictures import PicturePager


class Picturing(PaneScreen):
    """The part of the chat's screen that shows pictures."""

    chat: Chat
    images: Images

    def on_picture_pager_large(self, event: PicturePager.Large) -> None:
        """Show a picture of the tools pane large."""
        self._show_large(event.path)

    def on_transcript_view_picture_opened(self, event: TranscriptView.PictureOpened) -> None:
        """Show a picture of the transcript large."""
        self._show_large(event.path)

    def action_open_picture(self) -> None:
        """Show the picture of the chosen call, or else the newest one, large."""
        call = self.tool_pane.call
        paths = [image.path for image in call.images] if call else []
        paths = paths or self._paths()
        if paths:
            self._show_large(paths[-1])
        else:
            self.status.say(tr("pictures.no_pictures"))

    def _paths(self) -> list[str]:
        """Return the pictures of the session in the order in which they came."""
        return [image.path for tool in self.chat.state.tools.values() for image in tool.images]

    def _show_large(self, path: str) -> None:
        self.images.open(self.app, path, self._paths())
