"""The server over real connections, with engines that are not: who may ask, attacks, and that all is as it is described."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from support.fake_chat import Chats
from support.http_serving import adds_up, counts_of

from sandbox_chat.mcp.serve.http import listen
from sandbox_chat.serve import app as module
from sandbox_chat.serve import reading, report
from sandbox_chat.serve import task as task_module
from sandbox_chat.serve.app import App
from sandbox_chat.serve.listening import Server
from sandbox_chat.serve.openapi import describe
from sandbox_chat.serve.scheduler import Scheduler
from sandbox_chat.settings import Secret, Settings

TOKEN = "token-canary-0123456789"
ID = "11111111-2222-4333-8444-555555555555"
HELLO = {"userId": "ann", "task": "hello"}
EVENTS = {"accept": "text/event-stream"}


async def until(ready: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not ready():
            await asyncio.sleep(0.005)


class Site:
    """A server in this process and a client of it, which holds each answer against the description."""

    def __init__(self, tmp: Path, *, token: bool, loopback: bool, **settings: Any) -> None:
        self.chats = Chats()
        self.settings = Settings(data_dir=tmp, **{"http_drain": 0.0, **settings})
        self.scheduler = Scheduler(self.settings, make=self.chats.make)
        secret = Secret(TOKEN) if token else None
        self.app = App(self.settings, self.scheduler, secret, loopback=loopback)
        self.server = Server(self.app)
        self.listener, _ = listen("127.0.0.1", 0)
        self.port = self.listener.getsockname()[1]
        self.described = describe(self.settings, token=token)
        headers = {"authorization": f"Bearer {TOKEN}"} if token else {}
        self.client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=60)

    async def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        answer = await self.client.request(method, path, **options)
        self.check(method, path, answer)
        return answer

    def check(self, method: str, path: str, answer: httpx.Response) -> None:
        """An answer must be described: its status, its type, its schema, its headers."""
        if answer.status_code not in (401, 421, 403):
            assert answer.headers["cache-control"] == "no-store"
        path = path.partition("?")[0]
        route = "/sessions/{id}" if re.fullmatch("/sessions/[^/]+", path) else path
        route = "/sessions/{id}/files/{name}" if re.fullmatch("/sessions/[^/]+/files/[^/]+", path) else route
        operations = self.described["paths"].get(route)
        if operations is None:
            assert answer.status_code in (401, 403, 404, 421)
            return
        operation = operations.get(method.lower()) or next(iter(operations.values()))
        said = operation["responses"][str(answer.status_code)]
        if answer.status_code == 204:
            assert answer.content == b""
            return
        kind = answer.headers["content-type"]
        content = {re.sub(r"; charset=utf-8$", "", name): each for name, each in said["content"].items()}
        schema = content[re.sub(r"; charset=utf-8$", "", kind)]["schema"]
        if "json" in kind:
            whole = {**schema, "components": self.described["components"]}
            jsonschema.validate(answer.json(), whole, cls=jsonschema.Draft202012Validator)

    def raw(self, head: str, body: bytes = b"", *, buffer: int = 0) -> socket.socket:
        """Send bytes as they are."""
        found = socket.socket()
        if buffer:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        found.connect(("127.0.0.1", self.port))
        found.sendall(head.replace("\n", "\r\n").encode("latin-1") + body)
        return found

    def counts(self) -> dict[str, float]:
        return counts_of(self.scheduler.metrics.text().decode())


@asynccontextmanager
async def site(
    tmp: Path, *, token: bool = True, loopback: bool = True, **settings: Any
) -> AsyncIterator[Site]:
    found = Site(tmp, token=token, loopback=loopback, **settings)
    serving = asyncio.ensure_future(found.server.serve(sockets=[found.listener]))
    try:
        yield found
        assert adds_up(found.counts())
    finally:
        await found.client.aclose()
        for chat in found.chats.made:
            chat.go.set()
        await found.scheduler.drain()
        found.server.should_exit = True
        await serving
        found.listener.close()


def head_of(path: str = "/task", *, length: int, token: str = TOKEN, more: str = "") -> str:
    return (
        f"POST {path} HTTP/1.1\nHost: 127.0.0.1\nAuthorization: Bearer {token}\nContent-Type: application/json\n"
        f"Content-Length: {length}\n{more}\n"
    )


def received(connection: socket.socket) -> bytes:
    """Everything up to the end of the connection."""
    connection.settimeout(30)
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        return found + b"[reset]"
    return found


# --- what there is --------------------------------------------------------------------------------------


async def test_all_that_there_is(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        first = await s.ask("POST", "/task", json=HELLO)
        assert (first.status_code, first.json()["answer"]) == (200, "You said: hello")
        session = first.json()["session"]
        second = await s.ask("POST", "/task", json={**HELLO, "session": session}, headers=EVENTS)
        assert second.status_code == 200 and "event: turn_finished\n" in second.text
        assert (await s.ask("GET", "/health")).json()["state"] == "ok"
        assert "tasks_accepted_total 2.0" in (await s.ask("GET", "/metrics")).text
        assert (await s.ask("GET", "/openapi.json")).json() == s.described
        other = await s.ask("DELETE", f"/sessions/{session}?userId=bob")
        assert other.status_code == 404
        assert (await s.ask("DELETE", f"/sessions/{session}?userId=ann")).status_code == 204
        assert (await s.ask("DELETE", f"/sessions/{session}")).status_code == 404
        assert (await s.ask("POST", "/task", json={**HELLO, "session": session})).status_code == 404
        assert s.counts()['requests_total{route="/task",status="200"}'] == 2


async def test_a_file(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        session = (await s.ask("POST", "/task", json=HELLO)).json()["session"]
        pictures = s.scheduler.users.folder("ann") / "sessions" / session / "pictures"
        pictures.mkdir()
        for ending, kind in (("png", "image/png"), ("html", "text/html; charset=utf-8")):
            name = "0" * 64 + "." + ending
            (pictures / name).write_bytes(b"x" * 200_000)
            for query in ("", "?userId=ann"):
                answer = await s.ask("GET", f"/sessions/{session}/files/{name}{query}")
                assert (answer.status_code, answer.content) == (200, b"x" * 200_000)
                assert answer.headers["content-type"] == kind
                assert answer.headers["content-disposition"].startswith("attachment")
                assert answer.headers["content-security-policy"] == "sandbox"
        for path in (f"{name}?userId=bob", "1" * 64 + ".png", "..%2fevents.jsonl", "%2e%2e"):
            answer = await s.ask("GET", f"/sessions/{session}/files/{path}")
            assert answer.status_code == 404, path
        assert (await s.ask("GET", f"/sessions/{session}/files/{name}?x=1")).status_code == 422


async def test_the_description_is_whole(tmp_path: Path) -> None:
    for token in (True, False):
        text = json.dumps(describe(Settings(data_dir=tmp_path), token=token))
        for name in re.findall(r"#/components/schemas/(\w+)", text):
            assert name in json.loads(text)["components"]["schemas"]
        for word in ("not_json", "queue_full", "session_in_use"):
            assert word in text


@pytest.mark.parametrize("path", ["/", "/task/", "//task", "/tasks", "/sessions", "/sessions/", "/docs"])
async def test_what_there_is_not(tmp_path: Path, path: str) -> None:
    async with site(tmp_path) as s:
        assert (await s.ask("GET", path)).status_code == 404


@pytest.mark.parametrize("path", ["/task", "/health", "/metrics", "/openapi.json", f"/sessions/{ID}"])
async def test_methods_that_there_are_not(tmp_path: Path, path: str) -> None:
    async with site(tmp_path) as s:
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
            right = s.described["paths"].get(path, {"get": {}} if "files" in path else {"delete": {}})
            if method.lower() in right:
                continue
            answer = await s.ask(method, path)
            assert answer.status_code == 405
            assert answer.headers["allow"].lower() in right
            assert "access-control-allow-origin" not in answer.headers


# --- who may ask ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "offered",
    [
        "",
        "Bearer",
        "Bearer x",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN.upper()}",
    ],
)
async def test_only_the_token_opens_it(tmp_path: Path, offered: str) -> None:
    async with site(tmp_path) as s:
        for method, path in (
            ("POST", "/task"),
            ("GET", "/metrics"),
            ("GET", "/openapi.json"),
            ("DELETE", f"/sessions/{ID}"),
            ("GET", "/nothing"),
        ):
            answer = await s.ask(method, path, headers={"authorization": offered}, json=HELLO)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer" and answer.headers["connection"] == "close"
        health = await s.ask("GET", "/health", headers={"authorization": offered})
        assert health.status_code == 200 and health.headers["connection"] == "close"
        assert s.chats.made == []


async def test_the_token_is_compared_in_constant_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    compare = module.hmac.compare_digest

    def note(one: bytes, other: bytes) -> bool:
        seen.append((one, other))
        return compare(one, other)

    monkeypatch.setattr(module.hmac, "compare_digest", note)
    async with site(tmp_path) as s:
        wrong = {b"authorization": b"Bearer \xc3\xbc\xff"}
        assert (await s.client.get("/metrics", headers=wrong)).status_code == 401
        assert (await s.ask("GET", "/metrics")).status_code == 200
    assert len(seen) == 2 and all(other == TOKEN.encode() for _, other in seen)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example:80"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": "localhost:99999"}, 200),
        ({"host": "[::1]:80"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:3000"}, 200),
    ],
)
async def test_on_loopback_requests_of_other_sites_are_refused(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    async with site(tmp_path, token=False) as s:
        for path in ("/health", "/metrics"):
            assert (await s.ask("GET", path, headers=headers)).status_code == status
        assert (await s.ask("POST", "/task", headers=headers, json=HELLO)).status_code == status


async def test_elsewhere_any_host_may_be_named(tmp_path: Path) -> None:
    async with site(tmp_path, loopback=False) as s:
        assert (await s.ask("GET", "/metrics", headers={"host": "box.example"})).status_code == 200


# --- attacks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/sessions/..",
        "/sessions/%2e%2e",
        "/sessions/..%2f..%2fetc",
        f"/sessions/{ID}%2f..",
        f"/sessions/{ID}%0d%0aset-cookie:%20evil",
        f"/sessions/{ID}%00",
        "/sessions/" + "a" * 5000,
    ],
)
async def test_tricks_with_paths(tmp_path: Path, path: str) -> None:
    async with site(tmp_path) as s:
        before = sorted(tmp_path.rglob("*"))
        head = (
            f"DELETE {path} HTTP/1.1\nHost: localhost\nAuthorization: Bearer {TOKEN}\nConnection: close\n\n"
        )
        answer = await asyncio.to_thread(received, s.raw(head))
        assert answer.split(b" ")[1] == b"404" and b"evil" not in answer.lower().replace(b"/evil", b"")
        assert b"set-cookie" not in answer.lower()
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "query",
    ["userId=", "userId=../x", "userId=a&userId=b", "user=ann", "userId=a%0d%0ab", "&".join(["a=1"] * 50)],
)
async def test_tricks_with_queries(tmp_path: Path, query: str) -> None:
    async with site(tmp_path) as s:
        assert (await s.ask("DELETE", f"/sessions/{ID}?{query}")).status_code == 422


async def test_bodies_that_are_refused(tmp_path: Path) -> None:
    async with site(tmp_path, http_body_kb=10) as s:
        json_type = {"content-type": "application/json"}
        for raw, status in (
            (b"", 400),
            (b"{", 400),
            (b"\xff\xfe", 400),
            (b'{"userId":"a","task":"x","task":"y"}', 400),
            (b"[]", 422),
            (json.dumps({"userId": "../x", "task": "x"}).encode(), 422),
            (json.dumps({**HELLO, "session": "../../x"}).encode(), 422),
            (json.dumps({**HELLO, "session": ID + "\r\nx: y"}).encode(), 422),
            (json.dumps({**HELLO, "session": ID}).encode(), 404),
            (json.dumps({"userId": "a", "task": "x" * 10_000}).encode(), 413),
        ):
            answer = await s.ask("POST", "/task", content=raw, headers=json_type)
            assert answer.status_code == status, raw[:80]
        assert (await s.ask("POST", "/task", content=b"{}")).status_code == 415
        assert (await s.ask("POST", "/task", data={"userId": "ann", "task": "x"})).status_code == 415
        assert s.chats.made == []


async def test_a_hundred_megabytes_are_not_kept(tmp_path: Path) -> None:
    async with site(tmp_path) as s:

        async def parts() -> AsyncIterator[bytes]:
            for _ in range(100):
                yield b" " * 1_000_000

        sizes = {"content-type": "application/json"}
        for headers in (sizes, {**sizes, "content-length": "100000000"}):
            answer = await s.ask("POST", "/task", content=parts(), headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
            assert answer.headers["connection"] == "close"


async def test_a_body_that_drips_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PATIENCE", 0.3)
    async with site(tmp_path) as s:
        slow = [s.raw(head_of(length=500), b'{"userId"') for _ in range(50)]
        assert (await s.ask("POST", "/task", json=HELLO)).status_code == 200  # others are served meanwhile
        for each in slow:
            answer = await asyncio.to_thread(received, each)
            assert answer.split(b" ")[1] == b"408" and answer.count(b"slow_body") == 1
        await until(lambda: len(s.server.server_state.connections) == 1)  # the one of the client
        assert s.counts()["tasks_accepted_total"] == 1


@pytest.mark.parametrize("limit", [500_000, 1 << 40])
async def test_a_client_that_reads_no_events_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(module, "STALL", 0.3)
    monkeypatch.setattr(task_module.Feed.__init__, "__defaults__", (limit,))
    async with site(tmp_path) as s:
        body = json.dumps({"userId": "ann", "task": "flood"}).encode()
        head = head_of(length=len(body), more="Accept: text/event-stream\n")
        connection = s.raw(head, body, buffer=4096)
        await until(lambda: s.counts()['tasks_finished_total{outcome="left"}'] == 1)
        await until(lambda: s.app.idle.is_set())
        await until(lambda: not s.server.server_state.connections)  # not kept for what it will never read
        answer = await asyncio.to_thread(received, connection)
        assert len(answer) < 10_000_000 and b"turn_finished" not in answer
        assert (await s.ask("POST", "/task", json=HELLO)).status_code == 200


async def test_a_client_that_reads_no_result_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STALL", 0.3)
    monkeypatch.setattr(task_module, "ANSWER_LIMIT", 50_000_000)
    async with site(tmp_path, http_body_kb=10_000) as s:
        # each sign has six bytes in the answer, which is more than the buffers on the way take
        body = json.dumps({"userId": "ann", "task": "\u4f60" * 1_900_000}, ensure_ascii=False).encode()
        connections = [
            await asyncio.to_thread(s.raw, head_of(length=len(body)), body, buffer=4096) for _ in range(2)
        ]
        await until(lambda: s.counts()['tasks_finished_total{outcome="ok"}'] == 2)
        await until(lambda: not s.server.server_state.connections)
        assert s.app.idle.is_set()
        for each in connections:
            each.close()


async def test_many_that_only_connect_keep_nobody_out(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        where = ("127.0.0.1", s.port)
        held = [await asyncio.to_thread(socket.create_connection, where) for _ in range(300)]
        assert (await s.ask("POST", "/task", json=HELLO)).status_code == 200
        await until(lambda: len(s.server.server_state.connections) <= 202)
        for each in held:
            each.close()


async def test_a_client_that_leaves_ends_its_task(tmp_path: Path) -> None:
    async with site(tmp_path, http_tasks=1) as s:
        for headers in ({}, EVENTS):
            body = {"userId": "ann", "task": "wait"}
            sending = asyncio.ensure_future(s.client.post("/task", json=body, headers=headers))
            await until(lambda: s.chats.running == 1)
            waiting = asyncio.ensure_future(s.client.post("/task", json=HELLO, headers=headers))
            await until(lambda: s.scheduler.counts["queued"] == 1)
            waiting.cancel()
            await until(lambda: s.scheduler.counts["queued"] == 0)
            sending.cancel()
            await until(lambda: s.scheduler.counts["running"] == 0)
            await asyncio.gather(sending, waiting, return_exceptions=True)
        assert s.counts()['tasks_finished_total{outcome="left"}'] == 4
        assert [prompt for _, prompt in s.chats.order] == ["wait", "wait"]


async def test_a_quiet_stream_has_comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ALIVE", 0.02)
    async with site(tmp_path) as s:
        body = {"userId": "ann", "task": "wait"}
        async with s.client.stream("POST", "/task", json=body, headers=EVENTS) as answer:
            alive, last = 0, ""
            async for line in answer.aiter_lines():
                alive += line == ": alive"
                if alive == 3:
                    s.chats.made[0].go.set()
                last = line if line.startswith("event") else last
        assert last == "event: turn_finished"


# --- the end, and the log -------------------------------------------------------------------------------


async def test_while_it_ends(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.scheduler.drain()
        assert (await s.ask("GET", "/health")).json()["state"] == "draining"
        refused = await s.ask("POST", "/task", json=HELLO)
        assert refused.status_code == 503 and int(refused.headers["retry-after"]) >= 1


async def test_a_full_queue(tmp_path: Path) -> None:
    async with site(tmp_path, http_tasks=1, http_queue=0) as s:
        sending = asyncio.ensure_future(s.client.post("/task", json={"userId": "ann", "task": "wait"}))
        await until(lambda: s.chats.running == 1)
        refused = await s.ask("POST", "/task", json=HELLO)
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) >= 1
        s.chats.made[0].go.set()
        assert (await sending).status_code == 200


@pytest.mark.parametrize(("fails", "status"), [("sandbox", 503), ("in use", 409), ("a fault", 500)])
async def test_a_session_that_cannot_be_started(tmp_path: Path, fails: str, status: int) -> None:
    async with site(tmp_path) as s:
        s.chats.fails = fails
        answer = await s.ask("POST", "/task", json=HELLO)
        assert answer.status_code == status and "a fault" not in answer.text
        stream = await s.ask("POST", "/task", json=HELLO, headers=EVENTS)
        assert stream.status_code == 200 and stream.text.rstrip().split("\n")[-2] == "event: error"


async def test_a_fault_of_the_server_is_told_without_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(tmp_path) as s:
        monkeypatch.setattr(s.scheduler.metrics, "text", lambda: 1 // 0)
        answer = await s.ask("GET", "/metrics")
        assert answer.status_code == 500 and answer.json()["error"]["code"] == "internal"
        assert "division" not in answer.text
        monkeypatch.undo()


async def test_the_log_has_ids_and_nothing_that_was_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = logging.getLogger("sandbox_chat.serve")
    before = list(logger.handlers)
    report.set_up(Settings(data_dir=tmp_path, http_token=Secret(TOKEN)), on_stderr=True)
    try:
        async with site(tmp_path) as s:
            found = await s.ask("POST", "/task", json={"userId": "ann.canary", "task": "a canary sings"})
            await s.ask("GET", f"/canary/{TOKEN}")
            await s.ask("POST", "/task", json=HELLO, headers={"authorization": "Bearer canary"})
    finally:
        for handler in set(logger.handlers) - set(before):
            logger.removeHandler(handler)
    said = capsys.readouterr().err
    lines = [json.loads(line) for line in said.splitlines()]
    assert [each["event"] for each in lines] == ["task", "request", "request", "request"]
    assert lines[0]["task"] == lines[1]["task"] == found.json()["task"]
    assert lines[0]["session"] == lines[1]["session"] == found.json()["session"]
    assert (lines[0]["outcome"], lines[0]["cost_usd"]) == ("ok", 0.25)
    assert [each["status"] for each in lines[1:]] == [200, 404, 401]
    assert "canary" not in said and "Bearer" not in said
