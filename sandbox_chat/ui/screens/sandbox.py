"""Shows what sandbox there is and what bounds it has; it can be started afresh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from sandbox_chat.settings import Settings
from sandbox_chat.ui.actions import bindings_of, key_of
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.widgets.key_line import KeyLine
from sandbox_chat.words import tr


class SandboxScreen(ModalScreen[bool]):
    """True when the sandbox is to be started afresh, which is asked twice."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("sandbox")]

    DEFAULT_CSS = """
    SandboxScreen { align: center middle; background: $background 60%; }
    #sandbox-box { width: 76; max-width: 94%; height: auto; max-height: 100%; padding: 1 2; background: $panel; }
    #sandbox-box Static { width: 1fr; }
    #sandbox-facts { margin: 1 0; }
    #sandbox-box:ansi { border: solid $border; }
    .-ascii #sandbox-box { border: ascii $border; }
    """

    def __init__(self, settings: Settings, chat: Chat) -> None:
        super().__init__()
        self._settings = settings
        self._chat = chat

    def compose(self) -> ComposeResult:
        """Lay out the facts."""
        keys = [(f"{key_of('sandbox.close')} {tr('controls.sandbox_keys_close')}", "screen.close")]
        if self._there:
            keys.insert(
                0, (f"{key_of('sandbox.restart')} {tr('controls.sandbox_keys_restart')}", "screen.restart")
            )
        with Vertical(id="sandbox-box"):
            yield Static(Content.styled(tr("controls.sandbox"), "bold"))
            yield Static(self._facts(), id="sandbox-facts")
            yield KeyLine(keys)

    @property
    def _there(self) -> bool:
        return self._kind != "off" and not self._chat.read_only and self._chat.engine is not None

    @property
    def _kind(self) -> str:
        return self._chat.state.sandbox_kind or self._settings.sandbox

    def _facts(self) -> Content:
        if self._kind == "off":
            return Content(tr("controls.sandbox_none"))
        rows = list(self._rows())
        width = max(Content(label).cell_length for label, _ in rows) + 2
        lines = [
            Content.assemble((label, "$muted"), " " * (width - Content(label).cell_length), words)
            for label, words in rows
        ]
        return Content("\n").join(lines)

    def _rows(self) -> Iterator[tuple[str, str]]:
        settings, state = self._settings, self._chat.state
        yield tr("controls.sandbox_kind"), self._kind
        yield tr("controls.sandbox_state"), tr(f"title.sandbox_{state.sandbox}")
        cloud = self._kind == "e2b"
        yield (
            tr("controls.sandbox_limits"),
            tr(
                "controls.sandbox_cloud_limits" if cloud else "controls.sandbox_limits_text",
                timeout=f"{settings.run_timeout:,}",
                memory=f"{settings.sandbox_memory_mb:,}",
                disk=f"{settings.sandbox_disk_mb:,}",
            ),
        )

    async def action_restart(self) -> None:
        """Ask once more, then let it be started afresh."""
        from sandbox_chat.ui.screens.confirm import ConfirmScreen

        if not self._there:
            return
        if self._chat.state.sandbox == "busy":
            self.notify(tr("controls.sandbox_busy"), markup=False)
            return
        question = ConfirmScreen(
            tr("controls.sandbox_sure"),
            tr("controls.sandbox_sure_detail"),
            tr("controls.sandbox_keys_restart"),
        )
        self.app.push_screen(question, self._sure)

    def _sure(self, yes: bool | None) -> None:
        if yes:
            self.dismiss(True)

    def action_close(self) -> None:
        """Leave it as it is."""
        self.dismiss(False)
