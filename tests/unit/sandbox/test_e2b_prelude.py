"""What the cloud's kernel tells after a cell comes from the sandbox: it is checked, and forgeries do nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sandbox_chat.guest import cloud
from sandbox_chat.sandbox import e2b_prelude
from sandbox_chat.sandbox.e2b_cell import Cell
from sandbox_chat.sandbox.e2b_prelude import Told
from sandbox_chat.sandbox.gather import Run


def said(**about: Any) -> str:
    return cloud.MARK + json.dumps(about)


def test_other_displays_are_not_taken() -> None:
    for text in (None, 3, "", "1", "cell", cloud.MARK + "{", cloud.MARK + "[]", cloud.MARK):
        assert e2b_prelude.told(text) is None


def test_what_is_told() -> None:
    about = {"cell": 3, "pid": 7, "late": [[1, "stdout", "x"]], "threads": 1, "pictures": 2}
    files = [f"{e2b_prelude.FOLDER}/3-1.png"]
    assert e2b_prelude.told(said(**about, files=files)) == Told(
        3, 7, ((1, "stdout", "x"),), 1, tuple(files), 2
    )


@pytest.mark.parametrize(
    "about",
    [
        {"pid": -1, "cell": "x", "threads": 1 << 40, "pictures": None},
        {"late": [[1, "other", "x"], ["1", "stdout", "x"], [1, "stdout"], 3, None]},
        {"files": ["/etc/passwd", "relative", f"{e2b_prelude.FOLDER}/../x", 3, e2b_prelude.FOLDER]},
    ],
)
def test_nonsense_is_passed_over(about: dict[str, Any]) -> None:
    assert e2b_prelude.told(said(**about)) == Told(0, 0)


def test_bounds() -> None:
    files = [f"{e2b_prelude.FOLDER}/{number}.png" for number in range(1000)]
    told = e2b_prelude.told(said(files=files, late=[[1, "stdout", "x" * 10_000_000]]))
    assert told is not None
    assert len(told.files) == cloud.PICTURES
    assert len(told.late[0][2]) == cloud.LATE_LIMIT


def test_the_cell_is_one_expression_without_names() -> None:
    import ast

    (statement,) = ast.parse(e2b_prelude.cell("auto")).body
    assert isinstance(statement, ast.Expr)
    compile(e2b_prelude.SAVE_SHOWN, "x", "exec")


def test_settling_of_text() -> None:
    assert cloud.settle("a\ud83c") == "a\ufffd"
    assert cloud.settle("\ud83d\ude00") == "\U0001f600"
    assert cloud.settled({"a\ud83c": ["b\ud83c", 1, None]}) == {"a\ufffd": ["b\ufffd", 1, None]}


def test_a_script_alone_is_a_page() -> None:
    run = Run(1, None, 1000)
    for message in ({"javascript": 'draw("</script>")'}, {"html": "<b>x</b>", "javascript": "draw()"}):
        Cell(run).take({"type": "result", **message})
    pages = [output.data for output in run.result("", 0).outputs]
    assert pages == [{"text/html": '<script>draw("<\\/script>")</script>'}, {"text/html": "<b>x</b>"}]


def test_messages_of_the_interpreter() -> None:
    run = Run(1, None, 1000)
    cell = Cell(run)
    for message in (
        {"type": "stdout", "text": "a\ud83c\x1b[1m"},
        {"type": "stderr", "text": "b"},
        {"type": "stdout"},
        {"type": "result", "text": "1", "is_main_result": True, "png": "!!not base64", "json": {"a": 1}},
        {"type": "result", "text": "x" * 1_000_100, "html": "y" * 1_000_100},
        {"type": "number_of_executions", "execution_count": 4},
        {"type": "number_of_executions", "execution_count": "x"},
        {"type": "error", "name": "E", "value": "v", "traceback": "\x1b[31mred\x1b[0m"},
        {"type": "keepalive"},
        {"type": "what"},
        {},
    ):
        cell.take(message)
    done = run.result("", 0)
    assert done.stdout == "a\ufffd\x1b[1m"
    assert done.stderr == "b"
    assert done.result_text == "1"
    assert done.outputs[0].data == {"text/plain": "1", "application/json": '{"a": 1}'}
    assert list(done.outputs[1].data) == ["text/plain", "text/html"]
    assert "100 more characters" in str(done.outputs[1].data["text/plain"])
    assert done.error is not None
    assert (done.error.name, done.error.value, done.error.traceback) == ("E", "v", "red")
    assert cell.count == 4
    assert not cell.died


@pytest.mark.parametrize(
    "message",
    [
        {"type": "error", "name": "ContextRestarting", "value": "Context was restarted", "traceback": ""},
        {"type": "unexpected_end_of_execution"},
    ],
)
def test_signs_of_death(message: dict[str, Any]) -> None:
    cell = Cell(Run(1, None, 1000))
    cell.take(message)
    assert cell.died


def test_an_exception_of_that_name_is_no_death() -> None:
    cell = Cell(Run(1, None, 1000))
    cell.take({"type": "error", "name": "ContextRestarting", "value": "", "traceback": "Traceback"})
    assert not cell.died
