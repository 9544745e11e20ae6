"""Which task runs when: limits, order, users side by side, sessions that make room, removal, the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.fake_chat import Chats
from support.http_serving import adds_up, counts_of

from sandbox_chat.events import SessionFinished
from sandbox_chat.serve import scheduler as module
from sandbox_chat.serve.asking import Ask
from sandbox_chat.serve.errors import Refused
from sandbox_chat.serve.scheduler import Scheduler
from sandbox_chat.serve.task import Task
from sandbox_chat.settings import Settings


async def until(ready: Callable[[], Any]) -> None:
    """Wait for something that the server does."""
    async with asyncio.timeout(30):
        while not ready():
            await asyncio.sleep(0.005)


class Desk:
    """A scheduler over engines that are not real."""

    def __init__(self, tmp: Path, *, state: Any = "ok", allow: tuple[str, ...] = (), **settings: Any) -> None:
        self.chats = Chats()
        self.scheduler = Scheduler(
            Settings(data_dir=tmp, **{"http_drain": 0.0, **settings}),
            allow=allow,
            make=self.chats.make,
            state=state,
        )

    def ask(self, user: str, task: str, session: str = "") -> Task:
        return self.scheduler.accept(Ask(user, task, session))

    async def done(self, user: str, task: str, session: str = "") -> Task:
        found = self.ask(user, task, session)
        await self.end(found)
        return found

    async def end(self, *tasks: Task) -> None:
        async with asyncio.timeout(30):
            for each in tasks:
                await each.done.wait()

    @property
    def counts(self) -> dict[str, float]:
        return counts_of(self.scheduler.metrics.text().decode())

    def refused(self, user: str, task: str, session: str = "") -> Refused:
        with pytest.raises(Refused) as found:
            self.ask(user, task, session)
        return found.value


@asynccontextmanager
async def desk(tmp: Path, **options: Any) -> AsyncIterator[Desk]:
    found = Desk(tmp, **options)
    try:
        yield found
        assert adds_up(found.counts)
    finally:
        for chat in found.chats.made:
            chat.stopped.set()
            chat.go.set()
        await found.scheduler.drain()
        assert all(chat.closed for chat in found.chats.made)


async def test_a_task_runs(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        task = await d.done("ann", "call it")
        assert (task.outcome, task.result()["answer"]) == ("ok", "You said: call it")
        assert task.session_id and d.chats.of(task.session_id).settings.data_path.parent == tmp_path / "users"
        counts = d.counts
        assert counts["cost_usd_total"] == 0.25 and counts['tokens_total{kind="input"}'] == 10
        assert counts['tool_calls_total{outcome="ok",tool="mcp__sandbox__run_code"}'] == 1


async def test_no_more_than_the_limit_run_and_each_session_keeps_its_order(tmp_path: Path) -> None:
    async with desk(tmp_path, http_tasks=3) as d:
        sessions = [(await d.done("ann", "hello")).session_id for _ in range(5)]
        d.chats.order.clear()
        tasks = [d.ask("ann", f"n {number}", sessions[number % 5]) for number in range(40)]
        assert adds_up(d.counts) and d.scheduler.counts["running"] == 3
        await d.end(*tasks)
        assert d.chats.most <= 3
        for place, session in enumerate(sessions):
            said = [prompt for its, prompt in d.chats.order if its == session]
            assert said == [f"n {number}" for number in range(40) if number % 5 == place]
        assert {task.outcome for task in tasks} == {"ok"}


async def test_a_user_with_many_tasks_does_not_keep_others_out(tmp_path: Path) -> None:
    async with desk(tmp_path, http_tasks=2) as d:
        flood = [d.ask("ann", "wait") for _ in range(10)]
        await until(lambda: len(d.chats.made) == 2)
        bob = d.ask("bob", "hello")
        d.chats.made[0].go.set()
        await d.end(bob)
        assert bob.outcome == "ok" and sum(each.outcome is None for each in flood) == 9


async def test_the_queue_is_bounded(tmp_path: Path) -> None:
    async with desk(tmp_path, http_tasks=1, http_queue=1) as d:
        d.ask("ann", "wait")
        d.ask("bob", "hello")
        refused = d.refused("eve", "hello")
        assert (refused.code, refused.status) == ("queue_full", 429) and refused.retry_after >= 1
        assert d.counts["tasks_accepted_total"] == 2
        assert d.counts['tasks_refused_total{code="queue_full"}'] == 1


async def test_without_a_queue_only_what_runs_at_once_is_taken(tmp_path: Path) -> None:
    async with desk(tmp_path, http_tasks=1, http_queue=0) as d:
        d.ask("ann", "wait")
        assert d.refused("eve", "hello").code == "queue_full"


async def test_a_session_of_another_user_is_not_there(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        session = (await d.done("ann", "hello")).session_id
        assert d.refused("bob", "hello", session).code == "no_session"
        assert d.refused("ann", "hello", "0" * 36).code == "no_session"
        with pytest.raises(Refused):
            await d.scheduler.remove(session, "bob")
        assert (await d.done("ann", "again", session)).outcome == "ok"


async def test_one_unused_longest_makes_room_and_is_opened_again(tmp_path: Path) -> None:
    async with desk(tmp_path, http_tasks=2, http_sessions=2) as d:
        one, two, three = [(await d.done("ann", f"n{n}")).session_id for n in range(3)]
        assert d.scheduler.counts["sessions"] == 2
        assert d.chats.of(one).closed and not d.chats.of(two).closed
        assert (await d.done("ann", "again", one)).outcome == "ok"
        assert d.chats.of(one).resumed and d.chats.of(two).closed and not d.chats.of(three).closed


async def test_fewer_sessions_than_tasks_still_run_all(tmp_path: Path) -> None:
    async with desk(tmp_path, http_tasks=8, http_sessions=2) as d:
        tasks = [d.ask(f"u{n}", "hello") for n in range(20)]
        await d.end(*tasks)
        assert {task.outcome for task in tasks} == {"ok"} and d.chats.most <= 2
        assert len(d.scheduler._sessions) == d.scheduler.counts["sessions"] <= 2  # others are forgotten


async def test_what_is_not_used_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_EVERY", 0.01)
    async with desk(tmp_path, http_idle=1) as d:
        object.__setattr__(d.scheduler._settings, "http_idle", 0.05)
        looking = asyncio.ensure_future(d.scheduler.look_after())
        busy = d.ask("bob", "wait")
        session = (await d.done("ann", "hello")).session_id
        await until(lambda: d.chats.of(session).closed)
        await until(lambda: d.scheduler.counts["sessions"] == 1)
        assert busy.outcome is None
        looking.cancel()


async def test_a_client_that_leaves(tmp_path: Path) -> None:
    async with desk(tmp_path, http_tasks=1) as d:
        running, waiting, last = d.ask("ann", "wait"), d.ask("bob", "hello"), d.ask("eve", "hello")
        await until(lambda: d.chats.running == 1)
        d.scheduler.leave(waiting)
        assert waiting.outcome == "left" and not waiting.turn_id
        d.scheduler.leave(running)
        await d.end(running, last)
        assert (running.outcome, last.outcome) == ("left", "ok")
        assert running.result()["answer"] == "a piece"
        d.scheduler.leave(last)  # too late: nothing happens
        assert last.outcome == "ok"


async def test_one_that_leaves_before_its_session_is_there(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        task = d.ask("ann", "hello")
        d.scheduler.leave(task)
        await d.end(task)
        assert task.outcome == "left" and d.chats.order == []


async def test_a_task_has_a_time(tmp_path: Path) -> None:
    async with desk(tmp_path, http_task_timeout=1) as d:
        object.__setattr__(d.scheduler._settings, "http_task_timeout", 0.2)
        task = await d.done("ann", "wait")
        assert (task.outcome, task.result()["interrupted"]) == ("timeout", True)


async def test_a_session_that_cannot_be_interrupted_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE", -0.4)
    async with desk(tmp_path, http_task_timeout=1, close_timeout=0.5) as d:
        object.__setattr__(d.scheduler._settings, "http_task_timeout", 0.2)
        task = await d.done("ann", "deaf")
        assert task.outcome == "timeout" and d.chats.made[0].closed
        again = await d.done("ann", "hello", task.session_id)
        assert again.outcome == "ok" and len(d.chats.made) == 2


async def test_a_session_that_dies_is_told_and_opened_again(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        task = d.ask("ann", "die")
        await d.end(task)
        assert task.outcome == "failed" and task.result()["is_error"]
        assert (await d.done("ann", "hello", task.session_id)).outcome == "ok"
        assert len(d.chats.made) == 2


async def test_an_engine_that_was_closed_has_no_more_say(tmp_path: Path) -> None:
    async with desk(tmp_path, http_sessions=1, http_tasks=1) as d:
        session = (await d.done("ann", "hello")).session_id
        old = d.chats.of(session)
        bob, task = d.ask("bob", "wait"), d.ask("ann", "wait", session)
        await until(lambda: d.chats.running == 1)  # for him hers was closed, while a task waits for it
        assert old.closed
        d.chats.made[-1].go.set()
        await d.end(bob)
        await until(lambda: d.chats.running == 1)
        old.emit(SessionFinished())  # late
        d.chats.of(session).go.set()
        await d.end(task)
        assert task.outcome == "ok" and not d.chats.of(session).closed


async def test_a_turn_that_fails(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        task = await d.done("ann", "fail")
        assert (task.outcome, task.result()["error"]) == ("failed", "It failed.")


@pytest.mark.parametrize(
    ("fails", "code", "outcome"),
    [
        ("sandbox", "unavailable", "unavailable"),
        ("in use", "session_in_use", "unavailable"),
        ("a fault", "internal", "failed"),
    ],
)
async def test_a_session_that_cannot_be_started(tmp_path: Path, fails: str, code: str, outcome: str) -> None:
    async with desk(tmp_path) as d:
        d.chats.fails = fails
        task = await d.done("ann", "hello")
        assert task.outcome == outcome and task.problem is not None and task.problem.code == code
        assert d.scheduler.counts == {"running": 0, "queued": 0, "sessions": 0}
        d.chats.fails = ""
        assert (await d.done("ann", "hello")).outcome == "ok"


@pytest.mark.parametrize(
    ("allow", "answer"),
    [((), ("a1", "keep_both", "default")), (("overwrite",), ("a1", "replace", "option"))],
)
async def test_questions_get_the_answer_that_was_allowed(
    tmp_path: Path, allow: tuple[str, ...], answer: tuple[str, str, str]
) -> None:
    async with desk(tmp_path, allow=allow) as d:
        task = await d.done("ann", "ask")
        assert d.chats.of(task.session_id).answers == [answer]


async def test_removing_a_session(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        session = (await d.done("ann", "hello")).session_id
        running, waiting = d.ask("ann", "wait", session), d.ask("ann", "hello", session)
        await until(lambda: d.chats.running == 1)
        removing = asyncio.ensure_future(d.scheduler.remove(session))
        await d.end(waiting, running)
        await removing
        assert (running.outcome, waiting.outcome) == ("removed", "removed")
        assert waiting.problem is not None and waiting.problem.code == "session_removed"
        assert d.chats.of(session).closed and d.scheduler.counts["sessions"] == 0
        assert d.refused("ann", "hello", session).code == "no_session"
        for user in ("", "ann"):
            with pytest.raises(Refused):
                await d.scheduler.remove(session, user)


async def test_removing_a_session_that_a_task_opens_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk(tmp_path, http_sessions=1, http_tasks=1) as d:
        session = (await d.done("ann", "hello")).session_id
        await d.done("bob", "hello")  # closes it
        asked = []
        remove = d.scheduler.users.remove

        def slow(folder: Path, name: str) -> None:
            asyncio.run_coroutine_threadsafe(ask(), loop).result(30)
            remove(folder, name)

        async def ask() -> None:
            asked.append(d.ask("ann", "wait", session))

        loop = asyncio.get_running_loop()
        monkeypatch.setattr(d.scheduler.users, "remove", slow)
        await d.scheduler.remove(session)
        await d.end(*asked)
        assert [task.outcome for task in asked] == ["removed"]
        assert d.refused("ann", "hello", session).code == "no_session"


async def test_the_end(tmp_path: Path) -> None:
    d = Desk(tmp_path, http_tasks=2, http_drain=30)
    await d.done("ann", "hello")
    finishing, waiting = d.ask("ann", "wait"), d.ask("bob", "wait")
    third = d.ask("eve", "hello")
    await until(lambda: d.chats.running == 2)
    draining = asyncio.ensure_future(d.scheduler.drain())
    await d.end(third)
    assert third.outcome == "drained" and third.problem is not None
    assert third.problem.code == "draining" and third.problem.retry_after == 31
    assert d.refused("ann", "hello").code == "draining"
    assert adds_up(d.counts) and d.counts["tasks_running"] == 2
    for chat in d.chats.made:
        chat.go.set()
    await draining
    assert (finishing.outcome, waiting.outcome) == ("ok", "ok")
    assert all(chat.closed for chat in d.chats.made) and adds_up(d.counts)


async def test_at_the_end_what_takes_too_long_is_interrupted(tmp_path: Path) -> None:
    d = Desk(tmp_path, http_drain=0)
    task = d.ask("ann", "wait")
    await until(lambda: d.chats.running == 1)
    await d.scheduler.drain()
    assert task.outcome == "drained" and d.chats.made[0].closed and adds_up(d.counts)


async def test_while_it_starts_tasks_wait(tmp_path: Path) -> None:
    async with desk(tmp_path, state="starting") as d:
        task = d.ask("ann", "hello")
        assert d.scheduler.counts["queued"] == 1 and adds_up(d.counts)
        d.scheduler.begin()
        await d.end(task)
        assert task.outcome == "ok"
