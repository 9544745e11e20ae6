"""The folders in a cloud's sandbox: made as root or as the ordinary user, and what fails is said once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sandbox_chat.sandbox.e2b_client import Cloud
from sandbox_chat.sandbox.e2b_folders import Folders
from sandbox_chat.sandbox.skills_folder import SkillsFolder
from sandbox_chat.settings import Settings


class CommandExitException(Exception):
    """As the client's own."""


class Machine:
    """What is asked of the cloud, in order. ``refuse`` gives an error for a user, or nothing."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.refuse: dict[str | None, Exception] = {}
        self.cloud = cast("Cloud", SimpleNamespace(box=SimpleNamespace(files=self, commands=self)))

    async def write(self, path: str, data: bytes, *, user: str | None, **_: Any) -> None:
        assert data
        self.asked.append(("write", user))

    async def run(
        self, script: str, *, user: str | None, cwd: str, timeout: float, request_timeout: float
    ) -> None:
        self.asked.append(("skills" if "tar -x" in script else "workspace", user))
        if user in self.refuse:
            raise self.refuse[user]


@pytest.fixture
def machine() -> Machine:
    return Machine()


GIVEN: dict[str, dict[str, bytes]] = {"one": {"one.py": b"x = 1\n"}}
PLAIN = Settings(sandbox="e2b")


async def test_as_root_and_only_once(machine: Machine) -> None:
    given = dict(GIVEN)
    folders = Folders(PLAIN, machine.cloud, SkillsFolder(lambda: dict(given)))
    await folders.make()
    assert machine.asked == [("workspace", "root"), ("write", "root"), ("skills", "root")]
    assert await folders.renew() == []
    assert len(machine.asked) == 3
    given["two"] = {"two.py": b"y"}
    assert await folders.renew() == []
    assert machine.asked[3:] == [("write", "root"), ("skills", "root")]


async def test_no_skills_without_code_mode(machine: Machine) -> None:
    folders = Folders(PLAIN, machine.cloud, None)
    await folders.make()
    assert await folders.renew() == []
    assert machine.asked == [("workspace", "root")]


async def test_the_ordinary_user_where_there_is_no_root(machine: Machine) -> None:
    machine.refuse["root"] = CommandExitException("no user root")
    folders = Folders(PLAIN, machine.cloud, SkillsFolder(lambda: GIVEN))
    await folders.make()
    assert await folders.renew() == []
    assert machine.asked == [
        ("workspace", "root"), ("workspace", None),
        ("write", "root"), ("skills", "root"), ("write", None), ("skills", None),
    ]  # fmt: skip


async def test_what_cannot_be_made_is_said_once(machine: Machine) -> None:
    machine.refuse = {"root": CommandExitException("no root"), None: CommandExitException("denied")}
    folders = Folders(PLAIN, machine.cloud, SkillsFolder(lambda: GIVEN))
    await folders.make()
    said = await folders.renew()
    assert [words.split(" in this")[0].split(" (")[0] for words in said] == [
        "There is no /workspace",
        "The user's skills are not in /skills: denied. They can still be imported",
    ]
    before = len(machine.asked)
    assert await folders.renew() == []
    assert len(machine.asked) == before


async def test_a_cloud_that_does_not_answer_is_not_asked_twice(machine: Machine) -> None:
    machine.refuse["root"] = TimeoutError("no answer")
    folders = Folders(PLAIN, machine.cloud, None)
    await folders.make()
    assert machine.asked == [("workspace", "root")]
    assert len(await folders.renew()) == 1
