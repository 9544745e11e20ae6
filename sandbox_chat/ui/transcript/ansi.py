"""Colours that programs choose for their output: as runs of text, and what the words of their styles say."""

from __future__ import annotations

from typing import NamedTuple

from sandbox_chat.sgr import NAMES, WEIGHTS, Styles, valid_styles

from .cells import Run

PREFIX = "ansi:"
"""Begins the name of a style that a program chose; the words after it are those of ``sandbox_chat.sgr``."""

# The sixteen colours in the order of their numbers. The palette makes them readable where they are not.
_DARK = (
    "#3b4048", "#e8707c", "#8cc570", "#dfb96a", "#6cb0f0", "#c980dd", "#55b8c4", "#c3c8d2",
    "#868c98", "#ff8791", "#a9e08a", "#ffd47a", "#8cc6ff", "#e59cf7", "#74d8e4", "#ffffff",
)  # fmt: skip
_LIGHT = (
    "#000000", "#b3202c", "#2c6e1f", "#7d5600", "#1c4fb4", "#86219f", "#00666f", "#565b64",
    "#6a6f78", "#cc2636", "#347f26", "#8f6400", "#2a60cc", "#9c30b8", "#00737d", "#ffffff",
)  # fmt: skip


class Chosen(NamedTuple):
    """What a program chose: colour and ground as rich reads them, empty for the usual ones, and weights."""

    colour: str
    ground: str
    weights: frozenset[str]


def chosen(words: str, *, dark: bool | None) -> Chosen:
    """Return what ``words`` say. Colours that are a ground are of the other kind: deep ones where text is bright.

    The sixteen colours are ours for a dark or a light ground, or for ``None`` the terminal's.
    """
    colour = ground = ""
    weights: set[str] = set()
    own = tuple(name.replace("-", "_") for name in NAMES)
    colours, grounds = (own, own) if dark is None else (_DARK, _LIGHT) if dark else (_LIGHT, _DARK)
    for word in words.split(" "):
        name = word.removeprefix("on-")
        table = grounds if word.startswith("on-") else colours
        value = name if name.startswith("#") else table[NAMES.index(name)] if name in NAMES else ""
        if word in WEIGHTS:
            weights.add(word)
        elif word.startswith("on-"):
            ground = value
        else:
            colour = value
    return Chosen(colour, ground, frozenset(weights))


def styled_runs(text: str, styles: Styles) -> list[Run]:
    """Return clean output as runs, each with the place where it stands in ``text``."""
    if not valid_styles(styles, len(text)):
        return [Run(text, at=0)]
    runs: list[Run] = []
    place = 0
    for start, end, words in styles:
        if start > place:
            runs.append(Run(text[place:start], at=place))
        runs.append(Run(text[start:end], (PREFIX + words,), at=start))
        place = end
    if place < len(text) or not runs:
        runs.append(Run(text[place:], at=place))
    return runs
