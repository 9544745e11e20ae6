"""Highlighting of code that grows, and its rows."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.ui.markdown import code as code_module
from sandbox_chat.ui.markdown import highlight as highlight_module
from sandbox_chat.ui.markdown.code import AT_ONCE, MARK, CodeLayout, CodeRows
from sandbox_chat.ui.markdown.highlight import MAX_HIGHLIGHT, Lexing, highlight, lexer_for
from sandbox_chat.ui.transcript.cells import Row, Run, expand_tabs, row_width

SOURCE = (
    '"""Doc\nof two lines."""\n\nimport os\n\n\nclass A:\n    def f(self):\n        return """x\n  y"""\n' * 8
)


def texts(rows: Sequence[Row]) -> list[str]:
    return ["".join(run.text for run in row) for row in rows]


def styles(rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    return {run.text: run.names for row in rows for run in row}


def test_lines_are_kept_one_to_one() -> None:
    for text in ("", "x", "x\n", "\n\nx\n\n", SOURCE):
        lines = highlight(text, "python")
        assert ["".join(run.text for run in line) for line in lines] == text.split("\n")


def test_growing_code_ends_like_whole_code() -> None:
    grown, whole = CodeRows("python"), CodeRows("python")
    for end in range(0, len(SOURCE), 37):
        grown.update(SOURCE[:end], closed=False)
        assert "".join(texts(grown.rows(60))).split() == SOURCE[:end].replace("\n", "").split()
    grown.update(SOURCE)
    whole.update(SOURCE)
    grown.settle()
    whole.settle()
    assert list(grown.rows(60)) == list(whole.rows(60))


@pytest.mark.parametrize(
    ("language", "source", "shown"),
    [
        ("python", 'x = """one\ntwo def\n"""\ny = 1\n', {"two def": "tok-string", "1": "tok-number"}),
        ("javascript", "let s = `one\ntwo if\n`;\nlet y = 1;\n", {"two if": "tok-string", "1": "tok-number"}),
        ("javascript", "/* one\nif two */\nlet y = 1;\n", {"if two */": "tok-comment", "1": "tok-number"}),
        ("c", "/* one\nif two */\nint y = 1;\n", {"if two */": "tok-comment", "1": "tok-number"}),
        ("html", "<!-- one\nif two -->\n<b>x</b>\n", {"if two ": "tok-comment"}),
        ("sql", "select /* one\nfrom two */ 1\n", {"from two */": "tok-comment", "1": "tok-number"}),
        ("json", '{"a": 1,\n"b": true}\n', {"true": "tok-constant"}),
    ],
)
def test_what_reaches_over_lines_is_coloured_while_it_comes(
    language: str, source: str, shown: dict[str, str]
) -> None:
    rows = CodeRows(language)
    for end in range(len(source) + 1):
        rows.update(source[:end], closed=False)
    found = styles(rows.rows(80))
    for text, name in shown.items():
        assert next((names for part, names in found.items() if text.strip() in part), None) == (name,), found


def test_each_line_is_lexed_once_while_code_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = Lexing.add
    monkeypatch.setattr(Lexing, "add", lambda self, lines: (seen.extend(lines), real(self, lines))[1])
    rows = CodeRows("python")
    source = "value = compute(1, 2)\n" * 600
    for end in range(0, len(source), 500):
        rows.update(source[:end], closed=False)
    assert len(seen) <= 600


def test_short_closed_code_is_lexed_as_a_whole_only_when_its_rows_are_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    real = code_module.highlight
    monkeypatch.setattr(
        code_module, "highlight", lambda text, lang: (seen.append(len(text)), real(text, lang))[1]
    )
    rows = CodeRows("python")
    rows.update("\n\n" + SOURCE)
    assert rows.line_count == SOURCE.count("\n") + 2
    assert "".join(run.text for run in rows.head()) == '"""Doc'
    assert seen == [len('"""Doc')]
    assert len(rows.rows(60)) == rows.line_count
    assert seen[1:] == [len(SOURCE) + 1]


def test_long_closed_code_is_lexed_in_a_thread() -> None:
    done: list[int] = []
    rows = CodeRows("python", ready=lambda: done.append(1))
    source = "x = 1\n'''\n" + "y = 2\n" * AT_ONCE + "'''\nz = 3\n"
    rows.update(source)
    first = rows.rows(40)
    assert len(first) == rows.line_count
    assert rows.pending
    assert texts(first[:3]) == ["x = 1", "'''", "y = 2"]
    rows.settle()
    assert done == [1]
    assert not rows.pending
    assert styles(rows.rows(40)[100:101]) == {"y = 2": ("tok-string",)}
    assert rows.take_changed() < 200


def test_behind_the_limit_code_is_plain() -> None:
    text = "x = 1\n" * 40_000
    lines = highlight(text, "python")
    assert len(lines) == 40_001
    assert any(run.names for run in lines[0])
    assert not any(run.names for line in lines[MAX_HIGHLIGHT // 6 + 1 :] for run in line)


def test_one_long_line_is_not_lexed_while_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = CodeRows("python")
    text = "x = [" + "1, " * 20_000 + "]\n"
    rows.update(text, closed=False)
    monkeypatch.setattr(highlight_module.Lexing, "_run", None)
    shown = rows.rows(80)
    assert "".join(texts(shown)) == text.rstrip("\n")
    assert all(row_width(row) <= 80 for row in shown)


def test_only_what_is_asked_for_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = CodeRows("")
    rows.update("\n".join(f"line {number} 你好" for number in range(10_000)))
    seen: list[int] = []
    real = code_module.wrap_code
    monkeypatch.setattr(code_module, "wrap_code", lambda runs, width: (seen.append(1), real(runs, width))[1])
    shown = rows.rows(60)
    assert len(shown) == 10_000
    assert texts(shown[-2:]) == ["line 9998 你好", "line 9999 你好"]
    assert len(seen) == 2


@pytest.mark.parametrize("width", [2, 3, 7, 10, 80])
def test_rows_fit_and_hold_every_character(width: int) -> None:
    text = "short\n\n" + "你好 world " * 30 + "\n" + "x" * 2_500 + "\n👨\u200d👩\u200d👧 é\u0301 end"
    rows = CodeRows("python")
    rows.update(text)
    shown = rows.rows(width)
    assert "".join(texts(shown)) == text.replace("\n", "")
    assert all(row_width(row) <= width for row in shown)
    assert all(rows.text[run.at :].startswith(run.text) for row in shown for run in row)


def test_rows_on_a_ground_have_a_margin_that_is_not_copied() -> None:
    rows = CodeRows("python")
    rows.update("def f():\n\treturn 1")
    layout = CodeLayout(rows, 20, block=True)
    layout.update(0)
    assert texts(layout) == [" def f():", "     return 1"]
    assert all("block" in run.names for row in layout for run in row)
    assert [row[0].at for row in layout] == [-1, -1]
    copied = {run.at: run.text for row in layout for run in row if run.at >= 0}
    assert all(rows.text[at:].startswith(text) for at, text in copied.items())


def test_the_tail_is_the_last_rows_that_hold_something() -> None:
    rows = CodeRows("python")
    rows.update("a = 1\n\nb = 2\n\nc = 3 + 4\n\n", closed=False)
    assert texts(rows.tail(20, 2)) == ["b = 2", "c = 3 + 4"]
    assert texts(rows.tail(20, 9)) == ["a = 1", "b = 2", "c = 3 + 4"]


def test_a_line_that_has_not_begun_takes_no_row() -> None:
    rows = CodeRows("")
    rows.update("a\n", closed=False)
    assert texts(rows.rows(10)) == ["a"]
    rows.update("a\nb", closed=False)
    assert texts(rows.rows(10)) == ["a", "b"]


def test_marked_lines_are_shown_over_the_whole_width() -> None:
    rows = CodeRows("python")
    rows.update("a = 1\nb = 2\n" + "c" * 3_000)
    rows.marked = frozenset({2, 3})
    shown = rows.rows(20)
    assert not any(MARK in run.names for run in shown[0])
    assert all(MARK in run.names for row in shown[1:] for run in row)
    assert row_width(shown[1]) == row_width(shown[-1]) == 20
    assert shown[1][-1].at == -1


def test_other_text_starts_afresh() -> None:
    rows = CodeRows("python")
    rows.update("aaa\nbbb\n", closed=False)
    rows.rows(20)
    rows.update("x", closed=False)
    assert texts(rows.rows(20)) == ["x"]


def test_closed_code_may_be_taken_back() -> None:
    rows = CodeRows("python")
    rows.update("aaa\n", closed=True)
    rows.rows(20)
    rows.update("aaa\nbb", closed=False)
    assert texts(rows.rows(20)) == ["aaa", "bb"]


def test_unknown_and_odd_languages_are_plain() -> None:
    for name in ("no-such-language", "", "text", "a" * 100, "../../etc/passwd", "py thon"):
        assert lexer_for(name) is None


def test_code_is_cleaned() -> None:
    rows = CodeRows("python")
    for closed in (False, True):
        rows.update("print('\x1b[2J\u202e')\r\nx\r", closed=closed)
        text = "".join(texts(rows.rows(60)))
        assert not {"\x1b", "\u202e", "\r"} & set(text)


@pytest.mark.parametrize(
    "language", ["yaml", "ruby", "php", "css", "rust", "go", "toml", "diff", "console", "html+jinja"]
)
def test_lexers_of_all_kinds_go_on_line_by_line(language: str) -> None:
    source = "a: 1\n# b\n<?php echo 'x'; ?>\n- c\n+ d\n$ ls\n\n  e = \"f\"\n" * 3
    rows = CodeRows(language)
    for end in range(0, len(source) + 1, 5):
        rows.update(source[:end], closed=False)
    rows.update(source, closed=False)
    assert texts(rows.rows(80)) == source.rstrip("\n").split("\n")
    assert [Run] * 3 == [type(run) for row in rows.rows(80)[:3] for run in row][:3]


ODD_CODE = [("java", "a " * 4000), ("autoit", " " * 7000), ("cfengine3", "a." * 3900)]
"""Code that takes these lexers seconds: they look through the rest of the line at each of its characters."""


@pytest.mark.parametrize(("language", "code"), ODD_CODE)
def test_a_lexer_that_is_slow_is_stopped_and_the_rest_is_plain(language: str, code: str) -> None:
    lexer_for(language)
    begun = time.thread_time()
    lines = highlight(code + "\nb c", language)
    lexing = Lexing(language)
    grown = [line for _ in range(3) for line in lexing.add([code])]
    assert time.thread_time() - begun < 0.8
    assert ["".join(run.text for run in line) for line in lines] == [code, "b c"]
    assert ["".join(run.text for run in line) for line in grown] == [code] * 3


def test_the_program_ends_while_a_lexer_works() -> None:
    program = (
        "import time\nfrom sandbox_chat.ui.markdown import code\n"
        "code.highlight = lambda *_: time.sleep(60)\n"
        "rows = code.CodeRows('python')\nrows.update('x = 1\\n' * 1000)\nrows.rows(40)\nassert rows.pending"
    )
    subprocess.run([sys.executable, "-c", program], timeout=20, check=True)


def test_what_is_copied_has_its_tabs() -> None:
    code = CodeRows("make")
    code.update("all: a\tb\n\tcc -o x x.c\n\n\tend\n")
    assert code.text == "all: a  b\n    cc -o x x.c\n\n    end"
    assert code.source(0, 1 << 60) == "all: a\tb\n\tcc -o x x.c\n\n\tend"
    second = code.text.index("\n") + 1
    assert code.source(second + 4, second + 6) == "cc"
    assert code.source(second + 3, second + 6) == "\tcc"  # one cell of the tab is enough
    assert code.source(second - 1, second + 4) == "\n\t"


@given(st.text("a\t\n漢é ", max_size=30), st.integers(0, 60), st.integers(0, 60))
def test_any_stretch_that_is_copied_shows_what_was_marked(text: str, begin: int, size: int) -> None:
    code = CodeRows("")
    code.update(text)
    whole = code.source(0, 1 << 60)
    assert expand_tabs(whole) == code.text
    assert text.startswith(whole)
    begin = min(begin, len(code.text))
    end = min(begin + size, len(code.text))
    copied = code.source(begin, end)
    assert copied in whole
    assert copied.replace("\t", "").replace(" ", "") == code.text[begin:end].replace(" ", "")
    if "\t" not in text:
        assert copied == code.text[begin:end]
