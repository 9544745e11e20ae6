"""Shows the MCP servers of the session with their tools; each can be restarted, and switched off and on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from sandbox_chat.events import ServerChanged
from sandbox_chat.server_text import server_lines, tools_words
from sandbox_chat.ui.actions import bindings_of, key_of
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.formats import fit
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.server_views import STATES, rows
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.widgets.key_line import KeyLine
from sandbox_chat.ui.widgets.row_list import RowList
from sandbox_chat.ui.widgets.text_view import TextView
from sandbox_chat.words import tr

NAME_WIDTH = 24
"""Cells of a server's name in the list at most."""
FOLLOW = 0.2
"""Seconds between two looks whether something has changed."""


class ServerList(RowList):
    """The servers, a row each: state, name, tools, place. The chosen one is marked."""

    def __init__(self, state: ChatState, changed: Callable[[], None], *, id: str | None = None) -> None:
        super().__init__(changed, id=id)
        self.state = state

    @property
    def items(self) -> list[ServerChanged]:
        """All of them, in the order in which they were told of."""
        return list(self.state.servers.values())

    @property
    def chosen(self) -> ServerChanged | None:
        """The chosen one; ``None`` when there is none at all."""
        servers = self.items
        return servers[self.present] if servers else None

    def rows_of(self, places: range, width: int) -> list[Content]:
        """Draw servers."""
        servers = self.items
        names = min(NAME_WIDTH, max((cell_len(server.name) for server in servers), default=0))
        states = max((cell_len(tr(f"servers.state_{state}")) for state in STATES), default=0)
        return [
            self._row(servers[place], width, names, states, chosen=place == self.present) for place in places
        ]

    @staticmethod
    def _row(server: ServerChanged, width: int, names: int, states: int, *, chosen: bool) -> Content:
        sign, colour = STATES[server.state]
        word = tr(f"servers.state_{server.state}")
        name = fit(server.name, names)
        rest = f"{tools_words(server)} {glyph('dot')} {tr(f'servers.place_{server.place}')}"
        used = 4 + names + 2 + states + 2
        return Content.assemble(
            (f"{glyph('prompt')} " if chosen else "  ", "bold $primary"),
            (f"{glyph(sign)} ", colour),
            (name + " " * (names - cell_len(name) + 2), "bold $primary" if chosen else ""),
            (word + " " * (states - cell_len(word) + 2), colour),
            (fit(rest, max(0, width - used)), "$muted"),
        ).truncate(max(1, width))


class ServerDetail(TextView, can_focus=False):
    """What is known of a server; scrolled by the keys of the screen."""

    DEFAULT_CSS = """
    ServerDetail { height: 1fr; background: $panel; }
    """

    server: ServerChanged | None = None

    def show_server(self, server: ServerChanged | None) -> None:
        """Show a server. What is seen of it stays in place when only its state has changed."""
        if server is self.server:
            return
        same = server is not None and self.server is not None and server.name == self.server.name
        self.server = server
        self._lay_out(keep=same)

    def on_resize(self) -> None:
        """Lay the words out at another width."""
        self._lay_out(keep=True)

    def _lay_out(self, *, keep: bool) -> None:
        width = self.scrollable_content_region.width or self.size.width
        self.show(rows(self.server, width - 1) if self.server is not None and width else [], keep=keep)


class ServersScreen(ModalScreen[None]):
    """Lists the servers of ``chat`` and shows the chosen one. Live: it follows what is told of them."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("servers")]

    DEFAULT_CSS = """
    ServersScreen { align: center middle; background: $background 60%; }
    #servers-box { width: 110; max-width: 94%; height: 94%; padding: 1 2; background: $panel; }
    #servers-box Static { width: 1fr; }
    #servers-none { margin: 1 0; display: none; }
    #servers-keys { margin-top: 1; }
    ServersScreen.-empty #servers-box { width: 76; height: auto; }
    ServersScreen.-empty #servers-none { display: block; }
    ServersScreen.-empty ServerList, ServersScreen.-empty ServerDetail { display: none; }
    #servers-box:ansi { border: solid $border; }
    .-ascii #servers-box { border: ascii $border; }
    """

    def __init__(self, chat: Chat) -> None:
        super().__init__()
        self.chat = chat
        self._shown: list[ServerChanged] = []

    def compose(self) -> ComposeResult:
        """Lay out the list, the chosen server and the keys."""
        nothing = Content.assemble(tr("servers.none"), "\n", (tr("servers.none_how"), "$muted"))
        with Vertical(id="servers-box"):
            yield Static(Content.styled(tr("servers.title"), "bold"))
            yield Static(nothing, id="servers-none")
            yield ServerList(self.chat.state, self._chosen, id="servers-list")
            yield ServerDetail(id="servers-detail")
            yield KeyLine(self._keys(None), id="servers-keys")

    def on_mount(self) -> None:
        """Look now and then whether a server has changed."""
        self._take()
        self.set_interval(FOLLOW, self._follow)

    @property
    def servers(self) -> ServerList:
        """The list."""
        return self.query_one(ServerList)

    @property
    def detail(self) -> ServerDetail:
        """What is known of the chosen server."""
        return self.query_one(ServerDetail)

    def _follow(self) -> None:
        now = self.servers.items
        if len(now) != len(self._shown) or any(a is not b for a, b in zip(now, self._shown, strict=True)):
            self._take()

    def _take(self) -> None:
        self._shown = self.servers.items
        self.set_class(not self._shown, "-empty")
        self.servers.choose(self.servers.place)

    def _chosen(self) -> None:
        server = self.servers.chosen
        self.detail.show_server(server)
        self.query_one("#servers-keys", KeyLine).show(self._keys(server))

    @staticmethod
    def _keys(server: ServerChanged | None) -> list[tuple[str, str]]:
        close = (f"{key_of('servers.back')} {tr('servers.key_close')}", "screen.back")
        if server is None:
            return [close]
        switch = tr("servers.key_on" if server.state == "off" else "servers.key_off")
        return [
            close,
            (f"{key_of('servers.restart')} {tr('servers.key_restart')}", "screen.restart"),
            (f"{key_of('servers.switch')} {switch}", "screen.switch"),
            (f"{key_of('servers.log')} {tr('servers.key_log')}", "screen.log"),
            (f"{key_of('servers.copy')} {tr('servers.key_copy')}", "screen.copy"),
        ]

    def action_step(self, by: int) -> None:
        """Choose another server."""
        self.servers.choose(self.servers.place + by)

    def action_scroll(self, pages: int) -> None:
        """Scroll what is known of the chosen server by so many pages."""
        detail = self.detail
        detail.scroll_relative(y=pages * max(1, detail.size.height - 1), animate=False)

    def action_restart(self) -> None:
        """End the chosen server and start it again."""
        server = self.servers.chosen
        if server is None or not self._can_order():
            return
        if server.state == "off":
            self._say(tr("servers.is_off", name=server.name))
            return
        assert self.chat.engine is not None
        self.chat.engine.restart_server(server.name)
        self._say(tr("servers.restarting", name=server.name))

    def action_switch(self) -> None:
        """Switch the chosen server off, or on again."""
        server = self.servers.chosen
        if server is None or not self._can_order():
            return
        on = server.state == "off"
        assert self.chat.engine is not None
        self.chat.engine.switch_server(server.name, on)
        self._say(tr("servers.switching_on" if on else "servers.switching_off", name=server.name))

    async def action_log(self) -> None:
        """Show what the chosen server has written on its standard error."""
        from sandbox_chat.ui.outside import open_file_in_pager

        server = self.servers.chosen
        if server is None:
            return
        path = Path(server.log)
        there = bool(server.log) and await asyncio.to_thread(path.is_file)
        if there:
            self.run_worker(open_file_in_pager(self.app, path), exit_on_error=False)
        else:
            self._say(tr("servers.no_log", name=server.name))

    def action_copy(self) -> None:
        """Copy what is known of the chosen server."""
        from sandbox_chat.ui.outside import copy_text

        server = self.servers.chosen
        if server is not None:
            copy_text(self.app, "\n".join(server_lines(server)))
            self._say(tr("servers.copied", name=server.name))

    def action_back(self) -> None:
        """Close."""
        self.dismiss(None)

    def _can_order(self) -> bool:
        """Say so, and return false, where there is no session that takes commands."""
        chat = self.chat
        if chat.engine is not None and not chat.state.finished and not chat.read_only:
            return True
        self._say(tr("controls.no_session" if chat.engine is None else "controls.over"))
        return False

    def _say(self, words: str) -> None:
        self.notify(words, markup=False, timeout=3)
