"""The signs that the interface draws, each with an ASCII twin for terminals that cannot show it.

``glyph("ok")`` is the sign in the set that is in use; ``own`` writes a text of the interface in it. Text from
outside is never changed here. The twin of a ``glyph`` is as wide as the sign, so nothing moves.
"""

from __future__ import annotations

from collections.abc import Mapping

_PAIRS: dict[str, tuple[str, str]] = {
    # How a call, a turn, a sandbox stands.
    "waiting": ("·", "."),
    "running": ("◌", "~"),
    "still": ("●", "*"),
    "ok": ("✓", "+"),
    "failed": ("✗", "x"),
    "interrupted": ("⊘", "!"),
    "asks": ("?", "?"),
    "info": ("i", "i"),
    "warning": ("!", "!"),
    "off": ("○", "o"),
    "on": ("●", "*"),
    "starting": ("◌", "~"),
    # What stands before a line.
    "prompt": ("›", ">"),
    "example": ("›", ">"),
    "chosen": ("▸", ">"),
    "folded": ("▸", "+"),
    "open": ("▾", "-"),
    "menu": ("▾", "v"),
    "later": ("⋯", "~"),
    "bullet": ("•", "*"),
    "bullet-2": ("◦", "-"),
    "bullet-3": ("▪", "+"),
    "task-open": ("☐", "o"),
    "task-done": ("☑", "x"),
    "quote": ("▎", "|"),
    "mark": ("▌", "|"),
    "file": ("▣", "#"),
    "tick": ("✓", "x"),
    "box-left": ("▐", "["),
    "box-right": ("▌", "]"),
    # Between words.
    "dot": ("·", "-"),
    "ellipsis": ("…", "~"),
    "times": ("×", "x"),
    "arrow": ("→", ">"),
    "up": ("↑", "^"),
    "down": ("↓", "v"),
    "left": ("←", "<"),
    "right": ("→", ">"),
    "before": ("◂", "<"),
    "next": ("▸", ">"),
    # Lines and bars.
    "line": ("─", "-"),
    "upright": ("│", "|"),
    "cross": ("┼", "+"),
    "bar-full": ("█", "#"),
    "bar-empty": ("░", "."),
    "scroll-bar": ("▐", "|"),
    "scroll-thumb": ("▐", "#"),
    # Rows of signs, one a step.
    "spinner": ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"),
    "unknown": ("?", "?"),
    "sparkline": ("▁▂▃▄▅▆▇█", "_.:-=+*#"),
}

NAMES = frozenset(_PAIRS)
"""The names that ``glyph`` knows."""

# How the signs are written in a sentence of the interface, where nothing stands below them.
_TWINS = str.maketrans(
    {
        **{sign: twin for sign, twin in _PAIRS.values() if len(sign) == 1 and not sign.isascii()},
        "·": "-", "▸": ">", "▾": "v", "…": "...", "⋯": "...", "⏎": "enter", "⌫": "backspace",
        "“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "—": "-",
    }
)  # fmt: skip

_ascii = False
_table: dict[str, str] = {name: pair[0] for name, pair in _PAIRS.items()}


def use(which: str) -> None:
    """Draw with the set ``unicode`` or ``ascii`` from now on."""
    global _ascii  # noqa: PLW0603 - one program draws on one terminal
    _ascii = which == "ascii"
    _table.update({name: pair[_ascii] for name, pair in _PAIRS.items()})


def is_ascii() -> bool:
    """Return true while the ASCII set is in use."""
    return _ascii


def glyph(name: str) -> str:
    """Return the sign called ``name``. A name that is not in the table is a fault of the program."""
    return _table[name]


def own(text: str) -> str:
    """Return a text of the interface itself with its signs written in the set that is in use."""
    if not _ascii or text.isascii():
        return text
    return text.translate(_TWINS)


def choose(setting: str, environment: Mapping[str, str]) -> str:
    """Return the set for the value of the setting ``glyphs``.

    ``auto`` takes ASCII where the locale names an encoding that is not UTF-8, and on the Linux console and dumb
    terminals, whose fonts lack most signs. A locale without an encoding (``C``, none) says nothing of the terminal.
    """
    if setting in ("unicode", "ascii"):
        return setting
    if environment.get("TERM", "") in ("linux", "dumb"):
        return "ascii"
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        if value := environment.get(name):
            encoding = value.partition(".")[2].partition("@")[0]
            utf8 = encoding.lower().replace("-", "").replace("_", "") in ("", "utf8")
            return "unicode" if utf8 else "ascii"
    return "unicode"
