"""Tool cards: results, live output, the line that failed, what is copied, and what it costs."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.screen import HOSTILE

from sandbox_chat import events as ev
from sandbox_chat.plain import error_line
from sandbox_chat.ui.transcript import Feed, Scene
from sandbox_chat.ui.transcript import card_face as face
from sandbox_chat.ui.transcript.card import ToolCard
from sandbox_chat.ui.transcript.card_answer import TABLE_ROWS, failing_line, parts_of
from sandbox_chat.ui.transcript.card_live import LiveText
from sandbox_chat.ui.transcript.card_table import summary, table_rows, table_text
from sandbox_chat.ui.transcript.cells import Run, row_width

NAME = "mcp__sandbox__run_code"
TRACEBACK = """\
---------------------------------------------------------------------------
ZeroDivisionError                         Traceback (most recent call last)
Cell In[7], line 5
      3 def f(x):
      4     return 1 / x
----> 5 f(0)

Cell In[7], line 4, in f(x)
      3 def f(x):
----> 4     return 1 / x

ZeroDivisionError: division by zero"""
CODE = "import math\n\ndef f(x):\n    return 1 / x\nf(0)\n"


def card_of(*events: ev.Event, scene: Scene | None = None, code: str = CODE) -> ToolCard:
    feed = Feed(scene or Scene(motion=False))
    feed.apply(ev.ToolStarted(tool_use_id="a", name=NAME, input={"code": code}))
    for event in events:
        feed.apply(event)
    return feed.cards["a"]


def done(*content: ev.Content, failed: bool = False) -> ev.ToolFinished:
    return ev.ToolFinished(tool_use_id="a", is_error=failed, content=content, duration_ms=5)


def output(text: str, **more: object) -> ev.ToolOutput:
    return ev.ToolOutput(**{"tool_use_id": "a", "stream": "stdout", "text": text, **more})


def lines(card: ToolCard, width: int = 70) -> list[str]:
    return [strip.text.rstrip() for strip in card.rows(width)]


def failed_text(traceback: str = TRACEBACK) -> ev.TextContent:
    error = traceback.splitlines()[-1]
    return ev.TextContent(f"[success] False\n[error]\n{error}\n[traceback]\n{traceback}")


def texts_of_rows(card: ToolCard, width: int) -> dict[int, list[Run]]:
    """The runs of all rows that can be copied, by the part that they show."""
    found: dict[int, list[Run]] = {}
    for row in range(card.height(width)):
        source = card.row_source(width, row)
        if source is not None:
            found.setdefault(source[0], []).extend(run for run in source[1] if run.at >= 0)
    return found


# -- the line that failed ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("traceback", "line"),
    [
        (TRACEBACK, 4),
        ("Cell In[9], line 2\n----> 2 g()\n\nCell In[3], line 7, in g()\n----> 7 boom\n\nNameError: boom", 2),
        ("  Cell In[2], line 3\n    1 +\n       ^\nSyntaxError: invalid syntax", 3),
        ('Traceback (most recent call last):\n  File "<ipython-input-4-abc>", line 6, in <module>\nKeyError: 1', 6),
        (
            "Cell In[1], line 2\n----> 2 a\n\nKeyError: 1\n\nDuring handling of the above exception, another exception "
            "occurred:\n\nCell In[1], line 4\n----> 4 b\n\nValueError: 2",
            4,
        ),
        (
            '  + Exception Group Traceback (most recent call last):\n  |   File "<ipython-input-9-92d>", line 2, in <module>\n'
            '  | ExceptionGroup: eg (1 sub-exception)\n  +-+---------------- 1 ----------------\n    |   File '
            '"<ipython-input-9-92d>", line 7, in f\n    | ValueError: 1\n    +------------------------------------',
            2,
        ),
        ("ValueError: Cell In[1], line 3", 0),
        ("", 0),
    ],
)  # fmt: skip
def test_the_line_that_failed(traceback: str, line: int) -> None:
    content = (ev.TextContent(f"[success] False\n[error]\nx\n[traceback]\n{traceback}"),)
    assert failing_line(content) == line


@pytest.mark.parametrize(
    ("error", "traceback", "shown", "apart"),
    [
        ("ValueError: a\nb\nc", "Cell In[1], line 1\n\nValueError: a\nb\nc", "ValueError: a", False),
        ("AssertionError", "Cell In[1], line 1\n\nAssertionError: ", "AssertionError", False),
        ("ExceptionGroup: eg", "  | ExceptionGroup: eg\n  +-+---\n    | E: 1\n    +----", "ExceptionGroup: eg", True),
        ("SyntaxError: bad (<x>, line 1)", "    1 +\n\nSyntaxError: bad", "SyntaxError: bad", True),
        ("KeyError: 1", "SubKeyError: 1", "KeyError: 1", True),
    ],
)  # fmt: skip
def test_an_error_is_named_by_its_first_line_and_said_once(
    error: str, traceback: str, shown: str, apart: bool
) -> None:
    content = (ev.TextContent(f"[success] False\n[error]\n{error}\n[traceback]\n{traceback}"),)
    assert error_line(content) == shown
    assert [part.name for part in parts_of(content, None)] == ["error", "traceback"][not apart :]


def test_a_folded_card_shows_the_line_that_failed_and_the_error() -> None:
    card = card_of(done(failed_text(), failed=True))
    assert lines(card)[1].startswith("  import math …")
    assert lines(card)[2:] == ["  4 return 1 / x", "  ZeroDivisionError: division by zero"]
    source = card.row_source(70, 2)
    assert source is not None
    assert ("code-mark" in source[1][2].names, source[1][2].text) == (True, "return 1 / x")


def test_an_opened_card_marks_the_line_in_the_code_and_in_the_traceback() -> None:
    card = card_of(done(failed_text(), failed=True))
    card.expand()
    marked = []
    for row in range(card.height(70)):
        source = card.row_source(70, row)
        if source is not None and any("code-mark" in run.names for run in source[1]):
            marked.append("".join(run.text for run in source[1]).strip(" │"))
    assert marked == ["return 1 / x", "----> 5 f(0)", "----> 4     return 1 / x"]
    assert lines(card).count("  │ ZeroDivisionError: division by zero") == 1  # not said twice


# -- results -----------------------------------------------------------------------------------------------


def table(rows: int = 3, columns: int = 3, **more: object) -> ev.TableContent:
    names = ("", *(f"column {number}" for number in range(columns)))
    body = tuple((str(row), *(f"{row}.{column}" for column in range(columns))) for row in range(rows))
    return ev.TableContent(
        **{"columns": names, "rows": body, "row_count": rows, "column_count": columns, **more}
    )


def test_a_data_frame_is_seen_on_a_folded_card_and_takes_the_place_of_its_text() -> None:
    text = ev.TextContent("[success] True\n[result]\n   column 0\n0  0.0")
    card = card_of(done(text, table(20, result=True)))
    shown = lines(card)
    assert "  0 │      0.0 │      0.1 │      0.2" in shown
    assert shown[-1] == f"  20 rows × 3 columns · … {20 - TABLE_ROWS} more rows"
    card.expand()
    shown = lines(card)
    assert shown[-1] == "  20 rows × 3 columns"
    assert "  result" not in shown
    card = card_of(done(text, table(2)))  # displayed, and another value as the result
    card.expand()
    assert "  result" in lines(card)


def test_other_results_are_a_line() -> None:
    page = ev.FileContent("/s/p.html", "text/html", 1_234_567, "plotly figure")
    card = card_of(done(ev.TextContent("[success] True"), page))
    assert lines(card)[-1] == "  ▣ plotly figure · 1.2 MB · o open  s save"
    assert card.path == "/s/p.html"
    assert {"open", "save", "rerun", "edit", "page"} <= set(card.commands)
    whole = ev.FileContent("/s/a.txt", "text/plain", 10_000_000, "whole output")
    card = card_of(done(ev.TextContent("[success] True\n[stdout]\nx"), whole))
    assert lines(card)[-1] == "  ▣ whole output · 10 MB · p page  s save"


@given(
    st.lists(
        st.lists(st.text("ab你😀\u0301 .1-", max_size=40), min_size=1, max_size=6), min_size=1, max_size=5
    ),
    st.integers(1, 90),
)
def test_tables_never_stick_out_and_can_be_copied(cells: list[list[str]], width: int) -> None:
    count = max(map(len, cells))
    rows = tuple((*row, *[""] * (count - len(row))) for row in cells)
    content = ev.TableContent(rows[0], rows[1:], 1000, 70)
    text = table_text(content)
    for row in table_rows(content, width, 10):
        assert row_width(row) <= max(width, 2)
        for run in row:
            shown = run.text.removesuffix("…")  # where it was cut
            assert run.at < 0 or text[run.at : run.at + len(shown)] == shown


def test_wide_tables_say_what_is_left_out() -> None:
    rows = ["".join(run.text for run in row) for row in table_rows(table(2, 30), 60, 10)]
    assert rows[0].endswith("…")
    assert rows[-1] == "2 rows × 30 columns · … 25 more columns"


@pytest.mark.parametrize(
    ("columns", "count"), [(("", "", " "), 2), (("", "", "a"), 2), (("",), 1), (("", ""), 2), (("a", ""), 2)]
)
def test_columns_without_names_are_columns(columns: tuple[str, ...], count: int) -> None:
    content = ev.TableContent(columns, (("1",) * len(columns),), 1, count)
    assert summary(content, 10, len(columns)) == f"1 rows × {count} columns"


# -- live output -------------------------------------------------------------------------------------------


def test_a_progress_line_is_one_line() -> None:  # case T5
    card = card_of(output("start\n"), output("10%"), output("20%", rewind=3), output("100%", rewind=3))
    assert lines(card)[-2:] == ["  │ start", "  │ 100%"]


def test_colours_of_output_are_kept_live_and_afterwards() -> None:  # case T5
    coloured = output("ok: done\n", styles=((0, 2, "bold green"),))
    card = card_of(coloured)
    for event in ((), (done(ev.TextContent("[success] True\n[stdout]\nok: done\nshown as text")),)):
        for one in event:
            card.finish("ok", one.content, 5)
            card.expand()
        runs = [run for found in texts_of_rows(card, 70).values() for run in found]
        assert any(run.text == "ok" and run.names[-1] == "ansi:bold green" for run in runs)
    assert lines(card)[-2:] == ["  │ ok: done", "  │ shown as text"]


def test_spaces_of_output_stay() -> None:
    card = card_of(done(ev.TextContent("[success] True\n[stdout]\n    a   b\n\tc\n[result]\n   x\n1  2")))
    card.expand()
    assert lines(card)[-6:] == ["  output", "  │     a   b", "  │     c", "  result", "  │    x", "  │ 1  2"]


def test_output_of_a_call_that_was_cut_off_stays() -> None:
    card = card_of(output("half of it\n"))
    card.stop()
    card.expand()
    assert lines(card)[-1] == "  │ half of it"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["stdout", "stderr"]), st.text("ab\n\t", max_size=9), st.integers(0, 12)
        ),
        max_size=20,
    ),
    st.integers(1, 60),
)  # fmt: skip
def test_live_text_keeps_the_end_and_takes_back_what_is_withdrawn(pieces: list, limit: int) -> None:
    live, plain = LiveText(limit), {"stdout": "", "stderr": ""}
    exact = LiveText(10_000)
    for stream, text, rewind in pieces:
        live.add(stream, text, (), rewind)
        exact.add(stream, text, (), rewind)
        plain[stream] = plain[stream][: max(0, len(plain[stream]) - rewind)] + text
        assert len(live.text()) <= limit
    for stream, text in plain.items():
        assert exact.text(stream) == text
    tail = "".join(piece.text for piece in exact.tail(2))
    assert exact.text().endswith(tail)
    assert "\n".join(exact.text().rstrip("\n").split("\n")[-2:]) == tail.rstrip("\n")


# -- policy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "failed", "opens"),
    [("never", True, False), ("failed", True, True), ("failed", False, False), ("always", False, True)],
)
def test_the_policy_is_applied_when_a_call_ends(policy: str, failed: bool, opens: bool) -> None:
    card = card_of(scene=Scene(motion=False, expand=policy))
    assert not card.expanded
    card.finish("failed" if failed else "ok", (), 1)
    assert card.expanded is opens


def test_what_the_user_chose_is_left_as_it_is() -> None:
    card = card_of(scene=Scene(motion=False, expand="always"))
    card.expand()
    card.collapse()
    card.finish("ok", (), 1)
    assert not card.expanded


# -- copying -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize("width", [12, 40, 90])
def test_rows_tell_where_they_stand_in_the_text(width: int, expanded: bool) -> None:
    page = ev.FileContent("/s/p.html", "text/html", 5, "HTML")
    long = "word " * 60 + "\n\tindented 你好 " + "x" * 200
    text = ev.TextContent(f"{failed_text().text}\n[stdout]\n{long}\n[note] {long}")
    card = card_of(done(text, table(30), page, failed=True), code=CODE + "# " + "long " * 80)
    if expanded:
        card.expand()
    for part, runs in texts_of_rows(card, width).items():
        plain = card.plain(part)
        for run in runs:
            shown = run.text.removesuffix("…")  # where it was cut
            assert plain[run.at : run.at + len(shown)] == shown
    assert card.parts == 1 + len({part for part in range(1, 20) if card.plain(part)})


def test_live_rows_tell_where_they_stand() -> None:
    card = card_of(*(output(f"\tline {number}\n") for number in range(50)))
    for part, runs in texts_of_rows(card, 40).items():
        for run in runs:
            assert card.plain(part)[run.at : run.at + len(run.text)] == run.text


def test_copy_gives_code_and_answer() -> None:
    card = card_of(done(ev.TextContent("[success] True\n[stdout]\n1"), table(1)))
    assert card.text == f"{CODE}\n\n1\n\n\tcolumn 0\tcolumn 1\tcolumn 2\n0\t0.0\t0.1\t0.2"
    assert card.again.startswith("Run this again:\n\n```python\nimport math")
    assert card.suffix == ".py"


# -- cost --------------------------------------------------------------------------------------------------


def test_only_rows_that_are_seen_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    card = card_of(done(ev.TextContent("[success] True")), code="x = 1\n" * 50_000)
    card.expand()
    made: list[int] = []
    real = face.CodeLines.__getitem__

    def counting(self: face.CodeLines, index: int) -> object:
        made.append(index)
        return real(self, index)

    monkeypatch.setattr(face.CodeLines, "__getitem__", counting)
    assert card.height(80) > 50_000
    card.strips(80, 25_000, 25_040)
    assert len(made) == 40
    again = card.strips(80, 25_000, 25_040)
    assert len(made) == 40
    assert again[0] is card.strips(80, 25_000, 25_001)[0]


def test_only_the_header_is_drawn_again_as_time_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    card = card_of(output("a\n"), scene=Scene())
    first = card.rows(80)
    card.scene.tick += 1
    second = card.rows(80)
    assert first[0] is not second[0]
    assert all(old is new for old, new in zip(first[1:], second[1:], strict=True))


def test_code_that_is_shown_whole_is_kept_while_output_comes() -> None:
    card = card_of(output("a\n"))
    card.expand()
    first = card.rows(80)
    card.output("stdout", "b\n")
    second = card.rows(80)
    assert all(first[row] is second[row] for row in range(1, 5))


def test_much_output_costs_only_what_is_kept() -> None:  # case T6
    card = card_of()
    for _ in range(1000):
        card.output("stdout", "x" * 9_999 + "\n")
        card.rows(80)
    assert len(card.output_now.text()) <= 24_000
    assert card.height(80) == 5


# -- to the letter -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_stands_to_the_letter(hostile: str) -> None:  # case T3
    page = ev.FileContent(f"/{hostile}", "text/html", 1, hostile)
    content = (
        ev.TextContent(f"[success] False\n[stdout]\n{hostile}\n[error]\n{hostile}"),
        ev.TableContent((hostile,), ((hostile,),), 1, 1),
        page,
    )
    card = card_of(output(hostile), done(*content, failed=True), code=hostile)
    card.expand()
    shown = "\n".join(lines(card, 100))
    assert shown.count(hostile) >= 6
    assert not any(
        segment.style and "@click" in (segment.style.meta or {})
        for strip in card.rows(100)
        for segment in strip
    )


@pytest.mark.parametrize("width", [0, 1, 2, 3])
def test_no_room_is_no_error(width: int) -> None:
    card = card_of(output("你好 [/\n"), done(failed_text(), table(), failed=True))
    for expanded in (False, True):
        card.expanded = expanded
        card.touch()
        assert all(strip.cell_length == max(width, 2) for strip in card.rows(width))


def test_arguments_in_any_pieces_show_the_code() -> None:
    feed = Feed(Scene(motion=False))
    whole = json.dumps({"code": CODE})
    for at in range(0, len(whole), 3):
        feed.apply(ev.ToolInputDelta(tool_use_id="a", name=NAME, text=whole[at : at + 3]))
    assert feed.cards["a"].code == CODE
    assert "  f(0)" in lines(feed.cards["a"])
