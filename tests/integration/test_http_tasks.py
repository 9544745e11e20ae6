"""``serve --http`` with the real program: results, events, sessions, users apart, removal."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import psutil
from support.http_serving import DATA, PATIENCE, adds_up, serving
from support.program import gone_within, run, wait_until, watching_leftovers

EVENTS = {"accept": "text/event-stream"}


def messages(raw: str) -> list[dict[str, str]]:
    """The messages of a stream, without its comments."""
    found = []
    for part in raw.split("\n\n"):
        lines = [line.split(": ", 1) for line in part.splitlines() if not line.startswith(":")]
        if lines:
            found.append(dict(lines))
    return found


def remember(name: str, value: int) -> str:
    return f"```python\n{name} = {value}\nprint({name})\n```"


def recall(name: str) -> str:
    return f"```python\nprint({name} + 1)\n```"


def text_of(result: dict[str, Any]) -> str:
    return str(result["answer"])


def test_a_task_gives_a_result(tmp_path: Path) -> None:
    with watching_leftovers() as left, serving(tmp_path, "--log-json") as server:
        result = server.task("ann", "first 10 primes")
        assert result["outcome"] == "ok" and not result["is_error"] and not result["interrupted"]
        assert "2 3 5 7" in text_of(result)
        assert [tool["name"] for tool in result["tools"]] == ["mcp__sandbox__run_code"]
        assert result["usage"]["output"] > 0 and result["cost_usd"] is None
        [task] = server.lines("task")
        assert (task["outcome"], task["task"], task["session"]) == ("ok", result["task"], result["session"])
        counts = server.counts()
        assert adds_up(counts) and counts['tasks_finished_total{outcome="ok"}'] == 1
        assert counts['tool_calls_total{outcome="ok",tool="mcp__sandbox__run_code"}'] == 1
        assert counts['tokens_total{kind="output"}'] == result["usage"]["output"]
        assert counts["task_duration_seconds_count"] == 1
        for secret in ("primes", server.token, '"ann"'):
            assert secret not in server.said
        assert server.end() == 0
        assert gone_within(10, left) == []


def test_a_chart_can_be_had(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        result = server.task("ann", "damped sine")
        files = [each for each in result["files"] if each["mime"] == "image/png"]
        path = f"/sessions/{result['session']}/files/{files[0]['name']}"
        answer = server.request("GET", path, params={"userId": "ann"})
        assert answer.headers["content-type"] == "image/png" and answer.content.startswith(b"\x89PNG")
        assert server.request("GET", path, params={"userId": "bob"}).status_code == 404
        assert str(tmp_path) not in json.dumps(result)
        server.request("DELETE", f"/sessions/{result['session']}")
        assert server.request("GET", path).status_code == 404


def test_a_session_goes_on_and_is_its_users_alone(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        first = server.task("ann", remember("kept", 41))
        assert first["tools"][0]["is_error"] is False, first
        again = server.task("ann", recall("kept"), first["session"])
        assert again["session"] == first["session"] and again["turn"] != first["turn"]
        assert not again["tools"][0]["is_error"]
        body = {"userId": "bob", "task": recall("kept"), "session": first["session"]}
        refused = server.request("POST", "/task", json=body)
        assert refused.status_code == 404 and refused.json()["error"]["code"] == "no_session"
        other = server.task("bob", recall("kept"))
        assert other["tools"][0]["is_error"]  # another sandbox: the name is not there
        users = sorted(path.name for path in (tmp_path / DATA / "users").iterdir())
        assert [name.split("-")[0] for name in users] == ["ann", "bob"]
        assert not (tmp_path / DATA / "sessions").exists()
        taken = server.request("DELETE", f"/sessions/{first['session']}", params={"userId": "bob"})
        assert taken.status_code == 404


def test_the_events_come_one_by_one_as_headless_prints_them(tmp_path: Path) -> None:
    with serving(tmp_path, "--sandbox", "off") as server:
        answer = server.request("POST", "/task", json={"userId": "ann", "task": "hello"}, headers=EVENTS)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        found = messages(answer.text)
        data = [json.loads(each["data"]) for each in found]
        assert [each["event"] for each in found] == [each["type"] for each in data]
        assert [int(each["id"]) for each in found] == [each["seq"] for each in data]
        assert data[0]["type"] == "session_started" and data[-1]["type"] == "turn_finished"
        printed = run("run", "--demo", "--sandbox", "off", "--json", "hello", home=tmp_path)
        [text] = printed.of("text")
        [same] = [each for each in data if each["type"] == "text"]
        assert same["text"] == text["text"] and same.keys() == text.keys()
        # in a session that is open nothing is repeated
        body = {"userId": "ann", "task": "thanks", "session": data[0]["session_id"]}
        second = [
            each["event"]
            for each in messages(server.request("POST", "/task", json=body, headers=EVENTS).text)
        ]
        assert "session_started" not in second
        assert (second.count("turn_started"), second.count("turn_finished"), second[-1]) == (
            1,
            1,
            "turn_finished",
        )


def test_a_removed_session_is_gone_but_its_record_is_kept(tmp_path: Path) -> None:
    with serving(tmp_path, "--sandbox", "off") as server:
        session = server.task("ann", "hello")["session"]
        me = psutil.Process(server.process.pid)
        assert me.children()
        assert server.request("DELETE", f"/sessions/{session}", params={"userId": "ann"}).status_code == 204
        wait_until(lambda: not me.children(), PATIENCE, "the end of the session's programs")
        assert server.request("DELETE", f"/sessions/{session}").status_code == 404
        body = {"userId": "ann", "task": "hello", "session": session}
        assert server.request("POST", "/task", json=body).status_code == 404
        assert list((tmp_path / DATA).glob(f"users/ann-*/sessions/{session}/events.jsonl"))
        assert server.counts()["sessions"] == 0
        # also one that the server has forgotten, found without its user
        old = server.task("ann", "hello")["session"]
        assert server.end() == 0
    with serving(tmp_path, "--sandbox", "off") as server:
        assert server.request("DELETE", f"/sessions/{old}").status_code == 204
        assert server.request("DELETE", f"/sessions/{old}").status_code == 404


def test_sessions_that_are_not_used_are_closed_and_opened_again(tmp_path: Path) -> None:
    env = {"SANDBOX_CHAT_HTTP_SESSIONS": "1", "SANDBOX_CHAT_HTTP_IDLE": "1"}
    with serving(tmp_path, "--sandbox", "off", env=env) as server:
        first = server.task("ann", "hello")["session"]
        second = server.task("bob", "hello")["session"]  # makes the first one's close
        assert server.counts()["sessions"] <= 1
        assert server.task("ann", "thanks", first)["outcome"] == "ok"
        assert server.task("bob", "thanks", second)["outcome"] == "ok"
        wait_until(lambda: server.counts()["sessions"] == 0, PATIENCE, "the end of what is not used")
        assert server.task("ann", "hello", first)["session"] == first


async def test_a_client_that_leaves_interrupts_its_task(tmp_path: Path) -> None:
    sleep = "```python\nimport time\ntime.sleep(600)\n```"
    with serving(tmp_path, "--log-json") as server:

        def ended(count: int) -> bool:
            return len(server.lines("task")) == count

        async with server.client() as client:
            body = {"userId": "ann", "task": sleep}
            async with client.stream("POST", "/task", json=body, headers=EVENTS) as answer:
                async for line in answer.aiter_lines():
                    if line.startswith("data: "):
                        event = json.loads(line.removeprefix("data: "))
                        if event["type"] == "session_started":
                            session = event["session_id"]
                        if event["type"] == "tool_started":
                            break
            await asyncio.to_thread(wait_until, lambda: ended(1), PATIENCE, "its end")
            sending = asyncio.ensure_future(client.post("/task", json={**body, "session": session}))

            def second_call() -> bool:
                [path] = (tmp_path / DATA).glob(f"users/ann-*/sessions/{session}/events.jsonl")
                return path.read_text(encoding="utf-8").count('"tool_started"') == 2

            await asyncio.to_thread(wait_until, second_call, PATIENCE, "its call")
            waiting = asyncio.ensure_future(client.post("/task", json={**body, "session": session}))
            await asyncio.to_thread(
                wait_until, lambda: server.counts()["tasks_queued"] == 1, PATIENCE, "its place in the queue"
            )
            waiting.cancel()
            await asyncio.to_thread(wait_until, lambda: ended(2), PATIENCE, "the end of what waited")
            sending.cancel()
            await asyncio.gather(sending, waiting, return_exceptions=True)
            await asyncio.to_thread(wait_until, lambda: ended(3), PATIENCE, "its end")
        assert [each["outcome"] for each in server.lines("task")] == ["left"] * 3
        assert [each["turn"] != "" for each in server.lines("task")] == [True, False, True]
        counts = server.counts()
        assert adds_up(counts) and counts['tasks_finished_total{outcome="left"}'] == 3
        assert server.task("ann", "hello", session)["outcome"] == "ok"


def test_a_task_has_a_time(tmp_path: Path) -> None:
    with serving(tmp_path, env={"SANDBOX_CHAT_HTTP_TASK_TIMEOUT": "3"}) as server:
        result = server.task("ann", "```python\nimport time\ntime.sleep(600)\n```")
        assert (result["outcome"], result["interrupted"]) == ("timeout", True)
        assert server.task("ann", "hello", result["session"])["outcome"] == "ok"


async def test_two_at_the_same_time_for_one_session_run_one_after_the_other(tmp_path: Path) -> None:
    with serving(tmp_path, "--log-json") as server:
        session = server.task("ann", remember("n", 0))["session"]
        async with server.client() as client:

            async def add() -> httpx.Response:
                body = {"userId": "ann", "task": "```python\nn += 1\nprint(n)\n```", "session": session}
                return await client.post("/task", json=body)

            answers = await asyncio.gather(*(add() for _ in range(4)))
        assert [each.status_code for each in answers] == [200] * 4
        spans = [(each["turn"], each["wait_ms"]) for each in server.lines("task")]
        assert len(set(spans)) == 5
        last = server.task("ann", "```python\nassert n == 4\n```", session)
        assert not last["tools"][0]["is_error"]


def test_another_program_may_have_the_session(tmp_path: Path) -> None:
    with serving(tmp_path, "--sandbox", "off") as first:
        session = first.task("ann", "hello")["session"]
        with serving(tmp_path, "--sandbox", "off") as second:
            body = {"userId": "ann", "task": "hello", "session": session}
            refused = second.request("POST", "/task", json=body)
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "session_in_use")
            assert adds_up(second.counts())
            assert first.end() == 0
            assert second.task("ann", "hello", session)["session"] == session  # the folder is shared


def test_it_says_how_it_is(tmp_path: Path) -> None:
    with serving(tmp_path, "--sandbox", "off", "--no-auth") as server:
        assert "no token is needed" in server.said and server.token == ""
        health = httpx.get(server.url + "/health", timeout=PATIENCE)
        assert health.json()["state"] == "ok" and "connection" not in health.headers
        assert server.task("ann", "hello")["outcome"] == "ok"
        described = server.request("GET", "/openapi.json").json()
        assert described["security"] == [] and "401" not in described["paths"]["/task"]["post"]["responses"]
