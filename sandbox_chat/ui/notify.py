"""Words to somebody who looks elsewhere: a bell, a message of the desktop, or the window's title. Pure.

What is written to the terminal holds the session's title and nothing else of the chat.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from sandbox_chat import events as ev

TEXT_LIMIT = 80
"""Characters of a session's title that leave the screen."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

BY_NAME: tuple[tuple[str, str], ...] = (
    ("iterm", "osc9"),  # OSC 9 is its own
    ("kitty", "osc9"),  # takes it for a short form of its own protocol
    ("ghostty", "osc777"),  # a bell of it is no message; with OSC 777 the title is one
    ("wezterm", "osc777"),  # shows both, and OSC 777 with a title
    ("foot", "osc777"),  # knows no OSC 9
)
"""Terminals that show a message when told so, by the beginning of their names. All others get a bell: what a terminal
does not know it drops without a word, and a bell marks the tab or the window nearly everywhere (VTE, Konsole, Windows
Terminal, Terminal.app, xterm)."""


def terminal_name(environ: Mapping[str, str], told: str) -> str:
    """Return the terminal's name in small letters: what it told of itself, else what the environment says."""
    if told:
        return told.lower()
    program, term = environ.get("TERM_PROGRAM", ""), environ.get("TERM", "")
    return (program or term.removeprefix("xterm-")).lower()


def choose(setting: str, environ: Mapping[str, str], told: str = "") -> str:
    """Return the way for the value of the setting ``notify``: ``bell``, ``osc9``, ``osc777``, ``title`` or ``off``.

    ``told`` is what the terminal said that it is. Inside of a multiplexer ``auto`` is a bell: it passes bells on and
    marks the window, while other sequences reach the terminal only if the user allowed it.
    """
    if setting != "auto":
        return setting
    if multiplexer(environ):
        return "bell"
    name = terminal_name(environ, told)
    return next((way for beginning, way in BY_NAME if name.startswith(beginning)), "bell")


def multiplexer(environ: Mapping[str, str]) -> str:
    """Return ``tmux`` or ``screen`` when the program runs in one, else nothing."""
    if environ.get("TMUX"):
        return "tmux"
    return "screen" if environ.get("STY") else ""


def message(way: str, title: str, text: str, *, inside: str = "") -> str:
    """Return what is written to the terminal. ``inside``: the multiplexer that is to pass it on."""
    title, text = _bounded(title), _bounded(text)
    match way:
        case "bell":
            return "\a"
        case "osc9":  # never begins with a digit, which would be another command of some terminals
            return _passed(f"\x1b]9;{title}: {text}\a", inside)
        case "osc777":
            return _passed(f"\x1b]777;notify;{title.replace(';', ',')};{text.replace(';', ',')}\a", inside)
        case _:
            return ""


def _passed(data: str, inside: str) -> str:
    if inside == "tmux":
        return "\x1bPtmux;" + data.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    if inside == "screen":
        return f"\x1bP{data}\x1b\\"
    return data


def window_title(text: str) -> str:
    """Return what sets the title of the terminal's window."""
    return f"\x1b]2;{_bounded(text)}\a"


KEEP_TITLE = "\x1b[22;2t"
"""Lets the terminal keep the title that its window has."""
RESTORE_TITLE = "\x1b[23;2t"
"""Brings that title back."""


def _bounded(text: str) -> str:
    flat = _CONTROL.sub(" ", text)
    return flat if len(flat) <= TEXT_LIMIT else flat[: TEXT_LIMIT - 1] + "…"


class Attention:
    """Decides whether somebody is to be called, from what the terminal tells of its focus and how long a turn took.

    ``tells``: the terminal tells of its focus; who started the program in it has its focus at first. Where nothing is
    known, a turn calls nobody that took less than ``after`` seconds, or in which somebody used a key so shortly ago.
    """

    def __init__(self, after: float, *, tells: bool = False) -> None:
        self.after = after
        self.focused: bool | None = True if tells else None
        self._seen: datetime | None = None
        self._started: dict[str, datetime] = {}
        self._newest: datetime | None = None

    def seen(self, at: datetime) -> None:
        """Somebody used a key or the mouse."""
        self._seen = at

    def take(self, event: ev.Event) -> str:
        """Take an event. Returns ``done``, ``failed`` or ``asks`` when somebody is to be called for it, else nothing."""
        match event:
            case ev.TurnStarted():
                self._started[event.turn_id] = self._newest = event.at
            case ev.TurnFinished():
                began = self._started.pop(event.turn_id, event.at)
                if not event.interrupted and self._away(began, event.at):
                    return "failed" if event.is_error else "done"
            case ev.ApprovalRequested():
                began = self._newest if self._newest is not None and self._started else event.at
                if self._away(began, event.at):
                    return "asks"
            case _:
                pass
        return ""

    def _away(self, began: datetime, now: datetime) -> bool:
        if self.focused is not None:
            return not self.focused
        since = max(began, self._seen) if self._seen is not None else began
        return (now - since).total_seconds() >= self.after
