"""Shows the user's skills and the drafts that the agent handed in; each can be looked at, promoted, thrown away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, TypeVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from sandbox_chat.engine_code import skills_folder
from sandbox_chat.settings import Settings
from sandbox_chat.skills import SkillError, Store
from sandbox_chat.skills.skill import Look
from sandbox_chat.skills.store import VERSIONS
from sandbox_chat.text import clean_line
from sandbox_chat.ui.actions import bindings_of, key_of
from sandbox_chat.ui.formats import fit
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.screens.confirm import ConfirmScreen
from sandbox_chat.ui.skill_views import HASH, PROMOTABLE, STATES, Entry, entries, rows, stamp, text_of
from sandbox_chat.ui.widgets.key_line import KeyLine
from sandbox_chat.ui.widgets.row_list import RowList
from sandbox_chat.ui.widgets.text_view import TextView
from sandbox_chat.words import tr

T = TypeVar("T")

NAME_WIDTH = 24
"""Cells of a name in the list at most."""
FOLLOW = 1.0
"""Seconds between two looks whether something has changed on disk."""
LONG = 8.0
"""Seconds that a sentence is shown about what could not be done."""


class SkillList(RowList):
    """Drafts and skills, a row each: state, name, version, first line. The chosen one is marked."""

    found: Sequence[Entry] = ()

    @property
    def items(self) -> Sequence[Entry]:
        """All that were found."""
        return self.found

    @property
    def chosen(self) -> Entry | None:
        """The chosen one; ``None`` when there is none at all."""
        return self.found[self.present] if self.found else None

    def take(self, found: Sequence[Entry]) -> None:
        """Show other ones; the one of the same name stays chosen."""
        before = self.chosen
        self.found = found
        if before is not None:
            same = [place for place, each in enumerate(found) if each.name == before.name]
            exact = [place for place in same if found[place].draft == before.draft]
            self.place = (exact or same or [self.place])[0]
        self.choose(self.place)

    def rows_of(self, places: range, width: int) -> list[Content]:
        """Draw some of them."""
        names = min(NAME_WIDTH, max(cell_len(each.name) for each in self.found)) if self.found else 0
        states = max(cell_len(tr(f"skills.state.{state}")) for state in STATES)
        versions = max((cell_len(_version(each)) for each in self.found), default=0)
        return [
            _row(self.found[place], width, names, states, versions, chosen=place == self.present)
            for place in places
        ]


def _version(entry: Entry) -> str:
    return tr("skill_screen.version", number=entry.version) if entry.version and not entry.draft else ""


def _row(entry: Entry, width: int, names: int, states: int, versions: int, *, chosen: bool) -> Content:
    sign, colour = STATES[entry.state]
    word, number = tr(f"skills.state.{entry.state}"), _version(entry)
    name = fit(entry.name, names)
    used = 4 + names + 2 + states + 2 + (versions + 2 if versions else 0)
    return Content.assemble(
        (f"{glyph('prompt')} " if chosen else "  ", "bold $primary"),
        (f"{glyph(sign)} ", colour),
        (name + " " * (names - cell_len(name) + 2), "bold $primary" if chosen else ""),
        (word + " " * (states - cell_len(word) + 2), colour),
        (number + " " * (versions - cell_len(number) + 2) if versions else "", "$muted"),
        (fit(entry.about, max(0, width - used)), "$muted"),
    ).truncate(max(1, width))


class SkillDetail(TextView, can_focus=False):
    """What is known of a skill or draft; scrolled by the keys of the screen."""

    DEFAULT_CSS = """
    SkillDetail { height: 1fr; background: $panel; }
    """

    entry: Entry | None = None
    look: Look | None = None

    def show_entry(self, entry: Entry | None, look: Look | None) -> None:
        """Show one; ``None`` empties it."""
        same = entry is not None and entry == self.entry and look is not None and look == self.look
        self.entry, self.look = entry, look
        self._lay_out(keep=same)

    def on_resize(self) -> None:
        """Lay the words out at another width."""
        self._lay_out(keep=True)

    def _lay_out(self, *, keep: bool) -> None:
        width = self.scrollable_content_region.width or self.size.width
        entry = self.entry
        self.show(rows(entry, self.look, width - 1) if entry is not None and width else [], keep=keep)


class SkillsScreen(ModalScreen[None]):
    """Lists the skills of ``settings`` and shows the chosen one. It follows what happens in their folder."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("skills")]

    DEFAULT_CSS = """
    SkillsScreen { align: center middle; background: $background 60%; }
    #skills-box { width: 110; max-width: 94%; height: 94%; padding: 1 2; background: $panel; }
    #skills-box Static { width: 1fr; }
    #skills-none { margin: 1 0; display: none; }
    #skills-off { color: $warning; }
    #skills-keys { margin-top: 1; }
    SkillsScreen.-empty #skills-box { width: 76; height: auto; }
    SkillsScreen.-empty #skills-none { display: block; }
    SkillsScreen.-empty SkillList, SkillsScreen.-empty SkillDetail { display: none; }
    #skills-box:ansi { border: solid $border; }
    .-ascii #skills-box { border: ascii $border; }
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.store = Store(skills_folder(settings))
        self._off = settings.code_mode == "off"
        self._stamp: int | None = None
        self._at_work = False
        self._looked: tuple[Entry, Look] | None = None
        self._wanted: Entry | None = None

    def compose(self) -> ComposeResult:
        """Lay out the list, the chosen one and the keys."""
        with Vertical(id="skills-box"):
            yield Static(Content.styled(tr("skill_screen.title"), "bold"))
            if self._off:
                yield Static(Content(tr("skill_screen.off")), id="skills-off")
            yield Static(Content(tr("skill_screen.reading")), id="skills-none")
            yield SkillList(self._chosen, id="skills-list")
            yield SkillDetail(id="skills-detail")
            yield KeyLine(self._keys(None), id="skills-keys")

    def on_mount(self) -> None:
        """Read what there is, and look now and then whether it has changed."""
        self.add_class("-empty")
        self._read()
        self.set_interval(FOLLOW, self._read)

    @property
    def skills(self) -> SkillList:
        """The list."""
        return self.query_one(SkillList)

    @property
    def detail(self) -> SkillDetail:
        """What is known of the chosen one."""
        return self.query_one(SkillDetail)

    # -- reading -------------------------------------------------------------------------------------------

    def _read(self) -> None:
        if not self._at_work:
            self._at_work = True
            self.run_worker(self._reading(), group="skills-read", exit_on_error=False)

    async def _reading(self) -> None:
        """Show what is there, if it is not what was read last."""
        try:
            now = await asyncio.to_thread(stamp, self.store.folder)
            if now != self._stamp:
                self._stamp = now  # also where it cannot be read: that is said once
                done, found = await self._tried(lambda: asyncio.to_thread(entries, self.store))
                if done:
                    self._take(found or [])
        finally:
            self._at_work = False

    def _take(self, found: Sequence[Entry]) -> None:
        self._looked = self._wanted = None
        self.set_class(not found, "-empty")
        nothing = Content.assemble(
            tr("skill_screen.none"), "\n", (tr("skill_screen.none_how", path=self._folder), "$muted")
        )
        self.query_one("#skills-none", Static).update(nothing)
        self.skills.take(found)

    def _chosen(self) -> None:
        """Show the chosen one as soon as it is read."""
        entry = self.skills.chosen
        self.query_one("#skills-keys", KeyLine).show(self._keys(entry))
        if entry is self._wanted:
            return
        self._wanted = entry
        if entry is None or entry.state == "damaged":
            self.detail.show_entry(entry, None)
        else:
            shown = self.detail.entry
            if shown is None or (shown.name, shown.draft) != (entry.name, entry.draft):
                self.detail.show_entry(None, None)
            self.run_worker(self._looking(entry), group="skills-look", exit_on_error=False, exclusive=True)

    async def _looking(self, entry: Entry) -> None:
        done, look = await self._tried(
            lambda: asyncio.to_thread(self.store.look, entry.name, draft=entry.draft)
        )
        if entry is not self._wanted:
            return
        self._looked = (entry, look) if look is not None else None
        self.detail.show_entry(entry if done else None, look)

    async def _tried(self, work: Callable[[], Awaitable[T]]) -> tuple[bool, T | None]:
        """Do something slow; what is wrong is said, and the first is false."""
        try:
            return True, await work()
        except SkillError as problem:
            self._say(str(problem), LONG)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            self._say(tr("skill_screen.failed", reason=reason, path=self._folder), LONG)
        return False, None

    @property
    def _folder(self) -> str:
        return clean_line(str(self.store.folder), 500)

    # -- keys ----------------------------------------------------------------------------------------------

    @staticmethod
    def _keys(entry: Entry | None) -> list[tuple[str, str]]:
        keys = [(f"{key_of('skills.back')} {tr('skill_screen.key_close')}", "screen.back")]
        if entry is None:
            return keys
        if entry.state in PROMOTABLE and not entry.shadowed:
            keys.append((f"{key_of('skills.promote')} {tr('skill_screen.key_promote')}", "screen.promote"))
        gone = tr("skill_screen.key_discard" if entry.draft else "skill_screen.key_remove")
        return [
            *keys,
            (f"{key_of('skills.discard')} {gone}", "screen.discard"),
            (f"{key_of('skills.page')} {tr('skill_screen.key_page')}", "screen.page"),
            (f"{key_of('skills.copy')} {tr('skill_screen.key_copy')}", "screen.copy"),
        ]

    def action_step(self, by: int) -> None:
        """Choose another one."""
        self.skills.choose(self.skills.place + by)

    def action_scroll(self, pages: int) -> None:
        """Scroll what is known of the chosen one by so many pages."""
        detail = self.detail
        detail.scroll_relative(y=pages * max(1, detail.size.height - 1), animate=False)

    def action_promote(self) -> None:
        """Ask, and then let code have what was looked at."""
        entry = self.skills.chosen
        if entry is None:
            return
        if entry.shadowed:
            self._say(tr("skill_screen.shadowed"))
        elif entry.state not in PROMOTABLE:
            self._say(tr(f"skill_screen.{entry.state}", name=entry.name))
        elif (look := self._look_at(entry)) is not None:
            detail = tr("skill_screen.promote_detail", digest=look.digest[:HASH])
            if look.cut:
                detail += "\n" + tr("skill_screen.cut")
            question = tr("skill_screen.promote", name=entry.name)
            self._ask(question, detail, tr("skill_screen.promote_yes"), lambda: self._promote(look))

    def action_discard(self) -> None:
        """Ask, and then delete the chosen draft, or take the chosen skill out."""
        entry = self.skills.chosen
        if entry is None:
            return
        word = "discard" if entry.draft else "remove"
        path = clean_line(str(self.store.folder / VERSIONS), 500)
        detail = tr(f"skill_screen.{word}_detail", **({} if entry.draft else {"path": path}))
        question = tr(f"skill_screen.{word}", name=entry.name)
        self._ask(question, detail, tr(f"skill_screen.{word}_yes"), lambda: self._discard(entry))

    def _ask(self, question: str, detail: str, yes: str, work: Callable[[], Awaitable[None]]) -> None:
        def answered(sure: bool | None) -> None:
            if sure:
                self.run_worker(work(), group="skills-change", exit_on_error=False)

        self.app.push_screen(ConfirmScreen(question, detail, yes), answered)

    async def _promote(self, look: Look) -> None:
        done, skill = await self._tried(
            lambda: asyncio.to_thread(self.store.promote, look.name, expected=look.digest)
        )
        if done and skill is not None:
            self._say(tr("skills.promoted", name=skill.name, version=skill.version))
        self._read()

    async def _discard(self, entry: Entry) -> None:
        gone = self.store.discard if entry.draft else self.store.remove
        done, _ = await self._tried(lambda: asyncio.to_thread(gone, entry.name))
        if done and entry.draft:
            self._say(tr("skills.discarded", name=entry.name))
        elif done:
            path = clean_line(str(self.store.folder / VERSIONS), 500)
            self._say(tr("skills.removed", name=entry.name, path=path))
        self._read()

    def action_page(self) -> None:
        """Show all that is known of the chosen one in the pager."""
        from sandbox_chat.ui.outside import open_in_pager

        entry = self.skills.chosen
        if entry is not None and (text := self._text(entry)):
            self.run_worker(open_in_pager(self.app, text), exit_on_error=False)

    def action_copy(self) -> None:
        """Copy all that is known of the chosen one."""
        from sandbox_chat.ui.outside import copy_text

        entry = self.skills.chosen
        if entry is not None and (text := self._text(entry)):
            copy_text(self.app, text)
            self._say(tr("skill_screen.copied", name=entry.name))

    def action_back(self) -> None:
        """Close."""
        self.dismiss(None)

    def _text(self, entry: Entry) -> str:
        look = None if entry.state == "damaged" else self._look_at(entry)
        return text_of(entry, look) if look is not None or entry.state == "damaged" else ""

    def _look_at(self, entry: Entry) -> Look | None:
        """What was read of it; ``None``, said, while it is still being read."""
        if self._looked is not None and self._looked[0] is entry:
            return self._looked[1]
        self._say(tr("skill_screen.wait", name=entry.name))
        return None

    def _say(self, words: str, seconds: float = 4.0) -> None:
        self.notify(words, markup=False, timeout=seconds)
