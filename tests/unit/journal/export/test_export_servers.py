"""Calls of the tools of other MCP servers in documents: named with their server, never taken for code of ours."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path

import nbformat
import pytest
from support.exported import NOON, finished
from support.servers import asked_for, server

from sandbox_chat import events as ev
from sandbox_chat.journal import Journal
from sandbox_chat.journal.export import export
from sandbox_chat.printers import PlainPrinter
from sandbox_chat.sessions import transcript

GIVEN = {"path": "/srv/note.txt", "content": "a\nb", "code": "import os; os.abort()"}
EVENTS: tuple[ev.Event, ...] = (
    ev.SessionStarted(session_id="s-1", model="m-1", sandbox="local", demo=False),
    server(),
    ev.TurnStarted(turn_id="t1", prompt="write it"),
    ev.ToolStarted(tool_use_id="u1", name="mcp__filesystem__write_file", input=GIVEN),
    asked_for("a1", "u1", question="Run write_file of the server filesystem?"),
    ev.ApprovalAnswered(approval_id="a1", choice="once", by="user"),
    ev.ToolFinished(tool_use_id="u1", is_error=False, content=(ev.TextContent("[stdout] written", ()), ev.FileContent("/nowhere/x.ogg", "audio/ogg", 7, "sound")), duration_ms=5),
    ev.ToolStarted(tool_use_id="u2", name="mcp__other__run_code", input={"code": "import os; os.abort()"}),
    ev.ToolFinished(
        tool_use_id="u2", is_error=True, content=(ev.TextContent("no such thing\nread the manual", ()),), duration_ms=5
    ),
    ev.Text(text="Done."),
    finished("t1"),
)  # fmt: skip


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    journal = Journal.create(tmp_path / "sessions", "s-1")
    for seq, event in enumerate(EVENTS, 1):
        journal.append(dataclasses.replace(event, at=NOON, seq=seq))
    journal.close()
    return tmp_path / "sessions" / "s-1"


@pytest.mark.parametrize("ending", ["md", "html", "ipynb", "json"])
def test_a_call_is_told_with_its_server(saved: Path, ending: str) -> None:
    done = export(saved, saved.parent / f"x.{ending}")
    text = done.path.read_text(encoding="utf-8")
    assert done.calls == 2
    if ending == "json":
        names = [event["name"] for event in json.loads(text)["events"] if event["type"] == "tool_started"]
        assert names == ["mcp__filesystem__write_file", "mcp__other__run_code"]
        return
    assert "mcp__" not in text and "git_log" not in text  # which servers there were is no part of the story
    plain = text.replace("\\", "")
    assert "sound, 7 bytes" in plain
    assert "filesystem · write_file" in plain and "other · run_code" in plain
    assert "Run write_file of the server filesystem? → run it once" in plain
    assert "no such thing" in plain
    assert done.left_out[:1] == ("1 file that a tool gave, such as a sound, was left out; JSON holds it.",)


def test_a_notebook_runs_nothing_of_it(saved: Path) -> None:
    done = export(saved, saved.parent / "x.ipynb", include_failed=True)
    book = nbformat.reads(done.path.read_text(), as_version=4)
    code = "\n".join(cell.source for cell in book.cells if cell.cell_type == "code")
    assert "os.abort" not in code and "note.txt" not in code


def test_a_readable_transcript_and_plain_output_tell_it_too() -> None:
    text = "\n".join(transcript(EVENTS))
    assert "▸ filesystem · write_file" in text and "    path: /srv/note.txt" in text
    assert "  other · run_code: failed, 0.01 s" in text
    assert "? Run write_file of the server filesystem? → run it once" in text
    out, err = io.StringIO(), io.StringIO()
    printer = PlainPrinter(out, err)
    for event in EVENTS:
        printer.take(event)
    assert "· filesystem · write_file 0.01 s ok" in err.getvalue()
    assert "· other · run_code 0.01 s failed: no such thing" in err.getvalue()
    assert out.getvalue() == "Done.\n"
