"""The list of sessions: titles, order, damaged ones, and how one is named."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sandbox_chat.events import (
    Event,
    ModelUse,
    SessionStarted,
    TextDelta,
    TurnFinished,
    TurnStarted,
    Usage,
)
from sandbox_chat.journal import Journal, SessionNotFound, list_sessions, resolve
from sandbox_chat.journal.errors import SessionAmbiguous

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def session(
    root: Path, session_id: str, *, hour: int = 0, prompt: str = "a prompt", cost: float | None = 0.25
) -> None:
    at = NOON + timedelta(hours=hour)
    past: list[Event] = [
        SessionStarted(seq=1, at=at, session_id=session_id, model="", sandbox="off", demo=True),
        TurnStarted(seq=2, at=at, turn_id="t", prompt=prompt),
        TextDelta(seq=3, at=at, text="x"),
        TurnFinished(
            seq=4,
            at=at,
            turn_id="t",
            subtype="success",
            is_error=False,
            interrupted=False,
            num_turns=1,
            duration_ms=1,
            cost_usd=cost,
            total_cost_usd=cost,
            models=(ModelUse("real-model", Usage(), cost),),
        ),
    ]
    journal = Journal.create(root, session_id)
    for event in past:
        journal.append(event)
    journal.close()
    os.utime(root / session_id / "events.jsonl", (at.timestamp(), at.timestamp()))


def test_a_summary_says_what_a_session_is(tmp_path: Path) -> None:
    session(tmp_path, "s1", prompt="  plot a\n\x1b[31mdamped\x1b[0m sine  ")
    (found,) = list_sessions(tmp_path)
    assert found.to_dict() == {
        "id": "s1",
        "title": "plot a damped sine",
        "created": NOON.isoformat(),
        "updated": NOON.isoformat(),
        "turns": 1,
        "model": "real-model",
        "sandbox": "off",
        "demo": True,
        "total_cost_usd": 0.25,
        "last_prompt": "plot a damped sine",
        "made_title": "plot a damped sine",
        "renamed": False,
    }


def test_the_one_used_last_comes_first(tmp_path: Path) -> None:
    for name, hour in (("a", 1), ("b", 3), ("c", 2)):
        session(tmp_path, name, hour=hour)
    assert [summary.id for summary in list_sessions(tmp_path)] == ["b", "c", "a"]
    os.utime(tmp_path / "a" / "events.jsonl")  # a killed program wrote after the last summary
    assert list_sessions(tmp_path)[0].id == "a"


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"format":1}', b'{"title":5,"turns":"x"}', b"\xff", None]
)
def test_a_damaged_summary_is_made_again_from_the_events(tmp_path: Path, damage: bytes | None) -> None:
    session(tmp_path, "s1")
    meta = tmp_path / "s1" / "meta.json"
    (before,) = list_sessions(tmp_path)
    meta.unlink()
    if damage is not None:
        meta.write_bytes(damage)
    assert list_sessions(tmp_path) == [before]


@pytest.mark.parametrize(
    ("field", "value"),
    [("total_cost_usd", "Infinity"), ("total_cost_usd", "NaN"), ("total_cost_usd", "-1"), ("turns", "-3"),
     ("total_cost_usd", "1e300"), ("turns", "1e30")],
)  # fmt: skip
def test_numbers_of_a_summary_that_cannot_be_true_are_made_again(
    tmp_path: Path, field: str, value: str
) -> None:
    session(tmp_path, "s1")
    (before,) = list_sessions(tmp_path)
    meta = tmp_path / "s1" / "meta.json"
    data = {**json.loads(meta.read_text()), field: "PLACE"}
    meta.write_text(json.dumps(data).replace('"PLACE"', value))
    assert list_sessions(tmp_path) == [before]


def test_an_unknown_price_stays_unknown(tmp_path: Path) -> None:
    session(tmp_path, "s1", cost=None)
    assert list_sessions(tmp_path)[0].total_cost_usd is None


def test_a_summary_is_not_trusted(tmp_path: Path) -> None:
    session(tmp_path, "s1")
    meta = tmp_path / "s1" / "meta.json"
    data = json.loads(meta.read_text())
    meta.write_text(
        json.dumps({**data, "id": "../other", "title": "\x1b[2Jx\ny", "created": "2026-01-01T00:00:00"})
    )
    (found,) = list_sessions(tmp_path)
    assert found.id == "s1"
    assert found.title == "␛[2Jx y"
    assert found.created.tzinfo is not None


def test_what_is_no_session_is_passed_over(tmp_path: Path) -> None:
    session(tmp_path, "s1")
    (tmp_path / "empty").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "events.jsonl").mkdir()
    assert [summary.id for summary in list_sessions(tmp_path)] == ["s1"]


def test_no_folder_is_no_sessions(tmp_path: Path) -> None:
    assert list_sessions(tmp_path / "none") == []
    (tmp_path / "file").touch()
    assert list_sessions(tmp_path / "file") == []


def test_a_session_is_named_by_id_beginning_or_as_the_newest(tmp_path: Path) -> None:
    session(tmp_path, "aa11-x", hour=1)
    session(tmp_path, "aa22-y", hour=2)
    session(tmp_path, "bb33-z", hour=0)
    assert resolve(tmp_path, None) == "aa22-y"
    assert resolve(tmp_path, "aa11-x") == "aa11-x"
    assert resolve(tmp_path, " AA1 ") == "aa11-x"
    assert resolve(tmp_path, "b") == "bb33-z"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("aa", "2 sessions begin with 'aa' (aa11-x, aa22-y). Write more of the id."),
        ("zz", "There is no session 'zz'. See the list with: sandbox-chat sessions"),
        ("", "'' is not the id of a session."),
        ("../aa11-x", "is not the id of a session."),
        ("\x1b[2J", "is not the id of a session."),
    ],
)
def test_a_name_that_fits_none_or_many(tmp_path: Path, wanted: str, said: str) -> None:
    session(tmp_path, "aa11-x")
    session(tmp_path, "aa22-y")
    with pytest.raises(SessionNotFound) as caught:
        resolve(tmp_path, wanted)
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


def test_those_that_fit_are_named(tmp_path: Path) -> None:
    for number in range(7):
        session(tmp_path, f"aaaabbbb-{number}")
    with pytest.raises(SessionAmbiguous) as caught:
        resolve(tmp_path, "aaaabbbb")
    assert caught.value.fits == tuple(f"aaaabbbb-{number}" for number in range(5))


def test_the_newest_of_none(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound, match="no session yet"):
        resolve(tmp_path, None)
    with pytest.raises(SessionNotFound, match="There is no session 'x'"):
        resolve(tmp_path / "none", "x")


@pytest.mark.parametrize(
    ("field", "value"),
    [("turns", "1e999"), ("turns", "-1e999"), ("total_cost_usd", "1" + "0" * 400), ("created", "5"),
     ("updated", '"9999-12-31T23:59:59-23:59"'), ("turns", "9" * 5000), ("title", "[]")],
)  # fmt: skip
def test_a_summary_with_impossible_values_does_not_hide_the_list(
    tmp_path: Path, field: str, value: str
) -> None:
    session(tmp_path, "abc")
    session(tmp_path, "def")
    meta = tmp_path / "abc" / "meta.json"
    data = {**json.loads(meta.read_text()), field: "PLACE"}
    meta.write_text(json.dumps(data).replace('"PLACE"', value))
    assert {summary.id for summary in list_sessions(tmp_path)} == {"abc", "def"}


@pytest.mark.parametrize("name", ["events.jsonl", "meta.json"])
def test_a_pipe_in_place_of_a_file_holds_nobody_up(tmp_path: Path, name: str) -> None:
    session(tmp_path, "abc")
    session(tmp_path, "def")
    (tmp_path / "abc" / name).unlink()
    os.mkfifo(tmp_path / "abc" / name)
    found = {summary.id for summary in list_sessions(tmp_path)}
    assert found == ({"def"} if name == "events.jsonl" else {"abc", "def"})
