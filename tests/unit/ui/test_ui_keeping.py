"""Several at once look for what earlier runs left: each prompt is there once afterwards, whatever is broken off."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.screen import PlayedEngine

from sandbox_chat.settings import Settings
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.keeping import Keeping
from sandbox_chat.ui.queue import Prompt
from sandbox_chat.ui.waiting_file import Left, WaitingFile

LEFT = ["one", "three", "two"]


def left_by(folder: Path, session: str, *texts: str) -> None:
    """A run that is over left these prompts."""
    file = WaitingFile(folder)
    file.save(Left(session, tuple(map(Prompt, texts))))
    assert file.settle()
    file.close(keep=True)


def on_disk(folder: Path) -> list[str]:
    """What a later run would find, all of it."""
    file = WaitingFile(folder)
    found = sorted(prompt.text for left in file.find() for prompt in left.prompts)
    file.close()
    return found


def here(chat: Chat) -> list[str]:
    return sorted(prompt.text for prompt in chat.queue)


class Slow(Keeping):
    """On a slow disk: it takes a while until what was found is there. ``begun`` counts the looks."""

    def __init__(self, chat: Chat, folder: Path) -> None:
        super().__init__(chat, folder)
        self.begun = 0
        find = self.file.find

        def slowly(wanted: Callable[[Left], bool] = lambda left: True) -> list[Left]:
            self.begun += 1
            found = find(wanted)
            time.sleep(0.05)
            return found

        self.file.find = slowly  # type: ignore[method-assign]

    async def until(self, looks: int) -> None:
        while self.begun < looks:
            await asyncio.sleep(0.005)


@pytest.fixture
def slow(tmp_path: Path) -> Slow:
    left_by(tmp_path, "s1", "one", "two")
    left_by(tmp_path, "s2", "three")
    return Slow(Chat(), tmp_path)


@pytest.mark.parametrize("first", ["fetch", "count"])
async def test_who_counts_takes_nothing_from_who_fetches(slow: Slow, tmp_path: Path, first: str) -> None:
    fetched, counted = slow.fetch(), slow.elsewhere()
    if first == "fetch":
        count, told = await asyncio.gather(fetched, counted)
    else:
        told, count = await asyncio.gather(counted, fetched)
    assert (count, told) == (3, (0, "") if first == "fetch" else (3, ""))
    assert here(slow._chat) == LEFT
    slow.close()
    assert on_disk(tmp_path) == LEFT


@pytest.mark.parametrize("seed", range(8))
async def test_any_number_at_once(slow: Slow, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    asked: list[Any] = []
    for _ in range(6):
        work = chance.choice([slow.fetch, slow.elsewhere, lambda: slow.resume("s1")])
        asked.append(asyncio.ensure_future(work()))  # type: ignore[no-untyped-call]
        await asyncio.sleep(chance.random() * 0.06)
        if chance.random() < 0.3:
            chance.choice(asked).cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    await slow.fetch()
    assert here(slow._chat) == LEFT
    slow.close()
    assert on_disk(tmp_path) == LEFT


async def test_one_that_is_broken_off_loses_nothing_for_the_next(slow: Slow, tmp_path: Path) -> None:
    """A second press of the key breaks the first one off, while its thread goes on."""
    first = asyncio.ensure_future(slow.fetch())
    await slow.until(1)
    first.cancel()
    await slow.fetch()
    assert here(slow._chat) == LEFT
    slow.close()
    assert on_disk(tmp_path) == LEFT


async def test_what_is_found_while_the_program_ends_stays_where_it_was(slow: Slow, tmp_path: Path) -> None:
    fetched = asyncio.ensure_future(slow.fetch())
    await slow.until(1)
    slow.freeze()
    await fetched
    assert here(slow._chat) == LEFT, "and these are gone with the program"
    slow.close()
    assert on_disk(tmp_path) == LEFT


async def test_after_the_end_nothing_is_held(slow: Slow, tmp_path: Path) -> None:
    """A session is left while it looks: the next one in the same program finds everything."""
    works = [asyncio.ensure_future(slow.elsewhere()), asyncio.ensure_future(slow.fetch())]
    await slow.until(1)
    await asyncio.to_thread(slow.close)
    assert on_disk(tmp_path) == LEFT
    await asyncio.gather(*works)
    assert on_disk(tmp_path) == LEFT
    assert slow.file.find() == []


async def test_what_is_here_as_well_waits_nowhere_else(
    slow: Slow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow.file, "settle", lambda timeout=1.0: False)  # the disk is slow
    assert await slow.fetch() == 3
    assert await slow.elsewhere() == (0, "")
    left_by(tmp_path, "s3", "four")
    assert await slow.elsewhere() == (1, "s3")
    slow.close()


def test_what_waits_knows_its_session_as_soon_as_that_is_known(tmp_path: Path) -> None:
    chat = Chat()
    keeping = Keeping(chat, tmp_path)
    chat.queue.bring([Prompt("one")])
    chat.attach(PlayedEngine(Settings(), lambda event: None, resume="s1"))
    keeping.close()
    file = WaitingFile(tmp_path)
    assert [left.session_id for left in file.find()] == ["s1"]
    file.close()
