"""The chat's screen of a session that is only looked at."""

from __future__ import annotations

from sandbox_chat.ui.screens.reading import ReadingScreen
from sandbox_chat.words import tr


class LookingScreen(ReadingScreen):
    """Reads, searches and copies as ever; nothing is written and nothing is sent."""

    def look_only(self) -> None:
        """Say that the session is open elsewhere, and let nothing be typed."""
        composer = self.composer
        composer.disabled = True
        composer.placeholder = tr("opening.composer")
        self.transcript.focus()
