"""Highlighting of code that grows."""

from __future__ import annotations

from sandbox_chat.ui.transcript import code as code_module
from sandbox_chat.ui.transcript.code import CodeRows, highlight, lexer_for
from sandbox_chat.ui.transcript.palette import Palette

PALETTE = Palette()
SOURCE = (
    '"""Doc\nof two lines."""\n\nimport os\n\n\nclass A:\n    def f(self):\n        return """x\n  y"""\n'
    * 30
)


def test_lines_are_kept_one_to_one() -> None:
    for text in ("", "x", "x\n", "\n\nx\n\n", SOURCE):
        lines = highlight(text, "python")
        assert ["".join(run.text for run in line) for line in lines] == text.split("\n")


def test_growing_code_ends_like_whole_code() -> None:
    grown, whole = CodeRows("python"), CodeRows("python")
    for end in range(0, len(SOURCE), 97):
        grown.update(SOURCE[:end], closed=False)
        shown = "\n".join(row.text[1:].rstrip() for row in grown.strips(60, PALETTE))
        assert shown.split() == SOURCE[:end].split()
    grown.update(SOURCE)
    whole.update(SOURCE)
    assert grown.strips(60, PALETTE) == whole.strips(60, PALETTE)


def test_growing_code_is_not_lexed_from_its_beginning(monkeypatch) -> None:
    seen: list[int] = []
    real = code_module.highlight
    monkeypatch.setattr(
        code_module, "highlight", lambda text, lang: (seen.append(len(text)), real(text, lang))[1]
    )
    rows = CodeRows("python")
    source = "value = compute(1, 2)\n" * 600
    for end in range(0, len(source), 500):
        rows.update(source[:end], closed=False)
    assert max(seen) < 6000


def test_closed_code_is_lexed_as_a_whole_only_when_its_rows_are_wanted(monkeypatch) -> None:
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
    assert len(rows.strips(60, PALETTE)) == rows.line_count
    assert seen[1:] == [len(SOURCE) + 1]


def test_the_tail_is_the_last_rows_that_hold_something() -> None:
    rows = CodeRows("python")
    rows.update("a = 1\n\nb = 2\n\nc = 3 + 4\n\n", closed=False)
    assert ["".join(run.text for run in row) for row in rows.tail(20, 2)] == ["b = 2", "c = 3 + 4"]
    assert ["".join(run.text for run in row) for row in rows.tail(20, 9)] == ["a = 1", "b = 2", "c = 3 + 4"]


def test_other_text_starts_afresh() -> None:
    rows = CodeRows("python")
    rows.update("aaa\nbbb\n", closed=False)
    rows.strips(20, PALETTE)
    rows.update("x", closed=False)
    assert [row.text.strip() for row in rows.strips(20, PALETTE)] == ["x"]


def test_unknown_and_odd_languages_are_plain() -> None:
    for name in ("no-such-language", "", "text", "a" * 100, "../../etc/passwd", "py thon"):
        assert lexer_for(name) is None


def test_code_is_cleaned() -> None:
    rows = CodeRows("python")
    rows.update("print('\x1b[2J\u202e')")
    text = rows.strips(60, PALETTE)[0].text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_very_long_code_is_shown_plain() -> None:
    text = "x = 1\n" * 20_000
    assert all(not run.names for line in highlight(text, "python") for run in line)
