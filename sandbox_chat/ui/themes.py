"""The colour themes: quiet grounds, two accents (blue for what acts, amber for what asks for attention).

Beside Textual's own variables they define ``$muted`` and ``$faint``: plain colours, as Textual's
``$text-muted`` is relative to a ground that a piece of text in a line does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual.theme import Theme

if TYPE_CHECKING:
    from sandbox_chat.ui.pictures import TerminalInfo

DARK = "sandbox-dark"
LIGHT = "sandbox-light"
CONTRAST = "sandbox-contrast"
TERMINAL = "sandbox-terminal"
ORDER = (DARK, LIGHT, CONTRAST, TERMINAL)
"""The themes in the order in which they are gone through."""

_BRIGHT = 0.5
"""Brightness of a ground from which on it is light."""


def _plain_scrollbars(bar: str, hover: str, active: str, ground: str) -> dict[str, str]:
    return {
        "scrollbar": bar,
        "scrollbar-hover": hover,
        "scrollbar-active": active,
        "scrollbar-background": ground,
        "scrollbar-background-hover": ground,
        "scrollbar-background-active": ground,
        "scrollbar-corner-color": ground,
    }


def _dark() -> Theme:
    return Theme(
        name=DARK,
        primary="#7cb7e8",
        secondary="#7cb7e8",
        accent="#e0a458",
        foreground="#d6d9e0",
        background="#14161b",
        surface="#191c22",
        panel="#232730",
        success="#7fc08a",
        warning="#e0a458",
        error="#ec7f78",
        dark=True,
        variables={
            "muted": "#8d93a3",
            "faint": "#5d6474",
            "border": "#343a46",
            "border-blurred": "#2a2f39",
            "input-selection-background": "#7cb7e8 30%",
            **_plain_scrollbars("#343a46", "#465063", "#7cb7e8", "#14161b"),
        },
    )


def _light() -> Theme:
    return Theme(
        name=LIGHT,
        primary="#1f6aa5",
        secondary="#1f6aa5",
        accent="#9a5b0e",
        foreground="#23262d",
        background="#fbfaf7",
        surface="#f4f2ed",
        panel="#e9e6df",
        success="#2f7a3d",
        warning="#9a5b0e",
        error="#b3352e",
        dark=False,
        variables={
            "muted": "#6b6a66",
            "faint": "#9a978f",
            "border": "#cfcabf",
            "border-blurred": "#dedad1",
            "input-selection-background": "#1f6aa5 25%",
            **_plain_scrollbars("#cfcabf", "#b5afa2", "#1f6aa5", "#fbfaf7"),
        },
    )


def _contrast() -> Theme:
    """Every text at least 7:1 on every ground that it may stand on."""
    return Theme(
        name=CONTRAST,
        primary="#7fd4ff",
        secondary="#7fd4ff",
        accent="#ffd75f",
        foreground="#ffffff",
        background="#000000",
        surface="#000000",
        panel="#1c1c1c",
        success="#7dff8a",
        warning="#ffd75f",
        error="#ff9d96",
        dark=True,
        variables={
            "muted": "#d0d0d0",
            "faint": "#b4b4b4",
            "border": "#ffffff",
            "border-blurred": "#b4b4b4",
            "text-muted": "#d0d0d0",
            "text-disabled": "#b4b4b4",
            "foreground-muted": "#d0d0d0",
            "foreground-disabled": "#b4b4b4",
            "block-cursor-background": "#ffffff",
            "block-cursor-foreground": "#000000",
            "block-cursor-text-style": "bold",
            "input-cursor-background": "#ffffff",
            "input-cursor-foreground": "#000000",
            "input-selection-background": "#ffd75f 45%",
            **_plain_scrollbars("#b4b4b4", "#ffffff", "#ffd75f", "#000000"),
        },
    )


def _terminal() -> Theme:
    """The terminal's own colours on its own ground: it may be dark or light, so nothing but these sixteen is safe."""
    return Theme(
        name=TERMINAL,
        ansi=True,
        primary="ansi_bright_blue",
        secondary="ansi_cyan",
        accent="ansi_magenta",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        success="ansi_green",
        warning="ansi_magenta",
        error="ansi_red",
        dark=True,
        variables={
            "muted": "ansi_default",
            "faint": "ansi_bright_black",
            "border": "ansi_bright_black",
            "border-blurred": "ansi_bright_black",
            "link-color": "ansi_bright_blue",
            "link-color-hover": "ansi_bright_blue",
            "link-background-hover": "ansi_default",
            "link-style-hover": "bold underline",
            "ansi-background": "ansi_black",
            "ansi-foreground": "ansi_white",
            "block-cursor-background": "ansi_blue",
            "block-cursor-foreground": "ansi_bright_white",
            "input-cursor-background": "ansi_default",
            "input-cursor-foreground": "ansi_default",
            "input-cursor-text-style": "reverse",
            "input-selection-background": "ansi_blue",
            "input-selection-foreground": "ansi_bright_white",
            "screen-selection-background": "ansi_blue",
            "screen-selection-foreground": "ansi_bright_white",
            **_plain_scrollbars("ansi_bright_black", "ansi_blue", "ansi_blue", "ansi_default"),
        },
    )


def themes() -> tuple[Theme, ...]:
    """Return all themes in their order."""
    return _dark(), _light(), _contrast(), _terminal()


def name_of(
    setting: str, info: TerminalInfo | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Return the theme's name for the value of the setting ``theme``.

    ``auto`` follows the ground that the terminal told of (``info``) or set in ``COLORFGBG``, else it is dark.
    """
    chosen = {"dark": DARK, "light": LIGHT, "contrast": CONTRAST, "terminal": TERMINAL}.get(setting)
    return chosen or (LIGHT if _is_light(info, environment or {}) else DARK)


def after(name: str) -> str:
    """Return the theme that comes after the one called ``name``."""
    return ORDER[(ORDER.index(name) + 1) % len(ORDER)] if name in ORDER else DARK


def _is_light(info: TerminalInfo | None, environment: Mapping[str, str]) -> bool:
    if info is not None and info.ground is not None:
        red, green, blue = info.ground
        return (0.299 * red + 0.587 * green + 0.114 * blue) / 255 > _BRIGHT
    ground = environment.get("COLORFGBG", "").rpartition(";")[2]
    return ground in ("7", "15")
