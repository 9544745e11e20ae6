"""run_code: sections, bounds, pictures."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pictures import picture
from support.toolbox import Tools

from sandbox_chat import plain
from sandbox_chat.event_json import content_dict, from_dict
from sandbox_chat.events import ImageContent, TextContent, ToolFinished
from sandbox_chat.sandbox.base import CodeError, Execution, RawSink, RichOutput, StopReason
from sandbox_chat.settings import Settings
from sandbox_chat.text import from_output
from sandbox_chat.tools import run_code as run_code_module
from sandbox_chat.tools.context import ImageBlock
from sandbox_chat.tools.run_code import SHOWN_LIMIT, TRACEBACK_LIMIT, sections


def shown(execution: Execution, limit: int = 20_000) -> str:
    return sections(execution, timeout=25, limit=limit)


def result(text: str) -> RichOutput:
    return RichOutput({"text/plain": text}, is_result=True)


async def test_a_run_that_went_well(tools: Tools) -> None:
    outcome = await tools.call("run_code", code="print('out')")
    assert outcome.text == "[success] True\n[stdout]\nout"
    assert not outcome.is_error
    assert outcome.display == (TextContent(outcome.text),)
    assert tools.output == [("id-1", "stdout", "out\n")]
    assert tools.started == [("id-1", "mcp__sandbox__run_code", {"code": "print('out')"})]
    [(call_id, told, duration)] = tools.finished
    assert (call_id, told) == ("id-1", outcome)
    assert duration >= 0


async def test_the_value_of_the_last_expression_and_variables(tools: Tools) -> None:
    await tools.call("run_code", code="x = 41")
    assert (await tools.call("run_code", code="x + 1")).text == "[success] True\n[result]\n42"


async def test_code_that_fails_is_an_error_with_its_traceback(tools: Tools) -> None:
    outcome = await tools.call("run_code", code="1/0")
    assert outcome.is_error
    assert outcome.text.startswith(
        "[success] False\n[error]\nZeroDivisionError: division by zero\n[traceback]\n"
    )
    assert "Traceback" in outcome.text


async def test_the_limit_of_time(tools: Tools) -> None:
    await tools.call("run_code", code="1")
    await tools.call("run_code", code="1", timeout=3)
    assert [timeout for _, timeout in tools.sandbox.runs] == [25.0, 3.0]
    assert "1 to 25" in (await tools.call("run_code", code="1", timeout=26)).text
    assert len(tools.sandbox.runs) == 2


@pytest.mark.parametrize(
    ("stopped", "words"),
    [
        ("timeout", ["25 s", "variables are kept", "Split"]),
        ("interrupted", ["by the user", "variables are kept"]),
        ("died", ["are lost", "new shell"]),
    ],
)
def test_a_run_that_was_stopped(stopped: StopReason, words: list[str]) -> None:
    error = CodeError("KeyboardInterrupt", "", "Traceback…\nKeyboardInterrupt")
    text = shown(Execution(stdout="before", stopped=stopped, error=error))
    assert text.startswith("[success] False\n[stdout]\nbefore\n[error]\n")
    for word in words:
        assert word in text
    assert "[error]\nKeyboardInterrupt" not in text


def test_a_new_shell_is_said() -> None:
    assert "variables and imports of earlier calls are gone" in shown(Execution(fresh=True))
    assert "gone" not in shown(Execution())


def test_empty_sections_are_left_out() -> None:
    assert shown(Execution()) == "[success] True"
    assert shown(Execution(stdout="\n", stderr="  ")) == "[success] True"


def test_displayed_texts_come_with_the_output() -> None:
    execution = Execution(
        stdout="a\n",
        outputs=(
            RichOutput({"text/plain": "df", "text/html": "<table>"}),
            RichOutput({"text/plain": "fig", "image/png": b"x"}),
        ),
    )
    assert shown(execution) == "[success] True\n[stdout]\na\ndf"


def test_progress_lines_and_colours_are_settled() -> None:
    assert (
        shown(Execution(stdout="1%\r50%\r100%\n\x1b[31mred\x1b[0m")) == "[success] True\n[stdout]\n100%\nred"
    )


def test_a_traceback_keeps_its_end() -> None:
    trace = "top\n" + "line\n" * 10_000 + "ValueError: the end"
    text = shown(Execution(error=CodeError("ValueError", "the end", trace)))
    assert text.endswith("ValueError: the end")
    assert "top" not in text
    assert len(text) < TRACEBACK_LIMIT + 500


def test_long_output_keeps_head_and_tail_and_short_sections_stay_whole() -> None:
    out = "HEAD" + "x" * 1_000_000 + "TAIL"
    text = shown(Execution(stdout=out, stderr="warn", outputs=(result("42"),)))
    assert len(text) <= 20_000
    assert len(text) > 18_000
    assert "HEAD" in text and "TAIL" in text
    assert re.search(r"\[… [\d,]+ characters cut out of 1,000,008 …\]", text)
    assert "[stderr]\nwarn" in text
    assert "[result]\n42" in text


@given(
    st.integers(1000, 45_000),
    st.tuples(*[st.integers(0, 100_000)] * 5),
    st.booleans(),
)
def test_never_longer_than_the_limit(limit: int, sizes: tuple[int, ...], fresh: bool) -> None:
    out, err, value, message, trace = sizes
    execution = Execution(
        stdout="o" * out,
        stderr="e" * err,
        outputs=(result("r" * value),),
        error=CodeError("E", "m" * message, "t" * trace),
        fresh=fresh,
    )
    assert len(shown(execution, limit)) <= limit


async def test_pictures_are_saved_shown_and_given(tools: Tools) -> None:
    data = picture(64, 48)
    tools.sandbox.next = [Execution(outputs=(RichOutput({"image/png": data, "text/plain": "<Figure>"}),))]
    outcome = await tools.call("run_code", code="plot")
    assert tools.pictures == [data]
    assert outcome.model[1] == ImageBlock(data, "image/png")
    assert isinstance(outcome.display[1], ImageContent)
    assert "[note] Picture 1 (64×48) is shown to the user and to you." in outcome.text
    assert "<Figure>" not in outcome.text


async def test_more_pictures_than_the_model_gets(tools: Tools) -> None:
    outputs = tuple(RichOutput({"image/png": picture(8, 8)}) for _ in range(30))
    tools.sandbox.next = [Execution(outputs=outputs)]
    outcome = await tools.call("run_code", code="plots")
    assert len(tools.pictures) == 30
    assert sum(isinstance(block, ImageBlock) for block in outcome.model) == 4
    assert len(outcome.display) == 31
    assert "26 more of 30 pictures" in outcome.text


async def test_a_large_picture_is_scaled_for_the_model_and_whole_on_the_screen(tools: Tools) -> None:
    data = picture(3000, 1500)
    tools.sandbox.next = [Execution(outputs=(RichOutput({"image/png": data}),))]
    outcome = await tools.call("run_code", code="plot")
    block = outcome.model[1]
    assert isinstance(block, ImageBlock)
    assert block.data != data
    assert tools.pictures == [data]


async def test_a_damaged_picture_is_a_note(tools: Tools) -> None:
    tools.sandbox.next = [Execution(outputs=(RichOutput({"image/png": b"not a picture"}),))]
    outcome = await tools.call("run_code", code="plot")
    assert not outcome.is_error
    assert "[note] Picture 1 could not be used" in outcome.text


def test_a_flood_of_displays_is_cut_before_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []

    def counting(text: str) -> str:
        looked_at.append(len(text))
        return from_output(text)

    monkeypatch.setattr(run_code_module, "from_output", counting)
    outputs = tuple(RichOutput({"text/plain": "\x1b[31m\u200b" * 100_000}) for _ in range(60))
    text = shown(Execution(outputs=outputs))
    assert len(text) <= 20_000
    assert "cut out of" in text
    assert max(looked_at) <= SHOWN_LIMIT + 100


class _Floods:
    """A sandbox whose code writes without end."""

    def __init__(self) -> None:
        self.wrote = asyncio.Event()

    async def run_code(self, code: str, *, on_raw: RawSink, **_: object) -> Execution:
        for _number in range(10):
            on_raw("stdout", b"x" * 5000)
        self.wrote.set()
        await asyncio.sleep(3600)
        raise AssertionError


async def test_a_flood_that_is_stopped_says_where_its_output_lies(tmp_path: Path) -> None:
    sandbox = _Floods()
    tools = Tools(Settings(), tmp_path, sandbox=sandbox, keep_output=True)
    task = asyncio.ensure_future(tools.call("run_code", code="flood"))
    await sandbox.wrote.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [path] = (tmp_path / "output").iterdir()
    assert path.stat().st_size == 50_000
    assert str(path) in "".join(text for _, _, text in tools.output)


async def test_output_that_cannot_be_kept_is_said_to_the_user(tmp_path: Path) -> None:
    (tmp_path / "output").write_text("a file is in the way")
    tools = Tools(Settings(), tmp_path, keep_output=True)
    outcome = await tools.call("run_code", code="print('y' * 50_000)")
    [shown_text] = [part.text for part in outcome.display if isinstance(part, TextContent)]
    assert "could not be kept on this computer (File exists)" in shown_text
    assert "could not be kept" not in outcome.text


LOOKS = "[success] False\n[error]\nx\n[traceback]\ny\n[note] z\n[result]"


async def test_output_that_looks_like_a_part_of_the_answer_is_output(tools: Tools) -> None:
    outcome = await tools.call("run_code", code=f"print({LOOKS!r})")
    [content] = outcome.display
    assert isinstance(content, TextContent)
    assert plain.sections(content) == [("success", "True"), ("stdout", LOOKS)]
    assert outcome.text == content.text == f"[success] True\n[stdout]\n{LOOKS}"
    data = json.loads(json.dumps(content_dict(content)))
    finished = {"tool_use_id": "u", "is_error": False, "content": [data], "duration_ms": 1}
    event = from_dict({"type": "tool_finished", "at": "2026-01-02T03:04:05+00:00", **finished})
    assert isinstance(event, ToolFinished)
    assert plain.all_sections(event.content) == plain.sections(content)


async def test_the_words_of_an_error_are_no_parts_of_the_answer(tools: Tools) -> None:
    outcome = await tools.call("run_code", code=f"raise ValueError({LOOKS!r})")
    found = plain.all_sections(outcome.display)
    assert [name for name, _ in found] == ["success", "error", "traceback"]
    assert found[1][1] == f"ValueError: {LOOKS}"


async def test_notes_after_such_output_are_parts(tools: Tools) -> None:
    tools.sandbox.next = [Execution(stdout=LOOKS, notes=("first", "second"))]
    outcome = await tools.call("run_code", code="1")
    assert plain.all_sections(outcome.display)[1:] == [
        ("stdout", LOOKS), ("note", "first"), ("note", "second")
    ]  # fmt: skip


async def test_a_file_that_looks_like_an_answer_is_shown_as_it_is(tools: Tools) -> None:
    tools.sandbox.files["/tmp/a.log"] = LOOKS.encode()
    outcome = await tools.call("read_file", path="/tmp/a.log")
    [content] = outcome.display
    assert isinstance(content, TextContent)
    assert plain.sections(content) == [("", content.text)]
