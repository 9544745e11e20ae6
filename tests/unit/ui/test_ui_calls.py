"""The output that the screen keeps of calls is bounded, for each and for all."""

from __future__ import annotations

import pytest

from sandbox_chat import events as ev
from sandbox_chat.ui import state as state_module
from sandbox_chat.ui.calls import OLD_LIMIT, OutputBuffer
from sandbox_chat.ui.state import ChatState


@pytest.mark.parametrize("limit", [10, 1000])
def test_a_buffer_shrinks_to_its_start_and_its_end(limit: int) -> None:
    buffer = OutputBuffer(limit=limit)
    text = "".join(chr(97 + number % 26) for number in range(60))
    for at in range(0, 60, 7):
        buffer.add("stdout", text[at : at + 7], ((0, 2, "bold"),))
    buffer.shrink(8)
    parts = buffer.parts()
    shown = "".join(part.text for part in parts if part.stream != "note")
    assert shown == text[:4] + text[-4:]
    assert buffer.size == 8
    assert buffer.cut == 52
    assert all(0 <= start < end <= len(part.text) for part in parts for start, end, _ in part.styles)
    buffer.add("stdout", "more")
    assert buffer.size == 8
    assert buffer.text().endswith("more")


def test_a_small_buffer_stays_as_it_is() -> None:
    buffer = OutputBuffer()
    buffer.add("stdout", "short")
    buffer.shrink(100)
    assert buffer.text() == "short"
    assert buffer.cut == 0


def test_the_oldest_calls_give_their_output_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "TOTAL_LIMIT", 50_000)
    state = ChatState()
    for number in range(20):
        name = f"u{number}"
        state.apply(ev.ToolStarted(tool_use_id=name, name="run_code", input={"code": "x"}))
        state.apply(ev.ToolOutput(tool_use_id=name, stream="stdout", text="y" * 10_000))
        state.apply(ev.ToolFinished(tool_use_id=name, is_error=False, content=(), duration_ms=1))
    sizes = [tool.output.size for tool in state.tools.values()]
    assert sizes == [OLD_LIMIT] * 15 + [10_000] * 5
    assert state.tools["u0"].output.cut == 6_000


def test_open_calls_are_known_without_looking_at_all() -> None:
    state = ChatState()
    for number in range(3):
        state.apply(ev.ToolStarted(tool_use_id=f"u{number}", name="run_code", input={"code": "x"}))
    state.apply(ev.ToolFinished(tool_use_id="u1", is_error=False, content=(), duration_ms=1))
    assert [tool.id for tool in state.running_tools] == ["u0", "u2"]
    state.apply(ev.ToolInputDelta(tool_use_id="u3", name="run_code", text="{"))
    state.apply(ev.Retry(attempt=1, reason="overloaded", delay_ms=10))
    assert "u3" not in [tool.id for tool in state.running_tools]
