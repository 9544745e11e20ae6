"""The themes: which one, in what order, and what can be read on them."""

from __future__ import annotations

import itertools

import pytest
from rich.color import ColorType
from textual.color import Color

from sandbox_chat.ui.pictures import TerminalInfo
from sandbox_chat.ui.pictures.terminal import read_replies
from sandbox_chat.ui.themes import CONTRAST, DARK, LIGHT, ORDER, TERMINAL, after, name_of, themes
from sandbox_chat.ui.transcript.palette import Palette, _contrast

BY_NAME = {theme.name: theme for theme in themes()}


@pytest.mark.parametrize(
    ("setting", "info", "environment", "name"),
    [
        ("dark", TerminalInfo(ground=(255, 255, 255)), {}, DARK),
        ("light", None, {}, LIGHT),
        ("contrast", None, {}, CONTRAST),
        ("terminal", None, {}, TERMINAL),
        ("auto", None, {}, DARK),
        ("auto", TerminalInfo(), {"COLORFGBG": "0;15"}, LIGHT),
        ("auto", TerminalInfo(), {"COLORFGBG": "15;0"}, DARK),
        ("auto", TerminalInfo(ground=(253, 246, 227)), {"COLORFGBG": "15;0"}, LIGHT),
        ("auto", TerminalInfo(ground=(0, 43, 54)), {}, DARK),
    ],
)
def test_which_theme(setting: str, info: TerminalInfo | None, environment: dict[str, str], name: str) -> None:
    assert name_of(setting, info, environment) == name


@pytest.mark.parametrize(
    ("reply", "ground"),
    [
        (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\", (255, 255, 255)),
        (b"\x1b]11;rgb:14/16/1b\x07", (0x14, 0x16, 0x1B)),
        (b"\x1b]11;rgba:0000/2b2b/3636/ffff\x07", (0, 43, 54)),
        (b"\x1b]11;none\x07", None),
    ],
)
def test_the_terminal_tells_its_ground(reply: bytes, ground: tuple[int, int, int] | None) -> None:
    info, rest = read_replies(b"a" + reply + b"\x1b[?62;22c" + b"b")
    assert info.ground == ground
    if ground is not None:
        assert rest == b"ab"


def test_the_themes_follow_each_other_round() -> None:
    seen = [DARK]
    while (name := after(seen[-1])) != DARK:
        seen.append(name)
    assert tuple(seen) == ORDER == tuple(BY_NAME)
    assert after("somebody's") == DARK


def test_high_contrast_text_is_seven_to_one_on_every_ground() -> None:
    theme = BY_NAME[CONTRAST]
    texts = [theme.foreground, theme.primary, theme.accent, theme.success, theme.warning, theme.error]
    texts += [theme.variables[name] for name in ("muted", "faint", "text-muted", "text-disabled")]
    for text, ground in itertools.product(texts, (theme.background, theme.surface, theme.panel)):
        assert text is not None and ground is not None
        assert _contrast(Color.parse(text), Color.parse(ground)) >= 7, (text, ground)


def test_high_contrast_reaches_the_transcript() -> None:
    theme = BY_NAME[CONTRAST]
    names = ("foreground", "background", "primary", "accent", "success", "warning", "error")
    palette = Palette({name: getattr(theme, name) for name in names})
    for name, style in palette._partial.items():
        if name == "bar" or style.color is None:
            continue
        ground = style.bgcolor or palette.base.bgcolor
        assert ground is not None
        pair = [Color.from_rich_color(colour) for colour in (style.color, ground)]
        assert _contrast(*pair) >= 6.9, name


@pytest.mark.parametrize("kind", ["ansi", "none"])
def test_without_colours_of_its_own_the_transcript_has_all_its_styles(kind: str) -> None:
    palette = Palette(kind=kind)  # type: ignore[arg-type]
    assert set(Palette()._partial) <= set(palette._partial)
    for style in (palette.base, *palette._partial.values()):
        for colour in (style.color, style.bgcolor):
            assert colour is None or colour.type in (ColorType.STANDARD, ColorType.DEFAULT)
            if kind == "none":
                assert colour is None or colour.is_default
    for left, right in (("error", "success"), ("strong", "muted"), ("link", "muted"), ("selected", "muted")):
        assert palette.style((left,)) != palette.style((right,))
