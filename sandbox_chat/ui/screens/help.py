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

from sandbox_chat.ui.actions import key_name

PLACES = {
    "Composer": "Prompt",
    "TranscriptView": "Transcript",
    "ToolList": "Tool calls",
    "TextView": "Details of a call",
    "ToolPane": "Tools",
    "TabRow": "Tabs",
    "Choices": "Choices",
    "ChatScreen": "Chat",
    "PictureScreen": "Picture",
    "WelcomeScreen": "Welcome",
    "ChatApp": "Everywhere",
    "TextArea": "Editing the prompt",
    "Input": "Editing the field",
}
"""Names of the places that hold keys, by widget class, in the order in which they are shown."""

HIDDEN_ACTIONS = frozenset({"app.focus_next", "app.focus_previous", "help_quit"})


def groups(active: Iterable[ActiveBinding]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the keys in force by place: the place's name and its ``(keys, words)``.

    Keys of the same action stand together.
    """
    places: dict[str, dict[str, tuple[int, list[str], str]]] = {}
    for node, binding, enabled, _ in active:
        if not enabled or not binding.description or binding.key.startswith("super+"):
            continue
        owner, number = _owner(node, binding)
        if owner not in PLACES or binding.action in HIDDEN_ACTIONS:
            continue
        actions = places.setdefault(PLACES[owner], {})
        _, keys, _ = actions.setdefault(binding.action, (number, [], binding.description))
        name = key_name(binding.key)
        if name not in keys:
            keys.append(name)
    names = sorted(places, key=list(dict.fromkeys(PLACES.values())).index)
    return [
        (name, [(", ".join(keys), words) for _, keys, words in sorted(places[name].values(), key=_number)])
        for name in names
    ]


def _number(row: tuple[int, list[str], str]) -> int:
    return row[0]


def _owner(node: object, binding: Binding) -> tuple[str, int]:
    """Return the name of the class that a binding comes from, of those that have a place, and its number there."""
    for cls in type(node).__mro__:
        if cls.__name__ in PLACES:
            for number, item in enumerate(cls.__dict__.get("BINDINGS", ())):
                if binding.key in _keys(item):
                    return cls.__name__, number
    return "", 0


def _keys(item: BindingType) -> list[str]:
    keys = item.key if isinstance(item, Binding) else item[0]
    return [key.strip() for key in keys.split(",")]


class HelpScreen(ModalScreen[None]):
    """Shows the keys over the chat."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q,question_mark", "dismiss", "Close", show=False),
    ]

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
            yield Static(Content.styled("Keys", "bold $primary"), id="help-title")
            yield Static(self.content(), id="help-text")
            yield Static(
                Content.styled("esc closes · every action has a name in the commands, ^P", "$muted"),
                id="help-end",
            )

    def content(self) -> Content:
        """Return the text of the help."""
        keys = [cell_len(key) for _, rows in self._groups for key, _ in rows]
        column = min(22, max(keys, default=8))
        lines: list[Content] = []
        for name, rows in self._groups:
            if lines:
                lines.append(Content(""))
            lines.append(Content.styled(name, "bold"))
            for key, words in rows:
                pad = " " * max(1, column - cell_len(key) + 2)
                lines.append(Content.assemble("  ", (key, "$accent"), pad, words))
        return Content("\n").join(lines)
