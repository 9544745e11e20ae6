"""Every action of the interface by its place: name, keys, words. Bindings, palette, help and the keymap come from here.

An action is called ``place.word``, as in the table ``[keys]`` of ``config.toml``. Its texts stand in
``words/actions.py`` under the same name. Knows no Textual until bindings are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from sandbox_chat.ui.glyphs import own
from sandbox_chat.words import tr

if TYPE_CHECKING:
    from textual.binding import Binding


NO_KEY = "no-key"
"""Stands in bindings and in the keymap for the key of an action without one; no terminal sends it."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action. ``action`` is Textual's name of it, ``keys`` comma-separated: those of the program, not the user's.

    Without keys it is chosen from the palette or typed as a command.
    ``priority``: the key means this whatever has the focus. ``listed``: it stands in the command palette.
    """

    name: str
    action: str
    keys: str
    priority: bool = False
    listed: bool = True

    @property
    def place(self) -> str:
        """Where it works: the part of its name before the dot."""
        return self.name.partition(".")[0]

    @property
    def title(self) -> str:
        """Its name for people."""
        return tr(f"actions.{self.name}")

    @property
    def help(self) -> str:
        """A few words more; the title where there are none."""
        return tr(f"actions.{self.name}.help")


APP_ACTIONS: tuple[Action, ...] = (
    Action("app.help", "app.help", "f1,question_mark"),
    Action("app.palette", "app.command_palette", "ctrl+p", priority=True, listed=False),
    Action("app.theme", "app.toggle_theme", "f9"),
    Action("app.leave", "app.leave", "ctrl+q", priority=True),
    Action("app.ask_leave", "app.ask_leave", "ctrl+c", listed=False),
)
"""Work on every screen."""

CHAT_ACTIONS: tuple[Action, ...] = (
    Action("chat.escape", "screen.escape", "escape"),
    Action("chat.tools", "screen.toggle_tools", "f2"),
    Action("chat.cost", "screen.toggle_cost", "f3"),
    Action("chat.steer", "screen.steer", ""),
    Action("chat.budget", "screen.budget", ""),
    Action("chat.maximise", "screen.maximise", "f4"),
    Action("chat.model", "screen.change_model", "f5"),
    Action("chat.effort", "screen.effort", ""),
    Action("chat.thinking", "screen.thinking", ""),
    Action("chat.clear_context", "screen.clear_context", ""),
    Action("chat.compact", "screen.compact", ""),
    Action("chat.new", "screen.new_session", ""),
    Action("chat.fork", "screen.fork", ""),
    Action("chat.rewind", "screen.rewind", ""),
    Action("chat.retry", "screen.retry", ""),
    Action("chat.sandbox", "screen.sandbox", ""),
    Action("chat.servers", "screen.servers", ""),
    Action("chat.skills", "screen.skills", ""),
    Action("chat.next_pane", "screen.next_pane", "f6", priority=True),
    Action("chat.side_narrower", "screen.side(-4)", "f7", priority=True),
    Action("chat.side_wider", "screen.side(4)", "f8", priority=True),
    Action("chat.tool_before", "screen.step_tool(-1)", "ctrl+up"),
    Action("chat.tool_next", "screen.step_tool(1)", "ctrl+down"),
    Action("chat.picture", "screen.open_picture", "ctrl+o"),
    Action("chat.sessions", "screen.sessions", "f10"),
    Action("chat.rename", "screen.rename_session", ""),
    Action("chat.export", "screen.export", ""),
    Action("chat.attach", "screen.attach", "ctrl+l", priority=True),
    Action("chat.end", "screen.end", "ctrl+end", priority=True),
    Action("chat.find", "screen.find", "ctrl+f", priority=True),
    Action("chat.send_waiting", "screen.resume_waiting", "ctrl+g"),
    Action("chat.queue", "screen.queue", "ctrl+t,alt+up"),
    Action("chat.approvals", "screen.approvals", ""),
    Action("chat.real_values", "screen.real_values", "alt+v"),
)
"""Work on the chat's screen."""

WIDGET_ACTIONS: tuple[Action, ...] = (
    Action("composer.send", "send", "enter"),
    Action("composer.newline", "newline", "alt+enter,shift+enter,ctrl+j"),
    Action("composer.clear", "clear_draft", "ctrl+c"),
    Action("composer.search", "search", "ctrl+r"),
    Action("composer.edit", "edit", "ctrl+s,alt+e"),
    Action("composer.write_out", "write_out", "tab"),
    Action("composer.page_up", "page(-1)", "pageup", listed=False),
    Action("composer.page_down", "page(1)", "pagedown", listed=False),
    Action("transcript.up", "scroll_rows(-1)", "up", listed=False),
    Action("transcript.down", "scroll_rows(1)", "down", listed=False),
    Action("transcript.page_up", "scroll_pages(-1)", "pageup", listed=False),
    Action("transcript.page_down", "scroll_pages(1)", "pagedown,space", listed=False),
    Action("transcript.start", "scroll_start", "home,g"),
    Action("transcript.last", "scroll_last", "end,G", listed=False),
    Action("transcript.turn_before", "turn(-1)", "left_square_bracket,alt+up"),
    Action("transcript.turn_next", "turn(1)", "right_square_bracket,alt+down"),
    Action("transcript.item_before", "cursor(-1)", "k,shift+up", listed=False),
    Action("transcript.item_next", "cursor(1)", "j,shift+down", listed=False),
    Action("transcript.open", "open", "enter"),
    Action("transcript.expand_all", "expand_all", "E"),
    Action("transcript.copy", "copy", "y"),
    Action("transcript.copy_selection", "copy_selection", "ctrl+c", listed=False),
    Action("transcript.open_elsewhere", "command('open')", "o"),
    Action("transcript.page", "command('page')", "p"),
    Action("transcript.edit", "command('edit')", "e"),
    Action("transcript.save", "command('save')", "s"),
    Action("transcript.rerun", "command('rerun')", "r"),
    Action("transcript.link_next", "link(1)", "l", listed=False),
    Action("transcript.link_before", "link(-1)", "L", listed=False),
    Action("transcript.find", "find", "slash", listed=False),
    Action("transcript.found_next", "find_step(1)", "n", listed=False),
    Action("transcript.found_before", "find_step(-1)", "N", listed=False),
    Action("transcript.clear", "clear", "escape", listed=False),
    Action("queue.before", "step(-1)", "up,k", listed=False),
    Action("queue.next", "step(1)", "down,j", listed=False),
    Action("queue.page_up", "step(-10)", "pageup", listed=False),
    Action("queue.page_down", "step(10)", "pagedown", listed=False),
    Action("queue.first", "step(-1000000)", "home", listed=False),
    Action("queue.last", "step(1000000)", "end", listed=False),
    Action("queue.take", "take", "enter", listed=False),
    Action("queue.edit", "ask('edit')", "e", listed=False),
    Action("queue.delete", "ask('remove')", "d,delete", listed=False),
    Action("queue.up", "ask('up')", "K,shift+up", listed=False),
    Action("queue.down", "ask('down')", "J,shift+down", listed=False),
    Action("queue.leave", "ask('leave')", "escape", listed=False),
    Action("ask.up", "scroll(-1)", "up", listed=False),
    Action("ask.down", "scroll(1)", "down", listed=False),
    Action("ask.page_up", "page(-1)", "pageup", listed=False),
    Action("ask.page_down", "page(1)", "pagedown", listed=False),
    Action("ask.start", "scroll(-1000000)", "home", listed=False),
    Action("ask.end", "scroll(1000000)", "end", listed=False),
    Action("approvals.before", "step(-1)", "up,k", listed=False),
    Action("approvals.next", "step(1)", "down,j", listed=False),
    Action("approvals.remove", "remove", "d,delete", listed=False),
    Action("approvals.back", "back", "escape,q", listed=False),
    Action("find.next", "step(1)", "enter,down", priority=True, listed=False),
    Action("find.before", "step(-1)", "shift+enter,up", priority=True, listed=False),
    Action("find.leave", "leave", "escape", priority=True, listed=False),
    Action("find.stay", "stay", "tab", priority=True, listed=False),
    Action("tabs.before", "step(-1)", "left", listed=False),
    Action("tabs.next", "step(1)", "right", listed=False),
    Action("choices.before", "step(-1)", "up", listed=False),
    Action("choices.next", "step(1)", "down", listed=False),
    Action("choices.take", "take", "enter", listed=False),
    Action("welcome.back", "back", "escape", listed=False),
    Action("help.close", "dismiss", "escape,f1,q,question_mark", listed=False),
    Action("elsewhere.fork", "choose('fork')", "f,enter", listed=False),
    Action("elsewhere.look", "choose('look')", "l", listed=False),
    Action("elsewhere.cancel", "choose('cancel')", "escape,q", listed=False),
    Action("choose.before", "step(-1)", "up", priority=True, listed=False),
    Action("choose.next", "step(1)", "down", priority=True, listed=False),
    Action("choose.page_up", "step(-8)", "pageup", priority=True, listed=False),
    Action("choose.page_down", "step(8)", "pagedown", priority=True, listed=False),
    Action("choose.cancel", "cancel", "escape", listed=False),
    Action("sandbox.restart", "restart", "r", listed=False),
    Action("sandbox.close", "close", "escape,q", listed=False),
    Action("values.close", "close", "escape,q,alt+v", listed=False),
    Action("servers.before", "step(-1)", "up,k", listed=False),
    Action("servers.next", "step(1)", "down,j", listed=False),
    Action("servers.page_up", "scroll(-1)", "pageup", listed=False),
    Action("servers.page_down", "scroll(1)", "pagedown,space", listed=False),
    Action("servers.restart", "restart", "r", listed=False),
    Action("servers.switch", "switch", "s", listed=False),
    Action("servers.log", "log", "l", listed=False),
    Action("servers.copy", "copy", "y", listed=False),
    Action("servers.back", "back", "escape,q", listed=False),
    Action("skills.before", "step(-1)", "up,k", listed=False),
    Action("skills.next", "step(1)", "down,j", listed=False),
    Action("skills.page_up", "scroll(-1)", "pageup", listed=False),
    Action("skills.page_down", "scroll(1)", "pagedown,space", listed=False),
    Action("skills.promote", "promote", "p", listed=False),
    Action("skills.discard", "discard", "d,delete", listed=False),
    Action("skills.page", "page", "o", listed=False),
    Action("skills.copy", "copy", "y", listed=False),
    Action("skills.back", "back", "escape,q", listed=False),
    Action("budget.cancel", "cancel", "escape", listed=False),
    Action("rename.cancel", "cancel", "escape", listed=False),
    Action("confirm.yes", "yes", "y", listed=False),
    Action("confirm.no", "no", "n,escape,q", listed=False),
    Action("sessions.open", "screen.open", "enter", listed=False),
    Action("sessions.search", "screen.search", "slash,ctrl+f", priority=True, listed=False),
    Action("sessions.rename", "screen.rename", "r", listed=False),
    Action("sessions.delete", "screen.delete", "d,delete", listed=False),
    Action("sessions.back", "screen.back", "escape,q", listed=False),
    Action("sessions.before", "screen.step(-1)", "up,k", listed=False),
    Action("sessions.next", "screen.step(1)", "down,j", listed=False),
    Action("sessions.page_up", "screen.page(-1)", "pageup", listed=False),
    Action("sessions.page_down", "screen.page(1)", "pagedown,space", listed=False),
    Action("sessions.first", "screen.step(-1000000)", "home,g", listed=False),
    Action("sessions.last", "screen.step(1000000)", "end,G", listed=False),
    Action("lookup.leave", "leave", "escape", priority=True, listed=False),
    Action("link.open", "open", "enter,o", listed=False),
    Action("link.copy", "copy", "c", listed=False),
    Action("link.back", "back", "escape,q", listed=False),
    Action("picture.back", "back", "escape,q,enter", listed=False),
    Action("picture.open", "open", "o", listed=False),
    Action("picture.save", "save", "s", listed=False),
    Action("picture.copy", "copy", "y", listed=False),
    Action("picture.next", "turn(1)", "n,pagedown,space", listed=False),
    Action("picture.before", "turn(-1)", "p,pageup", listed=False),
    Action("picture.larger", "zoom(1)", "plus,equals_sign", listed=False),
    Action("picture.smaller", "zoom(-1)", "minus", listed=False),
    Action("picture.whole", "whole", "0", listed=False),
    Action("picture.left", "pan(-1,0)", "left", listed=False),
    Action("picture.right", "pan(1,0)", "right", listed=False),
    Action("picture.up", "pan(0,-1)", "up", listed=False),
    Action("picture.down", "pan(0,1)", "down", listed=False),
    Action("pager.next", "turn(1)", "n", listed=False),
    Action("pager.before", "turn(-1)", "p", listed=False),
    Action("pager.large", "large", "enter", listed=False),
    Action("tools.before", "step(-1)", "up", listed=False),
    Action("tools.next", "step(1)", "down", listed=False),
    Action("tools.page_up", "step(-10)", "pageup", listed=False),
    Action("tools.page_down", "step(10)", "pagedown", listed=False),
    Action("tools.first", "step(-1000000)", "home", listed=False),
    Action("tools.last", "step(1000000)", "end", listed=False),
    Action("pane.before", "step_view(-1)", "left", listed=False),
    Action("pane.next", "step_view(1)", "right", listed=False),
    Action("pane.copy_arguments", "ask('copy_arguments')", "a", listed=False),
    Action("pane.copy_result", "ask('copy_result')", "y", listed=False),
    Action("pane.edit", "ask('edit')", "e", listed=False),
    Action("pane.page", "ask('page')", "p", listed=False),
    Action("pane.open", "ask('open')", "o", listed=False),
    Action("pane.save", "ask('save')", "s", listed=False),
    Action("details.up", "scroll_up", "up", listed=False),
    Action("details.down", "scroll_down", "down", listed=False),
    Action("details.page_up", "page_up", "pageup", listed=False),
    Action("details.page_down", "page_down", "pagedown", listed=False),
    Action("details.start", "scroll_home", "home", listed=False),
    Action("details.end", "scroll_end", "end", listed=False),
    Action("details.copy", "copy", "c", listed=False),
    Action("page.open", "choose('open')", "enter,o", listed=False),
    Action("page.online", "choose('online')", "n", listed=False),
    Action("page.save", "choose('save')", "s", listed=False),
    Action("page.before", "turn(-1)", "left", listed=False),
    Action("page.next", "turn(1)", "right", listed=False),
    Action("page.back", "back", "escape,q", listed=False),
)
"""Work in one widget, or on a screen that lies over the chat."""

NODES = {"composer": "#composer", "transcript": "#transcript"}
"""The widgets of the chat's screen whose actions palette and commands offer, by place."""

_own: dict[str, tuple[str, ...]] = {}


@cache
def all_actions() -> dict[str, Action]:
    """Return every action by its name, in the order of the table. Not to be changed."""
    return {item.name: item for item in (*APP_ACTIONS, *CHAT_ACTIONS, *WIDGET_ACTIONS)}


def of(place: str) -> tuple[Action, ...]:
    """Return the actions of a place."""
    return tuple(item for item in all_actions().values() if item.place == place)


def bindings_of(place: str) -> list[Binding]:
    """Return the bindings of a place, with the action's name as their id: a keymap finds them by it."""
    from textual.binding import Binding

    return [
        Binding(
            item.keys or NO_KEY,
            item.action.removeprefix("app.").removeprefix("screen."),
            item.name,
            show=False,
            priority=item.priority,
            id=item.name,
        )
        for item in of(place)
    ]


def use_keys(chosen: Mapping[str, tuple[str, ...]]) -> None:
    """Take the user's keys by the name of the action; no keys mean that it has none."""
    _own.clear()
    _own.update(chosen)


def keys_of(name: str) -> tuple[str, ...]:
    """Return the keys of an action: the user's, or else the program's."""
    found = _own.get(name)
    if found is not None:
        return found
    return tuple(key for part in all_actions()[name].keys.split(",") if (key := part.strip()))


def key_of(name: str) -> str:
    """Return the first key of an action as it is written for people; empty when it has none."""
    keys = keys_of(name)
    return key_name(keys[0]) if keys else ""


KEY_NAMES = {
    "enter": "⏎",
    "escape": "esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "space": "space",
    "tab": "tab",
    "delete": "Del",
    "backspace": "⌫",
    "slash": "/",
    "backslash": "\\",
    "at": "@",
    "minus": "-",
    "plus": "+",
    "underscore": "_",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "insert": "Ins",
}


def key_name(key: str) -> str:
    """Return how a key is written for people: ``ctrl+p`` is ``^P``, ``alt+enter`` is ``alt+⏎``."""
    *modifiers, last = key.split("+")
    name = KEY_NAMES.get(last, last.upper() if last[:1] == "f" and last[1:].isdigit() else last)
    if name == last and len(name) > 1:
        name = _sign(name)
    if modifiers == ["ctrl"] and len(name) == 1 and name.isascii():
        return f"^{name.upper()}"
    return own("+".join([*modifiers, name]))


def _sign(name: str) -> str:
    """Return the sign that Textual calls ``name``, or the name if it is none."""
    import unicodedata

    try:
        sign = unicodedata.lookup(name.replace("_", " "))
    except KeyError:
        return name
    return sign if sign.isprintable() and sign != " " else name


def key_names(keys: str) -> str:
    """Return the names of comma-separated keys."""
    return ", ".join(key_name(key.strip()) for key in keys.split(",") if key.strip())


def names_of(name: str) -> str:
    """Return the names of an action's keys, the user's or the program's."""
    return ", ".join(map(key_name, keys_of(name)))
