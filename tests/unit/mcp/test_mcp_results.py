"""Results of other servers' tools as outcomes: bounds, files, tables, notes, hostile parts."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import types
from support.pictures import picture

from sandbox_chat.events import FileContent, ImageContent, TableContent, TextContent
from sandbox_chat.mcp.protocol import result_of
from sandbox_chat.mcp.results import EMPTY, mended, to_outcome
from sandbox_chat.mcp.secrets import scrubbed
from sandbox_chat.settings import Settings
from sandbox_chat.tools.context import CallContext, ImageBlock, ToolOutcome


class Kept:
    """A context whose files are kept here."""

    def __init__(self, fail: OSError | None = None, **settings: Any) -> None:
        self.files: list[tuple[bytes, str, str]] = []
        self.pictures: list[bytes] = []
        self.fail = fail
        self.context = CallContext(
            settings=Settings(**settings),
            save_picture=self._picture,
            save_file=self._file,
            started=lambda *_: None,
            finished=lambda *_: None,
        )

    def _picture(self, data: bytes, mime: str) -> ImageContent:
        if self.fail:
            raise self.fail
        self.pictures.append(data)
        return ImageContent("/p", mime, 1, 1)

    def _file(self, data: bytes, mime: str, title: str) -> FileContent:
        if self.fail:
            raise self.fail
        self.files.append((data, mime, title))
        return FileContent("/f", mime, len(data), title)

    async def outcome(
        self, found: Any, *, has_schema: bool = False, scrub: Callable[[str], str] = str
    ) -> ToolOutcome:
        """The outcome of a result as it came."""
        return await to_outcome(result_of(found), self.context, has_schema=has_schema, scrub=scrub)


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def image(data: bytes, mime: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": mime}


async def test_text() -> None:
    kept = Kept()
    outcome = await kept.outcome(text("hello\n"))
    assert outcome == ToolOutcome(outcome.model, (TextContent("hello"),))
    assert outcome.text == "hello"
    assert (await kept.outcome({})).text == EMPTY
    assert (await kept.outcome({"content": []})).text == EMPTY
    assert (await kept.outcome(text("no", isError=True))).is_error
    assert not (await kept.outcome(text("no", isError="true"))).is_error


async def test_long_text_is_cut_and_kept_whole() -> None:
    kept = Kept(text_limit=2000)
    words = "\n".join(str(number) for number in range(5000))
    outcome = await kept.outcome(text(words))
    assert len(outcome.text) <= 2000 and "Ask for less at a time" in outcome.text
    assert kept.files[0][0].decode() == words
    shown = outcome.display[0]
    assert isinstance(shown, TextContent) and "is in /f on this computer" in shown.text
    assert "/f" not in outcome.text  # the model has no use for it
    full = Kept(OSError(28, "No space left on device"), text_limit=2000)
    outcome = await full.outcome(text(words))
    assert "could not be kept on this computer (No space left on device)" in outcome.display[0].text  # type: ignore[union-attr]


async def test_pictures() -> None:
    kept = Kept(images_per_call=2)
    data = picture(30, 20)
    outcome = await kept.outcome({"content": [image(data)] * 3})
    assert len(kept.pictures) == 3
    assert [type(block) for block in outcome.model[1:]] == [ImageBlock, ImageBlock]
    assert "not to you" in outcome.text
    outcome = await kept.outcome({"content": [image(b"GIF89a...", "image/gif")]})
    assert kept.files[-1][1:] == ("image/gif", "picture") and "was kept for the user" in outcome.text
    outcome = await kept.outcome({"content": [image(b"\x89PNG\r\n\x1a\nbroken")]})
    assert "could not be used" in outcome.text
    outcome = await Kept(OSError(13, "Permission denied")).outcome({"content": [image(data)]})
    assert "could not be kept on this computer (Permission denied)" in outcome.text


async def test_a_damaged_addition_does_not_cost_a_picture() -> None:
    data = picture(30, 20)
    body = b"iCCPprofile"
    chunk = len(body[4:]).to_bytes(4) + body + (zlib.crc32(body) ^ 1).to_bytes(4)
    broken = data[:33] + chunk + data[33:]
    assert mended(broken) == data and mended(data) == data
    kept = Kept()
    outcome = await kept.outcome({"content": [image(broken)]})
    assert len(outcome.model) == 2 and kept.pictures == [data]


@given(st.binary(max_size=200))
def test_mending_anything(data: bytes) -> None:
    assert len(mended(b"\x89PNG\r\n\x1a\n" + data)) <= len(data) + 8


async def test_resources() -> None:
    kept = Kept()
    blob = {"uri": "mem://x", "blob": base64.b64encode(b"\0\1").decode(), "mimeType": "application/x-y"}
    words = {"uri": "mem://y", "blob": base64.b64encode(b"plain").decode(), "mimeType": "text/plain"}
    link = {
        "type": "resource_link",
        "uri": "https://e.example.com/a\x1b[31m",
        "name": "n\u202e",
        "size": 2048,
    }
    outcome = await kept.outcome(
        {"content": [{"type": "resource", "resource": blob}, {"type": "resource", "resource": words}, link]}
    )
    assert kept.files == [(b"\0\1", "application/x-y", "resource mem://x")]
    assert "plain" in outcome.text and "2.0 kB" in outcome.text
    assert "\x1b" not in outcome.text and "\u202e" not in outcome.text


async def test_many_parts_are_bounded() -> None:
    kept = Kept()
    outcome = await kept.outcome({"content": [{"type": "text", "text": str(n)} for n in range(1000)]})
    assert "800 more parts of the result were left out" in outcome.text
    sound = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
    outcome = await kept.outcome({"content": [sound] * 100})
    assert len(kept.files) == 20 and "Only the first 20" in outcome.text


ROWS = [{"a": 1, "b": True}, {"a": None, "c": "x\x1b[31m"}]


@pytest.mark.parametrize(
    ("found", "has_schema", "table"),
    [
        (text(json.dumps(ROWS)), False, True),
        (text(json.dumps(ROWS)), True, False),  # then its structured results count alone
        ({"content": [], "structuredContent": {"rows": ROWS}}, True, True),
        ({"content": [], "structuredContent": {"rows": ROWS, "more": 1}}, True, False),
        (text("rows", structuredContent={"rows": ROWS}), True, True),
        (text(json.dumps([{"a": {"deep": 1}}])), False, False),
        (text(json.dumps([1, 2])), False, False),
        (text("[1, 2"), False, False),
        (text("[" * 100_000), False, False),
        (text(json.dumps(ROWS), isError=True), False, False),
    ],
)
async def test_tables(found: dict[str, Any], has_schema: bool, table: bool) -> None:
    outcome = await Kept().outcome(found, has_schema=has_schema)
    tables = [part for part in outcome.display if isinstance(part, TableContent)]
    assert bool(tables) is table
    if table:
        assert tables[0].columns == ("a", "b", "c")
        assert tables[0].rows[0] == ("1", "true", "")
        assert "\x1b" not in tables[0].rows[1][2]


async def test_tables_are_bounded() -> None:
    rows = [{f"c{column}": "x" * 500 for column in range(50)} for _ in range(100)]
    outcome = await Kept(table_rows=5, table_columns=4, table_cell=10).outcome(
        {"content": [], "structuredContent": {"rows": rows}}
    )
    [table] = [part for part in outcome.display if isinstance(part, TableContent)]
    assert (len(table.rows), len(table.columns), len(table.rows[0][0])) == (5, 4, 10)
    assert (table.row_count, table.column_count) == (100, 50)


async def test_structured_content_without_text_is_shown() -> None:
    outcome = await Kept().outcome({"structuredContent": {"temperature": 5}})
    assert json.loads(outcome.text) == {"temperature": 5}


async def test_credentials_are_taken_out() -> None:
    outcome = await Kept().outcome(text("key abc"), scrub=lambda words: words.replace("abc", "[secret]"))
    assert outcome.text == "key [secret]"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)
PART = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "audio", "resource", "resource_link", "x"])},
    optional={"text": JSON, "data": JSON, "mimeType": JSON, "uri": JSON, "name": JSON, "resource": JSON},
)


@given(
    st.fixed_dictionaries(
        {}, optional={"content": JSON | st.lists(PART), "structuredContent": JSON, "isError": JSON}
    )
)
async def test_whatever_the_result_is(found: dict[str, Any]) -> None:
    outcome = await Kept().outcome(found)
    assert outcome.text and isinstance(outcome.is_error, bool)


def test_a_result_that_cannot_be_read_is_a_text() -> None:
    found = result_of({"content": [{"type": "image"}, "words", 5, None]})
    assert all(isinstance(part, types.TextContent) for part in found.content)


@pytest.mark.parametrize("secret", ["s3cr3t-value", 'pass"w\\rd-é', "p@ss/word 1"])
async def test_credentials_stand_nowhere_in_an_outcome(secret: str) -> None:
    rows = [{"url": f"db://u:{secret}@h", "n": 1}, {"url": "x", "n": 2}]
    link = {"type": "resource_link", "name": secret, "uri": f"db://{quote(secret)}/{'x' * 290}{secret}"}
    blob = {"type": "resource", "resource": {"uri": f"db://{quote(secret, safe='')}", "blob": "AAAA"}}
    parts = [
        {"structuredContent": {"rows": rows}, "content": []},
        text(json.dumps(rows)),
        text(json.dumps(rows, ensure_ascii=False)),
        text(f"{secret[:3]}\x1b[31m{secret[3:]}"),
        {"content": [link, blob, image(b"GIF89a", secret)]},
    ]
    hidden = [secret, json.dumps(secret)[1:-1], quote(secret), quote(secret, safe="")]
    for part in parts:
        kept = Kept()
        outcome = await kept.outcome(part, scrub=lambda text: scrubbed(text, [secret]))
        told = [outcome.text, *(str(each) for each in outcome.display), *(title for *_, title in kept.files)]
        for each in told:
            assert not any(form in each or repr(form)[1:-1] in each for form in hidden)
        assert "[secret]" in "".join(told)
