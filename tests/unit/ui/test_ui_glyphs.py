"""Every sign has an ASCII twin of the same width, and what set is taken where."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rich.cells import cell_len

from sandbox_chat.ui import formats, glyphs


@pytest.fixture(autouse=True)
def back() -> Iterator[None]:
    yield
    glyphs.use("unicode")


@pytest.mark.parametrize("name", sorted(glyphs.NAMES))
def test_a_twin_is_ascii_and_as_wide(name: str) -> None:
    sign = glyphs.glyph(name)
    glyphs.use("ascii")
    twin = glyphs.glyph(name)
    assert twin.isascii() and twin.isprintable()
    assert all(cell_len(each) == 1 for each in sign + twin)
    assert len(sign) == 1 or name in ("spinner", "sparkline")
    assert len(twin) == 1 or name in ("spinner", "sparkline")


def test_a_text_of_ones_own_is_written_in_the_set() -> None:
    text = "⏎ send · alt+⏎ newline … ↓ 3"
    assert glyphs.own(text) == text
    glyphs.use("ascii")
    assert glyphs.own(text) == "enter send - alt+enter newline ... v 3"
    assert glyphs.own("中文") == "中文"


def test_status_signs_can_be_told_apart_in_ascii() -> None:
    glyphs.use("ascii")
    signs = [glyphs.glyph(name) for name in ("waiting", "running", "ok", "failed", "interrupted", "asks")]
    assert len(set(signs)) == len(signs)


def test_what_is_made_of_signs_follows_the_set() -> None:
    assert formats.sparkline([0.0, 1.0], 2) == "▁█"
    glyphs.use("ascii")
    assert formats.sparkline([0.0, 1.0], 2) == "_#"
    assert formats.bar(1, 2, 4) == ("##", "..")
    assert formats.fit("abcdef", 4) == "abc~"
    assert {formats.spinner(frame) for frame in range(8)} == set("|/-\\")


@pytest.mark.parametrize(
    ("setting", "environment", "found"),
    [
        ("auto", {"LANG": "en_US.UTF-8", "TERM": "xterm"}, "unicode"),
        ("auto", {"LANG": "en_US.utf8"}, "unicode"),
        ("auto", {"LANG": "de_DE.ISO-8859-1"}, "ascii"),
        ("auto", {"LANG": "zh_CN.GBK", "LC_ALL": "C.UTF-8"}, "unicode"),
        ("auto", {"LC_CTYPE": "ja_JP.eucJP@x", "LANG": "C.UTF-8"}, "ascii"),
        ("auto", {"LANG": "C"}, "unicode"),
        ("auto", {}, "unicode"),
        ("auto", {"LANG": "C.UTF-8", "TERM": "linux"}, "ascii"),
        ("unicode", {"TERM": "linux"}, "unicode"),
        ("ascii", {"LANG": "C.UTF-8"}, "ascii"),
    ],
)
def test_which_set(setting: str, environment: dict[str, str], found: str) -> None:
    assert glyphs.choose(setting, environment) == found
