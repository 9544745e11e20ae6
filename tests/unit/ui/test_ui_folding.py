"""Lines that are folded where they are seen, and output as lines that change at their end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.ui.calls import Part
from sandbox_chat.ui.folding import FoldedLines
from sandbox_chat.ui.output_lines import OutputLines
from sandbox_chat.ui.transcript.cells import Run, row_width, wrap_code

TEXT = st.text("ab \t你😀é", max_size=30)
PART = st.builds(Part, st.sampled_from(["stdout", "stderr", "note"]), st.text("ab\n", min_size=1, max_size=6))


def texts(lines: list) -> list[str]:
    return ["".join(run.text for run in line) for line in lines]


@given(st.lists(TEXT, max_size=8), st.integers(1, 20), st.integers(1, 20))
def test_rows_are_what_wrapping_all_gives(given_lines: list[str], width: int, other: int) -> None:
    folded = FoldedLines(other)
    folded.replace(0, [[Run(line)] for line in given_lines])
    folded.resize(width)
    rows = [folded.row(index) for index in range(folded.height)]
    assert folded.row(folded.height) is None
    for row in rows:
        assert row is not None and row_width(row.row) <= max(width, 2)
    wanted = sum(
        len(wrap_code([Run(line.expandtabs(4) if line.isascii() else line)], width))
        for line in given_lines
        if "\t" not in line or line.isascii()
    )
    if not any("\t" in line and not line.isascii() for line in given_lines):
        assert folded.height == wanted
    assert folded.text() == "\n".join(given_lines)


def test_only_what_is_asked_for_is_wrapped() -> None:
    folded = FoldedLines(10)
    folded.replace(0, [[Run("x" * 25)] for _ in range(100_000)])
    assert folded.height == 300_000
    assert folded.row(150_001).line == 50_000
    assert len(folded._rows) == 1


def test_copied_text_has_no_ends_of_folded_rows() -> None:
    folded = FoldedLines(4)
    folded.replace(0, [[Run("abcdefgh")], [Run("12")]])
    assert folded.text_between((0, 1), (2, 1)) == "bcdefgh\n1"
    assert folded.text_between((0, 0), (99, 0)) == "abcdefgh\n12"


@given(st.lists(st.lists(PART, max_size=5), max_size=6))
def test_output_is_the_same_however_it_came(states: list[list[Part]]) -> None:
    growing, folded = OutputLines(), FoldedLines(7)
    for parts in states:
        first = growing.update(parts)
        folded.replace(first, growing.lines[first:])
        fresh = OutputLines()
        fresh.update(parts)
        shown = texts(growing.lines)
        assert shown == texts(fresh.lines) or (not parts and not any(shown))
        assert folded.text() == "\n".join(shown)


def test_what_was_there_is_not_made_again() -> None:
    output = OutputLines()
    output.update([Part("stdout", "line\n" * 10_000)])
    before = list(output.lines)
    first = output.update([Part("stdout", "line\n" * 10_000 + "new\n")])
    assert first == 10_000
    assert all(old is new for old, new in zip(before[:-1], output.lines, strict=False))


def test_a_line_that_was_written_over_is_made_again_alone() -> None:
    output = OutputLines()
    output.update([Part("stdout", "a\nb\n"), Part("stderr", "10%")])
    assert output.update([Part("stdout", "a\nb\n"), Part("stderr", "100%")]) == 2
    assert texts(output.lines) == ["a", "b", "100%"]
