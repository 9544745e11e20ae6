"""The transcript's colours: names of styles → styles of the terminal, made from the app's theme."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Literal

from rich.color import Color as RichColor
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.color import Color, ColorParseError
from textual.strip import Strip

from .ansi import PREFIX, chosen
from .cells import Row, row_width
from .terminal_colours import terminal_styles

# Colours of code, chosen for contrast of at least 4.5:1 on the dark and the light ground.
_CODE_DARK = {
    "keyword": "#c792ea",
    "string": "#a5d68f",
    "number": "#f5a97f",
    "comment": "#8b93a7",
    "function": "#82aaff",
    "class": "#ffcb6b",
    "builtin": "#7fdbca",
    "constant": "#f5a97f",
    "operator": "#89b8c8",
    "decorator": "#ffcb6b",
    "inserted": "#a5d68f",
    "deleted": "#ff8f8f",
    "error": "#ff8f8f",
}
_CODE_LIGHT = {
    "keyword": "#7a1fa2",
    "string": "#22692a",
    "number": "#a0430a",
    "comment": "#5c6370",
    "function": "#1a4fb0",
    "class": "#875a00",
    "builtin": "#006b70",
    "constant": "#a0430a",
    "operator": "#3a5a68",
    "decorator": "#875a00",
    "inserted": "#22692a",
    "deleted": "#b0202a",
    "error": "#b0202a",
}
_DEFAULTS = {
    "foreground": ("#e0e0e0", "#1f1f1f"),
    "background": ("#121212", "#e0e0e0"),
    "primary": ("#4ea3e8", "#004578"),
    "accent": ("#ffa62b", "#8a5a00"),
    "success": ("#4ebf71", "#1a6b35"),
    "warning": ("#ffa62b", "#8a5a00"),
    "error": ("#ff6b81", "#a01030"),
}
_MIN_CONTRAST = 4.5
_MOST_CONTRAST = 7.0
_STRONG = 18.0
"""Contrast of a theme's text on its ground from which on it is one of high contrast, and all of it is made so."""

Kind = Literal["rgb", "ansi", "none"]

_versions = itertools.count(1)


class Palette:
    """Styles by name on one ground colour. Never changes; a new theme makes a new palette.

    ``version`` tells palettes apart for caches.
    """

    def __init__(
        self,
        variables: Mapping[str, str] | None = None,
        *,
        background: str = "",
        dark: bool = True,
        kind: Kind = "rgb",
    ) -> None:
        """``variables`` are the theme's (``primary``, ``error``, …); missing or odd ones fall back to defaults.

        ``kind``: ``ansi`` takes the terminal's own colours and ``none`` no colour at all, whatever the theme says.
        """
        self.version = next(_versions)
        self.dark = dark
        self.kind = kind
        given = dict(variables or {})
        if background:
            given["background"] = background
        colours = {
            name: _colour(given.get(name, ""), pair[0 if dark else 1]) for name, pair in _DEFAULTS.items()
        }
        self.background = colours["background"]
        self.foreground = colours["foreground"]
        if kind == "rgb":
            least = (
                _MOST_CONTRAST
                if _contrast(colours["foreground"], self.background) > _STRONG
                else _MIN_CONTRAST
            )
            self._partial = _styles(colours, dark, least)
            self.base = _style(colours["foreground"], bg=colours["background"])
        else:
            self._partial = terminal_styles(coloured=kind == "ansi")
            self.base = Style.parse("default on default")
        self._mixed: dict[tuple[tuple[str, ...], str], Style] = {}
        self._blank: dict[int, Strip] = {}

    def style(self, names: tuple[str, ...], href: str = "") -> Style:
        """Return the style of the named styles laid over the base, with a link's target as meta data."""
        key = (names, href)
        found = self._mixed.get(key)
        if found is None:
            found = self.base
            for name in names:
                part = self._partial.get(name)
                if part is None and name.startswith(PREFIX):
                    part = self.program(name.removeprefix(PREFIX))
                found = found + (part or Style.null())
            if href:
                found = found + Style.from_meta({"href": href})
            if len(self._mixed) > 4096:
                self._mixed.clear()  # links are from outside: no endless growth
            self._mixed[key] = found
        return found

    def program(self, words: str) -> Style:
        """Return the style that a program chose for its output (see ``ansi.py``), readable on what it stands on."""
        picked = chosen(words, dark=self.dark if self.kind == "rgb" else None)
        weights = picked.weights
        dim = "dim" in weights
        style = Style(
            bold="bold" in weights or None,
            dim=(dim and self.kind != "rgb") or None,
            italic="italic" in weights or None,
            underline="underline" in weights or None,
            reverse="reverse" in weights or None,
            strike="strike" in weights or None,
        )
        if self.kind == "none" or not (picked.colour or picked.ground or dim):
            return style
        if self.kind == "ansi":
            return style + Style(color=_own(picked.colour), bgcolor=_own(picked.ground))
        ground = Color.parse(picked.ground) if picked.ground else self.background
        colour = Color.parse(picked.colour) if picked.colour else self.foreground
        if dim:
            colour = colour.blend(ground, 0.35)
        towards = ground.get_contrast_text(1.0) if picked.ground else self.foreground
        return style + _style(_readable(colour, ground, towards), bg=ground if picked.ground else None)

    def over(self, name: str) -> Style:
        """Return the style that is laid over text which is selected or found; reversed where there are no own colours."""
        return self._partial.get(name) or Style(reverse=True)

    def strip(self, row: Row, width: int, fill: tuple[str, ...] = ()) -> Strip:
        """Return ``row`` as a strip of exactly ``width`` cells, filled up in the style ``fill``."""
        style = self.style
        segments = [Segment(run.text, style(run.names, run.href)) for run in row if run.text]
        used = row_width(row)
        if used < width:
            segments.append(Segment(" " * (width - used), style(fill)))
        strip = Strip(segments, max(used, width))
        return strip if used <= width else strip.crop(0, width)

    def blank(self, width: int) -> Strip:
        """Return an empty row."""
        found = self._blank.get(width)
        if found is None:
            found = self._blank[width] = Strip([Segment(" " * width, self.base)] if width else [], width)
        return found


def _colour(value: str, default: str) -> Color:
    try:
        return Color.parse(value or default)
    except ColorParseError:
        return Color.parse(default)


def _style(
    fg: Color | None = None,
    *,
    bg: Color | None = None,
    bold: bool | None = None,
    italic: bool | None = None,
    underline: bool | None = None,
    strike: bool | None = None,
) -> Style:
    return Style(
        color=_rich(fg) if fg is not None else None,
        bgcolor=_rich(bg) if bg is not None else None,
        bold=bold,
        italic=italic,
        underline=underline,
        strike=strike,
    )


def _rich(colour: Color) -> RichColor:
    return RichColor.from_rgb(colour.r, colour.g, colour.b)


def _own(colour: str) -> RichColor | None:
    """Return one of the terminal's own colours. Black and white are left out: one of them cannot be seen."""
    if not colour:
        return None
    found = RichColor.parse(colour).downgrade(ColorSystem.STANDARD)
    return None if found.number in (0, 7, 15) else found


def _readable(colour: Color, ground: Color, towards: Color, least: float = _MIN_CONTRAST) -> Color:
    """Return ``colour`` moved towards ``towards`` as far as it needs to be read on ``ground``."""
    for step in range(11):
        found = colour.blend(towards, step / 10)
        if _contrast(ground, found) >= least:
            return found
    return towards


def _contrast(a: Color, b: Color) -> float:
    light, dark = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: Color) -> float:
    def linear(value: float) -> float:
        return float(value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4)

    r, g, b = colour.normalized
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)


def _styles(colours: Mapping[str, Color], dark: bool, least: float) -> dict[str, Style]:
    ground, text = colours["background"], colours["foreground"]
    surface = ground.blend(text, 0.07 if dark else 0.06)
    faint = ground.blend(text, 0.35)
    if least > _MIN_CONTRAST:
        faint = _readable(faint, surface, text, least)
    muted = _readable(ground.blend(text, 0.62), surface, text, least)
    primary, accent, success, warning, error = (
        _readable(colours[name], surface, text, least)
        for name in ("primary", "accent", "success", "warning", "error")
    )
    styles = {
        "muted": _style(muted),
        "faint": _style(faint),
        "prompt": _style(bold=True),
        "prompt-mark": _style(primary, bold=True),
        "heading-1": _style(primary, bold=True),
        "heading-2": _style(primary, bold=True),
        "heading-3": _style(bold=True),
        "strong": _style(bold=True),
        "emphasis": _style(italic=True),
        "strike": _style(muted, strike=True),
        "code": _style(accent, bg=surface),
        "link": _style(primary, underline=True),
        "quote": _style(muted),
        "footnote": _style(primary),
        "quote-bar": _style(faint),
        "bullet": _style(primary),
        "rule": _style(faint),
        "html": _style(muted),
        "table-head": _style(bold=True),
        "block": _style(bg=surface),
        "code-mark": _style(text, bg=ground.blend(colours["error"], 0.28 if dark else 0.2), bold=True),
        "thinking": _style(muted, italic=True),
        "success": _style(success),
        "warning": _style(warning),
        "error": _style(error),
        "running": _style(primary),
        "waiting": _style(muted),
        "tool": _style(bold=True),
        "selected": _style(primary, bold=True),
        "bar": _style(ground.blend(text, 0.13)),
        "thumb": _style(faint),
        "select": _style(text, bg=ground.blend(primary, 0.35)),
        "find": _style(text, bg=ground.blend(warning, 0.35)),
        "find-now": _style(ground, bg=warning, bold=True),
    }
    codes = _CODE_DARK if dark else _CODE_LIGHT
    styles.update(
        {
            f"tok-{name}": _style(_readable(Color.parse(value), surface, text, least))
            for name, value in codes.items()
        }
    )
    styles["tok-comment"] += Style(italic=True)
    return styles
