"""The sessions on the command line: list, search, rename, delete."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from support.saved import Saved

from sandbox_chat.journal import Journal, SessionError, SessionInUse, SessionNotFound
from sandbox_chat.session_list import delete, print_list, rename

ID = "0f8b9a52-1111-4000-8000-000000000001"


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    saved = Saved(tmp_path)
    saved.session(ID, [("plot a sine\nplease", "done"), ("and a cosine?", "here")])
    saved.session("ffff0000-2", [("另一个", "好")], model="demo", demo=True)
    return saved


def rows(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_the_list_is_a_table(saved: Saved, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_list(saved.data) == 0
    head, *found = rows(capsys)
    assert head.split() == ["ID", "LAST", "USED", "TURNS", "COST", "MODEL", "TITLE", "›", "LAST", "PROMPT"]
    found.sort()
    assert found[0].startswith("0f8b9a52  20")
    assert found[0].endswith("      2  $0.0200  m-1    plot a sine please › and a cosine?")
    assert found[1].endswith("      1     demo  demo   另一个")


def test_the_list_as_json(saved: Saved, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_list(saved.data, as_json=True) == 0
    found = {each["id"]: each for each in json.loads(capsys.readouterr().out)}
    one = found[ID]
    assert (one["turns"], one["total_cost_usd"], one["last_prompt"]) == (2, 0.02, "and a cosine?")
    assert print_list(saved.data / "none", as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_an_empty_list_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_list(tmp_path) == 0
    assert rows(capsys) == ["There are no sessions yet. Start one with: sandbox-chat"]
    assert print_list(tmp_path, search="x") == 0
    assert rows(capsys) == ["Nothing was found."]


def test_what_is_found_is_shown_with_its_turn(saved: Saved, capsys: pytest.CaptureFixture[str]) -> None:
    assert print_list(saved.data, search="cosin") == 0
    head, place = rows(capsys)
    assert head.startswith("0f8b9a52  20")
    assert head.endswith("  2 turns  $0.0200  m-1  plot a sine please")
    assert place == "    turn 2, prompt: and a «cosin»e?"
    assert print_list(saved.data, search="一个", as_json=True) == 0
    [match] = json.loads(capsys.readouterr().out)
    assert (match["id"], match["matches"]) == ("ffff0000-2", 1)
    assert match["places"] == [{"turn": 1, "kind": "prompt", "text": "另一个", "marks": [[1, 3]]}]


def test_many_places_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Saved(tmp_path).session("many", [("same", "x")] * 5)
    assert print_list(tmp_path, search="same") == 0
    assert rows(capsys)[-1] == "    and 2 more"


def test_another_title(saved: Saved, capsys: pytest.CaptureFixture[str]) -> None:
    assert rename(saved.data, "0f8b", "Sines \x1b[2J\nand more") == 0
    assert rows(capsys) == ["Session 0f8b9a52 is now called: Sines ␛[2J and more"]
    print_list(saved.data)
    assert any("Sines ␛[2J and more › and a cosine?" in row for row in rows(capsys))
    assert rename(saved.data, ID, "") == 0
    assert rows(capsys) == ["Session 0f8b9a52 is now called: plot a sine please"]
    with pytest.raises(SessionNotFound):
        rename(saved.data, "abc", "x")


def agent_records(data: Path, *names: str) -> list[Path]:
    out = []
    for name in names:
        path = data / "claude" / "config" / "projects" / "-tmp-x" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if "." in name:
            path.write_text("{}")
        else:
            path.mkdir()
            (path / "inner").write_text("x")
        out.append(path)
    return out


def test_deleting(saved: Saved, capsys: pytest.CaptureFixture[str]) -> None:
    other = "0f8b9a52-2222-4000-8000-000000000002"
    saved.lines(ID, {"type": "cleared", "agent_id": other})
    gone = agent_records(saved.data, f"{ID}.jsonl", ID, f"{other}.jsonl")
    stays = agent_records(saved.data, f"{ID}0.jsonl", "another.jsonl", "ffff0000-2.jsonl")
    print_list(saved.data, search="sine")
    capsys.readouterr()
    assert delete(saved.data, ["0f8b", ID], yes=True) == 0
    assert rows(capsys) == ["Session 0f8b9a52 was deleted."]
    assert [path.name for path in saved.root.iterdir()] == ["ffff0000-2"]
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in stays)
    print_list(saved.data, search="sine")
    assert rows(capsys) == ["Nothing was found."]


def test_an_open_session_is_not_deleted_and_no_other_either(saved: Saved) -> None:
    journal = Journal.open(saved.root, ID)
    try:
        with pytest.raises(SessionInUse):
            delete(saved.data, ["ffff", "0f8b"], yes=True)
        with pytest.raises(SessionInUse):
            rename(saved.data, "0f8b", "x")
    finally:
        journal.close()
    assert len(list(saved.root.iterdir())) == 2
    assert delete(saved.data, ["0f8b"], yes=True) == 0


class Answer(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("YES\n", 0), ("\n", 1), ("n\n", 1), ("", 1)])
def test_deleting_asks(
    saved: Saved, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, code: int
) -> None:
    monkeypatch.setattr(sys, "stdin", Answer(answer))
    assert delete(saved.data, ["0f8b"]) == code
    out = capsys.readouterr().out
    assert "0f8b9a52  plot a sine please\nDelete this session for good? [y/N] " in out
    assert (saved.root / ID).exists() is (code == 1)


def test_nobody_can_be_asked(saved: Saved, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(SessionError, match="--yes"):
        delete(saved.data, ["0f8b"])
    assert (saved.root / ID).exists()
