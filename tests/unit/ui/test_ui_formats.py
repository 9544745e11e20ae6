"""Numbers and widths as they are written on the screen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sandbox_chat.ui import formats


def test_a_running_time_does_not_flicker() -> None:
    assert [formats.running(ms) for ms in (-5, 420, 9_996, 59_960)] == [
        "0.0 s",
        "0.4 s",
        "10.0 s",
        "1 min 00 s",
    ]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (999, "999"),
        (3100, "3.1k"),
        (9_960, "10k"),
        (128_000, "128k"),
        (999_600, "1.0M"),
        (1_250_000, "1.2M"),
    ],
)
def test_tokens(count: int, text: str) -> None:
    assert formats.tokens(count) == text


def test_percent_and_bar() -> None:
    assert formats.percent(24_000, 200_000) == "12 %"
    assert formats.percent(1, 200_000) == "<1 %"
    assert formats.percent(5, 0) == ""
    assert formats.bar(1, 200_000, 10) == ("█", "░" * 9)
    assert formats.bar(300, 200, 10) == ("█" * 10, "")
    assert formats.bar(1, 0, 10) == ("", "")


def test_sparkline() -> None:
    assert formats.sparkline([0, 1, 2, 4], 3) == "▂▄█"
    assert formats.sparkline([0.0, 0.0], 5) == "▁▁"
    assert formats.sparkline([], 5) == ""


@given(st.text(), st.integers(0, 20))
def test_fit_never_exceeds_the_width(text: str, width: int) -> None:
    fitted = formats.fit(text, width)
    assert cell_len(fitted) <= width
    if cell_len(text) <= width:
        assert fitted == text


def test_fit_keeps_wide_characters_whole() -> None:
    assert formats.fit("你好世界", 4) == "你…"
    assert formats.fit("你好世界", 5) == "你好…"
