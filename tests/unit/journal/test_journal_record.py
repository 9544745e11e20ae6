"""The journal: what was appended is read back; damage and full disks cost as little as can be."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox_chat import event_json
from sandbox_chat.events import (
    Content,
    Event,
    FileContent,
    ImageContent,
    SessionFinished,
    SessionStarted,
    Status,
    TableContent,
    Text,
    TextContent,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from sandbox_chat.journal import (
    Journal,
    SessionError,
    SessionInUse,
    SessionNotFound,
    files,
    list_sessions,
    record,
)

ID = "0f8b9a52-0000-4000-8000-000000000001"
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def start(seq: int = 1) -> SessionStarted:
    return SessionStarted(at=NOON, seq=seq, session_id=ID, model="m", sandbox="local", demo=False)


def prompt(seq: int = 2, text: str = "hello") -> TurnStarted:
    return TurnStarted(at=NOON, seq=seq, turn_id=f"t{seq}", prompt=text)


def finish(seq: int, cost: float | None = 0.5) -> TurnFinished:
    return TurnFinished(
        at=NOON,
        seq=seq,
        turn_id="t",
        subtype="success",
        is_error=False,
        interrupted=False,
        num_turns=1,
        duration_ms=3,
        cost_usd=cost,
        total_cost_usd=cost,
    )


def tool(seq: int, *content: Content) -> ToolFinished:
    return ToolFinished(at=NOON, seq=seq, tool_use_id="u", is_error=False, content=content, duration_ms=1)


def a_session() -> list[Event]:
    return [
        start(),
        prompt(),
        TextDelta(at=NOON, seq=3, text="Hé"),
        Text(at=NOON, seq=4, text="Hé, 한글"),
        ToolStarted(
            at=NOON,
            seq=5,
            tool_use_id="u",
            name="mcp__sandbox__run_code",
            input={"code": "1\n2", "n": [1.5, None]},
        ),
        tool(6, TextContent("ok")),
        finish(7),
        SessionFinished(at=NOON, seq=8),
    ]


def written(root: Path, past: list[Event] | None = None) -> Journal:
    """A closed journal with a session in it."""
    journal = Journal.create(root, ID)
    for event in a_session() if past is None else past:
        journal.append(event)
    assert journal.problem == ""
    journal.close()
    return journal


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- the plain way --------------------------------------------------------------------------------------


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    journal = written(tmp_path / "sessions")
    assert list(journal.events()) == a_session()
    assert journal.skipped == 0
    again = Journal.open(tmp_path / "sessions", ID)
    assert again.last_seq == 8
    assert list(again.events()) == a_session()
    again.close()


def test_each_event_is_on_disk_when_append_returns(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, ID)
    for count, event in enumerate(a_session(), 1):
        journal.append(event)
        lines = (journal.folder / "events.jsonl").read_bytes().splitlines() if count > 1 else []
        assert len(lines) == (count if count > 1 else 0)
        assert all(json.loads(line)["seq"] for line in lines)
    journal.close()


def test_an_unused_session_leaves_nothing(tmp_path: Path) -> None:
    root = tmp_path / "sessions"
    written(root, [start(), Status(seq=2, component="agent", state="ready"), SessionFinished(seq=3)])
    assert not root.exists()


def test_a_session_opened_and_left_unused_stays_as_it_was(tmp_path: Path) -> None:
    written(tmp_path)
    path = tmp_path / ID / "events.jsonl"
    before = path.read_bytes()
    journal = Journal.open(tmp_path, ID)
    journal.append(start(9))
    journal.append(SessionFinished(seq=10))
    journal.close()
    assert path.read_bytes() == before


def test_a_resumed_session_goes_on_in_the_same_file(tmp_path: Path) -> None:
    written(tmp_path)
    journal = Journal.open(tmp_path, ID)
    later = [start(9), prompt(10, "again"), finish(11, 0.75), SessionFinished(at=NOON, seq=12)]
    for event in later:
        journal.append(event)
    journal.close()
    assert list(journal.events()) == a_session() + later
    (summary,) = list_sessions(tmp_path)
    assert (summary.turns, summary.title, summary.total_cost_usd) == (2, "hello", 0.75)


def test_folders_and_files_are_private(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        journal = written(tmp_path / "data" / "sessions", a_session())
        journal.save_picture(PNG, "image/png", 1, 1)
    finally:
        os.umask(old)
    for path in (tmp_path / "data").rglob("*"):
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path
    assert mode(tmp_path / "data") == 0o700


def test_appending_after_close_does_nothing(tmp_path: Path) -> None:
    journal = written(tmp_path)
    journal.append(prompt(9))
    journal.close()
    assert list(journal.events()) == a_session()


def test_events_can_be_appended_from_many_threads(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, ID)
    journal.append(prompt(1))

    def work(first: int) -> None:
        for seq in range(first, first + 50):
            journal.append(Text(seq=seq, text="x" * seq))

    threads = [threading.Thread(target=work, args=(2 + 50 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    assert sorted(event.seq for event in journal.events()) == list(range(1, 202))
    assert journal.skipped == 0


@pytest.mark.parametrize("bad", ["", "..", "a/b", "../x", ".hidden", "a\0b", "x" * 200, "a b"])
def test_an_id_is_never_a_path(tmp_path: Path, bad: str) -> None:
    with pytest.raises(ValueError, match="not a valid session id"):
        Journal.create(tmp_path, bad)
    with pytest.raises(SessionNotFound):
        Journal.open(tmp_path, bad)


def test_a_session_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound, match=r"There is no session 'abc'\. See the list with"):
        Journal.open(tmp_path, "abc")


def test_a_session_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    written(tmp_path)
    meta = tmp_path / ID / "meta.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "format": 2}))
    with pytest.raises(SessionError, match="written by a later version"):
        Journal.open(tmp_path, ID)


def test_an_event_that_cannot_be_written_is_said_and_the_rest_goes_on(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, ID)
    journal.append(prompt(1))
    journal.append(ToolStarted(seq=2, tool_use_id="u", name="n", input={"x": object()}))
    journal.append(finish(3))
    journal.close()
    assert [event.seq for event in journal.events()] == [1, 3]


# --- one writer -----------------------------------------------------------------------------------------


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    written(tmp_path)
    first = Journal.open(tmp_path, ID)
    with pytest.raises(SessionInUse, match="is open in another running Sandbox Chat"):
        Journal.open(tmp_path, ID)
    first.close()
    Journal.open(tmp_path, ID).close()


HOLDER = """
import sys, time
from pathlib import Path
from sandbox_chat.events import TurnStarted
from sandbox_chat.journal import Journal
journal = Journal.create(Path(sys.argv[1]), sys.argv[2])
journal.append(TurnStarted(seq=1, turn_id="t", prompt="hello"))
print("held", flush=True)
time.sleep(600)
"""


def being_written(root: Path, past: list[Event]) -> Journal:
    """An open journal with these events."""
    journal = Journal.create(root, ID)
    for event in past:
        journal.append(event)
    return journal


@pytest.mark.parametrize("gone", ["folder", "file"])
def test_a_record_that_is_removed_while_it_is_written_is_written_again(tmp_path: Path, gone: str) -> None:
    journal = being_written(tmp_path, [start(), prompt(), Text(at=NOON, seq=3, text="one")])
    before = (journal.folder / files.EVENTS).read_bytes()
    if gone == "folder":
        shutil.rmtree(journal.folder)
    else:
        (journal.folder / files.EVENTS).unlink()
    journal.append(Text(at=NOON, seq=4, text="two"))
    assert journal.problem == ""
    assert (journal.folder / files.EVENTS).read_bytes().startswith(before)
    assert [event.seq for event in journal.events()] == [1, 2, 3, 4]
    assert mode(journal.folder / files.EVENTS) == 0o600
    assert [summary.turns for summary in list_sessions(tmp_path)] == [1]
    with pytest.raises(SessionInUse):
        Journal.open(tmp_path, ID)
    journal.append(finish(5))
    journal.close()
    assert [event.seq for event in journal.events()] == [1, 2, 3, 4, 5]
    assert not list(journal.folder.glob(".*"))


def test_a_removed_record_waits_for_a_folder_that_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = being_written(tmp_path, [start(), prompt()])
    shutil.rmtree(journal.folder)
    journal.folder.write_text("no folder")
    journal.append(Text(at=NOON, seq=3, text="one"))
    assert "cannot be saved" in journal.problem
    journal.folder.unlink()
    journal.append(Text(at=NOON, seq=4, text="two"))
    assert journal.problem == ""
    assert [event.seq for event in journal.events()] == [1, 2, 3, 4]
    journal.close()


def test_a_record_that_another_program_replaced_is_gone_on_with(tmp_path: Path) -> None:
    journal = being_written(tmp_path, [start(), prompt()])
    path = journal.folder / files.EVENTS
    (journal.folder / "new").write_bytes(path.read_bytes().replace(b"hello", b"[cut]") + b'{"torn')
    (journal.folder / "new").replace(path)
    journal.append(Text(at=NOON, seq=3, text="one"))
    assert [event.seq for event in journal.events()] == [1, 2, 3]
    assert b"[cut]" in path.read_bytes()
    journal.close()


def test_a_killed_writer_lets_go(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path), ID]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(SessionInUse):
                Journal.open(tmp_path, ID)
        finally:
            holder.kill()
    journal = Journal.open(tmp_path, ID)
    assert journal.last_seq == 1
    journal.close()


# --- damage ---------------------------------------------------------------------------------------------


def test_a_file_cut_at_every_byte_of_its_last_record(tmp_path: Path) -> None:
    past = a_session()
    written(tmp_path, past)
    path = tmp_path / ID / "events.jsonl"
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, len(whole) - 1) + 1
    for cut in range(last, len(whole) + 1):
        path.write_bytes(whole[:cut])
        complete = cut >= len(whole) - 1  # without its newline the record is whole
        journal = Journal.open(tmp_path, ID)
        assert list(journal.events()) == (past if complete else past[:-1])
        assert journal.skipped == (0 if complete or cut == last else 1)
        assert journal.last_seq == (8 if complete else 7)
        journal.append(prompt(20))
        journal.append(finish(21))
        assert journal.problem == ""
        journal.close()
        assert [event.seq for event in journal.events()][-2:] == [20, 21]
        assert [event.seq for event in journal.events()][:7] == [1, 2, 3, 4, 5, 6, 7]


def damaged(path: Path, change: Callable[[list[bytes]], None]) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    change(lines)
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    ("line", "skipped"),
    [
        (b"\0" * 5000 + b"\n", 1),
        (b"\0" * 5000, 1),  # the record after the run is whole
        (b"garbage\n", 1),
        (b"\xff\xfe\xfd\n", 1),
        (b"[" * 100_000 + b"\n", 1),
        (b'{"type":"text"}\n', 1),
        (b'{"type":"text","text":5,"seq":4}\n', 1),
        (b'{"type":"text","text":"x","at":"never"}\n', 1),
        (b"null\n", 1),
        (b"one\ntwo\nthree\n", 1),
        (b"\n\n  \n", 0),
        (b'{"type":"from_the_future","seq":4}\n', 0),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_damage_in_the_middle_costs_only_itself(tmp_path: Path, line: bytes, skipped: int) -> None:
    written(tmp_path)
    damaged(tmp_path / ID / "events.jsonl", lambda lines: lines.insert(3, line))
    journal = Journal.open(tmp_path, ID)
    assert list(journal.events()) == a_session()
    assert journal.skipped == skipped
    journal.close()


@pytest.mark.parametrize("value", ["1" + "0" * 400, "1e999", "-1e999", "NaN", str(1 << 63)])
@pytest.mark.parametrize("field", ["seq", "duration_ms", "cost_usd", "num_turns"])
def test_a_number_that_cannot_be_true_is_damage(tmp_path: Path, field: str, value: str) -> None:
    journal = written(tmp_path, [start(1), prompt(2), finish(3), prompt(4)])
    path = journal.folder / files.EVENTS
    lines = path.read_text().splitlines()
    data = {**json.loads(lines[2]), field: "PLACE"}
    lines[2] = json.dumps(data).replace('"PLACE"', value)
    path.write_text("\n".join(lines) + "\n")
    again = Journal.open(tmp_path, ID)
    assert [event.seq for event in again.events()] == [1, 2, 4]
    assert again.skipped == 1
    assert again.last_seq == 4
    again.close()


def test_a_tools_input_may_hold_any_number(tmp_path: Path) -> None:
    call = ToolStarted(at=NOON, seq=3, tool_use_id="c", name="n", input={"x": 10**40})
    journal = written(tmp_path, [start(1), prompt(2), call])
    assert list(journal.events())[-1] == call


def test_what_a_killed_writer_left_half_written_is_cleared(tmp_path: Path) -> None:
    journal = written(tmp_path)
    (journal.folder / files.PICTURES).mkdir(exist_ok=True)
    left = [journal.folder / ".meta.json.77.tmp", journal.folder / files.PICTURES / ".abc.png.77.tmp"]
    for path in left:
        path.write_bytes(b"half")
    Journal.open(tmp_path, ID).close()
    assert not [path for path in left if path.exists()]


def test_t15_a_run_of_nul_bytes_at_the_end(tmp_path: Path) -> None:
    written(tmp_path)
    path = tmp_path / ID / "events.jsonl"
    path.write_bytes(path.read_bytes() + b"\0" * 300_000)
    journal = Journal.open(tmp_path, ID)
    assert journal.last_seq == 8
    journal.append(prompt(9))
    journal.close()
    assert [event.seq for event in journal.events()] == list(range(1, 10))
    assert journal.skipped == 1


def test_an_empty_file_is_an_empty_session(tmp_path: Path) -> None:
    (tmp_path / ID).mkdir()
    (tmp_path / ID / "events.jsonl").touch()
    journal = Journal.open(tmp_path, ID)
    assert journal.last_seq == 0
    assert list(journal.events()) == []
    journal.close()


def test_the_end_is_found_behind_very_long_records(tmp_path: Path) -> None:
    written(tmp_path, [prompt(1), Text(seq=2, text="x" * 1_000_000)])
    path = tmp_path / ID / "events.jsonl"
    path.write_bytes(path.read_bytes() + b"y" * 700_000)
    assert files.read_end(tmp_path / ID) == (2, True)


def test_text_in_a_file_is_not_trusted(tmp_path: Path) -> None:
    written(tmp_path)
    nasty = ToolStarted(
        seq=9, tool_use_id="u\x1b", name="n\x9b", input={"\x1b[2J": [{"a": "\x1b]52;c;x\x07"}, 1, "\u202e"]}
    )
    path = tmp_path / ID / "events.jsonl"
    extra = [nasty, tool(10, TextContent("\x1b[2J"), ImageContent("pictures/a\x1b.png", "\x07", 1, 1))]
    path.write_bytes(
        path.read_bytes() + b"".join(event_json.to_json(event).encode() + b"\n" for event in extra)
    )
    journal = Journal.open(tmp_path, ID)
    shown = "".join(event_json.to_json(event) for event in journal.events())
    journal.close()
    for sign in ("\\u001b", "\\u0007", "\x9b", "\u202e", "\\u009b"):
        assert sign not in shown


# --- pictures -------------------------------------------------------------------------------------------


def test_pictures_are_kept_by_content_and_paths_are_relative(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, ID)
    journal.append(prompt(1))
    first = journal.save_picture(PNG, "image/png", 3, 2)
    assert first == journal.save_picture(PNG, "image/png", 3, 2)
    other = journal.save_picture(PNG + b"x", "image/jpeg", 3, 2)
    assert Path(first.path).read_bytes() == PNG
    assert Path(first.path).is_absolute()
    assert other.path.endswith(".jpg")
    assert len(list((journal.folder / "pictures").iterdir())) == 2
    journal.append(tool(2, TextContent("a"), first, other))
    journal.close()
    assert str(tmp_path) not in (journal.folder / "events.jsonl").read_text()
    assert list(journal.events())[-1] == tool(2, TextContent("a"), first, other)


def test_a_session_that_was_moved_finds_its_pictures(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "a", ID)
    journal.append(prompt(1))
    journal.append(tool(2, journal.save_picture(PNG, "image/png", 3, 2)))
    journal.close()
    (tmp_path / "a").rename(tmp_path / "b")
    moved = Journal.open(tmp_path / "b", ID)
    (found,) = [event for event in moved.events() if isinstance(event, ToolFinished)]
    (picture,) = found.content
    assert isinstance(picture, ImageContent)
    assert Path(picture.path).read_bytes() == PNG
    moved.close()


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../../../../etc/passwd",
        "pictures/../../../etc/passwd",
        "",
        "link",
        "link/passwd",
        "a\0b",
    ],
)
def test_a_picture_path_never_leads_out_of_the_folder(tmp_path: Path, path: str) -> None:
    written(tmp_path, [*a_session()[:2]])
    folder = tmp_path / ID
    (folder / "link").symlink_to("/etc")
    line = event_json.to_json(tool(9, ImageContent(path, "image/png", 1, 1)))
    with (folder / "events.jsonl").open("a") as file:
        file.write(line + "\n")
    journal = Journal.open(tmp_path, ID)
    *_, last = journal.events()
    journal.close()
    assert isinstance(last, ToolFinished)
    (picture,) = last.content
    assert isinstance(picture, ImageContent)
    assert Path(picture.path).is_relative_to(folder)
    assert not Path(picture.path).exists()


def test_a_picture_that_was_half_written_is_written_again(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, ID)
    path = Path(journal.save_picture(PNG, "image/png", 1, 1).path)
    path.write_bytes(PNG[:5])
    journal.save_picture(PNG, "image/png", 1, 1)
    assert path.read_bytes() == PNG
    journal.close()


# --- a disk that takes nothing --------------------------------------------------------------------------


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    journal = Journal.create(blocked / "sessions", ID)
    journal.append(start())
    assert journal.problem == ""
    journal.append(prompt())
    assert "cannot be saved in" in journal.problem
    assert "Not a directory" in journal.problem
    assert "SANDBOX_CHAT_DATA_DIR" in journal.problem
    picture = journal.save_picture(PNG, "image/png", 1, 1)
    assert Path(picture.path).read_bytes() == PNG
    journal.append(tool(3, picture))
    blocked.unlink()  # the disk is mended
    journal.append(finish(4))
    assert journal.problem == ""
    journal.close()
    assert not Path(picture.path).exists()  # the folder for temporary files is gone
    back = list(journal.events())
    assert [event.seq for event in back] == [1, 2, 3, 4]
    assert isinstance(back[2], ToolFinished)
    (found,) = back[2].content
    assert isinstance(found, ImageContent)
    assert Path(found.path).read_bytes() == PNG
    assert (journal.folder / "meta.json").exists()


PUT_ASIDE = """
import sys
from pathlib import Path
from sandbox_chat.journal import Journal
journal = Journal.create(Path(sys.argv[1]), "one")
print(journal.save_picture(b"picture", "image/png", 1, 1).path, flush=True)
sys.stdin.read()
if len(sys.argv) > 2:
    journal.close()
"""


@pytest.mark.parametrize("end", ["closed", "killed"])
def test_pictures_that_could_not_be_brought_home_go_with_the_program(tmp_path: Path, end: str) -> None:
    (tmp_path / "file").touch()
    arguments = [
        sys.executable,
        "-c",
        PUT_ASIDE,
        str(tmp_path / "file"),
        *(["close"] if end == "closed" else []),
    ]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        picture = Path(program.stdout.readline().strip())
        assert picture.read_bytes() == b"picture"
        if end == "killed":
            program.kill()
    deadline = time.monotonic() + 20
    while picture.parents[1].exists():
        assert time.monotonic() < deadline, "the folder stays"
        time.sleep(0.02)


class FullDisk:
    """Stands in for ``os.write``: takes ``room`` bytes, then none until there is room again."""

    def __init__(self) -> None:
        self.room = 1 << 40
        self._write = os.write

    def __call__(self, fd: int, data: bytes) -> int:
        if self.room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = self._write(fd, bytes(data)[: self.room])
        self.room -= done
        return done


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[FullDisk]:
    full = FullDisk()
    monkeypatch.setattr(record.os, "write", full)
    yield full
    monkeypatch.undo()


def test_a_disk_that_fills_up_in_the_middle_of_a_record(tmp_path: Path, disk: FullDisk) -> None:
    for room in (0, 1, 20, 50):
        root = tmp_path / str(room)
        disk.room = 1 << 40
        journal = Journal.create(root, ID)
        journal.append(prompt(1))
        disk.room = room
        for seq in range(2, 6):
            journal.append(Text(seq=seq, text=f"text {seq}"))
            assert "No space left on device" in journal.problem
        # What is on disk is whole, and a reader sees it.
        assert [event.seq for event in files.read_events(journal.folder)] == [1]
        disk.room = 1 << 40
        journal.append(finish(6))
        assert journal.problem == ""
        journal.close()
        assert [event.seq for event in journal.events()] == [1, 2, 3, 4, 5, 6]
        assert journal.skipped == 0


def test_a_half_record_that_cannot_be_taken_back(
    tmp_path: Path, disk: FullDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_fd: int, _size: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    journal = Journal.create(tmp_path, ID)
    journal.append(prompt(1))
    monkeypatch.setattr(record.os, "ftruncate", refuse)
    disk.room = 10
    journal.append(Text(seq=2, text="x"))
    disk.room = 1 << 40
    journal.append(finish(3))
    journal.close()
    assert [event.seq for event in journal.events()] == [1, 2, 3]
    assert journal.skipped == 1


def test_memory_is_bounded_while_the_disk_is_full(
    tmp_path: Path, disk: FullDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "WAITING_LIMIT", 10_000)
    journal = Journal.create(tmp_path, ID)
    journal.append(prompt(1))
    disk.room = 0
    for seq in range(2, 200):
        journal.append(TextDelta(seq=seq, text="x" * 200))
    journal.append(Text(seq=200, text="whole"))
    disk.room = 1 << 40
    journal.append(finish(201))
    journal.close()
    found = list(journal.events())
    assert len(found) < 60
    assert [event.seq for event in found[-2:]] == [200, 201]


def test_closing_writes_what_waits(tmp_path: Path, disk: FullDisk) -> None:
    journal = Journal.create(tmp_path, ID)
    journal.append(prompt(1))
    disk.room = 0
    journal.append(finish(2))
    disk.room = 1 << 40
    journal.close()
    assert [event.seq for event in journal.events()] == [1, 2]


def test_results_are_forced_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    journal = Journal.create(tmp_path, ID)
    journal.append(prompt(1))
    monkeypatch.setattr(record.os, "fsync", synced.append)
    journal.append(TextDelta(seq=2, text="x"))
    assert synced == []
    for count, event in enumerate((tool(3), finish(4), SessionFinished(seq=5)), 1):
        before = len(synced)
        journal.append(event)
        assert len(synced) > before, count
    journal.close()


def test_tables_and_files_come_back_as_they_were(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "s")
    journal.append(TurnStarted(seq=1, turn_id="t", prompt="p"))
    page = journal.save_file(b"<b>x</b>", "text/html", "plotly figure")
    assert Path(page.path).parent == journal.folder / "pictures"
    assert Path(page.path).suffix == ".html"
    assert Path(page.path).stat().st_mode & 0o777 == 0o600
    table = TableContent(("", "a"), (("0", "1"),), 10, 1, result=True)
    journal.append(tool(2, table, page))
    journal.close()
    assert list(journal.events())[-1] == tool(2, table, page)
    line = (journal.folder / "events.jsonl").read_text().splitlines()[-1]
    assert str(tmp_path) not in line  # relative, so the folder can be moved


def test_hostile_tables_and_files_are_cleaned_when_read(tmp_path: Path) -> None:
    table = TableContent(("\x1b[2J",), (("\u202e",),), 1, 1)
    file = FileContent("../../etc/passwd", "text/html\x07", 1, "\x9b2J")
    event = files.from_line(event_json.to_json(tool(2, table, file)).encode(), tmp_path)
    assert isinstance(event, ToolFinished)
    assert event.content == (
        TableContent(("␛[2J",), (("<U+202E>",),), 1, 1),
        FileContent(str(tmp_path / "pictures" / "missing"), "text/html␇", 1, "<9B>2J"),
    )
