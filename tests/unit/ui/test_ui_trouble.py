"""A lasting trouble is told once."""

from __future__ import annotations

from sandbox_chat.ui.trouble import Trouble


def test_the_same_trouble_is_told_once_until_it_is_over() -> None:
    told: list[str] = []
    trouble = Trouble(told.append)
    trouble.met("full")
    trouble.met("full")
    trouble.met("read-only")
    assert told == ["full", "read-only"]
    assert trouble.text == "read-only"
    trouble.over()
    assert trouble.text == ""
    trouble.met("read-only")
    assert told == ["full", "read-only", "read-only"]


def test_a_trouble_that_nobody_hears_of_is_kept() -> None:
    trouble = Trouble()
    trouble.met("full")
    assert trouble.text == "full"
