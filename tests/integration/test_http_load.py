"""``serve --http`` with more tasks than may run: none is lost, each session's come in order, the metrics add up; its end."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.http_serving import DATA, PATIENCE, Serving, adds_up, serving
from support.program import gone_within, wait_until, watching_leftovers

EVENTS = {"accept": "text/event-stream"}
RECORDS = "users/*/sessions/*/events.jsonl"
SLEEP = "```python\nimport time\ntime.sleep({})\n```"


def prompts(home: Path, session: str) -> list[str]:
    """What was asked in a session, in order, by its record."""
    [path] = (home / DATA).glob(f"users/*/sessions/{session}/events.jsonl")
    events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [each["prompt"] for each in events if each["type"] == "turn_started"]


async def accepted(client: httpx.AsyncClient, body: dict[str, str]) -> httpx.Response:
    """Send a task and return as soon as it is accepted."""
    request = client.build_request("POST", "/task", json=body, headers=EVENTS)
    answer = await client.send(request, stream=True)
    assert answer.status_code == 200
    return answer


async def last_event(answer: httpx.Response) -> dict[str, Any]:
    """Read a stream to its end; returns its last message."""
    raw = (await answer.aread()).decode()
    last = [line for line in raw.splitlines() if line.startswith("data: ")][-1]
    found: dict[str, Any] = json.loads(last.removeprefix("data: "))
    return found


class Watch:
    """Looks at the metrics all the time: how many ran at most, and whether the counts added up each time."""

    def __init__(self, server: Serving) -> None:
        self._server = server
        self._task = asyncio.ensure_future(self._look())
        self.most = 0.0
        self.looks = 0

    async def _look(self) -> None:
        while True:
            counts = await asyncio.to_thread(self._server.counts)
            assert adds_up(counts), counts
            self.most = max(self.most, counts["tasks_running"])
            self.looks += 1
            await asyncio.sleep(0.05)

    async def end(self) -> None:
        if self._task.done():
            self._task.result()
        self._task.cancel()


@pytest.mark.slow
async def test_fifty_tasks_with_a_limit_of_four(tmp_path: Path) -> None:
    with watching_leftovers() as left, serving(tmp_path, "--sandbox", "off", "--log-json") as server:
        async with server.client() as client:
            first = await asyncio.gather(
                *(asyncio.to_thread(server.task, f"user{number % 5}", "hello") for number in range(10))
            )
            sessions = [(f"user{number % 5}", each["session"]) for number, each in enumerate(first)]
            assert len(set(sessions)) == 10
            watch = Watch(server)
            answers = []
            for number in range(50):
                user, session = sessions[number % 10]
                body = {"userId": user, "task": f"hello {number}", "session": session}
                answers.append(await accepted(client, body))
            ends = await asyncio.gather(*(last_event(each) for each in answers))
            await watch.end()
        assert [(each["type"], each["subtype"]) for each in ends] == [("turn_finished", "success")] * 50
        assert len({each["turn_id"] for each in ends}) == 50
        assert watch.most == 4 and watch.looks > 3
        for place, (_, session) in enumerate(sessions):
            wanted = ["hello", *(f"hello {number}" for number in range(50) if number % 10 == place)]
            assert prompts(tmp_path, session) == wanted
        counts = server.counts()
        assert counts['tasks_finished_total{outcome="ok"}'] == counts["tasks_accepted_total"] == 60
        assert counts["task_duration_seconds_count"] == counts["task_wait_seconds_count"] == 60
        assert len(server.lines("task")) == 60
        assert counts["sessions"] == 10
        assert server.end() == 0
        assert gone_within(10, left) == []


@pytest.mark.slow
async def test_fifty_new_sessions_at_the_same_moment(tmp_path: Path) -> None:
    with serving(tmp_path, "--sandbox", "off", env={"SANDBOX_CHAT_HTTP_SESSIONS": "6"}) as server:
        async with server.client() as client:
            watch = Watch(server)
            answers = await asyncio.gather(
                *(client.post("/task", json={"userId": f"u{n}", "task": "hello"}) for n in range(50))
            )
            await watch.end()
        assert [each.status_code for each in answers] == [200] * 50
        assert len({each.json()["session"] for each in answers}) == 50
        assert {each.json()["outcome"] for each in answers} == {"ok"}
        assert watch.most == 4
        assert server.counts()["sessions"] <= 6


async def test_a_full_queue_refuses_and_says_when_to_come_again(tmp_path: Path) -> None:
    env = {"SANDBOX_CHAT_HTTP_TASKS": "1", "SANDBOX_CHAT_HTTP_QUEUE": "2"}
    with serving(tmp_path, env=env) as server:
        async with server.client() as client:
            answers = [await accepted(client, {"userId": "ann", "task": SLEEP.format(600)}) for _ in range(3)]
            refused = await client.post("/task", json={"userId": "bob", "task": "hello"})
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
            assert int(refused.headers["retry-after"]) >= 1
            counts = server.counts()
            assert counts['tasks_refused_total{code="queue_full"}'] == 1
            assert (counts["tasks_accepted_total"], counts["tasks_queued"]) == (3, 2) and adds_up(counts)
            await asyncio.gather(*(each.aclose() for each in answers))
            await asyncio.to_thread(
                wait_until, lambda: server.counts()["tasks_running"] == 0, PATIENCE, "their end"
            )
            again = await client.post("/task", json={"userId": "bob", "task": "hello"})
            assert again.json()["outcome"] == "ok"


async def test_sigterm_lets_finish_what_runs_and_refuses_the_rest(tmp_path: Path) -> None:
    env = {"SANDBOX_CHAT_HTTP_TASKS": "1"}
    with watching_leftovers() as left, serving(tmp_path, "--log-json", env=env) as server:
        async with server.client() as client:
            running = await accepted(client, {"userId": "ann", "task": SLEEP.format(4)})
            streamed = await accepted(client, {"userId": "bob", "task": "hello"})
            waiting = asyncio.ensure_future(client.post("/task", json={"userId": "eve", "task": "hello"}))
            await asyncio.to_thread(
                wait_until, lambda: server.counts()["tasks_queued"] == 2, PATIENCE, "the queue"
            )
            server.process.send_signal(signal.SIGTERM)
            answer = await waiting
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "draining")
            assert int(answer.headers["retry-after"]) >= 1
            assert (await last_event(streamed))["error"]["code"] == "draining"
            late = await client.post("/task", json={"userId": "eve", "task": "hello"})
            assert (late.status_code, late.json()["error"]["code"]) == (503, "draining")
            health = await client.get("/health")
            assert (health.status_code, health.json()["state"]) == (503, "draining")
            assert adds_up(server.counts())
            end = await last_event(running)
            assert (end["type"], end["is_error"], end["interrupted"]) == ("turn_finished", False, False)
        assert await asyncio.to_thread(server.process.wait, PATIENCE) == 0
        assert sorted(each["outcome"] for each in server.lines("task")) == ["drained", "drained", "ok"]
        assert gone_within(10, left) == []


async def test_what_does_not_finish_in_time_is_interrupted(tmp_path: Path) -> None:
    with watching_leftovers() as left, serving(tmp_path, env={"SANDBOX_CHAT_HTTP_DRAIN": "1"}) as server:
        async with server.client() as client:
            sending = asyncio.ensure_future(
                client.post("/task", json={"userId": "ann", "task": SLEEP.format(600)})
            )
            await asyncio.to_thread(
                wait_until,
                lambda: any("tool_started" in each.read_text() for each in (tmp_path / DATA).glob(RECORDS)),
                PATIENCE,
                "its call",
            )
            server.process.send_signal(signal.SIGINT)
            answer = await sending
        assert answer.status_code == 200
        assert (answer.json()["outcome"], answer.json()["interrupted"]) == ("drained", True)
        assert await asyncio.to_thread(server.process.wait, PATIENCE) == 0
        assert gone_within(10, left) == []


async def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    with watching_leftovers() as left, serving(tmp_path) as server:
        async with server.client() as client:
            running = await accepted(client, {"userId": "ann", "task": SLEEP.format(600)})
            server.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(
                wait_until,
                lambda: httpx.get(server.url + "/health").status_code == 503,
                PATIENCE,
                "the first signal",
            )
            server.process.send_signal(signal.SIGTERM)
            assert (
                await asyncio.to_thread(server.process.wait, PATIENCE) == 143
            )  # and not 0, after the time that tasks get
            await running.aclose()
        assert gone_within(30, left) == []
