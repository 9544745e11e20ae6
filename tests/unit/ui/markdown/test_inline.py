"""Inline Markdown: the short way reads what the reference reads, and growing makes no difference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sandbox_chat.ui.markdown import inline, reference
from sandbox_chat.ui.markdown.inline import GrowingInline, inline_runs, read, runs_of
from sandbox_chat.ui.markdown.marks import Odd, Scan
from sandbox_chat.ui.markdown.reference import reference_nodes
from sandbox_chat.ui.transcript.cells import Run

DATA = Path(__file__).parents[3] / "data"


def contents() -> list[tuple[str, dict[str, Any]]]:
    """Return the inline content of all examples, with their link definitions."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    out = []
    for name in ("commonmark_examples.json", "markdown_it_examples.json"):
        for source in json.loads((DATA / name).read_text(encoding="utf-8")):
            env: dict[str, Any] = {}
            tokens = parser.parse(source, env)
            out += [(token.content, env.get("references", {})) for token in tokens if token.type == "inline"]
    return out


CONTENTS = contents()
TALK = [
    "The **half-life** of `sin(x)` is *about* 2.08 s — see [the docs](https://docs.python.org/3/library/math.html).",
    "Use `df['a']` or `df.loc[0]`, then `a_b_c` and snake_case_name; ~~old~~ **new *and* more**.",
    "Energy is $E = mc^2$, momentum \\(p = m*v*w\\) and $$\\sum_{i=1}^n x_i * y_i$$ but it costs $5 and *more* for $6.",
    "Footnote[^1] and array[i][j], a < b && c > d, AT&amp;T, <b>bold</b>, <https://x.org/a_b>, me@example.org.",
    "**Note:** a 5*3*2 box, 2 * 3, *a*b, __init__.py, `` a`b ``, ![alt text](img.png \"t\") and www.example.org/x).",
    "1. **First** – do *this*\nSecond line  \nthird\\\nfourth [x](y) [z] (q) [a [b] c](u) **bold [link](http://z)**.",
    "中文**加粗**，*斜体*与`代码`，见[链接](https://例子.org/路径)。「**你好**」世界。",
    "[![badge](https://img/x.svg)](https://ci) **unclosed and *open `code ~~x [l](http://part",
]  # fmt: skip


def merged(runs: Any) -> list[tuple[str, tuple[str, ...], str]]:
    out: list[tuple[str, tuple[str, ...], str]] = []
    for run in runs:
        if out and out[-1][1:] == (run.names, run.href):
            out[-1] = (out[-1][0] + run.text, run.names, run.href)
        else:
            out.append((run.text, run.names, run.href))
    return out


def same(text: str, references: dict[str, Any] | None = None) -> bool:
    """Check the short way against the reference; tell whether the short way was taken."""
    try:
        fast = Scan(text, references).nodes
    except Odd:
        return False
    assert merged(runs_of(fast)) == merged(runs_of(reference_nodes(text, references)))
    return True


def test_the_short_way_reads_the_examples_as_the_reference_does() -> None:
    taken = sum(same(text, references) for text, references in CONTENTS)
    assert taken > len(CONTENTS) * 0.85


def test_formulas_change_nothing_in_the_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = MarkdownIt("commonmark").enable(["strikethrough"])
    ours = [reference_nodes(*content) for content in CONTENTS]
    monkeypatch.setattr(reference, "reference_parser", lambda: plain)
    assert ours == [reference_nodes(*content) for content in CONTENTS]


@pytest.mark.parametrize("text", TALK)
def test_what_models_write_is_read_as_the_reference_reads_it(text: str) -> None:
    for start in range(0, len(text), 3):
        same(text[: len(text) - start])
        same(text[start:])


TOKENS = [
    "*", "**", "***", "_", "__", "~~", "~", "`", "``", "[", "]", "](", "](u)", "(", ")", "![", "<", ">", "<b>", "<a b='", "&",
    "&amp;", "&#x41;", "\\", "\\*", "$", "$$", "\\(", "\\)", "\n", "  \n", " ", " ", "a", "b c", "1", "é", "世", "，", ".", "!",
    "\"", "'", "[r]", "[^1]", "http://x.org/a_b", "www.x.org", "a@b.org", "<http://x>", "x_y", "—", "\t", "\u00a0",
]  # fmt: skip
REFERENCES = {"R": {"href": "/r", "title": ""}, "A": {"href": "/a", "title": ""}}


@settings(max_examples=600, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=16), st.booleans())
@example(["[", "[r]", "](u)"], True)
@example(["***a*", "www.x.org", "*"], False)
def test_the_short_way_is_an_exact_subset(tokens: list[str], defined: bool) -> None:
    same("".join(tokens).strip(), REFERENCES if defined else None)


def test_common_forms_take_the_short_way() -> None:
    assert [same(text) for text in TALK[:7]] == [True] * 7


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([*TOKENS, *[" word"] * 20, *[". "] * 6]), max_size=40),
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
    st.booleans(),
)
@example(["a *b", " word", " word", "*", " word"], [1], False)
def test_growing_ends_as_reading_at_once(tokens: list[str], sizes: list[int], defined: bool) -> None:
    text = "".join(tokens).strip()
    references = REFERENCES if defined else None
    growing = GrowingInline((), references)
    at = step = 0
    before: list[Run] = []
    while at < len(text):
        at += sizes[step % len(sizes)]
        step += 1
        kept = growing.update(text[:at], closed=False)
        assert "".join(run.text for run in before)[:kept] == growing.plain[:kept]
        before = list(growing.runs)
    growing.update(text, closed=True)
    assert merged(growing.runs) == merged(runs_of(read(text, references)))
    assert all(growing.plain[run.at :].startswith(run.text) for run in growing.runs)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([*TOKENS, *[" word"] * 30]), max_size=40),
    st.lists(st.sampled_from(TOKENS), max_size=14),
)
def test_what_is_settled_is_read_the_same_whatever_follows(head: list[str], tail: list[str]) -> None:
    text = "".join(head).strip()
    size = Scan(text, partial=True).settled()
    first = runs_of(read(text[:size]))
    rest = runs_of(read((text[size:] + "".join(tail)).rstrip()))
    whole = runs_of(read((text + "".join(tail)).rstrip()))
    assert merged([*first, *rest]) == merged(whole)


def test_a_long_open_paragraph_is_read_only_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(
        inline,
        "Scan",
        lambda text, *args, **keys: (seen.append(len(text)), Scan(text, *args, **keys))[1],
    )
    growing = GrowingInline()
    text = "The **bold** word and `code` [link](http://x.org), *soft* text and 5*3. " * 200
    for end in range(0, len(text), 50):
        growing.update(text[:end], closed=False)
    assert max(seen) < 400
    seen.clear()
    growing.update(text, closed=True)
    assert max(seen) < 400


def test_what_stays_open_too_long_is_read_again_at_the_end() -> None:
    text = "start *open " + "word " * 1200 + "end* done"
    growing = GrowingInline()
    for end in range(0, len(text), 200):
        growing.update(text[:end], closed=False)
    growing.update(text, closed=True)
    assert merged(growing.runs) == merged(runs_of(read(text)))
    assert ("emphasis",) in [run.names for run in growing.runs]


def shown(text: str) -> list[tuple[str, tuple[str, ...], str]]:
    growing = GrowingInline()
    growing.update(text, closed=False)
    return merged(growing.runs)


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("some **bold", [("some ", ()), ("bold", ("strong",))]),
        ("some **", [("some ", ())]),
        ("some **bold*", [("some ", ()), ("bold", ("strong",))]),
        ("a `code", [("a ", ()), ("code", ("code",))]),
        ("a `", [("a ", ())]),
        ("a ~~x", [("a ", ()), ("x", ("strike",))]),
        ("see [link](http://x", [("see ", ()), ("link", ("link",))]),
        ("see [**link**](ht", [("see ", ()), ("link", ("link", "strong"))]),
        ("2 * 3", [("2 * 3", ())]),
        ("2*3", [("2*3", ())]),
        ("*em*", [("em", ("emphasis",))]),
        ("*a **b", [("a ", ("emphasis",)), ("b", ("emphasis", "strong"))]),
        ("***b", [("b", ("strong", "emphasis"))]),
        ("**done** and", [("done", ("strong",)), (" and", ())]),
        ("a\\*b", [("a*b", ())]),
        ("`a*b` c", [("a*b", ("code",)), (" c", ())]),
        ("plain", [("plain", ())]),
        ("中文**加", [("中文", ()), ("加", ("strong",))]),
        ("\\(p = m*v*w", [("\\(p = m*v*w", ())]),
        ("$$x_1 *y* z", [("$$x_1 *y* z", ())]),
        ("see [x](u \"ti", [("see ", ()), ("x", ("link",))]),
    ],
)  # fmt: skip
def test_what_is_open_is_shown_as_it_will_probably_be(text: str, runs: list[Any]) -> None:
    got = [(part, set(names)) for part, names, _ in shown(text)]
    assert got == [(part, set(names)) for part, names in runs]


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("see https://x.org/a_b(c)).", ["https://x.org/a_b(c)"]),
        ("请看https://x.org/y，好", ["https://x.org/y"]),
        ("(www.x.org/y) www.", ["http://www.x.org/y"]),
        ("me@x.org, a.b+c@d-e.org. @x a@b", ["mailto:me@x.org", "mailto:a.b+c@d-e.org"]),
        ("xhttp://no https://", []),
        ("[a](https://x.org/y) https://z.org/q. [b](javascript:alert(1))", ["https://x.org/y", "https://z.org/q"]),
        ("`https://x.org`", []),
        ("https://x.org/?a=1&amp;b=2", ["https://x.org/?a=1&b=2"]),
        ("![pic](p.png)", ["p.png"]),
    ],
)  # fmt: skip
def test_links(text: str, links: list[str]) -> None:
    assert [run.href for run in inline_runs(text) if run.href] == links


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("$a*b*c$", "$a*b*c$"),
        ("$$x_1 * y_2 * z$$", "$$x_1 * y_2 * z$$"),
        ("\\(a*b*c\\) and \\[x_i*y*z\\]", "\\(a*b*c\\) and \\[x_i*y*z\\]"),
        ("costs $5 and *more* for $6", "costs $5 and more for $6"),
        ("\\[not a link\\]", "[not a link]"),
        ("$HOME and *x* $PATH", "$HOME and x $PATH"),
    ],
)
def test_formulas_stay_text(text: str, kept: str) -> None:
    assert "".join(run.text for run in inline_runs(text)) == kept


def test_references_of_footnotes_have_a_style() -> None:
    assert merged(inline_runs("a[^1] b")) == [("a", (), ""), ("[^1]", ("footnote",), ""), (" b", (), "")]


def test_character_references_bring_no_control_characters_back() -> None:
    for text in (
        "a&#27;[2J &#x202e; &#x9b; &#0; &#13;b `&#27;`",
        "[a&#27;](http://x/&#x202e;y&#27;) ![&#x202e;](&#7;)",
    ):
        for runs in (inline_runs(text), runs_of(reference_nodes(text))):
            out = "".join(run.text + run.href for run in runs)
            assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c == "\u202e" for c in out)
    assert "<U+202E>" in "".join(run.text for run in inline_runs("&#x202e;"))


@pytest.mark.parametrize("hostile", ["[", "![", "*", "_a", "`", "``` `` `", "<", "<a ", "&", "$", "\\(", "[a](", "a@", "~~", "[^", "[a](b"])  # fmt: skip
def test_long_runs_of_marks_are_read_in_reasonable_steps(hostile: str) -> None:
    text = hostile * (4_000 // len(hostile))
    growing = GrowingInline()
    for end in range(0, len(text), 400):
        growing.update(text[:end], closed=False)
    growing.update(text, closed=True)
    assert growing.plain


@pytest.mark.parametrize("token", ["<EMAIL:k3f7qz27ab>", "<IP:abcdefghij>", "<CN_ID:2345672345>"])
def test_tokens_of_personal_data_are_no_addresses(token: str) -> None:
    text = f"to {token}, and [x *{token}*](https://a.example)"
    for runs in (inline_runs(text), runs_of(reference_nodes(text))):
        assert "".join(run.text for run in runs) == f"to {token}, and x {token}"
        assert {run.href for run in runs} == {"", "https://a.example"}
    assert "".join(run.text for run in inline_runs("<mailto:ann@example.org>")) == "mailto:ann@example.org"
