"""The two colour themes: quiet grounds, two accents (blue for what acts, amber for what asks for attention).

Beside Textual's own variables they define ``$muted`` and ``$faint``: plain colours, as Textual's
``$text-muted`` is relative to a ground that a piece of text in a line does not know.
"""

from __future__ import annotations

from textual.theme import Theme

DARK = "sandbox-dark"
LIGHT = "sandbox-light"


def themes() -> tuple[Theme, Theme]:
    """Return the dark and the light theme."""
    dark = Theme(
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
            "scrollbar": "#343a46",
            "scrollbar-hover": "#465063",
            "scrollbar-active": "#7cb7e8",
            "scrollbar-background": "#14161b",
            "scrollbar-background-hover": "#14161b",
            "scrollbar-background-active": "#14161b",
            "scrollbar-corner-color": "#14161b",
        },
    )
    light = Theme(
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
            "scrollbar": "#cfcabf",
            "scrollbar-hover": "#b5afa2",
            "scrollbar-active": "#1f6aa5",
            "scrollbar-background": "#fbfaf7",
            "scrollbar-background-hover": "#fbfaf7",
            "scrollbar-background-active": "#fbfaf7",
            "scrollbar-corner-color": "#fbfaf7",
        },
    )
    return dark, light


def name_of(setting: str) -> str:
    """Return the theme's name for the value of the setting ``theme``."""
    return LIGHT if setting == "light" else DARK
