"""Skills on disk: what the user has promoted is used, exactly as it was then, and nothing else."""

from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path

import pytest

from sandbox_chat.skills import SkillError, Store
from sandbox_chat.skills.skill import CODE_BYTES, digest_of

CODE = "def double(x):\n    return 2 * x\n"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "skills")


def promoted(store: Store, name: str = "double", code: str = CODE) -> None:
    draft = store.save_draft(name, code, "Doubles a number.", origin="session-1 call-2")
    store.promote(name, expected=draft.digest)


def test_from_draft_to_skill(store: Store) -> None:
    draft = store.save_draft("double", CODE, "Doubles a number.\nAny number.", origin="session-1 call-2")
    assert [each.name for each in store.drafts()] == ["double"]
    assert store.skills() == []
    with pytest.raises(SkillError, match="is a draft"):
        store.source("double")
    assert "+def double(x):" in store.difference("double")
    skill = store.promote("double", expected=draft.digest)
    assert (skill.state, skill.version, skill.origin) == ("ready", 1, "session-1 call-2")
    assert skill.first_line == "Doubles a number."
    assert store.source("double") == CODE
    assert store.drafts() == []
    assert store.listing() == "double: Doubles a number."
    text = (store.folder / "double" / "SKILL.md").read_text()
    assert text.startswith('---\nname: double\ndescription: "Doubles a number."\n---\n')


def test_a_new_version(store: Store) -> None:
    promoted(store)
    draft = store.save_draft("double", CODE.replace("2 *", "3 *"), "Triples.", origin="session-2")
    assert store.source("double") == CODE
    shown = store.difference("double")
    assert "-    return 2 * x" in shown
    assert "+    return 3 * x" in shown
    assert store.promote("double", expected=draft.digest).version == 2
    assert "3 * x" in store.source("double")
    assert (store.folder / ".versions" / "double" / "1" / "double.py").read_text() == CODE


def test_a_draft_that_changed_while_it_was_looked_at(store: Store) -> None:
    seen = store.save_draft("double", CODE, "Doubles.", origin="")
    store.save_draft("double", "import os\n", "Doubles.", origin="")
    with pytest.raises(SkillError, match="changed while it was looked at"):
        store.promote("double", expected=seen.digest)
    assert store.skills() == []


@pytest.mark.parametrize("how", ["code", "more", "less", "link", "manifest"])
def test_a_file_that_changed_after_promotion(
    how: str, store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    promoted(store)
    folder = store.folder / "double"
    match how:
        case "code":
            (folder / "double.py").write_text("import os\n")
        case "more":
            (folder / "more.py").write_text("x = 1\n")
        case "less":
            (folder / "SKILL.md").unlink()
        case "manifest":
            (folder / "SKILL.md").write_text("---\nname: double\ndescription: Do as it says.\n---\n")
        case _:
            (tmp_path / "other.py").write_text(CODE)
            (folder / "double.py").unlink()
            (folder / "double.py").symlink_to(tmp_path / "other.py")
    with caplog.at_level(logging.WARNING), pytest.raises(SkillError):
        store.source("double")
    assert [each.state for each in store.skills()] == ["damaged" if how == "link" else "changed"]
    assert store.listing() == ""
    if how != "link":
        assert "is not as it was promoted" in caplog.text


def test_what_the_user_put_there_is_promoted_too(store: Store) -> None:
    assert store.add(
        "notes", {"SKILL.md": b"---\nname: notes\ndescription: >\n  How we write\n  notes.\n---\n\nText.\n"}
    )
    (skill,) = store.skills()
    assert (skill.state, skill.description) == ("new", "How we write notes.")
    with pytest.raises(SkillError, match="was not promoted"):
        store.source("notes")
    store.promote("notes", expected=skill.digest)
    with pytest.raises(SkillError, match="a text and no code"):
        store.source("notes")
    assert store.skills()[0].state == "ready"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../x",
        "a/b",
        "Double",
        "1a",
        "os",
        "json",
        "class",
        "tools",
        "skills",
        "a" * 42,
        "ä",
        "dоuble",
        "a b",
        "a\n",
    ],
)
def test_names_that_are_none(name: str, store: Store) -> None:
    for act in (
        lambda: store.save_draft(name, CODE, "Doubles.", origin=""),
        lambda: store.source(name),
        lambda: store.promote(name, expected=""),
        lambda: store.remove(name),
        lambda: store.discard(name),
        lambda: store.difference(name),
    ):
        with pytest.raises(SkillError, match="cannot be the name"):
            act()


@pytest.mark.parametrize(
    ("code", "description", "words"),
    [
        ("def x(:", "Doubles.", "no Python"),
        ("", "Doubles.", "empty"),
        ("x = 1\n" * (CODE_BYTES // 6 + 1), "Doubles.", "bytes"),
        ("x = '\0'", "Doubles.", "no Python"),
        (CODE, "", "description"),
        (CODE, "x" * 2000, "description"),
        (CODE, "a\n---\nname: other", "description"),
    ],
)
def test_drafts_that_are_none(code: str, description: str, words: str, store: Store) -> None:
    with pytest.raises(SkillError, match=words):
        store.save_draft("double", code, description, origin="")
    assert store.drafts() == []


def test_risks_are_told(store: Store) -> None:
    code = (
        "import socket, subprocess\nfrom tools import call_mcp_tool\nx = eval('1')\nopen('/tmp/x', 'w')\n"
        f"url = 'https://example.com/x'\ndata = '{'QUJD' * 100}'\nname = 'a\u202eb'\nnаme = 2\n"
    )
    store.save_draft("odd", code, "Odd.", origin="")
    told = "\n".join(store.risks("odd"))
    for word in (
        "socket",
        "subprocess",
        "tools",
        "eval",
        "open for writing",
        "https://example.com/x",
        "encoded",
        "U+202E",
        "look like",
    ):
        assert word in told, (word, told)
    assert "\u202e" not in store.difference("odd")
    store.save_draft("plain", CODE, "Plain.", origin="")
    assert store.risks("plain") == []


def test_a_damaged_list_of_what_was_promoted(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    promoted(store)
    for text in ("{", "[]", '{"promoted": 1}', '{"promoted": {"double": 7}}', "[" * 100_000):
        (store.folder / ".promoted.json").write_text(text)
        assert [each.state for each in store.skills()] == ["new"]
        with pytest.raises(SkillError):
            store.source("double")
    assert "damaged" in caplog.text


def test_odd_files_are_not_read(store: Store, tmp_path: Path) -> None:
    promoted(store)
    os.mkfifo(store.folder / "double" / "pipe")
    assert store.skills()[0].state == "damaged"
    (store.folder / "double" / "pipe").unlink()
    with (store.folder / "double" / "big").open("wb") as file:
        file.truncate(1 << 32)
    assert "bytes" in store.skills()[0].problem
    (store.folder / "double" / "big").unlink()
    assert store.source("double") == CODE
    (store.folder / "linked").symlink_to(store.folder / "double")
    assert [each.name for each in store.skills()] == ["double"]


def test_search_and_removal(store: Store) -> None:
    promoted(store)
    promoted(store, "describe_rows")
    assert [each.name for each in store.search("rows")] == ["describe_rows"]
    assert len(store.search("")) == 2
    store.remove("double")
    assert [each.name for each in store.skills()] == ["describe_rows"]
    with pytest.raises(SkillError, match="There is no skill double; there are describe_rows"):
        store.source("double")
    assert (store.folder / ".versions" / "double" / "1" / "double.py").read_text() == CODE


def test_the_digest_knows_names_and_borders() -> None:
    assert digest_of({"a": b"1", "b": b"2"}) == digest_of({"b": b"2", "a": b"1"})
    assert digest_of({"a": b"1b", "c": b""}) != digest_of({"a": b"1", "bc": b""})


def test_two_at_once(store: Store) -> None:
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            promoted(store, f"skill_{number}")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [each.state for each in store.skills()] == ["ready"] * 8
    assert len(json.loads((store.folder / ".promoted.json").read_text())["promoted"]) == 8


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "skills")
    assert store.skills() == []
    with pytest.raises(SkillError, match="SANDBOX_CHAT_SKILLS_DIR"):
        store.save_draft("double", CODE, "Doubles.", origin="")


def test_files_of_a_skill_are_given_as_they_were_promoted(store: Store) -> None:
    store.add(
        "notes",
        {"SKILL.md": b"---\nname: notes\ndescription: How we write.\n---\nShort.\n", "more.md": b"More."},
    )
    with pytest.raises(SkillError, match="not promoted"):
        store.text("notes")
    (skill,) = store.skills()
    store.promote("notes", expected=skill.digest)
    assert store.text("notes").endswith("Short.\n")
    assert store.text("notes", "more.md") == "More."
    with pytest.raises(SkillError, match=r"no file \.\./x; it has SKILL\.md, more\.md"):
        store.text("notes", "../x")
    with pytest.raises(SkillError, match="is a text and no code"):
        store.source("notes")
    promoted(store)
    assert store.text("double") == CODE
    (store.folder / "notes" / "more.md").write_text("Else.")
    with pytest.raises(SkillError, match="was changed after"):
        store.text("notes", "more.md")


def test_a_look_is_of_one_draft_or_of_the_skill_beside_it(store: Store) -> None:
    promoted(store)
    draft = store.save_draft(
        "double", CODE.replace("2 *", "eval(x) *"), "Doubles.", origin="session-2 call-1"
    )
    seen = store.look("double")
    assert seen == store.look("double", draft=True)
    assert (seen.digest, seen.origin, seen.cut) == (draft.digest, "session-2 call-1", False)
    assert "+    return eval(x) * x" in seen.difference
    assert seen.risks == ("double.py calls eval.",)
    assert b"eval" in seen.files["double.py"]
    beside = store.look("double", draft=False)
    assert (beside.difference, beside.risks, beside.origin) == ("", (), "session-1 call-2")
    assert beside.digest == store.skills()[0].digest
    with pytest.raises(SkillError, match="There is no draft of a skill triple"):
        store.look("triple", draft=True)


def test_a_look_says_that_it_is_cut(store: Store) -> None:
    store.save_draft("long", "x = 1  # more\n" * 10_000, "Long.", origin="session-1")
    seen = store.look("long")
    assert seen.cut
    assert "cut out of" in seen.difference
    assert len(seen.difference) < 101_000
