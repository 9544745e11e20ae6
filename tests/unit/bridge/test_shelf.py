"""Skills for code: what is promoted can be used, what code hands in is a draft and no more."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from sandbox_chat.bridge import shelf as shelf_module
from sandbox_chat.bridge.shelf import DRAFTS, Shelf
from sandbox_chat.events import Event, Notice
from sandbox_chat.skills import Store
from sandbox_chat.tools.context import Question

CODE = "def double(x):\n    return 2 * x\n"


class Shelved:
    """A shelf over a real store."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "skills")
        self.events: list[Event] = []
        self.shelf = Shelf(self.store, self.events.append, origin="session-1")

    async def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        return await self.shelf.answer({"op": op, **fields}, "call-7")

    async def hand_in(self, name: str = "double", code: str = CODE) -> dict[str, Any]:
        return await self.ask("draft", name=name, code=code, description="Doubles a number.\nAny.")

    def promote(self, name: str = "double") -> None:
        self.store.promote(name, expected=self.store.draft(name).digest)


@pytest.fixture
def s(tmp_path: Path) -> Shelved:
    return Shelved(tmp_path)


async def test_a_draft(s: Shelved) -> None:
    answer = await s.hand_in()
    assert answer["ok"]
    assert "draft of the skill double is kept" in answer["value"]
    assert "cannot be imported" in answer["value"]
    draft = s.store.draft("double")
    assert draft.origin == "session-1 call-7"
    (told,) = s.events
    assert isinstance(told, Notice)
    assert told.level == "info"
    assert "sandbox-chat skills diff double" in told.text
    assert "/skills" in told.text
    assert "sandbox-chat skills promote double" in told.text


async def test_a_draft_is_not_used(s: Shelved) -> None:
    await s.hand_in()
    assert await s.ask("skills") == {"ok": True, "value": []}
    answer = await s.ask("skill", name="double")
    assert answer == {
        "ok": False,
        "kind": "denied",
        "text": "The skill double is a draft: the user has not promoted it.",
    }


async def test_what_is_promoted_is_used(s: Shelved) -> None:
    await s.hand_in()
    s.promote()
    listed = {"ok": True, "value": [{"name": "double", "about": "Doubles a number.", "importable": True}]}
    assert await s.ask("skills") == listed
    assert await s.ask("skills", query=None) == listed
    assert await s.ask("skills", query="number") == listed
    assert await s.ask("skills", query="zebra") == {"ok": True, "value": []}
    assert await s.ask("skill", name="double") == {"ok": True, "value": {"source": CODE, "version": 1}}
    await s.hand_in(code=CODE.replace("2", "3"))
    assert (await s.ask("skill", name="double"))["value"] == {"source": CODE, "version": 1}
    s.promote()
    assert (await s.ask("skill", name="double"))["value"] == {
        "source": CODE.replace("2", "3"),
        "version": 2,
    }


async def test_the_texts_of_a_skill(s: Shelved) -> None:
    """Of one that is a text and no code, and the files beside it."""
    s.store.add(
        "guide", {"SKILL.md": b"---\nname: guide\ndescription: How to.\n---\nDo it.\n", "more.txt": b"more"}
    )
    (new,) = s.store.skills()
    s.store.promote("guide", expected=new.digest)
    assert (await s.ask("skills"))["value"] == [{"name": "guide", "about": "How to.", "importable": False}]
    assert (await s.ask("skill_text", name="guide"))["value"].endswith("---\nDo it.\n")
    assert (await s.ask("skill_text", name="guide", file="more.txt")) == {"ok": True, "value": "more"}
    assert "cannot be imported" in (await s.ask("skill", name="guide"))["text"]
    for file in ("../guide/more.txt", "/etc/passwd", "gone", 5, ["more.txt"]):
        answer = await s.ask("skill_text", name="guide", file=file)
        assert answer["kind"] == "denied"
        assert "it has SKILL.md, more.txt" in answer["text"]
    await s.hand_in()
    assert (await s.ask("skill_text", name="double"))["kind"] == "denied"
    s.promote()
    assert (await s.ask("skill_text", name="double"))["value"] == CODE


async def test_what_was_changed_is_not_used(s: Shelved) -> None:
    await s.hand_in()
    s.promote()
    (s.store.folder / "double" / "double.py").write_text("import os\n")
    assert await s.ask("skills") == {"ok": True, "value": []}
    answer = await s.ask("skill", name="double")
    assert answer["kind"] == "denied"
    assert "changed after the user had promoted it" in answer["text"]


@pytest.mark.parametrize("name", ["gone", "../double", "", None, 5, ["double"], "a" * 500, "x\x1b[2J"])
async def test_a_skill_that_there_is_not(name: object, s: Shelved, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for op in ("skill", "skill_text"):
        answer = await s.ask(op, name=name)
        assert (answer["ok"], answer["kind"]) == (False, "denied")
        assert answer["text"]
        assert "\x1b" not in answer["text"]
    assert caplog.text.count("code mode refused (call-7): ") == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", None), ("code", None), ("description", None),
        ("name", 1), ("code", ["x"]), ("description", {}), ("code", True),
    ],
)  # fmt: skip
async def test_a_draft_of_other_than_texts(field: str, value: object, s: Shelved) -> None:
    fields = {"name": "double", "code": CODE, "description": "Doubles.", field: value}
    answer = await s.ask("draft", **fields)
    assert answer == {
        "ok": False,
        "kind": "arguments",
        "text": "save_skill(name, code, description) takes three texts.",
    }
    assert s.store.drafts() == []
    assert s.events == []


@pytest.mark.parametrize(
    ("name", "code"), [("../x", CODE), ("double", "def ("), ("tools", CODE), ("X", CODE)]
)
async def test_a_draft_that_cannot_be_kept(name: str, code: str, s: Shelved) -> None:
    answer = await s.hand_in(name, code)
    assert (answer["ok"], answer["kind"]) == (False, "denied")
    assert s.store.drafts() == []
    assert s.events == []


async def test_drafts_are_counted(s: Shelved, monkeypatch: pytest.MonkeyPatch) -> None:
    assert DRAFTS == 20
    monkeypatch.setattr(shelf_module, "DRAFTS", 2)
    await s.hand_in("not a name")  # what was not kept does not count
    assert (await s.hand_in("one"))["ok"]
    assert (await s.hand_in("one"))["ok"]
    answer = await s.hand_in("two")
    assert (answer["ok"], answer["kind"]) == (False, "limit")
    assert "may hand in 2 drafts" in answer["text"]
    assert [each.name for each in s.store.drafts()] == ["one"]
    assert len(s.events) == 2


async def test_a_shelf_without_an_origin(tmp_path: Path) -> None:
    store = Store(tmp_path)
    shelf = Shelf(store, lambda event: None, origin="")
    await shelf.answer({"op": "draft", "name": "a", "code": CODE, "description": "A."}, "call-1")
    assert store.draft("a").origin == "call-1"


# -- the user is asked -------------------------------------------------------------------------------------


class Asked(Shelved):
    """A shelf whose user answers when the test does."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.questions: list[Question] = []
        self.withdrawn = 0
        self.answers: asyncio.Queue[str] = asyncio.Queue()
        self.shelf = Shelf(self.store, self.events.append, origin="session-1", ask=self._ask)

    async def _ask(self, question: Question) -> str:
        self.questions.append(question)
        try:
            return await self.answers.get()
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise

    async def say(self, answer: str, *, questions: int = 1) -> str:
        """Answer the question, and return what the user is told then."""
        async with asyncio.timeout(30):
            while len(self.questions) < questions:
                await asyncio.sleep(0.001)
            told = len(self.events)
            self.answers.put_nowait(answer)
            while len(self.events) == told:
                await asyncio.sleep(0.001)
        event = self.events[-1]
        assert isinstance(event, Notice)
        return event.text


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


async def test_the_code_does_not_wait_for_the_answer(asked: Asked) -> None:
    assert (await asked.hand_in())["ok"]
    assert asked.store.skills() == []
    assert await asked.say("promote") == "The skill double is promoted, version 1: code can import it now."
    assert asked.store.source("double") == CODE
    (question,) = asked.questions
    assert (question.kind, question.default) == ("skill_draft", "keep")
    assert [each.name for each in question.choices] == ["promote", "discard", "keep"]
    assert "+def double(x):" in question.detail
    assert "From session-1 call-7. Doubles a number." in question.detail


async def test_other_answers(asked: Asked) -> None:
    await asked.hand_in("one")
    assert await asked.say("discard") == "The draft of the skill one is deleted."
    assert asked.store.drafts() == []
    await asked.hand_in("two")
    assert "sandbox-chat skills promote two" in await asked.say("keep", questions=2)
    assert [each.name for each in asked.store.drafts()] == ["two"]
    assert asked.store.skills() == []


async def test_a_draft_that_changed_while_the_user_looked_at_it(asked: Asked) -> None:
    await asked.hand_in()
    async with asyncio.timeout(30):
        while not asked.questions:
            await asyncio.sleep(0.001)
    asked.store.save_draft("double", "import os\n", "Evil.", origin="")
    assert "was changed while it was looked at" in await asked.say("promote")
    assert asked.store.skills() == []


async def test_a_newer_draft_withdraws_the_question_about_the_older(asked: Asked) -> None:
    await asked.hand_in()
    async with asyncio.timeout(30):
        while not asked.questions:
            await asyncio.sleep(0.001)
    await asked.hand_in(code=CODE.replace("2", "3"))
    await asked.say("promote", questions=2)
    assert asked.withdrawn == 1
    assert "return 3 * x" in asked.store.source("double")
    assert "return 3 * x" in asked.questions[1].detail


async def test_what_is_too_long_to_be_judged_is_not_promoted_by_an_answer(asked: Asked) -> None:
    await asked.hand_in(code="".join(f"x{number} = {number}\n" for number in range(5000)))
    await asked.say("keep")
    (question,) = asked.questions
    assert [each.name for each in question.choices] == ["discard", "keep"]
    assert "sandbox-chat skills diff double" in question.detail


async def test_what_is_odd_is_told_and_shown_clean(asked: Asked) -> None:
    await asked.hand_in(code="import subprocess\n# \u202e\x1b[2J\n")
    await asked.say("keep")
    detail = asked.questions[0].detail
    assert "Look at: " in detail
    assert "subprocess" in detail
    assert "\u202e" not in detail
    assert "\x1b" not in detail
