"""Arguments while they are written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.ui.arguments import partial_arguments


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
    assert partial_arguments(draft) == found


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=30), st.data())
def test_what_is_shown_is_always_a_beginning_of_the_whole(text: str, data: st.DataObject) -> None:
    whole = json.dumps({"code": text})
    draft = whole[: data.draw(st.integers(0, len(whole)))]
    shown = partial_arguments(draft).get("code", "")
    assert text.startswith(shown)
