"""Questions, attached files and background output through the whole program: real CLI, real sandbox, scripted model."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from support.engines import Running, engine
from support.program import run
from support.scripted import call, serve, text, tool_results

from sandbox_chat.events import (
    ApprovalAnswered,
    ApprovalForgotten,
    ApprovalRequested,
    Attached,
    Event,
    FileContent,
    Notice,
    Progress,
    TextContent,
    ToolFinished,
    ToolOutput,
)
from sandbox_chat.journal.files import read_events
from sandbox_chat.journal.lines import Damage
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.transcript import Feed

SAVE = (call("write_file", path="r.txt", content="new"), call("download_file", path="r.txt"), text("Done."))


def answering(choice: str) -> Any:
    """Answers each question with ``choice``, as a face does."""

    def take(running: Running, event: Event) -> None:
        if isinstance(event, ApprovalRequested):
            running.engine.answer(event.approval_id, choice)

    return take


def rows(events: list[Event]) -> tuple[list[str], ChatState]:
    """The transcript's rows and the state that these events lead to."""
    feed, state = Feed(), ChatState()
    for event in events:
        feed.apply(event)
        state.apply(event)
    for block in feed.blocks:
        block.expand()
    return [row.text.rstrip() for block in feed.blocks for row in block.rows(90)], state


def recorded(folder: Path) -> list[Event]:
    """The events of the only session under a folder."""
    [session] = (folder / "data" / "sessions").iterdir()
    return list(read_events(session, Damage()))


@pytest.mark.slow
def test_a_question_is_answered_recorded_and_replayed(tmp_path: Path) -> None:
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / "r.txt").write_text("old")
    with engine(tmp_path, *SAVE, on_event=answering("replace")) as e:
        assert not e.ask("save it").is_error
        [asked], [answer] = e.of(ApprovalRequested), e.of(ApprovalAnswered)
        call_ids = [event.tool_use_id for event in e.of(ToolFinished)]
    assert asked.tool_use_id == call_ids[1]
    assert (answer.choice, answer.by) == ("replace", "user")
    assert (tmp_path / "downloads" / "r.txt").read_text() == "new"
    live, replayed = rows(e.events), rows(recorded(tmp_path))
    assert live[0] == replayed[0]
    assert any("r.txt exists already. Replace it? → replace it" in row for row in live[0])


@pytest.mark.slow
def test_an_answer_for_the_session_is_asked_for_once_and_not_carried_over(tmp_path: Path) -> None:
    (tmp_path / "downloads").mkdir()
    file = tmp_path / "downloads" / "r.txt"
    file.write_text("old")
    again = (call("write_file", path="r.txt", content="newer"), call("download_file", path="r.txt"))
    with engine(tmp_path, *SAVE[:2], *again, text("Done."), on_event=answering("replace_session")) as e:
        assert not e.ask("save it twice").is_error
        assert len(e.of(ApprovalRequested)) == 1
        assert file.read_text() == "newer"
        assert "for the whole session" in tool_results(e.server)[-1].text
        session = e.engine.session_id
        e.engine.forget_answer(e.of(ApprovalRequested)[0].approval_id)
        e.until(lambda: e.of(ApprovalForgotten))
    live, replayed = rows(e.events), rows(recorded(tmp_path))
    assert live[0] == replayed[0] and live[1].allowed == replayed[1].allowed
    with engine(tmp_path, *SAVE, resume=session, on_event=answering("never")) as e:
        assert not e.ask("save it").is_error
        assert len(e.of(ApprovalRequested)) == 1, "what was allowed is not carried over"
        assert any("nothing was saved" in result.text for result in tool_results(e.server))
    assert file.read_text() == "newer"


@pytest.mark.slow
def test_an_interruption_withdraws_the_question(tmp_path: Path) -> None:
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / "r.txt").write_text("old")

    def stop(running: Running, event: Event) -> None:
        if isinstance(event, ApprovalRequested):
            threading.Timer(0.3, running.engine.interrupt).start()

    with engine(tmp_path, *SAVE, text("again"), on_event=stop) as e:
        assert e.ask("save it").interrupted
        assert [(each.choice, each.by) for each in e.of(ApprovalAnswered)] == [("", "cancelled")]
        assert e.of(ToolFinished)[-1].interrupted
        assert [path.name for path in (tmp_path / "downloads").iterdir()] == ["r.txt"]
        assert (tmp_path / "downloads" / "r.txt").read_text() == "old"
        assert not e.ask("go on").is_error


@pytest.mark.slow
def test_closing_withdraws_the_question(tmp_path: Path) -> None:
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / "r.txt").write_text("old")
    with engine(tmp_path, *SAVE) as e:
        e.engine.send("save it")
        e.until(lambda: e.of(ApprovalRequested))
    assert [each.by for each in e.of(ApprovalAnswered)] == ["cancelled"]
    assert [path.name for path in (tmp_path / "downloads").iterdir()] == ["r.txt"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "files", "by"),
    [
        ((), {"r.txt": "old", "r (2).txt": "new"}, "default"),
        (("--allow", "overwrite"), {"r.txt": "new"}, "option"),
    ],
)
def test_without_a_screen_nothing_is_replaced_unless_allowed(
    tmp_path: Path, options: tuple[str, ...], files: dict[str, str], by: str
) -> None:
    folder = tmp_path / "work" / "downloads"
    folder.mkdir(parents=True)
    (folder / "r.txt").write_text("old")
    with serve(*SAVE) as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_AUTH_TOKEN": server.token, "CLAUDE_MODEL": "m"}
        ended = run("run", "--json", *options, "save it", home=tmp_path, env=env)
    assert ended.code == 0, ended.stderr
    assert {path.name: path.read_text() for path in folder.iterdir()} == files
    assert [event["by"] for event in ended.of("approval_answered")] == [by]
    assert ended.of("approval_requested")[0]["choices"][0] == {
        "name": "replace",
        "key": "r",
        "label": "replace it",
    }


@pytest.mark.slow
def test_an_attached_file_is_there_and_the_model_knows(tmp_path: Path) -> None:
    data = tmp_path / "my data.csv"
    data.write_text("a,b\n1,2\n")
    steps = (call("run_code", code="print(open('/tmp/attached/my data.csv').read())"), text("Read."))
    with engine(tmp_path, *steps, text("Once.")) as e:
        e.engine.attach(str(data))
        e.ask("read it")
        [attached] = e.of(Attached)
        assert attached.error == "" and attached.path == "/tmp/attached/my data.csv"
        [result] = tool_results(e.server)
        assert "[stdout]\na,b\n1,2" in result.text
        prompt = str(e.server.requests[0].body["messages"])
        assert "has put the file my data.csv at /tmp/attached/my data.csv" in prompt and "8 bytes" in prompt
        e.ask("and again")
        assert str(e.server.requests[-1].body["messages"]).count("has put the file") == 1
    assert rows(recorded(tmp_path))[0] == rows(e.events)[0]
    assert any("Attached my data.csv (8 bytes" in row for row in rows(e.events)[0])


@pytest.mark.slow
def test_a_large_file_goes_up_and_comes_down_whole(tmp_path: Path) -> None:
    data = tmp_path / "big.bin"
    block = bytes(range(256)) * 4096
    with data.open("wb") as file:
        for _ in range(60):
            file.write(block)
    steps = (call("download_file", path="/tmp/attached/big.bin"), text("Done."))
    with engine(tmp_path, *steps) as e:
        e.engine.attach(str(data))
        assert not e.ask("give it back").is_error
    assert (tmp_path / "downloads" / "big.bin").read_bytes() == data.read_bytes()
    assert not [event for event in recorded(tmp_path) if isinstance(event, Progress)]
    seqs = [event.seq for event in e.events if not isinstance(event, Progress)]
    assert seqs == list(range(1, len(seqs) + 1))


@pytest.mark.slow
def test_a_lost_sandbox_gets_attached_files_back(tmp_path: Path) -> None:
    data = tmp_path / "d.txt"
    data.write_text("content")
    read = "print(open('/tmp/attached/d.txt').read())"
    steps = (
        call("run_code", code="x = 1\nimport os\nos._exit(1)"),
        call("run_code", code=read),
        call("run_code", code="x"),
        text("Done."),
    )
    with engine(tmp_path, *steps) as e:
        e.engine.attach(str(data))
        assert not e.ask("go").is_error
        died, again, lost = tool_results(e.server)
        notices = [event.text for event in e.of(Notice)]
    assert died.is_error and "are lost" in died.text
    assert "[stdout]\ncontent" in again.text
    assert "variables and imports of earlier calls are gone" in again.text
    assert "[note] The sandbox was replaced; attached files were put back into it: d.txt" in again.text
    assert "NameError" in lost.text
    assert any("attached files were put back" in notice for notice in notices)


@pytest.mark.slow
def test_a_resumed_session_says_that_attached_files_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("content")
    with engine(tmp_path, text("Thanks.")) as e:
        e.engine.attach(str(tmp_path / "d.txt"))
        e.until(lambda: e.of(Attached), "the file")
        e.ask("there it is")
        session = e.engine.session_id
    for told in (True, False):  # once: the run in between had none
        with engine(tmp_path, text("I see."), resume=session) as e:
            e.ask("go on")
            notices = [event.text for event in e.of(Notice)]
            assert any("files that were attached are not in it (d.txt)" in text for text in notices) is told


@pytest.mark.slow
def test_attaching_without_a_screen(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("A")
    (tmp_path / "work" / "b.txt").write_text("B")
    code = "print(open('/tmp/attached/a.txt').read() + open('/tmp/attached/b.txt').read())"
    with serve(call("run_code", code=code), text("Read.")) as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_AUTH_TOKEN": server.token, "CLAUDE_MODEL": "m"}
        ended = run("run", "--json", "--attach", "a.txt", "--attach", "b.txt", "read", home=tmp_path, env=env)
        assert ended.code == 0, ended.stderr
        assert "AB" in tool_results(server)[0].text
        missing = run("run", "--attach", "none.txt", "read", home=tmp_path, env=env)
        assert missing.code == 2
        assert "There is no file none.txt" in missing.stderr
        assert len(server.requests) == 2, "no request was made for nothing"


@pytest.mark.slow
def test_background_output_of_an_ended_call(tmp_path: Path) -> None:  # case S5
    start = (
        "import threading, time\n"
        "def late():\n    time.sleep(0.5)\n    print('from behind')\n"
        "threading.Thread(target=late).start()\nprint('started')"
    )
    steps = (
        call("run_code", code=start),
        call("run_code", code="import time\ntime.sleep(2)\nprint('second')"),
        call("run_code", code="3"),
        text("Done."),
    )
    with engine(tmp_path, *steps) as e:
        assert not e.ask("go").is_error
        first, second, third = tool_results(e.server)
        ids = [event.tool_use_id for event in e.of(ToolFinished)]
        late = [event for event in e.of(ToolOutput) if event.late]
    assert "from behind" not in first.text
    assert "[stdout]\nsecond" in second.text
    assert "[note] Background output of an earlier call: from behind" in second.text
    assert "from behind" not in second.text.split("[note]")[0]
    assert "from behind" not in third.text
    assert {event.tool_use_id for event in late} == {ids[0]}
    live, replayed = rows(e.events), rows(recorded(tmp_path))
    assert live[0] == replayed[0]
    assert live[1].tools == replayed[1].tools
    assert "background output" in "\n".join(live[0])


@pytest.mark.slow
def test_long_output_lies_whole_in_the_session(tmp_path: Path) -> None:
    steps = (call("run_code", code="for i in range(20000): print(i)"), text("Done."))
    with engine(tmp_path, *steps) as e:
        assert not e.ask("count").is_error
        [result] = tool_results(e.server)
        [finished] = e.of(ToolFinished)
    [path] = (tmp_path / "data" / "sessions").glob("*/output/*.txt")
    assert path.read_text().splitlines() == [str(number) for number in range(20000)]
    [shown, whole] = finished.content
    assert isinstance(shown, TextContent)
    assert isinstance(whole, FileContent)
    assert whole.path == str(path)
    assert str(path) in shown.text and str(tmp_path) not in result.text
