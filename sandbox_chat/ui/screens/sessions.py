"""The list of all sessions: searched while one types, opened, renamed, deleted."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Input, Static

from sandbox_chat.journal.errors import SessionError, SessionInUse
from sandbox_chat.journal.index import SHORT_ID, SessionSummary, records, summarise
from sandbox_chat.journal.search import SessionSearch
from sandbox_chat.journal.search_types import Found
from sandbox_chat.text import clean_line
from sandbox_chat.ui.actions import bindings_of, key_of
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.widgets.key_line import KeyLine
from sandbox_chat.ui.widgets.session_lines import SearchLine, SessionBar
from sandbox_chat.ui.widgets.session_table import Row, SessionHead, SessionTable
from sandbox_chat.words import tr, tr_count

DEBOUNCE = 0.2
"""Seconds without a key after which is searched."""
SLICE = 200
"""Sessions that come into the list together."""
AGAIN = 2.0
"""Seconds between two searches while the sessions are still being read."""
SAID = 8.0
"""Seconds that a sentence stands."""


class SessionsScreen(Screen[tuple[str, int | None] | None]):
    """Shows the sessions in ``data_path``. The result is a session and the turn to scroll to, or nothing.

    ``present`` is the id of the session that is open here, which ``rename_present`` gives another title. Everything that
    reads or writes runs on threads.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("sessions")]

    DEFAULT_CSS = """
    SessionsScreen { background: $background; }
    #sessions-detail { height: 1; width: 1fr; padding: 0 1; background: $surface; color: $muted; }
    #sessions-keys { padding: 0 1; }
    """

    def __init__(
        self, data_path: Path, present: str = "", rename_present: Callable[[str], None] | None = None
    ) -> None:
        super().__init__()
        self._data_path = data_path
        self._root = data_path / "sessions"
        self._present = present
        self._rename_present = rename_present
        self._search = SessionSearch(data_path)
        self._summaries: dict[str, SessionSummary] = {}
        self._loaded = False
        self._indexing = False
        self._gone = False
        self._number = 0  # of the search: an older one shows nothing
        self._timer: Timer | None = None
        self._again: Timer | None = None

    def compose(self) -> ComposeResult:
        """Lay out search, table and keys."""
        yield SessionBar(id="sessions-bar")
        yield SearchLine(id="sessions-search")
        yield SessionHead()
        yield SessionTable(self._present, id="sessions-table")
        yield Static(id="sessions-detail")
        names = ("open", "search", "rename", "delete", "back")
        keys = [
            (tr(f"sessions.key_{name}", key=key_of(f"sessions.{name}")), f"screen.{name}") for name in names
        ]
        yield KeyLine(keys, id="sessions-keys")

    @property
    def table(self) -> SessionTable:
        """The rows."""
        return self.query_one(SessionTable)

    @property
    def query_text(self) -> str:
        """What is searched for."""
        return self.query_one("#sessions-input", Input).value.strip()

    def on_mount(self) -> None:
        """Begin to read."""
        self.query_one("#sessions-input", Input).cursor_blink = False
        self.table.focus()
        self._tell(tr("sessions.loading"))
        threading.Thread(target=self._load, name="sessions", daemon=True).start()

    def on_unmount(self) -> None:
        """Let the threads end."""
        self._gone = True

    # -- reading (on a thread) ---------------------------------------------------------------------------

    def _post(self, done: Callable[[], None]) -> None:
        """Let the loop do something, if the screen is still there."""
        with contextlib.suppress(RuntimeError):  # the program has ended
            if not self._gone:
                self.call_later(done)

    def _load(self) -> None:
        """Read the list in slices, then bring the index up to date."""
        try:
            next(self._root.iterdir(), None)
        except FileNotFoundError:
            pass
        except OSError as error:
            self._post(partial(self._unreadable, error.strerror or type(error).__name__))
            return
        found: list[SessionSummary] = []
        for path, _, _ in records(self._root).values():
            if self._gone:
                return
            if (summary := summarise(path.parent)) is not None:
                found.append(summary)
            if len(found) >= SLICE:
                self._post(partial(self._take, found))
                found = []
        self._post(partial(self._take, found, last=True))
        if self._search.update(stop=lambda: self._gone, told=self._told) or not self._gone:
            self._post(self._indexed)

    def _told(self, done: int, total: int) -> None:
        if done == 0 or done % 10 == 0:
            self._post(partial(self._reading, done, total))

    # -- what comes of it --------------------------------------------------------------------------------

    def _unreadable(self, reason: str) -> None:
        folder = clean_line(str(self._root), 500)
        self.table.say(tr("sessions.unreadable", folder=folder, reason=reason))
        self._tell("")

    def _take(self, found: list[SessionSummary], *, last: bool = False) -> None:
        self._summaries.update((summary.id, summary) for summary in found)
        self._loaded = self._loaded or last
        if self._loaded and not self._summaries:
            self.table.say(tr("sessions.empty"))
        if not self.query_text:
            self.table.add([Row(summary) for summary in found])
            self._tell_count()

    def _reading(self, done: int, total: int) -> None:
        self._indexing = True
        if self.query_text:
            self._tell(tr("sessions.reading", done=done, total=total))
            if self._again is None:
                self._again = self.set_timer(AGAIN, self._find_again)

    def _find_again(self) -> None:
        self._again = None
        if self._indexing:
            self._find(keep=True)

    def _indexed(self) -> None:
        again, self._indexing = self._indexing, False
        if again and self.query_text:
            self._find(keep=True)

    def _tell(self, words: str) -> None:
        bar = self.query_one(SessionBar)
        bar.count = words
        bar.changed()

    def _tell_count(self) -> None:
        self._tell(
            tr_count("sessions.count", len(self._summaries)) if self._summaries or self._loaded else ""
        )

    # -- searching ---------------------------------------------------------------------------------------

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search when nothing is typed for a moment."""
        event.stop()
        self._number += 1
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(DEBOUNCE, self._find)

    def _find(self, *, keep: bool = False) -> None:
        self._number += 1
        number, words = self._number, self.query_text
        if not words:
            self.table.say(tr("sessions.empty") if self._loaded else "")
            self.table.show([Row(summary) for summary in self._sorted()])
            self._tell_count()
            return
        if not keep:
            self._tell(tr("sessions.searching"))

        def run() -> None:
            found = self._search.find(words, stop=lambda: self._gone or number != self._number)
            rows = self._rows(found)
            self._post(partial(self._show_found, number, found, rows, keep=keep))

        threading.Thread(target=run, name="search", daemon=True).start()

    def _sorted(self) -> list[SessionSummary]:
        return sorted(self._summaries.values(), key=lambda each: (each.updated, each.id), reverse=True)

    def _rows(self, found: Found) -> list[Row]:
        rows: list[Row] = []
        for match in found.matches:
            summary = self._summaries.get(match.session_id) or summarise(self._root / match.session_id)
            if summary is None:
                continue
            rows.append(Row(summary))
            rows += [Row(summary, place) for place in match.places]
            if match.turns > len(match.places):
                rows.append(Row(summary, more=match.turns - len(match.places)))
        return rows

    def _show_found(self, number: int, found: Found, rows: list[Row], *, keep: bool) -> None:
        if number != self._number:
            return
        self.table.say(tr("sessions.nothing"))
        self.table.show(rows, keep=keep)
        if not keep and len(rows) > 1:
            self.table.go(1)  # the first place
        if found.more:
            self._tell(tr("sessions.found_more", count=len(found.matches)))
        elif self._search.problem and not found.indexed:
            self._tell(tr("sessions.no_index", reason=clean_line(self._search.problem, 100)))
        else:
            self._tell(tr_count("sessions.found", len(found.matches)))

    # -- one session -------------------------------------------------------------------------------------

    def on_session_table_moved(self) -> None:
        """Say more about the row under the cursor."""
        row = self.table.row
        words = ""
        if row is not None:
            summary = row.summary
            facts = [summary.id[:SHORT_ID], summary.model, summary.sandbox]
            if row.place is not None or row.more:
                facts.append(summary.title)
            elif summary.last_prompt and summary.last_prompt != summary.title:
                facts.append(tr("sessions.last", prompt=summary.last_prompt))
            words = f" {glyph('dot')} ".join(fact for fact in facts if fact)
        self.query_one("#sessions-detail", Static).update(Content(words))

    def on_session_table_opened(self) -> None:
        """Open what was clicked twice."""
        self.action_open()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Open the row under the cursor."""
        event.stop()
        self.action_open()

    def action_open(self) -> None:
        """Open the session at the place."""
        row = self.table.row
        if row is None:
            return
        turn = row.turn
        if turn is None and row.place is None and not row.more:
            turn = self._first_place(row)
        self.dismiss((row.summary.id, turn))

    def _first_place(self, row: Row) -> int | None:
        after = self.table.rows[self.table.cursor + 1 : self.table.cursor + 2]
        return after[0].turn if after and after[0].summary.id == row.summary.id else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """The key that begins a search is a letter like others in the search itself."""
        del parameters
        return action != "search" or not isinstance(self.focused, Input)

    def action_search(self) -> None:
        """Type what to search for."""
        field = self.query_one("#sessions-input", Input)
        self.set_focus(field)  # at once: the next key is one of the words
        field.select_all()

    def on_search_line_left(self) -> None:
        """Let the rows take the keys."""
        self.table.focus()

    def action_step(self, by: int) -> None:
        """Go to another row."""
        self.table.go(self.table.cursor + by)

    def action_page(self, by: int) -> None:
        """Go on by so many screens."""
        self.table.page(by)

    def action_back(self) -> None:
        """Back to the chat."""
        self.dismiss(None)

    def action_rename(self) -> None:
        """Ask for another title."""
        from sandbox_chat.ui.screens.rename import RenameScreen

        if (row := self.table.row) is not None:
            summary = row.summary
            self.app.push_screen(RenameScreen(summary.title), partial(self._rename, summary))

    def _rename(self, summary: SessionSummary, title: str | None) -> None:
        if title is None:
            return
        if summary.id == self._present and self._rename_present is not None:
            self._rename_present(title)
            self._renamed(summary, title or summary.made_title, by_hand=bool(title))
        else:
            self.run_worker(self._rename_saved(summary, title), exit_on_error=False)

    async def _rename_saved(self, summary: SessionSummary, title: str) -> None:
        from sandbox_chat.journal.keeping import rename

        try:
            kept = await asyncio.to_thread(rename, self._root, summary.id, title)
        except SessionError as error:
            self._refused(error)
        else:
            self._renamed(summary, kept, by_hand=bool(title))

    def _renamed(self, summary: SessionSummary, title: str, *, by_hand: bool) -> None:
        changed = dataclasses.replace(summary, title=title, renamed=by_hand)
        self._summaries[summary.id] = changed
        rows = [
            dataclasses.replace(row, summary=changed) if row.summary.id == summary.id else row
            for row in self.table.rows
        ]
        cursor = self.table.cursor
        self.table.show(rows, keep=True)
        self.table.go(cursor)

    def action_delete(self) -> None:
        """Ask, then delete the session."""
        from sandbox_chat.ui.screens.confirm import ConfirmScreen

        if (row := self.table.row) is None:
            return
        if row.summary.id == self._present:
            self.notify(tr("sessions.delete_present"), severity="warning", timeout=SAID, markup=False)
            return
        title = row.summary.title or tr("sessions.no_prompt")
        question = ConfirmScreen(
            tr("sessions.delete"), tr("sessions.delete_detail", title=title), tr("sessions.delete_yes")
        )
        self.app.push_screen(question, partial(self._delete, row.summary))

    def _delete(self, summary: SessionSummary, agreed: bool | None) -> None:
        if agreed:
            self.run_worker(self._delete_saved(summary), exit_on_error=False)

    async def _delete_saved(self, summary: SessionSummary) -> None:
        from sandbox_chat.journal.keeping import delete

        try:
            await asyncio.to_thread(delete, self._data_path, summary.id)
        except SessionError as error:
            self._refused(error)
            return
        self._summaries.pop(summary.id, None)
        cursor = self.table.cursor
        self.table.show([row for row in self.table.rows if row.summary.id != summary.id], keep=True)
        self.table.go(cursor)
        if not self._summaries:
            self.table.say(tr("sessions.empty"))
        if not self.query_text:
            self._tell_count()
        self.notify(tr("sessions.deleted"), markup=False, timeout=SAID / 2)

    def _refused(self, error: SessionError) -> None:
        words = tr("sessions.in_use") if isinstance(error, SessionInUse) else str(error)
        self.notify(words, severity="warning", timeout=SAID, markup=False)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel moves the rows wherever the pointer is."""
        event.stop()
        self.table.scroll_relative(y=3, animate=False)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel moves the rows wherever the pointer is."""
        event.stop()
        self.table.scroll_relative(y=-3, animate=False)
