"""Which panes are seen, and how wide."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.ui.layout import CHAT_MIN, SIDE_MIN, Layout


def test_wide_shows_all_and_hides_what_is_not_wanted() -> None:
    plan = Layout(width=140)
    assert plan.visible == ("chat", "tools", "cost")
    plan.toggle("tools")
    assert plan.visible == ("chat", "cost")
    plan.toggle("cost")
    assert plan.visible == ("chat",)
    plan.toggle("tools")
    assert plan.visible == ("chat", "tools")


def test_narrow_shows_one_tab() -> None:
    plan = Layout(width=80)
    assert plan.visible == ("chat",)
    plan.toggle("tools")
    assert plan.visible == ("tools",)
    plan.toggle("tools")
    assert plan.visible == ("chat",)
    plan.show("cost")
    assert plan.visible == ("cost",)


def test_maximised_and_back_where_it_was() -> None:
    plan = Layout(width=140)
    plan.toggle("cost")
    plan.maximise("tools")
    assert plan.visible == ("tools",)
    plan.show("chat")
    assert plan.visible == ("chat",)
    plan.toggle("tools")
    assert plan.visible == ("tools",)
    plan.maximise("chat")
    assert plan.visible == ("chat", "tools")


def test_narrow_and_wide_again_is_as_before() -> None:
    plan = Layout(width=140)
    plan.resize_side(50)
    plan.toggle("cost")
    plan.width = 80
    plan.toggle("cost")
    plan.width = 140
    assert plan.visible == ("chat", "tools")
    assert plan.side_width == 50


@given(st.integers(68, 400), st.integers(-100, 500))
def test_the_side_leaves_room_for_both(width: int, columns: int) -> None:
    plan = Layout(width=width, tabs_below=40)
    plan.resize_side(columns)
    assert SIDE_MIN <= plan.side_width <= width - CHAT_MIN
