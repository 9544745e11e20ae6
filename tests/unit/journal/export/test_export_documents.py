"""Documents of the made-up session, compared with those that were looked at.

After a change that is meant: ``SANDBOX_CHAT_WRITE_GOLDEN=1 pytest -n 0 tests/unit/journal/export`` writes them anew; look at
the difference.
"""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path

import nbformat
import pytest
from support.exported import ID, PNG, finished, write_session

from sandbox_chat import events as ev
from sandbox_chat import words
from sandbox_chat.event_json import from_dict
from sandbox_chat.journal import Journal
from sandbox_chat.journal.export import ENDINGS, Exported, ExportError, ExportStopped, Scrubber, export
from sandbox_chat.journal.export.json import whole
from sandbox_chat.journal.files import read_events

GOLDEN = Path(__file__).parent.parent / "golden"
KINDS = ("md", "html", "ipynb", "json")


def golden(name: str, text: str) -> None:
    """Compare a document with the one that was looked at."""
    path = GOLDEN / name
    if os.environ.get("SANDBOX_CHAT_WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def without_style(text: str) -> str:
    """A page without its style sheet, which is the highlighter's, and the digest of that."""
    text = re.sub(r"<style>.*?</style>", "<style></style>", text, flags=re.DOTALL)
    return re.sub(r"sha256-[\w+/=]+", "sha256-", text)


def exported(session: Path, ending: str, **options: bool) -> tuple[Exported, str]:
    to = session.parent / f"session.{ending}"
    done = export(session, to, **options)
    assert done.path == to
    return done, to.read_text(encoding="utf-8")


@pytest.mark.parametrize("ending", KINDS)
def test_a_document_is_as_it_was_looked_at(session: Path, ending: str) -> None:
    done, text = exported(session, ending)
    golden(f"session.{ending}", without_style(text) if ending == "html" else text)
    assert (done.turns, done.calls) == (3, 6)


def test_a_document_in_chinese(session: Path) -> None:
    words.use("zh")
    _, text = exported(session, "md")
    golden("session.zh.md", text)


def test_failed_calls_in_a_notebook(session: Path) -> None:
    done, text = exported(session, "ipynb", include_failed=True)
    golden("session-failed.ipynb", text)
    assert not any("failed" in line for line in done.left_out)


def test_every_document_says_what_it_does_not_hold(session: Path) -> None:
    page = "1 page for the browser, such as an interactive plot, was left out."
    output = "The whole of 1 long output was left out; Markdown and JSON hold it."
    calls = "1 failed tool call was left out; --include-failed keeps it."
    assert exported(session, "md")[0].left_out == (page,)
    assert exported(session, "html")[0].left_out == (page, output)
    assert exported(session, "ipynb")[0].left_out == (calls, page, output)
    assert exported(session, "json")[0].left_out == ()


def test_pictures_and_long_output_lie_beside_markdown(session: Path) -> None:
    done, text = exported(session, "md")
    assert [path.suffix for path in done.files] == [".png", ".txt"]
    assert all(path.parent == session.parent / "session_files" for path in done.files)
    assert done.files[0].read_bytes() == PNG
    for path in done.files:
        assert f"](session_files/{path.name})" in text


def test_a_page_holds_its_pictures(session: Path) -> None:
    done, text = exported(session, "html")
    assert f'<img src="data:image/png;base64,{base64.b64encode(PNG).decode()}"' in text
    assert done.files == ()
    assert not (session.parent / "session_files").exists()


def test_json_gives_the_events_back(session: Path) -> None:
    _, text = exported(session, "json")
    data = json.loads(text)
    events = [from_dict(each) for each in data["events"]]
    real = list(read_events(session))
    assert [type(event) for event in events] == [type(event) for event in real]
    assert [event for event in events if not isinstance(event, ev.ToolFinished)] == [
        event for event in real if not isinstance(event, ev.ToolFinished)
    ]
    named = [part["path"] for each in data["events"] for part in each.get("content", ()) if "path" in part]
    assert set(named) == set(data["files"])
    assert base64.b64decode(data["files"][named[0]]["base64"]) == PNG
    assert data["session"]["id"] == ID


def test_json_with_its_files_beside(session: Path) -> None:
    done, text = exported(session, "json", beside=True)
    data = json.loads(text)
    assert data["files"] == {}
    named = [part["path"] for each in data["events"] for part in each.get("content", ()) if "path" in part]
    assert [session.parent / name for name in named] == list(done.files)


def test_json_holds_no_number_that_json_has_no_word_for(tmp_path: Path) -> None:
    def past(_: Journal) -> list[ev.Event]:
        given = {"a": float("nan"), "b": [float("inf"), 1.5]}
        return [
            ev.TurnStarted(turn_id="t", prompt="x"),
            ev.ToolStarted(tool_use_id="u", name="other", input=given),
        ]

    _, text = exported(write_session(tmp_path, past), "json")
    data = json.loads(text, parse_constant=lambda word: pytest.fail(word))
    assert data["events"][1]["input"] == {"a": None, "b": [None, 1.5]}


@pytest.mark.parametrize("include_failed", [False, True])
def test_the_notebook_is_valid(session: Path, include_failed: bool) -> None:
    _, text = exported(session, "ipynb", include_failed=include_failed)
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert f"{nbformat.writes(notebook)}\n" == text  # as the library writes it into a file


# -- texts are whole where they are scrubbed -----------------------------------------------------------------


def test_pieces_are_put_together_to_wholes() -> None:
    past: list[ev.Event] = [
        ev.TurnStarted(turn_id="t", prompt="p"),
        ev.ThinkingDelta(text="th"),
        ev.ThinkingDelta(text="ink"),
        ev.TextDelta(text="a"),
        ev.Text(text="ab"),
        ev.TextDelta(text="gone"),
        ev.Retry(reason="r", attempt=1, delay_ms=1),
        ev.ToolInputDelta(tool_use_id="u", name="n", text="{"),
        ev.ToolStarted(tool_use_id="u", name="n", input={}),
        ev.ToolOutput(tool_use_id="u", stream="stdout", text="10%"),
        ev.ToolOutput(tool_use_id="u", stream="stderr", text="e"),
        ev.ToolOutput(tool_use_id="u", stream="stdout", text="20%", rewind=3),
        ev.ToolFinished(tool_use_id="u", is_error=False, content=(), duration_ms=1),
        ev.ToolOutput(tool_use_id="u", stream="stdout", text="la", late=True),
        ev.ToolOutput(tool_use_id="u", stream="stdout", text="te", late=True),
        ev.TextDelta(text="o"),
        ev.TextDelta(text="pen"),
        ev.ToolInputDelta(tool_use_id="v", name="n", text='{"a'),
        ev.ToolInputDelta(tool_use_id="v", name="n", text='":1'),
        finished("t"),
    ]
    found = [(event.type, getattr(event, "text", "")) for event in whole(past)]
    assert found == [
        ("turn_started", ""), ("thinking_delta", "think"), ("text", "ab"), ("retry", ""), ("tool_started", ""),
        ("tool_output", "20%"), ("tool_output", "e"), ("tool_finished", ""), ("tool_input_delta", '{"a":1'),
        ("text_delta", "open"), ("tool_output", "late"), ("turn_finished", ""),
    ]  # fmt: skip


# -- what is asked for, and what cannot be -------------------------------------------------------------------


def test_the_ending_chooses_the_kind(session: Path) -> None:
    for ending, kind in ENDINGS.items():
        assert export(session, session.parent / f"a{ending.upper()}").kind == kind


@pytest.mark.parametrize("name", ["a", "a.pdf", ".md", "a.md.gz"])
def test_another_ending_is_refused(session: Path, name: str) -> None:
    with pytest.raises(ExportError, match=r"names no kind of document\. Use \.md"):
        export(session, session.parent / name)
    assert not (session.parent / name).exists()


def test_no_session_is_said(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="nothing to export"):
        export(tmp_path / "none", tmp_path / "a.md")


@pytest.mark.parametrize("ending", ["html", "ipynb"])
def test_pictures_of_a_whole_document_do_not_lie_beside(session: Path, ending: str) -> None:
    with pytest.raises(ExportError, match="pictures beside"):
        exported(session, ending, beside=True)


@pytest.mark.parametrize("ending", KINDS)
def test_an_export_that_is_no_longer_wanted_leaves_nothing(session: Path, ending: str) -> None:
    with pytest.raises(ExportStopped):
        export(session, session.parent / f"a.{ending}", stop=lambda: True)
    assert [path.name for path in session.parent.iterdir()] == [session.name]


def test_a_session_that_goes_on_is_told_up_to_one_place(session: Path) -> None:
    """The notebook reads it twice; what comes between the two readings is in neither."""
    journal = Journal.open(session.parent, ID)
    looks = 0

    def stop() -> bool:
        nonlocal looks
        looks += 1
        if looks == 2:
            journal.append(ev.TurnStarted(seq=journal.last_seq + 1, turn_id="t4", prompt="one more"))
        return False

    done = export(session, session.parent / "a.ipynb", stop=stop)
    journal.close()
    assert looks == 2
    assert done.turns == 3


# -- scrubbing in documents ----------------------------------------------------------------------------------

CANARY = "sk-ant-api03-CANARYcanaryCANARY0123"


def secrets_everywhere(_: Journal) -> list[ev.Event]:
    half = len(CANARY) // 2
    text = ev.TextContent(f"[success] True\n[stdout]\n{CANARY}\n[result]\n'/home/alice/x'")
    table = ev.TableContent((CANARY,), ((f"/home/alice {CANARY}",),), 1, 1)
    return [
        ev.SessionStarted(session_id=ID, model="m", sandbox="local", demo=False),
        ev.Attached(attach_id="a", name=f"{CANARY}.csv", path=f"/tmp/{CANARY}", size=1),
        ev.TurnStarted(turn_id="t", prompt=f"my key is {CANARY} on alices-laptop"),
        ev.ThinkingDelta(text=CANARY[:half]),
        ev.ThinkingDelta(text=CANARY[half:]),
        ev.TextDelta(text=CANARY[:half]),
        ev.TextDelta(text=CANARY[half:]),
        ev.Text(text=f"Use {CANARY}."),
        ev.ToolInputDelta(tool_use_id="u", name="run_code", text=CANARY[:half]),
        ev.ToolInputDelta(tool_use_id="u", name="run_code", text=CANARY[half:]),
        ev.ToolStarted(tool_use_id="u", name="run_code", input={"code": f"k = '{CANARY}'", CANARY: [CANARY]}),
        ev.ToolOutput(tool_use_id="u", stream="stdout", text=CANARY[:half]),
        ev.ToolOutput(tool_use_id="u", stream="stdout", text=CANARY[half:]),
        ev.ToolFinished(tool_use_id="u", is_error=False, content=(text, table), duration_ms=1),
        ev.ToolOutput(tool_use_id="u", stream="stdout", text=CANARY[:half], late=True),
        ev.ToolOutput(tool_use_id="u", stream="stdout", text=CANARY[half:], late=True),
        ev.ToolStarted(tool_use_id="v", name="run_code", input={"code": "1"}),
        ev.ToolOutput(tool_use_id="v", stream="stdout", text=CANARY[:half]),
        ev.ToolOutput(tool_use_id="v", stream="stdout", text=CANARY[half:]),
        ev.Notice(level="error", text=f"Refused: {CANARY}"),
        ev.Retry(reason=f"key {CANARY}", attempt=1, delay_ms=1),
        ev.ApprovalRequested(
            approval_id="q", kind="k", question=f"Send {CANARY}?", detail=CANARY,
            choices=(ev.Choice("no", "n", "no"),), default="no",
        ),
        ev.ApprovalAnswered(approval_id="q", choice="no", by="user"),
        ev.TextDelta(text=CANARY[:half]),
        ev.TextDelta(text=CANARY[half:]),
        finished("t", is_error=True, error=f"bad key {CANARY}"),
    ]  # fmt: skip


@pytest.mark.parametrize("ending", KINDS)
def test_nothing_of_a_credential_is_in_a_scrubbed_document(tmp_path: Path, ending: str) -> None:
    session = write_session(tmp_path / "sessions", secrets_everywhere)
    to = tmp_path / f"a.{ending}"
    scrub = Scrubber(homes=["/home/alice"], user="alice", host="alices-laptop")
    done = export(session, to, scrub=scrub, include_failed=True)
    text = to.read_text(encoding="utf-8")
    for piece in (CANARY, CANARY[: len(CANARY) // 2], CANARY[len(CANARY) // 2 :], "alice"):
        assert piece not in text
    assert "secret" in text
    assert done.scrubbed["[secret]"] > 5
    assert any(note.startswith("Taken out: ") for note in done.notes)
    plain = export(session, tmp_path / f"b.{ending}")
    assert CANARY in plain.path.read_text(encoding="utf-8")
    assert plain.notes == ()


@pytest.mark.parametrize("ending", KINDS)
@pytest.mark.parametrize("place", [0, 40, 70, 79])
def test_a_credential_that_the_title_cuts_through_is_taken_out(
    tmp_path: Path, ending: str, place: int
) -> None:
    prompt = "x" * place + " " + CANARY
    session = write_session(tmp_path / "sessions", lambda _: [ev.TurnStarted(turn_id="t", prompt=prompt)])
    export(session, tmp_path / f"a.{ending}", scrub=Scrubber())
    assert "sk-ant" not in (tmp_path / f"a.{ending}").read_text(encoding="utf-8")
