"""What the chat's screen does with what came of tool calls: pages in the browser, output in the pager, code in the editor."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sandbox_chat.events import FileContent, ImageContent
from sandbox_chat.settings import Settings
from sandbox_chat.ui import tooltext
from sandbox_chat.ui.calls import ToolCall
from sandbox_chat.ui.screens.panes import PaneScreen
from sandbox_chat.ui.transcript.card import ToolCard
from sandbox_chat.ui.widgets.tool_pane import ToolPane
from sandbox_chat.words import tr

HTML = "text/html"
TEXT = "text/plain"


@dataclass(frozen=True, slots=True)
class Result:
    """What can be used of a call: its code, what came of it as text, its files."""

    code: str
    suffix: str
    output: str
    files: Sequence[FileContent] = field(default_factory=list)
    pictures: Sequence[ImageContent] = field(default_factory=list)

    @property
    def pages(self) -> list[FileContent]:
        """Files for the browser."""
        return [file for file in self.files if file.mime == HTML]

    @property
    def whole(self) -> FileContent | None:
        """The file that holds the whole output, where that was too long."""
        return next((file for file in self.files if file.mime == TEXT), None)


def of_card(card: ToolCard) -> Result:
    """Return what can be used of a card of the transcript."""
    return Result(card.code, card.suffix, card.output_text, card.files)


def of_call(call: ToolCall) -> Result:
    """Return what can be used of a call of the tools pane."""
    code, suffix = tooltext.whole_code(call)
    return Result(code, suffix, tooltext.everything(call), call.files, call.images)


class Results(PaneScreen):
    """The part of the chat's screen that uses results elsewhere. Everything slow is done beside the loop."""

    settings: Settings

    def on_tool_pane_command_asked(self, event: ToolPane.CommandAsked) -> None:
        """Do something with a call of the tools pane."""
        if event.command == "copy_arguments":
            self._copy(tooltext.arguments_json(event.call), tr("cards.copied_arguments"))
        elif event.command == "copy_result":
            self._copy(tooltext.everything(event.call), tr("cards.copied_result"))
        else:
            self.use_result(of_call(event.call), event.command)

    def use_result(self, result: Result, command: str) -> None:
        """Open, save, page or edit what came of a call. What is not there is said."""
        if command == "open" and result.pages:
            self._ask(result.pages)
        elif command in ("open", "page") and (result.whole is not None or result.output):
            self.run_worker(self._page_result(result), exit_on_error=False)
        elif command == "save" and result.files:
            self.run_worker(self._save_file(result.files[0]), exit_on_error=False)
        elif command == "save" and (result.pictures or result.output.strip()):
            self.run_worker(self._save_result(result), exit_on_error=False)
        elif command == "edit" and result.code:
            self.run_worker(self._edit_code(result), exit_on_error=False)
        else:
            self.status.say(tr("cards.nothing_there"))

    def offer_prompt(self, prompt: str) -> bool:
        """Put a prompt into the composer; it is never sent by itself. False when something is written there."""
        if not prompt or self.composer.text.strip():
            if prompt:
                self.status.say(tr("transcript.composer_full"))
            return False
        self.composer.offer(prompt)
        self.composer.focus()
        return True

    def _copy(self, text: str, said: str) -> None:
        if not text.strip():
            self.status.say(tr("cards.nothing_to_copy"))
            return
        from sandbox_chat.ui.outside import copy_text

        copy_text(self.app, text)
        self.status.say(said)

    def _ask(self, pages: Sequence[FileContent]) -> None:
        from sandbox_chat.ui.browser import needed_hosts
        from sandbox_chat.ui.screens.page import PageScreen

        def chosen(file: FileContent, what: str) -> None:
            work = self._save_file(file) if what == "save" else self._open_page(file, online=what == "online")
            self.run_worker(work, exit_on_error=False)

        self.app.push_screen(PageScreen(pages, hosts=needed_hosts, chosen=chosen))

    async def _open_page(self, file: FileContent, *, online: bool) -> None:
        from sandbox_chat.ui.browser import prepare
        from sandbox_chat.ui.desktop import opener
        from sandbox_chat.ui.outside import open_path

        path = Path(file.path)
        try:
            if opener() is None:
                self._tell(tr("cards.no_browser", path=file.path))
                return
            page = await asyncio.to_thread(prepare, path, file.title, online=online)
        except OSError as error:
            self._tell(tr("cards.page_failed", reason=error.strerror or type(error).__name__))
            return
        problem = await asyncio.to_thread(open_path, page)
        if problem:
            self._tell(problem)
        else:
            self.status.say(tr("cards.opened", title=file.title))

    async def _save_file(self, file: FileContent) -> None:
        from sandbox_chat.ui.desktop import save_copy

        name = "-".join(file.title.lower().split())
        said = await asyncio.to_thread(save_copy, Path(file.path), self.settings.downloads_path, name)
        self.status.say(said, 6.0)

    async def _save_result(self, result: Result) -> None:
        """Save what is kept in no file for another program: the pictures, or else the text."""
        from sandbox_chat.ui.desktop import save_copy
        from sandbox_chat.ui.outside import save_text

        folder, said = self.settings.downloads_path, ""
        for picture in result.pictures:
            said = await asyncio.to_thread(save_copy, Path(picture.path), folder)
        if not result.pictures:
            said = await asyncio.to_thread(save_text, result.output, folder, "output.txt")
        self.status.say(said, 6.0)

    async def _page_result(self, result: Result) -> None:
        from sandbox_chat.ui.outside import open_file_in_pager, open_in_pager

        if result.whole is not None:
            await open_file_in_pager(self.app, Path(result.whole.path))
        else:
            await open_in_pager(self.app, result.output)

    async def _edit_code(self, result: Result) -> None:
        from sandbox_chat.text import clean
        from sandbox_chat.ui.outside import open_in_editor

        edited = await open_in_editor(self.app, result.code, result.suffix)
        if edited is not None:
            self.offer_prompt(tr("cards.run_this", code=clean(edited).rstrip("\n")))

    def _tell(self, sentence: str) -> None:
        self.app.notify(sentence, severity="warning", markup=False)
