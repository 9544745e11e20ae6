"""The life of cloud sandboxes: made, prolonged, let go, lost, ended; and what is said when that fails. S9, S10, S11."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from support.cloud_worker import a_cloud_worker, cloud_settings, run
from support.e2b_server import Cloud
from support.e2b_server.fixtures import cloud_fixture  # noqa: F401
from support.sandboxes import PATIENCE, until

from sandbox_chat.sandbox import make_worker
from sandbox_chat.sandbox.base import (
    SandboxClosed,
    SandboxError,
    SandboxLetGo,
    SandboxLost,
    SandboxUnavailable,
)
from sandbox_chat.sandbox.e2b import E2BSandbox
from sandbox_chat.settings import Settings


def a_sandbox(cloud: Cloud, **values: Any) -> E2BSandbox:
    return E2BSandbox(cloud_settings(cloud, **values), "session-1")


def test_no_key_is_said_before_anything_is_started() -> None:
    with pytest.raises(SandboxUnavailable, match="E2B_API_KEY"):
        make_worker(Settings(sandbox="e2b"))


def test_what_is_asked_of_the_cloud(cloud: Cloud) -> None:
    sandbox = a_sandbox(cloud, e2b_ttl=123, e2b_tag="mine", e2b_internet=False)
    sandbox.start()
    (record,) = cloud.sandboxes.values()
    assert (record.template, record.timeout, record.internet) == ("code-interpreter-v1", 123, False)
    assert record.metadata["app"] == "sandbox-chat"
    assert record.metadata["session"] == "session-1"
    assert record.metadata["tag"] == "mine"
    assert record.envs == {}
    assert not record.auto_pause
    sandbox.close()
    sandbox.close()
    sandbox.release()
    assert not cloud.sandboxes
    with pytest.raises(SandboxClosed):
        sandbox.run_code("1", timeout=1)


def test_nothing_is_taken_from_the_environment(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("E2B_API_URL", "E2B_SANDBOX_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("E2B_API_KEY", "e2b_another")
    monkeypatch.setenv("E2B_DOMAIN", "elsewhere.invalid")
    monkeypatch.setenv("E2B_DEBUG", "true")
    monkeypatch.setenv("E2B_HTTP_VERSION", "3")
    sandbox = a_sandbox(cloud)
    try:
        sandbox.start()
        assert sandbox.run_code("1 + 1", timeout=PATIENCE).result_text == "2"
    finally:
        sandbox.close()
        sandbox.release()


async def test_a_chat_that_runs_no_code_makes_no_sandbox(cloud: Cloud) -> None:
    with a_cloud_worker(cloud) as worker:
        assert worker.info.costs
        await asyncio.sleep(0.2)
    assert cloud.requests == []


# -- S11: what is said when no sandbox can be made ---------------------------------------------------------

REFUSED = {
    401: ("SandboxUnavailable", ["did not accept the key (401)", "E2B_API_KEY", "E2B_API_URL", "E2B_DOMAIN"]),
    403: ("SandboxUnavailable", ["refused to make a sandbox (403)", "different regions", "E2B_DOMAIN"]),
    404: ("SandboxUnavailable", ["control API", "404", "e2b==2.31.0 e2b-code-interpreter==2.8.1"]),
    405: ("SandboxUnavailable", ["control API", "405", "e2b==2.31.0 e2b-code-interpreter==2.8.1"]),
    429: ("SandboxError", ["(429)", "sandbox-chat sandboxes list"]),
    500: ("SandboxError", ["a fault of its own (500)", "Try again"]),
    503: ("SandboxError", ["a fault of its own (503)", "Try again"]),
}


@pytest.mark.parametrize("status", REFUSED)
@pytest.mark.parametrize("cloud", [{"prestart": 0}], indirect=True)
def test_s11_each_refusal_has_its_own_sentence(cloud: Cloud, status: int) -> None:
    cloud.fail("create", status, times=None)
    sandbox = a_sandbox(cloud)
    with pytest.raises(SandboxError) as caught:
        sandbox.start()
    sandbox.close()
    kind, words = REFUSED[status]
    assert type(caught.value).__name__ == kind
    assert [word for word in words if word not in str(caught.value)] == []
    assert cloud.key not in str(caught.value)


@pytest.mark.parametrize("cloud", [{"prestart": 0}, {"prestart": 0, "unknown_template": 400}], indirect=True)
def test_s11_an_unknown_template(cloud: Cloud) -> None:
    sandbox = a_sandbox(cloud, e2b_template="nix")
    with pytest.raises(SandboxUnavailable, match=r"no template 'nix'.*SANDBOX_CHAT_E2B_TEMPLATE"):
        sandbox.start()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:1", "refused the connection"),
        ("http://no.such.host.invalid", "is not known"),
        ("https:", "does not speak TLS"),
    ],
)
@pytest.mark.parametrize("cloud", [{"prestart": 0}], indirect=True)
def test_s11_a_cloud_that_is_not_there(cloud: Cloud, url: str, words: str) -> None:
    url = cloud.url.replace("http:", url) if url == "https:" else url
    sandbox = a_sandbox(cloud, e2b_api_url=url)
    with pytest.raises(SandboxError, match=words):
        sandbox.start()
    sandbox.close()


@pytest.mark.parametrize("cloud", [{"prestart": 0}], indirect=True)
def test_s11_a_cloud_that_never_answers(cloud: Cloud) -> None:
    cloud.fail("create", hang=True)
    sandbox = a_sandbox(cloud, start_timeout=1.0)
    with pytest.raises(SandboxError, match="did not answer in time"):
        sandbox.start()
    sandbox.close()


def test_a_sandbox_that_came_after_nobody_waited_any_more_is_ended(cloud: Cloud) -> None:
    make = cloud.new_sandbox

    async def late(*about: Any) -> Any:
        await asyncio.sleep(2.0)
        try:
            return await make(*about)
        finally:
            await asyncio.sleep(1.0)

    cloud.new_sandbox = late  # type: ignore[method-assign]
    sandbox = a_sandbox(cloud, start_timeout=1.5)
    with pytest.raises(SandboxError, match="did not answer in time"):
        sandbox.start()
    sandbox.close()
    assert until(lambda: bool(cloud.ended))
    assert until(lambda: not cloud.sandboxes)


def test_a_code_interpreter_that_does_not_answer(cloud: Cloud) -> None:
    cloud.fail("contexts", 500, times=None)
    sandbox = a_sandbox(cloud)
    with pytest.raises(SandboxError, match="code interpreter does not answer"):
        sandbox.start()
    sandbox.close()


async def test_a_short_fault_is_passed_over(cloud: Cloud) -> None:
    cloud.fail("create", 503, times=1)
    with a_cloud_worker(cloud) as worker:
        assert (await run(worker, "1 + 1")).result_text == "2"


# -- S10: gone behind our back -----------------------------------------------------------------------------


async def test_s10_a_sandbox_killed_by_others_is_replaced(cloud: Cloud) -> None:
    states: list[tuple[str, str]] = []
    with a_cloud_worker(cloud, lambda *said: states.append(said)) as worker:
        await run(worker, "x = 1")
        (name,) = cloud.sandboxes
        cloud.vanish(name)
        done = await run(worker, "'x' in dir()")
        assert (done.result_text, done.fresh) == ("False", True)
        lost = [text for state, text in states if state == "lost"]
        assert len(lost) == 1
        assert "The cloud has ended the sandbox" in lost[0]
        cloud.vanish(next(iter(cloud.sandboxes)))
        assert await worker.write_file("a", b"b") == "/tmp/a"
        assert (await run(worker, "1")).fresh


def test_s10_a_sandbox_killed_while_code_runs(cloud: Cloud) -> None:
    sandbox = a_sandbox(cloud)
    sandbox.start()
    threading.Timer(1.0, cloud.vanish, [sandbox.id]).start()
    done = sandbox.run_code("import time; time.sleep(3000)", timeout=PATIENCE)
    assert done.stopped == "died"
    assert done.error is not None
    assert "The cloud has ended the sandbox" in done.error.value
    sandbox.close()
    sandbox.release()


# -- time --------------------------------------------------------------------------------------------------


async def test_a_sandbox_in_use_is_prolonged_when_due(cloud: Cloud) -> None:
    with a_cloud_worker(cloud, e2b_ttl=30, e2b_idle_limit=0) as worker:
        await run(worker, "x = 1")
        (record,) = cloud.sandboxes.values()
        before = sum(path.endswith("/timeout") for _, path, _ in cloud.requests)
        assert (await run(worker, "x", timeout=120)).result_text == "1"
        assert record.end_at - cloud.now() > 120, "it outlives the run"
        for _ in range(3):
            await run(worker, "x", timeout=1)
        after = sum(path.endswith("/timeout") for _, path, _ in cloud.requests)
        assert after - before == 1, "not at every call"


def test_keep_prolongs_then_lets_go(cloud: Cloud) -> None:
    sandbox = a_sandbox(cloud, e2b_ttl=30, e2b_idle_limit=600)
    sandbox.start()
    (record,) = cloud.sandboxes.values()
    first = record.end_at
    sandbox.keep(1.0)
    assert record.end_at == first, "nothing is due yet"
    sandbox._ends -= 11  # as after eleven seconds
    sandbox.keep(12.0)
    assert record.end_at > first
    with pytest.raises(SandboxLetGo, match="not used for 10 minutes and was ended"):
        sandbox.keep(600.0)
    assert not cloud.sandboxes
    sandbox.release()


def test_keep_notices_that_it_is_gone(cloud: Cloud) -> None:
    sandbox = a_sandbox(cloud)
    sandbox.start()
    cloud.vanish(sandbox.id)
    sandbox._checked -= 1000
    with pytest.raises(SandboxLost, match="The cloud has ended the sandbox"):
        sandbox.keep(5.0)
    sandbox.release()


@pytest.mark.slow
async def test_an_idle_sandbox_is_prolonged_and_then_let_go_by_the_worker(cloud: Cloud) -> None:
    """The whole way, in real time: 30 s to live, prolonged while unused for 40 s, then ended; nothing is left."""
    states: list[tuple[str, str]] = []
    with a_cloud_worker(cloud, lambda *said: states.append(said), e2b_ttl=30, e2b_idle_limit=40) as worker:
        await run(worker, "x = 1")
        started = time.monotonic()
        (record,) = cloud.sandboxes.values()
        await asyncio.sleep(35)
        assert list(cloud.sandboxes) == [record.id], "it outlives its first 30 s"
        while cloud.sandboxes and time.monotonic() - started < 40 + PATIENCE:
            await asyncio.sleep(0.2)
        assert not cloud.sandboxes
        assert time.monotonic() - started >= 38
        assert until(lambda: states[-1][0] == "none")
        assert "was not used for" in states[-1][1]
        assert (await run(worker, "'x' in dir()")).fresh


# -- the end -----------------------------------------------------------------------------------------------


def test_close_while_it_starts_ends_what_is_made_in_that_moment(cloud: Cloud) -> None:
    cloud.fail("create", delay=1.0)
    sandbox = a_sandbox(cloud)
    problems: list[BaseException] = []

    def start() -> None:
        try:
            sandbox.start()
        except BaseException as error:
            problems.append(error)
        sandbox.release()

    thread = threading.Thread(target=start)
    thread.start()
    time.sleep(0.3)
    sandbox.close()
    thread.join(PATIENCE)
    assert [type(problem) for problem in problems] == [SandboxClosed]
    assert cloud.ended
    assert not cloud.sandboxes


def test_close_while_code_runs(cloud: Cloud) -> None:
    sandbox = a_sandbox(cloud)
    sandbox.start()
    problems: list[BaseException] = []

    def work() -> None:
        try:
            sandbox.run_code("import time; time.sleep(3000)", timeout=3000)
        except BaseException as error:
            problems.append(error)
        sandbox.release()

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.5)
    sandbox.close()
    assert not cloud.sandboxes
    thread.join(PATIENCE)
    assert [type(problem) for problem in problems] == [SandboxClosed]


def test_close_has_a_deadline_when_the_cloud_hangs(cloud: Cloud) -> None:
    cloud.leftovers_expected = True
    sandbox = a_sandbox(cloud, close_timeout=1.0)
    sandbox.start()
    cloud.fail("kill", hang=True, times=None)
    started = time.monotonic()
    sandbox.close()
    sandbox.close()
    assert time.monotonic() - started < 20
    sandbox.release()


def test_a_kill_that_fails_once_is_tried_again(cloud: Cloud) -> None:
    sandbox = a_sandbox(cloud)
    sandbox.start()
    cloud.fail("kill", 500, times=1)
    sandbox.close()
    sandbox.release()
    assert not cloud.sandboxes


async def test_interrupting_a_transfer(cloud: Cloud) -> None:
    from sandbox_chat.sandbox.base import SandboxFileError

    with a_cloud_worker(cloud) as worker:
        await worker.write_file("a", b"b")
        cloud.fail("files", delay=PATIENCE)
        task = asyncio.create_task(worker.write_file("b", b"c"))
        await asyncio.sleep(0.5)
        worker.interrupt()
        with pytest.raises(SandboxFileError, match="stopped by the user"):
            await task
        cloud.heal()
        assert await worker.read_file("a", max_bytes=10) == b"b"
