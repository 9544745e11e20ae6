"""What the chat's screen does for the reader of the transcript: searching, and using its items elsewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sandbox_chat.settings import Settings
from sandbox_chat.ui.screens.results import Results, of_card
from sandbox_chat.ui.transcript import Block, TranscriptView
from sandbox_chat.ui.transcript.card import ToolCard
from sandbox_chat.ui.widgets.find import FindBar
from sandbox_chat.words import tr


class ReadingScreen(Results):
    """The part of the chat's screen that reads."""

    settings: Settings

    # -- searching ---------------------------------------------------------------------------------------

    def action_find(self) -> None:
        """Search in the transcript."""
        if self.arrangement.narrow and self.arrangement.tab != "chat":
            self.show_pane("chat")
        self.query_one(FindBar).open()

    def on_transcript_view_find_asked(self) -> None:
        """The transcript was asked to search."""
        self.action_find()

    def on_find_bar_changed(self, event: FindBar.Changed) -> None:
        """Search for something else."""
        self.transcript.find(event.query)

    def on_find_bar_stepped(self, event: FindBar.Stepped) -> None:
        """Go to another place."""
        self.transcript.find_step(event.step)

    def on_find_bar_left(self, event: FindBar.Left) -> None:
        """The search is over: back to the prompt, or on at the place that was found."""
        self.query_one(FindBar).close()
        if event.back:
            self.transcript.find_done(back=True)
            self.composer.focus()
        else:
            self.transcript.focus()

    def on_transcript_view_found(self, event: TranscriptView.Found) -> None:
        """Say which of how many places is shown."""
        self.query_one(FindBar).show(event.number, event.count, more=event.more)

    # -- items -------------------------------------------------------------------------------------------

    def on_transcript_view_copied(self, event: TranscriptView.Copied) -> None:
        """Say what was copied."""
        name = "transcript.copied_one" if event.count == 1 else "transcript.copied"
        self.status.say(tr(name, count=f"{event.count:,}"))

    def on_transcript_view_command_asked(self, event: TranscriptView.CommandAsked) -> None:
        """Do something with an item, beside the loop."""
        block = event.block
        if isinstance(block, ToolCard) and event.command != "rerun":
            self.use_result(of_card(block), event.command)
            return
        match event.command:
            case "open" if block.path:
                self.run_worker(self._open(block), exit_on_error=False)
            case "open":
                self.status.say(tr("transcript.nothing_to_open"))
            case "save":
                self.run_worker(self._save(block), exit_on_error=False)
            case "page":
                self.run_worker(self._page(block), exit_on_error=False)
            case "edit":
                self.run_worker(self._edit(block), exit_on_error=False)
            case "rerun":
                self.offer_prompt(block.again)

    async def _open(self, block: Block) -> None:
        from sandbox_chat.ui.outside import open_path

        if problem := await asyncio.to_thread(open_path, block.path):
            self.status.say(problem, 6.0)

    async def _page(self, block: Block) -> None:
        from sandbox_chat.ui.outside import open_in_pager

        await open_in_pager(self.app, block.text)

    async def _edit(self, block: Block) -> None:
        from sandbox_chat.text import from_file
        from sandbox_chat.ui.outside import open_in_editor

        edited = await open_in_editor(self.app, block.text, block.suffix)
        if edited is not None and self.offer_prompt(from_file(edited)):
            self.status.say(tr("transcript.edited"))

    async def _save(self, block: Block) -> None:
        from sandbox_chat.ui.desktop import save_copy
        from sandbox_chat.ui.outside import save_text

        folder = self.settings.downloads_path
        if block.path:
            said = await asyncio.to_thread(save_copy, Path(block.path), folder)
        else:
            said = await asyncio.to_thread(save_text, block.text, folder, f"{block.kind}{block.suffix}")
        self.status.say(said, 6.0)
