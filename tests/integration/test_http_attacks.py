"""``serve --http`` with the real program: starts that are refused, large and slow bodies, its token, its description."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest
from support.http_serving import DATA, PATIENCE, Serving, adds_up, serving
from support.program import environment, run

import sandbox_chat
from sandbox_chat.settings import Settings

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        (["--http", "x"], {}, "--http takes [HOST:]PORT"),
        ([], {}, "--http"),
        (["--http", "0.0.0.0:0", "--no-auth"], {}, "--no-auth is for this computer only"),
        (["--http", "0.0.0.0:0", "--sandbox", "unsafe-local"], {}, "served to this computer only"),
        (["--http", "0", "--allow", "mcp:none"], {}, "there is no MCP server none"),
        (["--http", "0", "--allow", "all"], {}, "must be overwrite, mcp"),
        (["--http", "0"], {"SANDBOX_CHAT_HTTP_TOKEN": "short"}, "shorter than 16 signs"),
        (["--http", "0"], {"SANDBOX_CHAT_SANDBOX_WORKSPACE": "/tmp"}, "SANDBOX_CHAT_SANDBOX_WORKSPACE empty"),
        (["--http", "0"], {"SANDBOX_CHAT_LOCAL_TOOLS": "Read"}, "SANDBOX_CHAT_LOCAL_TOOLS empty"),
        (["--http", "0"], {"SANDBOX_CHAT_HTTP_TASKS": "0"}, "must be a whole number from 1 to 1000"),
        (["--http", "0", "--sandbox", "off", "--code-mode", "on"], {}, "code_mode"),
    ],
)
def test_starts_that_are_refused(
    tmp_path: Path, arguments: list[str], env: dict[str, str], words: str
) -> None:
    ended = run("serve", "--demo", *arguments, home=tmp_path, env=env)
    assert ended.code == 2 and ended.stdout == ""
    assert words in ended.stderr and len(ended.stderr.splitlines()) == 1


def test_without_a_model_nothing_is_served(tmp_path: Path) -> None:
    ended = run("serve", "--http", "0", home=tmp_path)
    assert ended.code == 2 and "No model is configured" in ended.stderr


def test_two_servers_cannot_have_one_port(tmp_path: Path) -> None:
    with serving(tmp_path, "--sandbox", "off") as server:
        ended = run("serve", "--demo", "--http", str(server.port), home=tmp_path)
        assert ended.code == 2 and f"Cannot listen on 127.0.0.1:{server.port}" in ended.stderr


def test_the_token_is_made_once_and_stays_in_its_file(tmp_path: Path) -> None:
    with serving(tmp_path, "--sandbox", "off", "--log", "--log-json") as server:
        path = tmp_path / DATA / "http-token"
        assert path.read_text(encoding="ascii").strip() == server.token and len(server.token) >= 32
        assert path.stat().st_mode & 0o777 == 0o600
        server.task("ann", "hello")
        process = psutil.Process(server.process.pid)
        for each in (process, *process.children(recursive=True)):
            assert server.token not in " ".join(each.cmdline()) + json.dumps(each.environ())
        log = (tmp_path / DATA / "logs" / "sandbox-chat.log").read_text(encoding="utf-8")
        assert server.token not in server.said + log
        assert '"event":"task"' in log and '"event":"request"' in log and "hello" not in log


def test_a_token_of_ones_own(tmp_path: Path) -> None:
    token = "a-token-of-my-own-0123456789"
    with serving(tmp_path, "--sandbox", "off", env={"SANDBOX_CHAT_HTTP_TOKEN": token}) as server:
        assert "that of the setting http_token" in server.said
        server.token = token
        assert server.task("ann", "hello")["outcome"] == "ok"
        assert not (tmp_path / DATA / "http-token").exists()
        for each in psutil.Process(server.process.pid).children(recursive=True):
            assert token not in json.dumps(each.environ())


def test_a_file_of_ones_own_wins(tmp_path: Path) -> None:
    path = tmp_path / "token"
    env = {"SANDBOX_CHAT_HTTP_TOKEN": "another-token-0123456789"}
    with serving(tmp_path, "--sandbox", "off", "--token-file", str(path), env=env) as server:
        assert server.token == path.read_text().strip() != env["SANDBOX_CHAT_HTTP_TOKEN"]
        assert server.request("GET", "/metrics").status_code == 200


def test_a_hundred_megabytes_do_not_fill_the_memory(tmp_path: Path) -> None:
    with serving(tmp_path, "--sandbox", "off") as server:
        process = psutil.Process(server.process.pid)
        server.task("ann", "hello")
        before = process.memory_info().rss
        for _ in range(3):
            answer = server.request("POST", "/task", content=iter([b" " * 1_000_000] * 100), headers=JSON)
            assert answer.status_code == 413 and answer.json()["error"]["code"] == "too_large"
        assert process.memory_info().rss - before < 60_000_000
        assert server.task("ann", "hello")["outcome"] == "ok"


def drip(server: Serving, token: str) -> socket.socket:
    """A request whose body does not come."""
    found = socket.create_connection(("127.0.0.1", server.port))
    head = (
        f"POST /task HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    )
    found.sendall(head.encode())
    return found


def test_bodies_that_drip_keep_nobody_out(tmp_path: Path) -> None:
    with serving(tmp_path, "--sandbox", "off") as server:
        known = [drip(server, server.token) for _ in range(150)]
        strangers = [drip(server, "wrong") for _ in range(150)]
        assert server.task("ann", "hello")["outcome"] == "ok"
        for each in strangers:
            each.settimeout(PATIENCE)
            assert each.recv(100).startswith(b"HTTP/1.1 401 ")
        counts = server.counts()
        assert counts["tasks_accepted_total"] == 1 and counts["tasks_running"] == 0
        for each in (*known, *strangers):
            each.close()


def test_tricks_leave_nothing_behind(tmp_path: Path) -> None:
    with serving(tmp_path, "--sandbox", "off") as server:
        before = {path for path in tmp_path.rglob("*") if path.is_dir()}
        for user in ("..", "../../x", "a/b", "a\\b", "a\r\nset-cookie: x=1", "~", "a b", "\u202eann", ""):
            answer = server.request("POST", "/task", json={"userId": user, "task": "hello"})
            assert answer.status_code == (200 if user == ".." else 422)
            assert "set-cookie" not in answer.headers
        made = {path for path in tmp_path.rglob("*") if path.is_dir()} - before
        place = tmp_path / DATA / "users"
        odd = [path for path in made if not path.is_relative_to(place)]
        assert all(path.is_relative_to(tmp_path / ".cache") for path in odd), odd
        assert [re.sub("[0-9a-f]{16}", "…", path.name) for path in place.iterdir()] == ["__-…"]


def test_another_host(tmp_path: Path) -> None:
    with serving(tmp_path, "--sandbox", "off") as server:
        assert server.request("GET", "/metrics", headers={"host": "box.example"}).status_code == 421
    work = tmp_path / "work"
    with subprocess.Popen(
        [sys.executable, "-m", "sandbox_chat", "serve", "--demo", "--sandbox", "off", "--http", "0.0.0.0:0"],
        env=environment(tmp_path),
        cwd=work,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        port = re.search(r":(\d+);", process.stderr.readline())
        assert port is not None and "proxy with TLS" in process.stderr.readline()
        token = (tmp_path / DATA / "http-token").read_text().strip()
        headers = {"authorization": f"Bearer {token}", "host": "box.example"}
        url = f"http://127.0.0.1:{port[1]}/metrics"
        assert httpx.get(url, headers=headers, timeout=PATIENCE).status_code == 200
        assert httpx.get(url, timeout=PATIENCE).status_code == 401
        process.terminate()
        assert process.wait(PATIENCE) == 0


@pytest.mark.slow
@pytest.mark.parametrize("token", [True, False])
def test_it_is_as_it_describes_itself(tmp_path: Path, token: bool) -> None:
    """Schemathesis: all of its checks, on made-up, wrong and linked requests."""
    with serving(tmp_path, "--sandbox", "off", *([] if token else ["--no-auth"])) as server:
        header = ["-H", f"Authorization: Bearer {server.token}"] if token else []
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", server.url + "/openapi.json", *header),
                *("--checks", "all", "--max-examples", "20", "--seed", "7", "--no-color"),
                *("--generation-database", "none", "--request-timeout", "120"),
            ],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
        assert done.stdout.count("5 passed") >= 2 and "failure" not in done.stdout, done.stdout[-3000:]
        # going on with a session, getting a file of it, removing it
        assert re.search(r"API Links:\s+3 covered", done.stdout), done.stdout[-3000:]
        counts = server.counts()
        assert adds_up(counts) and counts['tasks_finished_total{outcome="ok"}'] > 5
        assert 'requests_total{route="/sessions/{id}",status="204"}' in counts
        assert not [name for name in counts if 'status="5' in name and "/health" not in name]
        assert server.end() == 0


def test_the_examples_of_the_document_work(tmp_path: Path) -> None:
    text = (Path(sandbox_chat.__file__).parent / "HTTP.md").read_text(encoding="utf-8")
    examples = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    with serving(tmp_path) as server:
        script = "set -eu\n" + "\necho\n".join(examples).replace("http://127.0.0.1:8080", server.url)
        done = subprocess.run(
            ["bash", "-c", script],
            env=environment(tmp_path),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(examples) == 5 and done.stdout.count('"outcome": "ok"') == 2
        assert "event: turn_finished" in done.stdout and '"state": "ok"' in done.stdout
        assert 'sandbox_chat_tasks_finished_total{outcome="ok"} 5.0' in done.stdout
        assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
        assert json.loads((tmp_path / "openapi.json").read_text())["openapi"] == "3.1.0"


def test_the_document_names_the_defaults() -> None:
    text = (Path(sandbox_chat.__file__).parent / "HTTP.md").read_text(encoding="utf-8")
    settings = Settings()
    for name in ("tasks", "queue", "sessions", "idle", "task_timeout", "body_kb", "drain"):
        assert re.search(rf"`http_{name}` \| {getattr(settings, 'http_' + name):g}( s)? \|", text), name
