"""Which calls become cells of a notebook: names that code needs, what had run of a failed call, what is missing."""

from __future__ import annotations

import ast
import symtable
import warnings
from pathlib import Path

import nbformat
import pytest
from support.exported import FAILING, REPAIRED, TRACEBACK, called, finished, write_session

from sandbox_chat import events as ev
from sandbox_chat.demo.talk import parse as demo_parse
from sandbox_chat.journal.export import export
from sandbox_chat.journal.export.cells import Plan, plan
from sandbox_chat.journal.export.names import RANDOM, lines_run, names_of, outside_packages, parse
from sandbox_chat.journal.export.scrub import Scrubber
from sandbox_chat.journal.export.story import NEW_SHELL, Story
from sandbox_chat.sandbox.base import Execution
from sandbox_chat.tools.run_code import sections

# -- names ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "needs", "sets"),
    [
        ("x = 1", "", "x"),
        ("y = x + 1", "x", "y"),
        ("x = 1\ny = x + 1", "", "x y"),
        ("x = x + 1", "x", "x"),
        ("x += 1", "x", "x"),
        ("import numpy as np, os.path\nfrom a.b import c as d", "", "np os d"),
        ("def f(a, b=k):\n    global g\n    g = 1\n    z = a\n    return z + h", "k h", "f g"),
        ("def f():\n    return g()\ndef g():\n    return 1", "", "f g"),
        ("class A(B):\n    x = y\n    def m(self):\n        return q", "B y q", "A"),
        ("[i * k for i in items if i]", "k items", ""),
        ("{a: b for a, b in d.items()}", "d", ""),
        ("(n := 5)\nn", "", "n"),
        ("lambda q: q + w", "w", ""),
        ("with open('x') as f:\n    t = f.read()\nt", "", "f t"),
        ("print(len([1]))", "", ""),
        ("a[0] = b\nc.d = 1", "a b c", ""),
        ("%matplotlib inline\n!pip install x\nz = 1\nz?", "", "z"),
        ("files = !ls\nfiles", "", "files"),
        ("%%time\nz = q", "q", "z"),
        ("%%bash\necho $x", "", ""),
        ("await go()", "go", ""),
        ("f'{a} {b!r:>{w}}'", "a b w", ""),
        ("match v:\n    case [p, *rest] if rest:\n        p", "v", ""),
        ("for i, (j, k) in pairs:\n    print(i, j, k, q)", "pairs q", ""),
        ("for a[i] in b:\n    pass", "a i b", ""),
        ("if c:\n    x = 1\nelse:\n    x = 2\nx", "c", "x"),
        ("if c:\n    x = 1\nx", "c x", ""),
        ("try:\n    import x\nexcept ImportError as e:\n    x = e\nx", "", "x"),
        ("try:\n    y = 1\nexcept E:\n    pass\nfinally:\n    z = y", "E y", "z"),
        ("while (n := n - 1):\n    m = n\nm", "n m", "n"),
        ("with a() as b, c(b) as d:\n    e = d\ne", "a c", "b d e"),
    ],
)
def test_names(code: str, needs: str, sets: str) -> None:
    found = names_of(code)
    assert found.needs == set(needs.split())
    assert found.sets == set(sets.split())
    assert not found.unclear


COMPREHENSIONS = [
    ("y = [x for x in range(3)]", "", "y"),
    ("{k: v for k, v in d.items()}", "d", ""),
    ("{x for x in x}", "x", ""),
    ("y = [x for x in z] + [x]", "x z", "y"),
    ("[x for x in z]\nprint(x)", "x z", ""),
    ("x = 1\n[x for x in z]", "z", "x"),
    ("[a + g for a in [b for b in c] if a for d in e]", "c e g", ""),
    ("[lambda: x + g for x in y]", "g y", ""),
    ("[(last := x) for x in y]", "y", "last"),
    ("print(f'{[x for x in y]} {z}', *{x: 1 for x in w})", "w y z", ""),
    ("def f(a):\n    return [b + g for b in a]", "g", "f"),
    ("class A([x for x in y][0]):\n    z = [w for w in u]", "u y", "A"),
    ("if [x for x in y]:\n    pass", "y", ""),
    ("[await x async for x in y]", "y", ""),
]


@pytest.mark.parametrize(("code", "needs", "sets"), COMPREHENSIONS)
def test_names_in_comprehensions(code: str, needs: str, sets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def newer(text: str, *given: str) -> symtable.SymbolTable:
        """Python before 3.12 keeps names of comprehensions apart; a later one does so for generators only."""
        written = [type(node) for node in ast.walk(ast.parse(text))]
        assert not {ast.ListComp, ast.SetComp, ast.DictComp} & {*written}
        return table(text, *given)

    table = symtable.symtable
    monkeypatch.setattr(symtable, "symtable", newer)
    test_names(code, needs, sets)
    assert names_of(code).binds == set(sets.split())


@pytest.mark.parametrize("code", ["'\\d'", "x is 1", "assert (1, 'x')", "1or 2"])
def test_nothing_is_said_of_odd_code(code: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not names_of(code).unclear
        assert demo_parse(code) is not None


def test_names_that_may_be_set() -> None:
    found = names_of("if q:\n    a = 1\nfor i in q:\n    b = i\ntry:\n    c = 1\nexcept E as e:\n    pass")
    assert found.binds >= {"a", "i", "b", "c"}
    assert found.sets == set()


def test_what_is_used_before_it_is_set_for_certain_is_needed() -> None:
    assert "a" in names_of("if q:\n    a = 1\nprint(a)").needs


def test_code_that_cannot_be_read_or_does_not_tell() -> None:
    assert names_of("x = = 1").unclear
    assert names_of("from numpy import *").unclear
    assert parse("x = = 1") is None
    for deep in (
        "(" * 1000,
        "a" + ".b" * 20_000,
        "+".join("a" * 20_000),
        "-" * 5000 + "1",
        "x = [" * 90 + "]" * 90,
    ):
        names_of(deep)
        lines_run(deep, "Cell In[1], line 1\n----> 1 " + deep)


@pytest.mark.parametrize(
    ("code", "touched"),
    [
        ("a.append(1)", "a"),
        ("df['x'] = 1", "df"),
        ("f(a, b=c)", "f a c"),
        ("x.y.z += 1", "x"),
        ("del d[k]", "d"),
        ("print(len(a), sum(b))", ""),
        ("a + b.c", ""),
        ("import plt\nplt.plot(x)", "x"),
        ("np.random.normal()", f"np|{RANDOM}"),
        ("random.random()", f"random|{RANDOM}"),
        ("def f():\n    a.append(1)", ""),
    ],
)
def test_values_that_may_change(code: str, touched: str) -> None:
    assert names_of(code).touches == set(touched.split("|") if "|" in touched else touched.split())


def test_packages() -> None:
    found = names_of(
        "import numpy as np, os, re\nfrom pandas.io import x\nfrom . import y\nimport _a"
    ).modules
    assert outside_packages(found) == ["numpy", "pandas"]


# -- what had run --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "traceback", "lines"),
    [
        (FAILING, TRACEBACK, 2),
        ("x = 1\nf(\n  x,\n)\ny", "Cell In[7], line 2\n      1 x = 1\n----> 2 f(\n      3   x,", 1),
        (
            "def f():\n    1/0\nf()",
            "Cell In[1], line 3\n----> 3 f()\n\nCell In[1], line 2, in f()\n----> 2     1/0",
            2,
        ),
        ("f()", "Cell In[9], line 1\n----> 1 f()\n\nCell In[3], line 7, in f()\n      7 boom", 0),
        ("@d\ndef f():\n    pass", "Cell In[1], line 1\n----> 1 @d", 0),
        (
            "a = 1\nb()",
            'Traceback (most recent call last):\n  File "<ipython-input-4-abc>", line 2, in <module>\nX',
            1,
        ),
        ("x = = 1", "  Cell In[2], line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax", 0),
        (
            "a = 1\ntry:\n    b\nexcept E:\n    c",
            "Cell In[1], line 3\n----> 3     b\n\nDuring handling of the above exception, another exception occurred:\n\n"
            "Cell In[1], line 5\n----> 5     c",
            1,
        ),
    ],
)
def test_lines_that_had_run(code: str, traceback: str, lines: int) -> None:
    assert lines_run(code, traceback) == lines


@pytest.mark.parametrize(
    ("code", "traceback"),
    [
        ("a = 1\nb()", ""),
        ("a = 1\nb()", "KeyError: 1"),
        ("a = 1\nb()", "Cell In[1], line 9\n----> 9 z"),
        ("a = 1\nb()", "Cell In[1], line 2\n----> 2 another()"),  # the traceback is of other code
        ("a = 1\nb()", "Cell In[1], line 2\n"),
        ("a = 1\nb()", "Cell In[3], line 2, in f()\n----> 2 b()"),  # its head was cut off
        ("%%bash\nfalse", "Cell In[1], line 1\n----> 1 get_ipython()"),
    ],
)
def test_where_it_is_not_known_nothing_is_said_to_have_run(code: str, traceback: str) -> None:
    assert not lines_run(code, traceback)


# -- plans ---------------------------------------------------------------------------------------------------


def failing(code: str, line: int) -> ev.TextContent:
    text = code.split("\n")[line - 1]
    return ev.TextContent(
        f"[success] False\n[error]\nE: x\n[traceback]\nCell In[1], line {line}\n----> {line} {text}\n\nE: x"
    )


OK = ev.TextContent("[success] True")


def planned(*calls: tuple[str, int], include_failed: bool = False) -> Plan:
    """The plan for calls: their code, and the line at which they failed (0: they did not)."""
    past: list[ev.Event] = [ev.TurnStarted(turn_id="t", prompt="p")]
    for number, (code, line) in enumerate(calls, 1):
        past += called(number, code, failing(code, line) if line else OK, failed=bool(line))
    return plan(Story(Scrubber.none()).items(past), include_failed=include_failed)


def test_a_failed_call_that_nothing_needs_is_left_out() -> None:
    made = planned(("a = 1\nboom", 2), ("a = 2\nprint(a)", 0))
    assert (made.wanted, made.failed, made.unset) == (set(), 1, [])


def test_what_had_run_of_a_failed_call_is_kept_where_it_is_needed() -> None:
    assert planned((FAILING, 4), (REPAIRED, 0)).wanted == {1}
    assert planned(("import os\nboom", 2), ("print(os.sep)", 0)).wanted == {1}
    assert planned(("x = [1]", 0), ("x.append(2)\nboom", 2), ("print(x)", 0)).wanted == {2}
    assert planned(
        ("import numpy as np", 0), ("np.random.rand()\nboom", 2), ("print(np.random.rand())", 0)
    ).wanted == {2}


def test_one_failed_call_may_need_another() -> None:
    made = planned(("a = 1\nboom", 2), ("b = a\nboom", 2), ("print(b)", 0))
    assert made.wanted == {1, 2}
    made = planned(("a = 1\nboom", 2), ("b = 2\nboom", 2), ("print(b)", 0))
    assert made.wanted == {2}


def test_failed_calls_are_all_kept_when_they_are_asked_for() -> None:
    assert planned(("a = 1\nboom", 2), ("print(2)", 0), include_failed=True).wanted == {1}


def test_names_that_nothing_sets_are_told() -> None:
    made = planned(("for x in y:\n    boom", 2), ("print(x)", 0))
    assert (made.wanted, made.unset) == (set(), ["x"])
    assert planned(("print(display, nothing_of_ours)", 0)).unset == []


def test_a_new_shell_has_no_names() -> None:
    past: list[ev.Event] = [
        ev.TurnStarted(turn_id="t", prompt="p"),
        *called(1, "a = 1\nboom", failing("a = 1\nboom", 2), failed=True),
        *called(2, "print(1)", ev.TextContent(f"[success] True\n[note] {NEW_SHELL}: gone.")),
        *called(3, "a = 3", OK),
        *called(4, "print(a)", OK),
    ]
    made = plan(Story(Scrubber.none()).items(past), include_failed=False)
    assert made.wanted == set()


def test_the_note_of_a_new_shell_is_the_one_that_is_looked_for() -> None:
    assert f"[note] {NEW_SHELL}" in sections(Execution(fresh=True), timeout=1, limit=1000)


# -- notebooks -----------------------------------------------------------------------------------------------


def notebook_of(
    tmp_path: Path, *past: ev.Event, include_failed: bool = False
) -> dict[str, nbformat.NotebookNode]:
    """The cells of a notebook by their ids."""
    turn = [ev.TurnStarted(turn_id="t", prompt="p"), *past, finished("t")]
    session = write_session(tmp_path / "sessions", lambda _: turn)
    done = export(session, tmp_path / "a.ipynb", include_failed=include_failed)
    notebook = nbformat.read(done.path, as_version=4)
    nbformat.validate(notebook)
    return {cell.id: cell for cell in notebook.cells}


def test_files_are_named_in_the_first_cell(tmp_path: Path) -> None:
    cells = notebook_of(
        tmp_path,
        ev.Attached(attach_id="a", name="d.csv", path="/tmp/attached/d.csv", size=12),
        ev.Attached(
            attach_id="b", name="e.csv", path="/tmp/attached/e.csv", size=12, error="It is too large."
        ),
        ev.ToolStarted(
            tool_use_id="w", name="mcp__sandbox__write_file", input={"path": "n.txt", "content": "é"}
        ),
        ev.ToolFinished(tool_use_id="w", is_error=False, content=(), duration_ms=1),
        ev.ToolStarted(
            tool_use_id="v", name="mcp__sandbox__write_file", input={"path": "m.txt", "content": "é"}
        ),
        ev.ToolFinished(tool_use_id="v", is_error=True, content=(), duration_ms=1),
        ev.ToolStarted(tool_use_id="d", name="mcp__sandbox__download_file", input={"path": "/tmp/o.png"}),
        ev.ToolFinished(tool_use_id="d", is_error=False, content=(), duration_ms=1),
        *called(4, "open('/workspace/x')", OK),
    )
    about = cells["about"].source
    assert "`/tmp/attached/d.csv` (12 bytes): was attached; put it there" in about
    assert "e.csv" not in about
    assert "`n.txt` (2 bytes): was written with a tool; a cell writes it again" in about
    assert "m.txt" not in about
    assert "`/tmp/o.png`: was downloaded" in about
    assert "`/workspace`: was the session’s own folder, or one of the user’s" in about
    assert '"/tmp/attached/d.csv"' in cells["set-up"].source


@pytest.mark.parametrize(
    "content", ["", "a", "a\n", "a\nb", "'\"\\\n\t{x}\n", "é\n\n\n", "a\x0bb\u2028c\n", "\n"]
)
def test_a_written_file_is_written_again_to_the_letter(tmp_path: Path, content: str) -> None:
    given = {"path": str(tmp_path / "deep" / "n.txt"), "content": content}
    cells = notebook_of(
        tmp_path,
        ev.ToolStarted(tool_use_id="w", name="mcp__sandbox__write_file", input=given),
        ev.ToolFinished(tool_use_id="w", is_error=False, content=(), duration_ms=1),
    )
    exec(cells["call-1"].source, {})
    from sandbox_chat.text import clean  # what the journal keeps is clean

    assert (tmp_path / "deep" / "n.txt").read_bytes() == clean(content).encode()


def test_a_new_shell_forgets_all_names(tmp_path: Path) -> None:
    cells = notebook_of(
        tmp_path,
        *called(1, "a = 1", OK),
        ev.SessionStarted(session_id="x", model="", sandbox="local", demo=False),
        ev.TurnStarted(turn_id="u", prompt="again"),
        *called(2, "b = 1", OK),
        *called(3, "c = 1", OK),
    )
    assert [name for name in cells if name.startswith(("call", "reset"))] == [
        "call-1",
        "reset-2",
        "call-2",
        "call-3",
    ]
    assert cells["reset-2"].source == "%reset -f"


def test_a_failed_call_as_a_cell(tmp_path: Path) -> None:
    error = ev.TextContent(f"[success] False\n[error]\nKeyError: 'cake'\n[traceback]\n{TRACEBACK}")
    past = [*called(1, FAILING, error, failed=True), *called(2, REPAIRED, OK)]
    kept = notebook_of(tmp_path / "a", *past)["call-1"]
    assert kept.source == (
        "# Tool call 1: failed, KeyError: 'cake'\n# This of it had run:\n"
        'prices = {"tea": 3.5}\nwanted = ["tea", "cake"]'
    )
    assert kept.outputs == []
    shown = notebook_of(tmp_path / "b", *past, include_failed=True)["call-1"]
    assert shown.source == kept.source + (
        "\n# This of it had not run to its end:\n# total = sum(prices[name] for name in wanted)\n# print(total)"
    )
    (output,) = shown.outputs
    assert (output.output_type, output.ename, output.evalue) == ("error", "KeyError", "'cake'")
    names: dict[str, object] = {}
    exec(shown.source, names)
    assert names["wanted"] == ["tea", "cake"]


@pytest.mark.parametrize("code", ["%%bash\nrm -rf x", "x = = 1", "while True:\n    pass", "a'''\nb"])
def test_a_failed_call_of_which_nothing_is_known_never_runs(tmp_path: Path, code: str) -> None:
    past = called(1, code, ev.TextContent("[tool_error] SandboxClosed: x"), failed=True)
    cell = notebook_of(tmp_path, *past, include_failed=True)["call-1"]
    assert all(line.startswith("#") for line in cell.source.split("\n"))


def test_pictures_that_a_tool_looked_at_are_in_the_text(session: Path) -> None:
    def past(journal: object) -> list[ev.Event]:
        from support.exported import picture

        return [
            ev.TurnStarted(turn_id="t", prompt="p"),
            ev.ToolStarted(tool_use_id="r", name="mcp__sandbox__read_image", input={"path": "/tmp/a.png"}),
            ev.ToolFinished(tool_use_id="r", is_error=False, content=(picture(journal),), duration_ms=1),  # type: ignore[arg-type]
        ]

    folder = write_session(session.parent / "more", past)
    done = export(folder, session.parent / "a.ipynb")
    (cell,) = [each for each in nbformat.read(done.path, as_version=4).cells if "attachments" in each]
    assert cell.source.startswith("`/tmp/a.png`")
    (name,) = cell.attachments
    assert f"(attachment:{name})" in cell.source
