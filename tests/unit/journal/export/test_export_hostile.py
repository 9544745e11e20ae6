"""Text from outside does nothing in a document: no tag, attribute, link or picture of a page comes from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.exported import RUN, finished, table, write_session
from support.hostile import TEXTS

from sandbox_chat import events as ev
from sandbox_chat.journal import Journal
from sandbox_chat.journal.export import export
from sandbox_chat.journal.export.page_prose import answer, code
from sandbox_chat.journal.export.prose import (
    _allowed,
    _reader,
    code_span,
    escape,
    fence,
    quote,
    safe_markdown,
)
from sandbox_chat.text import clean

ATTRIBUTES = {
    "a": {"href", "rel"}, "details": {"class", "open"}, "div": {"class"}, "figure": set(), "html": {"lang"},
    "img": {"src", "alt", "width", "height", "loading"}, "meta": {"charset", "http-equiv", "content", "name"},
    "ol": {"start"}, "p": {"class"}, "span": {"class"}, "td": {"class"}, "th": {"class"},
}  # fmt: skip
"""Attributes that a page of ours has, by tag."""
TAGS = ATTRIBUTES.keys() | {
    "head",
    "title",
    "style",
    "body",
    "main",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "dl",
    "dt",
    "dd",
    "summary",
    "pre",
    "code",
    "strong",
    "em",
    "s",
    "table",
    "thead",
    "tbody",
    "tr",
    "blockquote",
    "ul",
    "li",
    "hr",
    "br",
    "footer",
}
CLASSES = {
    "answer", "call", "center", "error", "failed", "first", "how", "info", "interrupted", "lost", "ok", "prompt", "remark", "right",
    "scroll", "thinking", "turn-end", "warning",
}  # fmt: skip

NASTY = (
    *TEXTS,
    "</code></pre></details></main><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<style>*{display:none}</style>",
    '<meta http-equiv="refresh" content="0;url=//evil.example">',
    "<iframe src=//evil.example></iframe><base href=//evil.example>",
    "[a](javascript:alert(1)) [b](JaVaScRiPt&colon;alert(1)) [c](data:text/html,x) [d](vbscript:x)",
    "[a](<javascript:alert(1)>) [b](java\nscript:x) [c][r]\n\n[r]: javascript:alert(1) 'x'",
    "[a](//evil.example) [b](/etc/passwd) [c](file:///x) [d](#x) [e](\\\\evil\\x) [f](javascript&#58;x)",
    "![a](http://evil.example/a.png) ![b][r]\n\n[r]: http://evil.example/b.png",
    "[![a](http://evil.example/a.png)](http://evil.example)",
    "<https://ok.example> <javascript:alert(1)> <a@b.example>",
    "```\nnot closed <script>",
    "~~~~ {=html}\n<script>alert(1)</script>\n~~~~",
    "```{=html}\n<script>alert(1)</script>\n```",
    "- list\n  ```\n  not closed",
    "> quote\n> ```\n> not closed",
    "<!-- not closed",
    "<pre>\nnot closed",
    "<details><summary>x",
    "a\\<script>alert(1)</script>",
    "a\\\\<script>alert(1)</script>",
    "`<script>` and ``a ` b <b>`` and ` <b>",
    "\\`<script>alert(1)</script>`",
    "| a | `x|y` <b> |\n|---|---|\n| <script> | [x](javascript:y) |",
    "# heading <script>\n## Turn 99\n---\nfront: matter\n---",
    "> " * 60 + "<script>alert(1)</script>",
    "[" * 200 + "a" + "](javascript:x)" * 200,
    "*" * 500 + "<b>" + "*" * 500,
    "<a\nhref='javascript:x'\n>x</a>",
    "[x]: <javascript:alert(1)>\n\n[x]",
    "> [x]: javascript:alert(1)\n\n[x]",
    "- [x]: javascript:alert(1)\n\n[x]",
    "text\n    indented <script>\n\n    code <script>",
    "\u2028<script>\u2029",
    "&lt;script&gt; &#60;script&#62; &amp;",
    "<?php x ?> <![CDATA[ x ]]> <!DOCTYPE html>",
    "a  \n<b>\n***\n+ x\n1. y\n=== \nz\n---",
)  # fmt: skip


class Seen(HTMLParser):
    """What a page holds: its tags with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.opened: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "hr"):
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data}")


def check_page(page: str) -> Seen:
    """Fail when a tag or an attribute is not one of ours."""
    seen = Seen(page)
    assert seen.opened == []
    for tag, given_ in seen.tags:
        assert tag in TAGS
        assert given_.keys() <= ATTRIBUTES.get(tag, set())
        if tag == "a":
            assert re.match(r"https?://|mailto:", str(given_["href"]), re.I)
            assert given_["rel"] == "noopener noreferrer nofollow"
        if tag == "img":
            assert re.fullmatch(r"data:image/(png|jpeg|gif|webp);base64,[\w+/=]*", str(given_["src"]))
        if tag not in ("span",):
            assert set(str(given_.get("class") or "").split()) <= CLASSES
        else:
            assert re.fullmatch(r"[\w-]{1,6}", str(given_["class"]))
    return seen


def check_markdown(text: str, *, ours: str = "") -> None:
    """Fail when the reference parser finds something in ``text`` that acts. ``ours``: our folder of pictures."""
    for token in _reader().parse(text):
        for each in (token, *(token.children or ())):
            if ours and each.type == "image" and str(each.attrGet("src")).startswith(f"{ours}/"):
                continue
            if ours and each.type == "link_open" and str(each.attrGet("href")).startswith(f"{ours}/"):
                continue
            if each.type == "inline":
                continue
            assert _allowed(each), (each.type, each.content, each.attrs)


def hostile_past(text: str, name: str = "") -> list[ev.Event]:
    """A turn in which everything from outside is ``text``; ``name`` makes its ids unique."""
    part = ev.TextContent(
        f"[success] False\n[stdout]\n{text}\n[result]\n{text}\n[error]\n{text}\n[traceback]\n{text}\n[note] {text}"
    )
    return [
        ev.SessionStarted(session_id="x", model=text, sandbox=text, demo=False),
        ev.Attached(attach_id="a", name=text, path=text, size=1, kind=text),
        ev.Attached(attach_id="b", name=text, path=text, size=1, error=text),
        ev.TurnStarted(turn_id="t", prompt=text),
        ev.Steered(turn_id="t", prompt=text),
        ev.ThinkingDelta(text=text),
        ev.Text(text=text),
        ev.ToolStarted(tool_use_id=f"u1{name}", name=RUN, input={"code": text, text: text}),
        ev.ToolFinished(tool_use_id=f"u1{name}", is_error=True, content=(part,), duration_ms=1),
        ev.ToolOutput(tool_use_id=f"u1{name}", stream="stdout", text=text, late=True),
        ev.ToolStarted(tool_use_id=f"u2{name}", name=RUN, input={"code": text}),
        ev.ToolFinished(
            tool_use_id=f"u2{name}", is_error=False, duration_ms=1,
            content=(
                part, ev.TableContent((text,), ((text,), (text, text)), 1, 1, True),
                ev.FileContent("pictures/x", "text/html", 3, text), ev.ImageContent("pictures/y", text, 1, 1),
            ),
        ),
        ev.ToolStarted(tool_use_id=f"u3{name}", name=text, input={"path": text, "content": text}),
        ev.ToolFinished(tool_use_id=f"u3{name}", is_error=False, content=(ev.TextContent(text),), duration_ms=1),
        ev.ToolStarted(tool_use_id=f"u4{name}", name="write_file", input={"path": text, "content": text}),
        ev.ToolFinished(tool_use_id=f"u4{name}", is_error=False, content=(ev.TextContent(text),), duration_ms=1),
        ev.ToolStarted(tool_use_id=f"u5{name}", name=RUN, input={"code": text}),
        ev.ToolOutput(tool_use_id=f"u5{name}", stream="stdout", text=text),
        ev.Notice(level="error", text=text),
        ev.Retry(reason=text, attempt=1, delay_ms=1),
        ev.ControlsChanged(model=text),
        ev.SessionForked(origin=text, turn_id="t"),
        ev.TextDelta(text=text),
        finished("t", is_error=True, error=text),
    ]  # fmt: skip


def export_all(tmp_path: Path, texts: Sequence[str]) -> dict[str, str]:
    """Documents of a session in which everything from outside is one of ``texts``."""
    turns = [hostile_past(text, f"-{number}") for number, text in enumerate(texts)]
    session = write_session(tmp_path / "sessions", lambda _: list(chain.from_iterable(turns)))
    out = {}
    for ending in ("html", "md", "ipynb"):
        done = export(session, tmp_path / f"a.{ending}", include_failed=True)
        out[ending] = done.path.read_text(encoding="utf-8")
    return out


@pytest.mark.parametrize("part", range(12))
def test_hostile_text_does_nothing_anywhere(tmp_path: Path, part: int) -> None:
    made = export_all(tmp_path, NASTY[part::12])
    page = check_page(made["html"])
    assert page.tags.count(("style", {})) == 1
    check_markdown(made["md"], ours="a_files")
    notebook = nbformat.reads(made["ipynb"], as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            check_markdown(cell.source)
        for output in cell.get("outputs", ()):
            if "text/html" in output.get("data", {}):
                check_page(output["data"]["text/html"])
    for text_ in made.values():
        assert clean(text_) == text_


def test_a_page_allows_nothing_but_itself(session: Path) -> None:
    to = session.parent / "a.html"
    export(session, to)
    page = to.read_text(encoding="utf-8")
    (policy,) = [
        str(attributes["content"])
        for tag, attributes in check_page(page).tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "script" not in policy


def test_a_file_that_says_it_is_a_picture_is_only_ever_a_picture(tmp_path: Path) -> None:
    def past(journal: Journal) -> list[ev.Event]:
        found = [
            journal.save_picture(b"<script>alert(1)</script>", mime, 1, 1)
            for mime in ("image/png", "image/svg+xml", 'image/png" onerror="x', "text/html")
        ]
        return [
            ev.TurnStarted(turn_id="t", prompt="x"),
            ev.ToolStarted(tool_use_id="u", name="read_image", input={}),
            ev.ToolFinished(tool_use_id="u", is_error=False, content=tuple(found), duration_ms=1),
            finished("t"),
        ]

    session = write_session(tmp_path / "sessions", past)
    done = export(session, tmp_path / "a.html")
    page = check_page(done.path.read_text())
    assert [tag for tag, _ in page.tags].count("img") == 1
    assert done.left_out == ("3 pictures of an unknown kind were left out.",)
    beside = export(session, tmp_path / "a.md")
    assert [path.suffix for path in beside.files] == [".png"]


# -- the rules, one by one -----------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        "<",
        ">",
        "`",
        "``",
        "```",
        "~~~",
        "[",
        "]",
        "(",
        ")",
        "!",
        "](",
        "[x](",
        "[x]:",
        "\\",
        "\n",
        "\n\n",
        "|",
        "---",
        "#",
        ">",
        "-",
        "1.",
        "*",
        "**",
        "_",
        "&",
        "&lt;",
        ":",
        "javascript:",
        "http://a.b",
        "mailto:",
        "<b>",
        "<!--",
        "-->",
        "<script>",
        "</",
        "$",
        "{=html}",
        "'",
        '"',
        "=",
        "+",
        "a",
        "b",
    ]
) | st.sampled_from(["\n", "\n\n", "    ", "  \n", "\n```\n", "\n> ", "\n- "])
MESSES = st.lists(PIECES, max_size=25).map("".join)
FAST = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@FAST
@given(MESSES)
def test_any_mess_as_markdown(text: str) -> None:
    made = safe_markdown(clean(text))
    check_markdown(f"{made}\n\n# after\n")
    tokens = _reader().parse(f"{made}\n\n# after\n")
    assert [token.type for token in tokens[-3:]] == ["heading_open", "inline", "heading_close"]
    assert tokens[-3].level == 0


@FAST
@given(MESSES)
def test_any_mess_as_a_page(text: str) -> None:
    page = answer(text)
    check_page(page)
    assert clean(page) == page
    assert Seen(code(text, "html")).text.rstrip("\n") == text.rstrip("\n")


def shown(markdown: str) -> str:
    """The text that Markdown shows, without its blocks."""
    out = []
    for token in _reader().parse(markdown):
        if token.type == "fence":
            out.append(token.content)
        elif token.type == "inline":
            for child in token.children or ():
                assert child.type in ("text", "softbreak", "hardbreak", "text_special"), child.type
                out.append(child.content if child.type.startswith("text") else "\n")
            out.append("\n")
    return "".join(out)


@FAST
@given(MESSES)
def test_words_are_shown_to_the_letter(text: str) -> None:
    def lines(value: str) -> list[str]:
        return [line.strip() for line in value.splitlines() if line.strip()]

    assert lines(shown(quote(text))) == lines(text)
    line = " ".join(text.split())
    assert shown(f"# {escape(line)}").strip() == line


@FAST
@given(MESSES)
def test_code_is_shown_to_the_letter(text: str) -> None:
    (block,) = _reader().parse(fence(text, "text"))
    assert block.content == text.removesuffix("\n") + "\n"
    paragraph = _reader().parse(f"a {code_span(text)} b")[1]
    spans = [child for child in paragraph.children or () if child.type == "code_inline"]
    assert [span.content.strip() for span in spans] == [" ".join(text.split())]


@pytest.mark.parametrize(
    "text",
    [
        "plain **bold** *em* ~~no~~ `code <b>` and a < b, a <= b, 1 <2",
        "[a link](https://example.org) <https://example.org> [mail](mailto:a@b.example)",
        "# head\n\n- a\n- b\n  - c\n\n1. x\n\n> quote\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n---\n\nend",
        "```python\nprint('<script>')\n```",
        "    indented <b>\n\ntext",
        "wow! [1] x! [y]",
        '[x][ref]\n\n[ref]: https://example.org "title"',
        "$a<1$ and 3 \\* 4",
    ],
)
def test_markdown_without_harm_stays_as_it_is(text: str) -> None:
    assert safe_markdown(text) == text


def test_what_is_open_is_closed() -> None:
    assert safe_markdown("see\n```python\nx = 1") == "see\n```python\nx = 1\n```"
    assert safe_markdown("~~~~\nx") == "~~~~\nx\n~~~~"


def test_a_table_keeps_its_cells(session: Path) -> None:
    from sandbox_chat.journal.export.markdown import table as markdown_table

    tokens = _reader().parse(markdown_table(table()))
    cells = [token.content for token in tokens if token.type == "inline"]
    assert len(cells) == 9
    assert "".join(child.content for child in tokens[-5].children or ()) in ("-", "a|b", "1", "")
