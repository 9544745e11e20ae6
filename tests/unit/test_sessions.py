"""The list of sessions and the readable transcript of one."""

from __future__ import annotations

import dataclasses
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from sandbox_chat.events import (
    ApprovalAnswered,
    ApprovalRequested,
    Attached,
    Choice,
    Event,
    FileContent,
    ImageContent,
    Notice,
    Retry,
    SessionFinished,
    SessionStarted,
    Status,
    Steered,
    Text,
    TextContent,
    TextDelta,
    ToolFinished,
    ToolInputDelta,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    Usage,
)
from sandbox_chat.journal import Journal, SessionNotFound
from sandbox_chat.sessions import show, transcript

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
ID = "0f8b9a52-1111-4000-8000-000000000001"


def started(demo: bool = False) -> SessionStarted:
    return SessionStarted(at=NOON, session_id=ID, model="m-1", sandbox="local", demo=demo)


def finished(**changes: object) -> TurnFinished:
    values: dict[str, object] = {
        "turn_id": "t",
        "subtype": "success",
        "is_error": False,
        "interrupted": False,
        "num_turns": 2,
        "duration_ms": 3140,
        "cost_usd": 0.0123,
        "total_cost_usd": 0.0409,
        "usage": Usage(3000, 412, 100, 0),
        **changes,
    }
    return TurnFinished(**values)  # type: ignore[arg-type]  # the values above have the fields' types


def test_background_output_answers_and_files_are_in_the_transcript() -> None:
    name = "mcp__sandbox__run_code"
    lines = list(
        transcript(
            [
                Attached(attach_id="x", name="d.csv", path="/tmp/attached/d.csv", size=12),
                ToolStarted(tool_use_id="u", name=name, input={"code": "1"}),
                ToolFinished(tool_use_id="u", is_error=False, content=(), duration_ms=10),
                ToolStarted(tool_use_id="v", name=name, input={"code": "2"}),
                ToolOutput(tool_use_id="u", stream="stdout", text="tick\nto", late=True),
                ToolOutput(tool_use_id="u", stream="stdout", text="ck\n", late=True),
                ApprovalRequested(
                    approval_id="a1",
                    kind="overwrite",
                    question="Replace it?",
                    detail="/x",
                    choices=(Choice("no", "n", "do not save"),),
                    default="no",
                    tool_use_id="v",
                ),
                ApprovalAnswered(approval_id="a1", choice="no", by="user"),
                ToolFinished(tool_use_id="v", is_error=False, content=(), duration_ms=10),
            ]
        )
    )
    assert "! Attached d.csv (12 bytes): it is at /tmp/attached/d.csv in the sandbox." in lines
    place = lines.index("  run_code, background output:")
    assert lines[place + 1 : place + 3] == ["    tick", "    tock"]
    assert "  ? Replace it? → do not save" in lines


def a_turn() -> list[Event]:
    return [
        started(),
        Status(component="agent", state="ready"),
        TurnStarted(turn_id="t", prompt="plot a sine\nplease"),
        TextDelta(text="I'll plot"),
        TextDelta(text=" it."),
        Text(text="I'll plot it."),
        ToolInputDelta(tool_use_id="u", name="mcp__sandbox__run_code", text="{"),
        ToolStarted(
            tool_use_id="u",
            name="mcp__sandbox__run_code",
            input={"code": "import numpy\nprint(1)", "timeout": 5},
        ),
        ToolOutput(tool_use_id="u", stream="stdout", text="1\n"),
        ToolFinished(
            tool_use_id="u",
            is_error=False,
            content=(
                TextContent("[success] True\n[stdout]\n1"),
                ImageContent("/data/pictures/a.png", "image/png", 640, 480),
            ),
            duration_ms=420,
        ),
        TextDelta(text="Done"),
        Text(text="Done."),
        finished(),
        SessionFinished(),
    ]


def text_of(past: list[Event]) -> str:
    return "\n".join(transcript(past))


def test_a_transcript_reads_like_the_chat() -> None:
    first, _, rest = text_of(a_turn()).partition("\n")
    assert first.startswith(f"session {ID} · 2026-03-0")
    assert first.endswith(" · m-1 · sandbox local")
    assert rest == (
        "\n› plot a sine\n  please"
        "\n\nI'll plot it."
        "\n\n▸ run_code\n    import numpy\n    print(1)\n    timeout: 5"
        "\n  run_code: ok, 0.42 s\n    [success] True\n    [stdout]\n    1"
        "\n    picture 640×480: /data/pictures/a.png"
        "\n\nDone."
        "\n\n  [success · 2 steps · 3.14 s · cost $0.0123 · 3,100 tokens in, 412 out]"
    )


def test_a_killed_session_shows_what_was_seen() -> None:
    past = [
        event for event in a_turn() if not isinstance(event, ToolFinished | TurnFinished | SessionFinished)
    ]
    shown = text_of(
        [*past[:9], started(), TurnStarted(turn_id="t2", prompt="and?"), TextDelta(text="half of")]
    )
    assert "  run_code: did not finish\n    1" in shown
    assert "\nresumed 2026-03-0" in shown
    assert shown.endswith("\n\n› and?\n\nhalf of\n[the answer was cut off here]")


def test_a_session_that_goes_on_otherwise_says_so() -> None:
    shown = text_of([started(), started(), started(demo=True)]).splitlines()
    assert shown[1] == shown[3] == ""
    assert shown[2].startswith("resumed ")
    assert shown[4].endswith(" · demo, no model · sandbox local")


def test_no_line_ends_in_blanks() -> None:
    call = ToolStarted(tool_use_id="u", name="n", input={"code": "a\n\nb"})
    assert text_of([call]) == "\n▸ n\n    a\n\n    b\n  n: did not finish"


def test_a_retry_withdraws_what_was_written() -> None:
    shown = text_of(
        [
            TurnStarted(turn_id="t", prompt="p"),
            TextDelta(text="wrong"),
            Retry(reason="overloaded", attempt=1, delay_ms=500),
            TextDelta(text="right"),
            Text(text="right"),
        ]
    )
    assert "wrong" not in shown
    assert shown.count("right") == 1


def test_a_prompt_that_was_sent_into_a_running_turn_is_there() -> None:
    steered = Steered(turn_id="t", prompt="in blue\nplease")
    start = TurnStarted(turn_id="t", prompt="plot")
    begun = [start, TextDelta(text="I "), TextDelta(text="begin."), Text(text="I begin.")]
    said = [TextDelta(text="Blue it is."), Text(text="Blue it is.")]
    shown = "\n› plot\n\nI begin.\n\n› in blue\n  please"
    for place in (2, 3, 4):  # while the answer is written: behind the whole of it, as in the chat
        assert text_of([*begun[:place], steered, *begun[place:], *said]) == shown + "\n\nBlue it is."
    cut = shown.replace("begin.", "begin.\n[the answer was cut off here]")
    assert text_of([*begun[:3], steered]) == cut
    call = ToolStarted(tool_use_id="u", name="n", input={})
    over = ToolFinished(tool_use_id="u", is_error=False, content=(), duration_ms=10)
    shown = text_of([start, call, steered, over])
    assert shown.endswith("\n\n› in blue\n  please\n  n: ok, 0.01 s"), "the call goes on"


def test_failures_and_interruptions_are_said() -> None:
    shown = text_of(
        [
            started(demo=True),
            TurnStarted(turn_id="t", prompt="p"),
            ToolStarted(
                tool_use_id="u", name="mcp__sandbox__write_file", input={"path": "/tmp/a", "content": "x\ny"}
            ),
            ToolFinished(
                tool_use_id="u",
                is_error=True,
                content=(TextContent("[tool_error] Gone"),),
                duration_ms=61_400,
            ),
            ToolStarted(tool_use_id="v", name="mcp__sandbox__run_code", input={"code": "sleep"}),
            ToolFinished(tool_use_id="v", is_error=True, interrupted=True, content=(), duration_ms=12_340),
            Notice(level="warning", text="The disk is full."),
            finished(subtype="success", is_error=True, error="The endpoint refused.", cost_usd=None),
            finished(subtype="error_during_execution", is_error=True, interrupted=True, num_turns=1),
        ]
    )
    for part in (
        "demo, no model",
        "    path: /tmp/a\n    content:\n    x\n    y",
        "write_file: failed, 1 min 01 s\n    [tool_error] Gone",
        "run_code: interrupted, 12.3 s",
        "! The disk is full.",
        "! The endpoint refused.",
        "[failed · 2 steps · 3.14 s · cost n/a ·",
        "[interrupted · 1 step ·",
    ):
        assert part in shown


def saved(root: Path, past: list[Event], session_id: str = ID) -> None:
    journal = Journal.create(root, session_id)
    for number, event in enumerate(past, 1):
        journal.append(dataclasses.replace(event, seq=number))
    journal.close()


def test_one_session_as_text_and_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(tmp_path, a_turn())
    for wanted in (None, "0f8b", ID):
        assert show(tmp_path, wanted) == 0
        shown = capsys.readouterr()
        assert shown.out.splitlines()[2] == "› plot a sine"
        assert shown.err == ""
    assert show(tmp_path, None, as_json=True) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["type"] for line in lines] == [event.type for event in a_turn()]


def test_damage_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(tmp_path, a_turn())
    with (tmp_path / ID / "events.jsonl").open("ab") as file:
        file.write(b"\0\0\0\nhalf a rec")
    assert show(tmp_path, None) == 0
    assert capsys.readouterr().err == "sandbox-chat: 1 damaged place(s) in the record were passed over.\n"


def test_an_output_that_cannot_be_written_is_no_fault_of_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal.create(tmp_path, ID)
    journal.append(TurnStarted(at=NOON, seq=1, turn_id="t", prompt="hello"))
    journal.close()

    def fail(text: str) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", SimpleNamespace(write=fail, flush=lambda: None))
    for as_json in (False, True):
        with pytest.raises(OSError, match="No space left"):
            show(tmp_path, ID, as_json=as_json)
    monkeypatch.setattr(Path, "open", lambda *_, **__: fail(""))
    with pytest.raises(SessionNotFound, match="cannot be read"):
        show(tmp_path, ID)


def test_a_session_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound):
        show(tmp_path, "abc")


def test_files_of_a_result_are_named() -> None:
    page = FileContent("/data/pictures/a.html", "text/html", 1_200_000, "plotly figure")
    past = [
        ToolStarted(tool_use_id="u", name="mcp__sandbox__run_code", input={"code": "fig"}),
        ToolFinished(tool_use_id="u", is_error=False, content=(TextContent("x"), page), duration_ms=4),
    ]
    assert "    plotly figure, 1.2 MB: /data/pictures/a.html" in text_of(past)
