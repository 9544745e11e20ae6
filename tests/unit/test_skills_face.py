"""The command ``skills``: what it shows before anything is promoted, and that nothing else is promoted than what was shown."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox_chat import arguments, skills_face
from sandbox_chat.arguments_skills import COMMANDS
from sandbox_chat.settings import Settings
from sandbox_chat.skills import Store
from sandbox_chat.skills_face import EXAMPLES, FAILED, HASH, OK, run

CODE = "def double(x):\n    return 2 * x\n"


class Terminal(io.StringIO):
    """An input that a person types into."""

    def isatty(self) -> bool:
        return True


class Face:
    """The command over a real folder. Each call returns the exit code, the output and the errors."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.settings = Settings(skills_dir=folder, language="en")
        self.store = Store(folder)
        self._capsys, self._patch = capsys, patch

    def __call__(
        self, *words: str, typed: str | None = None, settings: Settings | None = None
    ) -> tuple[int, str, str]:
        self._patch.setattr(sys, "stdin", io.StringIO("y\n") if typed is None else Terminal(typed))
        code = run(settings or self.settings, arguments.parse(["skills", *words]))
        out, err = self._capsys.readouterr()
        return code, out, err

    def draft(self, name: str = "double", code: str = CODE, description: str = "Doubles a number.") -> str:
        """Hand a draft in, and return its digest."""
        return self.store.save_draft(name, code, description, origin="session-1 call-2").digest

    def promote(self, name: str = "double") -> None:
        self.store.promote(name, expected=self.draft(name))


@pytest.fixture
def f(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Face:
    return Face(tmp_path / "skills", capsys, monkeypatch)


# -- what there is -----------------------------------------------------------------------------------------


def test_nothing(f: Face) -> None:
    for words in ([], ["list"], ["search", "x"]):
        code, out, err = f(*words)
        assert (code, err) == (OK, "")
        assert str(f.store.folder) in out
        assert "sandbox-chat skills init" in out
    assert f("list", "--json") == (OK, "[]\n", "")
    assert f("path") == (OK, f"{f.store.folder}\n", "")
    assert not f.store.folder.exists()  # to look is to make nothing


def test_a_list(f: Face) -> None:
    f.promote()
    f.draft("double", CODE.replace("2", "3"))
    f.draft("other", description="第一 行。\nMore.")
    f.store.add("mine", {"SKILL.md": b"---\nname: mine\ndescription: Of mine.\n---\n"})
    f.promote("altered")
    (f.store.folder / "altered" / "altered.py").write_text("x = 1\n")
    (f.store.folder / "Not A Name").mkdir()
    code, out, _ = f()
    assert code == OK
    rows = [line.split(maxsplit=3) for line in out.splitlines()]
    assert rows[0] == ["NAME", "STATE", "VERSION", "ABOUT"]
    found = {(row[0], row[1]): row[2:] for row in rows[1:]}
    assert found["double", "ready"] == ["1", "Doubles a number."]
    assert found["altered", "changed"][0] == "1"
    assert ("double", "draft") in found
    assert ("mine", "new") in found
    assert "cannot be the name of a skill" in out
    assert out == f("list")[1]
    column = out.splitlines()[0].index("STATE")
    assert all(line[column - 1] == " " and line[column] != " " for line in out.splitlines())


def test_a_list_for_programs(f: Face) -> None:
    f.promote()
    digest = f.draft("other", description="第一。")
    code, out, _ = f("--json")
    assert code == OK
    assert json.loads(out) == [
        {"name": "double", "state": "ready", "version": 1, "about": "Doubles a number.",
         "hash": f.store.skills()[0].digest, "origin": "session-1 call-2"},
        {"name": "other", "state": "draft", "version": 0, "about": "第一。", "hash": digest, "origin": "session-1 call-2"},
    ]  # fmt: skip


def test_a_search(f: Face) -> None:
    f.promote()
    f.promote("other")
    assert [row["name"] for row in json.loads(f("search", "double", "--json")[1])] == ["double", "other"]
    assert [row["name"] for row in json.loads(f("search", "other", "--json")[1])] == ["other"]
    f.draft("unseen")
    assert "unseen" not in f("search", "unseen")[1]  # a draft is none yet


def test_showing(f: Face) -> None:
    f.draft()
    code, out, _ = f("show", "double")
    assert code == OK
    assert f"# double.py\n{CODE}" in out
    assert "# SKILL.md\n" in out
    assert "session-1" not in out  # where it is from is no file of it
    f.promote()
    f.draft("double", "new = 1\n")
    assert "# double.py\nnew = 1\n" in f("show", "double")[1]


def test_nothing_that_is_shown_reaches_the_terminal_as_it_is(f: Face) -> None:
    f.draft("double", "# \x1b[2J\u202e\n", "Clears\x07 it.")
    for words in (["show", "double"], ["diff", "double"], ["list"], ["promote", "double"]):
        _, out, err = f(*words)
        assert not {"\x1b", "\u202e", "\x07"} & set(out + err)


@pytest.mark.parametrize("action", ["show", "diff", "promote", "discard", "remove"])
@pytest.mark.parametrize("name", ["gone", "../x", "os", "x\x1b[2J"])
def test_one_that_there_is_not(action: str, name: str, f: Face) -> None:
    code, out, err = f(action, name)
    assert (code, out) == (FAILED, "")
    assert err.startswith("sandbox-chat: ")
    assert err.count("\n") == 1
    assert "\x1b" not in err


# -- promoting ---------------------------------------------------------------------------------------------


def test_what_is_told_before(f: Face) -> None:
    digest = f.draft("double", "import subprocess\n" + CODE)
    code, out, _ = f("diff", "double")
    assert code == OK
    assert "+def double(x):" in out
    assert "from session-1 call-2" in out
    assert "look at: " in out
    assert "subprocess" in out
    assert f"hash {digest[:HASH]}\n" in out
    assert f.store.skills() == []
    f.draft("calm")
    assert "Nothing that is known to be dangerous was found; that says little." in f("diff", "calm")[1]


@pytest.mark.parametrize("typed", ["y\n", "Yes\n", " YES \n"])
def test_a_yes(typed: str, f: Face) -> None:
    f.draft()
    code, out, _ = f("promote", "double", typed=typed)
    assert code == OK
    assert "+def double(x):" in out
    assert out.endswith("[y/N] double is promoted, version 1.\n")
    assert f.store.source("double") == CODE


@pytest.mark.parametrize("typed", ["n\n", "\n", "", "yeah\n", "no\ny\n"])
def test_anything_else(typed: str, f: Face) -> None:
    f.draft()
    code, out, _ = f("promote", "double", typed=typed)
    assert (code, out.endswith("double was not promoted.\n")) == (FAILED, True)
    assert f.store.skills() == []


def test_without_a_terminal_the_hash_must_be_told(f: Face) -> None:
    digest = f.draft()
    for words in ([], ["--yes"], ["--hash", digest[:HASH]]):
        code, _, err = f("promote", "double", *words)  # its input says yes, but nobody typed it
        assert code == FAILED
        assert "give --yes and --hash HASH" in err
        assert f.store.skills() == []
    code, out, _ = f("promote", "double", "--yes", "--hash", digest[:HASH])
    assert (code, out.endswith("double is promoted, version 1.\n")) == (OK, True)


@pytest.mark.parametrize(
    "change", [lambda d: d[: HASH - 1], lambda d: "0" * HASH, lambda d: d + "0", lambda d: d[1:], lambda d: "x\x1b[2J"]
)  # fmt: skip
def test_another_hash(change: Callable[[str], str], f: Face) -> None:
    digest = f.draft()
    for typed in (None, "y\n"):
        code, _, err = f("promote", "double", "--yes", "--hash", change(digest), typed=typed)
        assert code == FAILED
        assert f"What is there now has the hash {digest[:HASH]}" in err
        assert err.rstrip().endswith("Look at it again.")
        assert "\x1b" not in err
        assert f.store.skills() == []


def test_what_changes_while_the_user_thinks(f: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    f.draft()

    class Slow(Terminal):
        def readline(self, *_: object) -> str:  # type: ignore[override]
            f.draft("double", "import os\n")
            return "y\n"

    monkeypatch.setattr(sys, "stdin", Slow())
    assert run(f.settings, arguments.parse(["skills", "promote", "double"])) == FAILED
    assert f.store.skills() == []


def test_files_that_the_user_put_there(f: Face) -> None:
    f.store.add("mine", {"mine.py": b"x = 1\n"})
    assert "from " not in f("diff", "mine")[1]  # nobody handed it in
    digest = f.store.skills()[0].digest
    assert f("promote", "mine", "--yes", "--hash", digest)[0] == OK
    assert f.store.source("mine") == "x = 1\n"


def test_what_is_promoted_as_it_is(f: Face) -> None:
    """Nothing differs, and that is said."""
    f.promote()
    code, out, _ = f("diff", "double")
    assert code == OK
    assert "There is nothing that differs from what was promoted." in out


# -- the rest ----------------------------------------------------------------------------------------------


def test_discard(f: Face) -> None:
    f.draft()
    assert f("discard", "double") == (OK, "The draft of double is deleted.\n", "")
    assert f.store.drafts() == []


def test_remove(f: Face) -> None:
    f.promote()
    code, out, _ = f("remove", "double")
    assert code == OK
    assert str(f.store.folder / ".versions") in out
    assert f.store.skills() == []
    assert (f.store.folder / ".versions" / "double" / "1" / "double.py").read_text() == CODE


def test_the_examples_are_added_once_and_not_promoted(f: Face) -> None:
    code, out, _ = f("init")
    assert code == OK
    assert all(f"{name} is in {f.store.folder}" in out for name in EXAMPLES)
    assert {(each.name, each.state) for each in f.store.skills()} == {(name, "new") for name in EXAMPLES}
    (f.store.folder / "template" / "template.py").write_text("mine = 1\n")
    code, out, _ = f("init")
    assert code == OK
    assert "template is there already and was left as it is." in out
    assert (f.store.folder / "template" / "template.py").read_text() == "mine = 1\n"


def test_a_folder_that_cannot_be_used(f: Face, tmp_path: Path) -> None:
    (tmp_path / "skills").write_text("a file")
    code, out, err = f("init")
    assert (code, out) == (FAILED, "")
    assert "SANDBOX_CHAT_SKILLS_DIR" in err


def test_in_chinese(f: Face, tmp_path: Path) -> None:
    chinese = Settings(skills_dir=tmp_path / "skills", language="zh")
    f.draft()
    _, out, _ = f("list", settings=chinese)
    assert "NAME" not in out
    assert any("\u4e00" <= sign <= "\u9fff" for sign in out)
    _, out, err = f("promote", "double", settings=chinese)
    assert "请给出 --yes 和 --hash" in err


def test_each_command_is_done(f: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them is taken for another one, which would be the list."""
    f.promote()
    monkeypatch.setattr(skills_face, "_list", lambda store, **_: 7)
    for name in COMMANDS:
        more = ["double"] if name in ("show", "diff", "promote", "discard", "remove", "search") else []
        code = f(name, *more)[0]
        assert (code == 7) is (name in ("list", "search"))
