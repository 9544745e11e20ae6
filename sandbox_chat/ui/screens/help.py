"""The keys of where the user is, and of everywhere, read from the bindings that are in force."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from sandbox_chat.ui.actions import NO_KEY, all_actions, bindings_of, key_name, key_of
from sandbox_chat.words import tr

PLACES = (
    "composer", "queue", "ask", "find", "transcript", "tools", "details", "pane", "tabs", "choices", "chat", "picture", "pager", "page", "welcome", "help",
    "sessions", "lookup", "confirm", "rename", "choose", "sandbox", "servers", "skills", "values", "link", "elsewhere", "approvals", "app", "editing", "field",
)  # fmt: skip
"""The places that hold keys, in the order in which they are shown."""

LIBRARY = {"TextArea": "editing", "Input": "field"}
"""Textual's own widgets whose keys are shown, and their place."""


def groups(active: Iterable[ActiveBinding]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the keys in force by place: the place's name and its ``(keys, words)``.

    Keys of the same action stand together.
    """
    places: dict[str, dict[str, tuple[int, list[str], str]]] = {}
    order = {name: number for number, name in enumerate(all_actions())}
    for node, binding, enabled, _ in active:
        if not enabled or binding.key == NO_KEY or binding.key.startswith("super+"):
            continue
        if binding.id in order:
            item = all_actions()[binding.id]
            place, number, words = item.place, order[item.name], item.title
        else:
            place, number = _library(node, binding)
            words = _library_words(binding)
        if not place or not words:
            continue
        _, keys, _ = places.setdefault(place, {}).setdefault(
            binding.id or binding.action, (number, [], words)
        )
        name = key_name(binding.key)
        if name not in keys:
            keys.append(name)
    return [
        (
            tr(f"actions.place.{place}"),
            [(", ".join(keys), words) for _, keys, words in sorted(places[place].values(), key=_number)],
        )
        for place in sorted(places, key=_rank)
    ]


def _rank(place: str) -> int:
    """Return where a place is shown; one that is not in the list stands first."""
    return PLACES.index(place) if place in PLACES else -1


def _number(row: tuple[int, list[str], str]) -> int:
    return row[0]


def _library(node: object, binding: Binding) -> tuple[str, int]:
    """Return the place of a binding that a widget of Textual brings, and its number there."""
    for cls in type(node).__mro__:
        if cls.__name__ in LIBRARY:
            for number, item in enumerate(cls.__dict__.get("BINDINGS", ())):
                if binding.key in _keys(item):
                    return LIBRARY[cls.__name__], number
    return "", 0


def _library_words(binding: Binding) -> str:
    """Return what a key of Textual's does, in the language that is spoken; empty for one that is not worth telling."""
    try:
        return tr(f"editing.{binding.action.replace('(True)', '_select')}")
    except KeyError:
        return ""


def _keys(item: BindingType) -> list[str]:
    keys = item.key if isinstance(item, Binding) else item[0]
    return [key.strip() for key in keys.split(",")]


WIDEST = 22
"""Columns of keys before what they do; wider ones have a line of their own."""


class HelpScreen(ModalScreen[None]):
    """Shows the keys over the chat."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("help")]

    def __init__(self, active: Iterable[ActiveBinding]) -> None:
        super().__init__()
        self._groups = groups(active)

    @classmethod
    def of(cls, screen: Screen[object]) -> HelpScreen:
        """Make the help for what is in force on ``screen`` now."""
        return cls(screen.active_bindings.values())

    def compose(self) -> ComposeResult:
        """Lay out the keys."""
        with VerticalScroll(id="help-box") as box:
            box.can_focus = True
            yield Static(Content.styled(tr("help.title"), "bold $primary"), id="help-title")
            yield Static(self.content(), id="help-text")
            yield Static(
                Content.styled(
                    tr("help.end", close=key_of("help.close"), commands=key_of("app.palette")), "$muted"
                ),
                id="help-end",
            )

    def content(self) -> Content:
        """Return the text of the help."""
        keys = [cell_len(key) for _, rows in self._groups for key, _ in rows]
        column = min(WIDEST, max(keys, default=8))
        lines: list[Content] = []
        for name, rows in self._groups:
            if lines:
                lines.append(Content(""))
            lines.append(Content.styled(name, "bold"))
            for key, words in rows:
                wide = cell_len(key) > column
                pad = "\n" + " " * (column + 4) if wide else " " * (column - cell_len(key) + 2)
                lines.append(Content.assemble("  ", (key, "$accent"), pad, words))
        return Content("\n").join(lines)
