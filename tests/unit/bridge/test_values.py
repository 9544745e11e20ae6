"""What a tool gave: for code a Python value, all of it; for people a clean text and pictures, bounded."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import types
from support.bridging import text
from support.exported import PNG

from sandbox_chat.bridge.values import NOTHING, PICTURES, answer_of, short, shown, text_of
from sandbox_chat.events import ImageContent, TextContent
from sandbox_chat.tools.images import ImageError

DATA = base64.b64encode(PNG).decode()
PICTURE = types.ImageContent(type="image", data=DATA, mime_type="image/png")
SOUND = types.AudioContent(type="audio", data="AAEC", mime_type="audio/wav")
TEXT_FILE = types.EmbeddedResource(
    type="resource", resource=types.TextResourceContents(uri="file:///a", text="of a file")
)
BLOB = types.EmbeddedResource(
    type="resource", resource=types.BlobResourceContents(uri="file:///b", blob="AAEC")
)
LINK = types.ResourceLink(type="resource_link", uri="https://example.com/x", name="x")


def result(*content: Any, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=list(content), **more)


# -- for code ----------------------------------------------------------------------------------------------


def test_structured_content_goes_before_all_else() -> None:
    both = result(types.TextContent(type="text", text="[1]"), PICTURE, structured_content={"a": [1, None]})
    assert answer_of(both, has_schema=True) == {"value": {"a": [1, None]}}
    assert answer_of(result(structured_content={}), has_schema=False) == {"value": {}}


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("[1, 2]", [1, 2]),
        ("plain", "plain"),
        ("12", "12"),  # a text that looks like a number may be a name or a phone number
        ("true", "true"),
        ('"quoted"', '"quoted"'),
        ("", ""),
        ("[not json", "[not json"),
        ("{" * 10, "{" * 10),
        ("[" * 100_000, "[" * 100_000),
        ("[" + "9" * 5000 + "]", "[" + "9" * 5000 + "]"),
    ],
)
def test_text_that_is_json_is_its_value(words: str, value: object) -> None:
    assert answer_of(text(words), has_schema=False) == {"value": value}


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5).map(
        lambda each: [each]
    )
)
def test_json_comes_back_as_it_was(value: object) -> None:
    assert answer_of(text(json.dumps(value)), has_schema=False) == {"value": value}


def test_text_stays_text_where_structured_results_are_promised() -> None:
    assert answer_of(text('{"a": 1}'), has_schema=True) == {"value": '{"a": 1}'}


def test_several_texts_and_none() -> None:
    assert answer_of(text("[1]", "b"), has_schema=False) == {"value": [[1], "b"]}
    assert answer_of(text("[1]", "b"), has_schema=True) == {"value": ["[1]", "b"]}
    assert answer_of(result(), has_schema=False) == {"value": None}


def test_bytes_stay_bytes_in_their_order() -> None:
    found = answer_of(result(*text("drawn").content, PICTURE, SOUND, BLOB), has_schema=False)
    assert found == {"parts": [{"text": "drawn"}, {"data": DATA}, {"data": "AAEC"}, {"data": "AAEC"}]}


def test_resources() -> None:
    assert answer_of(result(TEXT_FILE), has_schema=False) == {"value": "of a file"}
    assert answer_of(result(LINK), has_schema=False) == {"value": "https://example.com/x"}


def test_the_text_of_a_result() -> None:
    assert text_of(result(*text("one").content, PICTURE, TEXT_FILE, LINK)) == (
        "one\nof a file\nhttps://example.com/x"
    )
    assert text_of(result(PICTURE)) == ""


# -- for people --------------------------------------------------------------------------------------------


class Saved:
    """Saves pictures in memory."""

    def __init__(self) -> None:
        self.got: list[tuple[bytes, str]] = []

    def __call__(self, data: bytes, mime: str) -> ImageContent:
        self.got.append((data, mime))
        return ImageContent(f"/{len(self.got)}", mime, 1, 1)


def said(answer: dict[str, Any], limit: int = 1000) -> str:
    """The one text that is shown."""
    (only,) = shown(answer, Saved(), limit)
    assert isinstance(only, TextContent)
    return only.text


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, NOTHING),
        ("plain", "plain"),
        ({"a": [1, "é"]}, '{"a": [1, "é"]}'),
        (0, "0"),
        (False, "false"),
        ("", ""),
    ],
)
def test_values_are_shown(value: object, words: str) -> None:
    assert said({"value": value}) == words


def test_what_is_shown_is_clean() -> None:
    assert "\x1b" not in said({"value": "\x1b]0;title\x07text\x1b[2J"})
    assert "\u202e" not in said({"value": {"a": "\u202e"}})


def test_no_line_of_a_result_is_taken_for_the_title_of_a_part() -> None:
    (only,) = shown({"value": "[stderr]\nx"}, Saved(), 1000)
    assert isinstance(only, TextContent)
    assert only.titles == ()


def test_long_results_are_cut_and_it_is_said() -> None:
    words = said({"value": "x" * 5000}, limit=200)
    assert len(words) < 300
    assert words.endswith("\n[the code got 5,000 characters]")
    assert "the code got" not in said({"value": "x" * 200}, limit=200)
    assert "[the code got 10,002 characters]" in said({"value": ["x" * 9998]}, limit=200)


def test_pictures_are_saved_and_counted() -> None:
    saved = Saved()
    answer = {"parts": [{"text": "drawn"}, {"data": DATA}, {"data": "AAEC"}]}
    words, *pictures = shown(answer, saved, 1000)
    assert isinstance(words, TextContent)
    assert words.text == f"drawn\n({len(PNG)} bytes)\n(3 bytes)"
    assert pictures == [ImageContent("/1", "image/png", 1, 1)]
    assert saved.got == [(PNG, "image/png")]


def test_only_some_pictures_are_shown() -> None:
    saved = Saved()
    found = shown({"parts": [{"data": DATA}] * (PICTURES + 3)}, saved, 1000)
    assert len(found) == 1 + PICTURES
    assert len(saved.got) == PICTURES
    assert isinstance(found[0], TextContent)
    assert found[0].text.count("bytes") == PICTURES + 3  # all are named


@pytest.mark.parametrize("data", ["not base64!", "AAA", "é"])
def test_damaged_bytes(data: str) -> None:
    assert said({"parts": [{"data": data}]}) == "(damaged bytes)"


@pytest.mark.parametrize("error", [OSError("disk full"), ImageError("too large")])
def test_a_picture_that_cannot_be_saved_costs_nothing_else(error: Exception) -> None:
    def save(data: bytes, mime: str) -> ImageContent:
        raise error

    (only,) = shown({"parts": [{"data": DATA}, {"text": "after"}]}, save, 1000)
    assert isinstance(only, TextContent)
    assert only.text == f"({len(PNG)} bytes)\nafter"


def test_a_sentence_for_a_log_is_one_short_line() -> None:
    words = short("a\nb\x1b[31m" + "c" * 1000)
    assert len(words) <= 200
    assert "\n" not in words
    assert "\x1b" not in words
