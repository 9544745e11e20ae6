"""Arguments while they are written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.text import clean
from sandbox_chat.ui import arguments
from sandbox_chat.ui.arguments import PartialArguments


@pytest.mark.parametrize(
    ("draft", "found"),
    [
        ("{", {}),
        ('{"code": "a\\n', {"code": "a\n"}),
        ('{"code": "a\\', {"code": "a"}),
        ('{"code": "a\\u00', {"code": "a"}),
        ('{"code": "a\\\\', {"code": "a\\"}),
        ('{"code": "a\\\\u00', {"code": "a\\u00"}),
        ('{"path": "x", "content": "y', {"path": "x", "content": "y"}),
        ('{"code": "\\u001b[2J', {"code": "␛[2J"}),
    ],
)
def test_partial_arguments(draft: str, found: dict[str, str]) -> None:
    assert PartialArguments(draft).texts == found


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=30), st.data())
def test_what_is_shown_is_always_a_beginning_of_the_whole(text: str, data: st.DataObject) -> None:
    whole = json.dumps({"code": text})
    draft = whole[: data.draw(st.integers(0, len(whole)))]
    shown = PartialArguments(draft).texts.get("code", "")
    assert text.startswith(shown)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=5), VALUES, max_size=4),
    st.booleans(),
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
)
def test_pieces_of_any_size_give_what_json_gives(given: dict, ascii_only: bool, sizes: list[int]) -> None:
    draft = json.dumps(given, ensure_ascii=ascii_only)
    reader = PartialArguments()
    at = turn = 0
    while at < len(draft):
        size = sizes[turn % len(sizes)]
        reader.feed(draft[at : at + size])
        at, turn = at + size, turn + 1
    assert reader.texts == {
        clean(key): clean(value) for key, value in given.items() if isinstance(value, str)
    }


@given(st.text(alphabet='{}[]",:\\u0d8ne \x1b', max_size=60))
def test_what_is_no_json_is_no_error(draft: str) -> None:
    assert all(isinstance(value, str) for value in PartialArguments(draft).texts.values())


def test_each_character_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(arguments, "clean", lambda text: seen.append(len(text)) or clean(text))
    reader = PartialArguments('{"code": "')
    for _ in range(3000):
        reader.feed("x = 1 ")
    assert sum(seen) <= 3000 * 6 + 10
