"""Search over sessions: what is found, what is kept up to date, and that nothing stops it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.saved import Saved

from sandbox_chat.journal import search_index
from sandbox_chat.journal.keeping import delete
from sandbox_chat.journal.search import NAME, SessionSearch
from sandbox_chat.journal.search_query import apart, excerpt, fold, parse, together
from sandbox_chat.journal.search_text import OUTPUT_LIMIT, SessionText, agent_ids
from sandbox_chat.journal.search_types import Found


def searched(data: Path, words: str, *, index: bool = True) -> Found:
    finder = SessionSearch(data)
    if index:
        assert finder.update()
    else:
        finder.problem = "none"
    found = finder.find(words)
    assert found.indexed is (index or not parse(words))
    return found


def ids(found: Found) -> list[str]:
    return [match.session_id for match in found.matches]


def written(data: Path) -> Path:
    saved = Saved(data)
    saved.session("sine", [("plot a damped sine", "Here it is: the envelope halves every 2.08 s.")])
    saved.session(
        "wide",
        [
            (
                "数据分析：请读取文件",
                "已读取中文文件，共三行。",
                "df = pandas.read_csv('Überblick.csv')",
                "行数 3\nÉté à Paris",
            ),
            ("한국어로 요약해 줘", "요약입니다.", "", ""),
        ],
    )
    saved.session("code", [("why", "", "x = 1\nassert x != 2", "AssertionError: nope")])
    return data


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return written(tmp_path)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for tests that only read."""
    return written(tmp_path_factory.mktemp("unchanged"))


@pytest.mark.parametrize("index", [True, False], ids=["index", "reading"])
@pytest.mark.parametrize(
    ("words", "found", "turn", "kind"),
    [
        ("damped", "sine", 1, "prompt"),
        ("DAMPED Sine", "sine", 1, "prompt"),
        ("envel", "sine", 1, "answer"),
        ('"damped sine"', "sine", 1, "prompt"),
        ("“halves every”", "sine", 1, "answer"),
        ("2.08", "sine", 1, "answer"),
        ("damped halves", "sine", 1, "prompt"),
        ("中文", "wide", 1, "answer"),
        ("文", "wide", 1, "prompt"),
        ("取中文文件", "wide", 1, "answer"),
        ("분석", None, 0, ""),
        ("요약", "wide", 2, "prompt"),
        ("국어", "wide", 2, "prompt"),
        ("read_csv", "wide", 1, "code"),
        ("uberblick", "wide", 1, "code"),
        ("ete a", "wide", 1, "output"),
        ("ÉTÉ", "wide", 1, "output"),
        ("assertionerr", "code", 1, "output"),
        ("!= assert", "code", 1, "code"),
        ("!=", "code", 1, "code"),
        ('"damped sin"', None, 0, ""),
        ("amped", None, 0, ""),
        ("damped 中文", None, 0, ""),
        ("2.0 s", "sine", 1, "answer"),
    ],
)
def test_what_is_found(
    unchanged: Path, words: str, found: str | None, turn: int, kind: str, index: bool
) -> None:
    result = searched(unchanged, words, index=index)
    if found is None:
        assert ids(result) == []
        return
    assert ids(result) == [found]
    place = result.matches[0].places[0]
    assert (place.turn, place.kind) == (turn, kind)
    assert place.excerpt.marks


def test_the_place_is_marked(data: Path) -> None:
    place = searched(data, "halves ever").matches[0].places[0]
    text = place.excerpt.text
    assert [text[start:end] for start, end in place.excerpt.marks] == ["halves", "ever"]
    place = searched(data, "中文文件").matches[0].places[0]
    assert [place.excerpt.text[start:end] for start, end in place.excerpt.marks] == ["中文文件"]
    assert "\u200b" not in place.excerpt.text


HOSTILE = [
    "", " ", '"', '""', '"""', "'", "*", "a*", "^a", "AND", "a AND", "NOT x", "OR", "NEAR(a b, 2)", "(", ")", "a)", "prompt:x",
    "{a b}: c", "-a", "+ +", "a + b", "\\", "%", "_", "a\0b", "\x1b[2J", "\ud83c", "🎉", "a" * 5000, "; DROP TABLE texts",
    "col : x", '"unbalanced phrase', "x" * 3 + '"', "\u202e", "[bold]", "👨‍👩‍👧", " ".join("abcdefghijklmnopqrstuvwxyz"),
]  # fmt: skip


@pytest.mark.parametrize("index", [True, False], ids=["index", "reading"])
@pytest.mark.parametrize("words", HOSTILE)
def test_no_query_is_an_error(unchanged: Path, words: str, index: bool) -> None:
    searched(unchanged, words, index=index)


@settings(max_examples=60, deadline=None)
@given(words=st.text(max_size=40))
def test_any_text_is_a_query(words: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.getbasetemp() / "any"
    if not data.exists():
        Saved(data).session("s", [("plot a sine", "done")])
    finder = SessionSearch(data)
    finder.update()
    finder.find(words)
    assert finder.problem == ""


@given(text=st.text())
def test_keeping_apart_loses_nothing(text: str) -> None:
    import unicodedata

    plain = unicodedata.normalize("NFC", text.replace("\u200b", ""))
    assert together(apart(text)) == (text if text.isascii() else plain)
    assert len(fold(text)) == len(text)


@given(text=st.text(max_size=400), words=st.text(max_size=20))
def test_marks_lie_in_the_excerpt(text: str, words: str) -> None:
    query = parse(words)
    if query:
        _, part = excerpt(query, (text,))
        assert all(0 <= start < end <= len(part.text) for start, end in part.marks)
        assert "\n" not in part.text


def test_operators_are_words(tmp_path: Path) -> None:
    Saved(tmp_path).session("a", [("this AND that", "near or far")])
    assert ids(searched(tmp_path, "AND that")) == ["a"]
    assert ids(searched(tmp_path, "NOT this")) == []
    assert ids(searched(tmp_path, "prompt:this")) == []


# -- what is read of a session ---------------------------------------------------------------------------------


def test_an_answer_without_its_whole_is_read_from_its_pieces(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    saved.session("a", [])
    saved.lines(
        "a",
        {"type": "turn_started", "prompt": "p"},
        {"type": "text_delta", "text": "withdrawn"},
        {"type": "retry"},
        {"type": "text_delta", "text": "half of an ans"},
        {"type": "text_delta", "text": "wer"},
    )
    assert ids(searched(tmp_path, "answer")) == ["a"]
    assert ids(searched(tmp_path, "withdrawn")) == []


def test_damage_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    path = saved.session("a", [("one", "first")])
    with path.open("ab") as file:
        file.write(b"\0\0\0\n{broken\n[1,2]\n" + b'{"type":"text","text":5}\n' + b"\xff\xfe\n")
        file.write(b'\0\0{"text":"later","seq":9,"type":"text"}\n{"type":"text","text":"torn')
    assert ids(searched(tmp_path, "later")) == ["a"]
    assert ids(searched(tmp_path, "torn")) == []


def test_long_output_is_taken_in_part(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    middle = "\n".join(f"line{number}" for number in range(200_000))
    saved.session("a", [("p", "", "", f"headword\n{middle}\ntailword")])
    [turn] = SessionText(tmp_path / "sessions" / "a" / "events.jsonl").turns()
    assert len(turn.output) <= OUTPUT_LIMIT + 1
    assert ids(searched(tmp_path, "headword tailword")) == ["a"]
    assert ids(searched(tmp_path, "line100000")) == []


def test_a_line_that_is_too_long_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox_chat.journal.search_text.LINE_LIMIT", 2000)
    saved = Saved(tmp_path)
    saved.session("a", [("one", "x" * 9000), ("two", "y")])
    assert [turn.prompt for turn in SessionText(saved.path("a")).turns()] == ["one", "two"]


def test_text_from_the_file_is_cleaned(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    saved.session("a", [])
    saved.lines("a", {"type": "turn_started", "prompt": "word \x1b[2J\x02 here"})
    [place] = searched(tmp_path, "word").matches[0].places
    assert place.excerpt.text == "word ␛[2J␂ here"


def test_the_agents_own_ids(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    path = saved.session("a", [("one", "x")])
    of_its_origin, own, later = (str(uuid.UUID(int=number)) for number in (1, 2, 3))
    saved.lines(
        "a", {"type": "cleared", "agent_id": of_its_origin}, {"type": "session_forked", "agent_id": own}
    )
    assert agent_ids(path) == {own}  # what came before the branch belongs to another session
    saved.lines("a", {"type": "cleared", "agent_id": later})
    assert agent_ids(path) == {own, later}
    for name in ("memory", "", "..", "*", own.replace("-", ""), f"{{{own}}}", f"urn:uuid:{own}", "A" * 32):
        saved.lines("a", {"type": "cleared", "agent_id": name})
    assert agent_ids(path) == {own, later}  # the others name whatever a folder may hold
    assert agent_ids(tmp_path / "none") == set()


# -- titles ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [True, False], ids=["index", "reading"])
def test_a_title_that_was_given_is_found(tmp_path: Path, index: bool) -> None:
    saved = Saved(tmp_path)
    saved.session("a", [("one", "x")])
    saved.rename("a", "Quarterly report")
    [match] = searched(tmp_path, "quarterly", index=index).matches
    assert (match.places[0].turn, match.places[0].kind) == (0, "title")
    saved.rename("a", "Another")
    assert ids(searched(tmp_path, "quarterly", index=index)) == []
    assert ids(searched(tmp_path, "another", index=index)) == ["a"]
    saved.rename("a", "")
    assert ids(searched(tmp_path, "another", index=index)) == []


# -- keeping up ------------------------------------------------------------------------------------------------


class Counted(SessionText):
    read: list[tuple[str, int]] = []  # noqa: RUF012

    def __init__(self, path: Path, *, offset: int = 0, turns: int = 0) -> None:
        Counted.read.append((path.parent.name, turns))
        super().__init__(path, offset=offset, turns=turns)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    monkeypatch.setattr(search_index, "SessionText", Counted)
    Counted.read = []
    return Counted.read


def test_what_did_not_change_is_not_read_again(data: Path, read: list[tuple[str, int]]) -> None:
    SessionSearch(data).update()
    assert sorted(read) == [("code", 0), ("sine", 0), ("wide", 0)]
    read.clear()
    assert SessionSearch(data).update()
    assert read == []


def test_of_a_session_that_grew_the_end_is_read(data: Path, read: list[tuple[str, int]]) -> None:
    saved = Saved(data)
    SessionSearch(data).update()
    read.clear()
    saved.more("wide", [("third prompt", "newword")])
    assert ids(searched(data, "newword")) == ["wide"]
    assert read == [("wide", 1)]
    assert searched(data, "newword").matches[0].places[0].turn == 3
    read.clear()
    saved.lines("wide", {"type": "text", "text": "continued"})  # of the same turn
    assert searched(data, "newword continued").matches[0].places[0].turn == 3
    assert read == [("wide", 2)]
    assert searched(data, "中文").matches[0].turns == 1


def test_a_session_that_was_written_anew_is_read_anew(data: Path, read: list[tuple[str, int]]) -> None:
    saved = Saved(data)
    SessionSearch(data).update()
    read.clear()
    path = saved.path("wide")
    path.write_bytes(path.read_bytes().replace("中文".encode(), "英文".encode()) + b"\n")
    assert ids(searched(data, "英文")) == ["wide"]
    assert ids(searched(data, "中文")) == []
    assert read == [("wide", 0)]
    path.write_bytes(b"")
    assert ids(searched(data, "英文")) == []


def test_a_session_that_is_gone_is_forgotten(data: Path) -> None:
    assert ids(searched(data, "damped")) == ["sine"]
    path = Saved(data).path("sine")
    path.unlink()
    assert ids(searched(data, "damped")) == []
    with sqlite3.connect(data / NAME) as db:
        assert db.execute("SELECT count(*) FROM texts").fetchone() == (3,)


def bytes_of(data: Path) -> bytes:
    """All that another program can read of the index, as letters of one case."""
    return b"".join(path.read_bytes() for path in data.glob(f"{NAME}*")).lower()


def test_nothing_of_a_session_that_is_deleted_can_be_read_in_the_file(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    for number in range(12):
        saved.session(f"s{number}", [(f"common words {number}", "of an ordinary answer " * 50)])
    secrets = [
        b"hunter",
        b"swordfish",
        b"rosebud",
        b"plutonium",
    ]  # a word at a time, for so the index has them
    saved.session("old", [("hunter and swordfish", "rosebud " * 40, "", "plutonium\n" * 300)] * 30)
    saved.rename("old", "Swordfish plan")
    finder = SessionSearch(tmp_path)
    assert finder.update()
    saved.more("old", [("hunter once more", "x")])
    assert finder.update()
    assert all(secret in bytes_of(tmp_path) for secret in secrets)
    with sqlite3.connect(tmp_path / NAME) as db:  # another program looks: so there is a file -wal
        db.execute("SELECT count(*) FROM sessions").fetchone()
        delete(tmp_path, "old")
        assert [secret for secret in secrets if secret in bytes_of(tmp_path)] == []
    assert len(searched(tmp_path, "ordinary").matches) == 12


def test_what_an_earlier_version_left_of_deleted_sessions_goes_too(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    saved.session("a", [("stays", "x")])
    assert SessionSearch(tmp_path).update()
    with sqlite3.connect(tmp_path / NAME) as db:
        db.execute("INSERT INTO texts(rowid, prompt) VALUES(5, 'swordfish')")
        db.execute("DELETE FROM texts WHERE rowid = 5")
        db.execute("PRAGMA user_version = 1")
    assert b"swordfish" in bytes_of(tmp_path)
    assert ids(searched(tmp_path, "stays")) == ["a"]
    assert b"swordfish" not in bytes_of(tmp_path)


def test_a_large_session_is_written_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[tuple[str, int]]
) -> None:
    monkeypatch.setattr(search_index, "BATCH", 1000)
    saved = Saved(tmp_path)
    saved.session("a", [(f"prompt{number}", "word " * 100) for number in range(10)])
    stops = iter([False] * 4 + [True] * 99)
    assert not SessionSearch(tmp_path).update(stop=lambda: next(stops))
    assert SessionSearch(tmp_path).find("prompt0").matches
    assert SessionSearch(tmp_path).update()
    assert read[0] == ("a", 0)
    assert read[1][1] > 0  # goes on where it stopped
    [match] = SessionSearch(tmp_path).find("word").matches
    assert match.turns == 10
    assert SessionSearch(tmp_path).find("prompt7").matches[0].places[0].turn == 8


def test_the_newest_sessions_come_first_and_no_more_than_asked(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    for number in range(8):
        path = saved.session(f"s{number}", [("same word", "x")] * 5)
        os.utime(path, (1000 + number, 1000 + number))
    finder = SessionSearch(tmp_path)
    assert finder.update()
    found = finder.find("word", limit=3)
    assert ids(found) == ["s7", "s6", "s5"]
    assert found.more
    assert found.matches[0].turns == 5
    assert [place.turn for place in found.matches[0].places] == [1, 2, 3]
    finder.problem = "none"
    again = finder.find("word", limit=3)
    assert (ids(again), again.more, again.indexed) == (ids(found), True, False)


# -- damage, other programs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [b"no database at all" * 100, b"", b"\0" * 8192])
def test_a_damaged_index_is_made_anew(data: Path, damage: bytes) -> None:
    SessionSearch(data).update()
    (data / NAME).write_bytes(damage)
    assert ids(searched(data, "damped")) == ["sine"]


def test_pages_that_are_damaged(data: Path) -> None:
    saved = Saved(data)
    for number in range(40):
        saved.session(f"s{number}", [(f"prompt {number}", "words " * 400)])
    SessionSearch(data).update()
    with sqlite3.connect(data / NAME) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = (data / NAME).stat().st_size
    with (data / NAME).open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    assert ids(searched(data, "damped")) == ["sine"]


def test_an_index_of_another_version(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SessionSearch(data).update()
    with sqlite3.connect(data / NAME) as db:
        db.execute("DROP TABLE texts")
        db.execute("PRAGMA user_version = 99")
    assert ids(searched(data, "damped")) == ["sine"]


def test_a_table_that_is_missing(data: Path) -> None:
    SessionSearch(data).update()
    with sqlite3.connect(data / NAME) as db:
        db.execute("DROP TABLE texts")
    assert ids(SessionSearch(data).find("damped")) == []  # a new one, still empty
    assert ids(searched(data, "damped")) == ["sine"]


def test_no_index_can_be_made(data: Path) -> None:
    (data / NAME).mkdir()
    finder = SessionSearch(data)
    assert not finder.update()
    assert finder.problem
    found = finder.find("damped")
    assert (ids(found), found.indexed) == (["sine"], False)
    finder.forget("sine")


def test_an_index_that_another_program_holds(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "BUSY", 0.05)
    finder = SessionSearch(data)
    assert finder.update()
    Saved(data).more("sine", [("fresh words", "x")])
    with sqlite3.connect(data / NAME, isolation_level=None) as db:
        db.execute("BEGIN IMMEDIATE")
        assert not finder.update()
        assert ids(finder.find("fresh")) == ["sine"]  # by reading
        db.execute("ROLLBACK")
    assert finder.update()
    assert finder.find("fresh").indexed


def test_a_python_without_sqlite(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    finder = SessionSearch(data)
    assert not finder.update()
    assert ids(finder.find("damped")) == ["sine"]


def test_the_index_is_private(data: Path) -> None:
    SessionSearch(data).update()
    assert all(path.stat().st_mode & 0o077 == 0 for path in data.glob(f"{NAME}*"))


def test_nothing_is_made_where_there_are_no_sessions(tmp_path: Path) -> None:
    finder = SessionSearch(tmp_path / "none")
    assert finder.update()
    assert finder.find("x") == Found((), indexed=False)
    assert not (tmp_path / "none").exists()


PROGRAM = """
import sys
from pathlib import Path
from sandbox_chat.journal.search import SessionSearch
finder = SessionSearch(Path(sys.argv[1]))
assert finder.update(), finder.problem
print(len(finder.find("common", limit=500).matches), finder.problem)
"""


def test_programs_that_index_at_the_same_time(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    for number in range(60):
        saved.session(f"s{number}", [(f"prompt {number} common", "words " * 50)] * 3)
    programs = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    outputs = [program.communicate(timeout=120)[0].strip() for program in programs]
    assert outputs == ["60"] * 3
    with sqlite3.connect(tmp_path / NAME) as db:
        assert db.execute("SELECT count(*) FROM texts").fetchone() == (180,)


def test_threads_that_search_while_it_is_indexed(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    for number in range(40):
        saved.session(f"s{number}", [("common words", "x")])
    found: list[int] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            finder = SessionSearch(tmp_path)
            found.append(len(finder.find("common").matches))
            assert finder.problem == ""

    SessionSearch(tmp_path).update(stop=lambda: True)
    thread = threading.Thread(target=look)
    thread.start()
    assert SessionSearch(tmp_path).update()
    done.set()
    thread.join()
    assert len(SessionSearch(tmp_path).find("common").matches) == 40
