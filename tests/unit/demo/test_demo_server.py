"""The endpoint over plain HTTP: token, forms, faults, closing."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time

import pytest
from support.http_client import HELLO, connect, events, post
from support.scripted import error, rate_limited, serve, text, wait_for

from sandbox_chat.demo import server as server_module
from sandbox_chat.demo.script import Script
from sandbox_chat.demo.server import MessagesServer
from sandbox_chat.demo.wire import Request

STREAM = {**HELLO, "stream": True}


def streamed_text(raw: bytes) -> str:
    return "".join(
        event["delta"].get("text", "") for event in events(raw) if event["type"] == "content_block_delta"
    )


def test_whole_and_streamed() -> None:
    with serve("one two three", "one two three") as server:
        status, headers, body = post(server, HELLO)
        assert (status, headers["content-type"]) == (200, "application/json")
        message = json.loads(body)
        assert message["content"] == [{"type": "text", "text": "one two three"}]
        assert message["model"] == "demo"
        status, headers, body = post(server, STREAM)
        assert status == 200
        assert headers["content-type"].startswith("text/event-stream")
        assert headers["request-id"].startswith("req_")
        assert streamed_text(body) == "one two three"
        assert [record.outcome for record in server.requests] == ["done", "done"]
        assert server.requests[0].query == "beta=true"
        assert server.requests[0].request is not None and server.requests[0].request.prompt == "hello there"


def test_count_tokens() -> None:
    with serve() as server:
        status, _, body = post(server, HELLO, path="/v1/messages/count_tokens?beta=true")
        assert status == 200
        assert json.loads(body)["input_tokens"] > 3
        assert [record.path for record in server.others] == ["/v1/messages/count_tokens"]
        assert server.requests == []


@pytest.mark.parametrize("name", ["authorization", "x-api-key"])
def test_token_is_required(name: str) -> None:
    with serve(after="ok") as server:
        assert len(server.token) > 20
        scheme = "Bearer " if name == "authorization" else ""
        assert post(server, HELLO, headers={name: scheme + server.token})[0] == 200
        for wrong in (server.token + "x", "", "schlüssel".encode().decode("latin-1")):
            status, _, body = post(server, HELLO, headers={name: scheme + wrong})
            assert status == 401
            assert json.loads(body)["error"]["type"] == "authentication_error"
        assert post(server, HELLO, headers={})[0] == 401


def test_own_token_or_none() -> None:
    with serve("ok", token="mine") as server:
        assert post(server, HELLO, headers={"x-api-key": "mine"})[0] == 200
    with serve("ok", token="") as server:
        assert post(server, HELLO, headers={})[0] == 200


def test_bad_requests_and_unknown_paths() -> None:
    with serve() as server:
        status, _, body = post(server, b"{nonsense")
        assert (status, json.loads(body)["error"]["message"]) == (400, "The request body is not valid JSON.")
        assert post(server, {}, path="/v1/other")[0] == 404
        assert post(server, b"", path="/", method="GET")[0] == 404
        assert post(server, b"", path="/", method="HEAD")[0] == 404


def test_body_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_BODY", 1000)
    with serve("ok") as server:
        status, _, body = post(server, b"x" * 50_000)
        assert status == 413
        assert json.loads(body)["error"]["type"] == "request_too_large"
        assert post(server, HELLO)[0] == 200


def test_errors_with_headers() -> None:
    with serve(rate_limited(1.5), error(529, "Overloaded"), error(402, type="billing_error")) as server:
        status, headers, body = post(server, HELLO)
        assert (status, headers["retry-after"]) == (429, "1.5")
        assert json.loads(body)["error"] == {"type": "rate_limit_error", "message": "slow down"}
        assert json.loads(post(server, HELLO)[2])["error"]["type"] == "overloaded_error"
        assert post(server, HELLO)[0] == 402


def test_cut_in_the_middle() -> None:
    with serve(text("abcdefghij", piece=2, cut_at=4), text("abc", cut_at=0)) as server:
        for expected in (b"cd", None):
            connection = connect(server)
            connection.request("POST", "/v1/messages", json.dumps(STREAM), {"x-api-key": server.token})
            response = connection.getresponse()
            with pytest.raises((http.client.IncompleteRead, ConnectionError)) as caught:
                response.read()
            part = getattr(caught.value, "partial", b"")
            assert b"message_start" in part
            assert b'"ef"' not in part
            assert (b'"cd"' in part) == (expected is not None)
        assert [record.outcome for record in server.requests] == ["cut", "cut"]


def test_cut_of_a_whole_reply() -> None:
    with (
        serve(text("abcdefghij", cut_at=1)) as server,
        pytest.raises((http.client.IncompleteRead, ConnectionError)),
    ):
        post(server, HELLO)


def test_drop() -> None:
    with serve(text("never", drop=True), "fine") as server:
        with pytest.raises((ConnectionError, http.client.BadStatusLine)):
            post(server, STREAM)
        assert streamed_text(post(server, STREAM)[2]) == "fine"


def test_error_event() -> None:
    with serve(text("abcdefghij", piece=2, error_at=4), text("x", error_at=1)) as server:
        found = events(post(server, STREAM)[2])
        assert found[-1] == {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        assert not any(event["type"] == "message_stop" for event in found)
        assert post(server, HELLO)[0] == 500


def test_stalls() -> None:
    with serve(text("ab", piece=1, first_stall=0.2, stall_at=1, stall=0.2)) as server:
        start = time.monotonic()
        assert streamed_text(post(server, STREAM)[2]) == "ab"
        assert time.monotonic() - start >= 0.4


def test_hold_until_released() -> None:
    hold = threading.Event()
    with serve(text("abcdef", piece=1, hold_at=3, hold=hold)) as server:
        connection = connect(server)
        connection.request("POST", "/v1/messages", json.dumps(STREAM), {"x-api-key": server.token})
        response = connection.getresponse()
        got = b""
        while b'"c"' not in got:
            got += response.read1()
        assert server.requests[0].outcome == ""
        assert b'"d"' not in got
        hold.set()
        got += response.read()
        assert streamed_text(got) == "abcdef"


def test_client_that_goes_away_is_noticed() -> None:
    hold = threading.Event()
    with serve(text("abc", piece=1, hold_at=1, hold=hold)) as server:
        connection = connect(server)
        connection.request("POST", "/v1/messages", json.dumps(STREAM), {"x-api-key": server.token})
        connection.getresponse().read1()
        connection.close()
        wait_for(lambda: server.requests[0].outcome == "aborted")


def test_responder_that_raises() -> None:
    def broken(request: Request) -> str:
        raise ZeroDivisionError("oh")

    with serve(function=broken) as server:
        status, _, body = post(server, HELLO)
        assert status == 500
        assert "ZeroDivisionError" in json.loads(body)["error"]["message"]
        assert isinstance(server.errors[0], ZeroDivisionError)


def test_close_with_open_streams() -> None:
    hold = threading.Event()
    server = MessagesServer(Script([text("abc", hold_at=1, hold=hold, piece=1)] * 3))
    server.start()
    connections = [connect(server) for _ in range(3)]
    for connection in connections:
        connection.request("POST", "/v1/messages", json.dumps(STREAM), {"x-api-key": server.token})
        connection.getresponse()
    start = time.monotonic()
    server.close()
    assert time.monotonic() - start < 3
    assert server._thread is not None and not server._thread.is_alive()
    server.close()
    with pytest.raises(OSError):
        connect(server).connect()
    for connection in connections:
        connection.close()


def test_close_at_once_and_twice() -> None:
    server = MessagesServer(Script([]))
    server.close()
    with pytest.raises(RuntimeError):
        server.start()
    for _ in range(3):
        server = MessagesServer(Script([]))
        server.start()
        server.close(timeout=10)
        assert server._thread is not None and not server._thread.is_alive()


def test_early_request_waits_in_line() -> None:
    with serve("ok") as server:
        # No pause between start and the first request: the framework may still be loading.
        assert post(server, HELLO)[0] == 200


def test_parallel_streams() -> None:
    with serve(function=lambda request: text(request.prompt * 20, piece=3)) as server:
        answers: dict[int, str] = {}

        def ask(number: int) -> None:
            body = {**STREAM, "messages": [{"role": "user", "content": f"<{number}>"}]}
            answers[number] = streamed_text(post(server, body)[2])

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == {number: f"<{number}>" * 20 for number in range(8)}


QUIET = """
import http.client, sys
from sandbox_chat.demo.reply import Faults, Reply, Text
from sandbox_chat.demo.script import Script
from sandbox_chat.demo.server import MessagesServer

heavy = [name for name in ("starlette", "uvicorn", "numpy", "claude_agent_sdk") if name in sys.modules]
assert not heavy, heavy

def fail(request):
    raise ValueError("oh")

with MessagesServer(Script([fail, Reply((Text("abc"),), faults=Faults(cut_at=1)), Reply((Text("x"),), faults=Faults(drop=True))])) as server:
    host = server.url.removeprefix("http://")
    for body in ('{"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": true}',) * 3 + ("nonsense",):
        connection = http.client.HTTPConnection(host)
        try:
            connection.request("POST", "/v1/messages", body, {"x-api-key": server.token})
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            pass
    connection = http.client.HTTPConnection(host)
    connection.connect()
    connection.sock.sendall(b"this is not http\\r\\n\\r\\n")
    connection.sock.recv(1000)
"""


def test_nothing_is_printed_and_nothing_heavy_imported() -> None:
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
