"""Faults of a cloud that may pass: they cost neither the variables nor anybody's sandbox, and each has its sentence."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from support.cloud_worker import a_cloud_worker, cloud_settings, run
from support.e2b_server import Cloud
from support.e2b_server.fixtures import cloud_fixture  # noqa: F401
from support.relay import Relay
from support.sandboxes import PATIENCE, until

from sandbox_chat import sandbox
from sandbox_chat.sandbox import e2b_list, remote
from sandbox_chat.sandbox.base import SandboxError, SandboxFileError
from sandbox_chat.sandbox.e2b import E2BSandbox
from sandbox_chat.sandbox.e2b_client import PATIENCE as TIMES

PAGE = "<html>Welcome to the hotel. Log in to use the network.</html>"
# What the code interpreter answers instead of running code.
FAULTS: dict[str, dict[str, Any]] = {
    "429": {"status": 429},
    "500": {"status": 500},
    "502": {"status": 502},
    "503": {"status": 503},
    "a page": {"status": 200, "page": PAGE},
    "nothing": {"status": 200, "page": ""},
    "a number": {"status": 200, "page": "5"},
    "another address": {"status": 302, "page": "", "headers": {"location": "http://127.0.0.1:1/"}},
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_of_the_interpreter_costs_no_variables(cloud: Cloud, fault: str) -> None:
    with a_cloud_worker(cloud) as worker:
        await run(worker, "x = 1")
        (name,) = cloud.sandboxes
        cloud.fail("run", times=None, **FAULTS[fault])
        done = await run(worker, "x = 2")
        assert done.error is not None
        assert done.error.name == "CloudFault"
        assert "The sandbox and its variables are kept. Run it again." in done.error.value
        cloud.heal()
        assert (await run(worker, "x")).result_text == "1"
        assert list(cloud.sandboxes) == [name]


async def test_an_interpreter_that_stays_broken_is_replaced(cloud: Cloud) -> None:
    with a_cloud_worker(cloud) as worker:
        await run(worker, "x = 1")
        (name,) = cloud.sandboxes
        cloud.fail("run", 500, times=None)
        for _ in range(TIMES - 1):
            done = await run(worker, "x")
            assert done.error is not None
            assert done.error.name == "CloudFault"
        with pytest.raises(SandboxError, match="times in a row"):
            await run(worker, "x")
        cloud.heal()
        assert (await run(worker, "'x' in dir()")).fresh
        assert name not in cloud.sandboxes


@pytest.mark.parametrize(
    "fault", [{"status": 502}, {"cut": True}, {"hang": True}, {"status": 200, "page": PAGE}]
)
async def test_a_fault_of_a_file_operation_costs_no_variables(cloud: Cloud, fault: dict[str, Any]) -> None:
    with a_cloud_worker(cloud, e2b_request_timeout=5.0) as worker:
        await run(worker, "x = 1")
        cloud.fail("files", times=None, **fault)
        with pytest.raises(SandboxFileError, match=r"variables are kept\. Try again"):
            await worker.write_file("a", b"b")
        cloud.heal()
        assert await worker.write_file("a", b"b") == "/tmp/a"
        assert (await run(worker, "x")).result_text == "1"


@pytest.fixture
def network(cloud: Cloud) -> Iterator[list[Relay]]:
    relays = [Relay(cloud.url), Relay(cloud.sandbox_url)]
    yield relays
    for relay in relays:
        relay.close()


LATE = """
import threading, time
def late():
    for number in range(1000):
        time.sleep(0.1)
        print(number)
threading.Thread(target=late, daemon=True).start()
"""


async def test_a_network_that_comes_back_finds_all_variables(cloud: Cloud, network: list[Relay]) -> None:
    states: list[str] = []
    away = {"e2b_api_url": network[0].url, "e2b_sandbox_url": network[1].url, "e2b_request_timeout": 5.0}
    with a_cloud_worker(cloud, lambda state, _text: states.append(state), **away) as worker:
        await run(worker, "x = 1")
        await run(worker, LATE)
        for relay in network:
            relay.cut()
        await asyncio.sleep(4.0)  # the late thread is asked for meanwhile
        for _ in range(TIMES + 1):
            done = await run(worker, "x")
            assert done.error is not None
            assert done.error.name in ("CloudAway", "ConnectionCut")
            assert "ariables are" in done.error.value
        with pytest.raises(SandboxFileError, match="variables are kept"):
            await worker.write_file("a", b"b")
        for relay in network:
            relay.up = True
        assert (await run(worker, "x")).result_text == "1"
        assert "lost" not in states


# -- making one --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cloud", [{"prestart": 0}], indirect=True)
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"status": 200, "page": PAGE}, "its answer makes no sense. A login page"),
        ({"status": 400, "page": PAGE}, "its answer makes no sense. A login page"),
        (
            {"status": 302, "page": "", "headers": {"location": "http://x.invalid"}},
            "sends to another address",
        ),
    ],
)
def test_an_answer_of_somebody_else_is_said(cloud: Cloud, fault: dict[str, Any], words: str) -> None:
    cloud.fail("create", times=None, **fault)
    made = E2BSandbox(cloud_settings(cloud, close_timeout=1.0), "s")
    with pytest.raises(SandboxError, match=words):
        made.start()
    made.close()


@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_sandbox_that_was_made_although_an_error_came_is_ended(cloud: Cloud, status: int) -> None:
    make, answers = cloud.new_sandbox, [status]

    async def torn(*about: Any) -> Any:
        record = await make(*about)
        if answers:
            raise HTTPException(answers.pop())
        return record

    cloud.new_sandbox = torn  # type: ignore[method-assign]
    made = E2BSandbox(cloud_settings(cloud), "s")
    count = 1
    try:
        made.start()
        count = 2  # it was asked for again
    except SandboxError:
        assert status != 502
    made.close()
    made.release()
    assert until(lambda: not cloud.sandboxes)
    assert len(cloud.ended) == count


def test_an_odd_variable_of_the_client_is_named() -> None:
    code = "from sandbox_chat.sandbox import e2b_client\ntry:\n    e2b_client.load()\nexcept Exception as e:\n    print(e)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "E2B_CONNECTION_RETRIES": "many"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert "environment: E2B_CONNECTION_RETRIES. Remove it" in done.stdout, done.stderr


# -- lists -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cloud", [{"query": False}, {"query": False, "api": "v1"}], indirect=True)
def test_a_cloud_that_lists_everything_costs_nobody_elses_sandbox(cloud: Cloud) -> None:
    """Also not when a create whose answer got lost is looked for by its mark."""
    settings = cloud_settings(cloud)
    mine = E2BSandbox(settings, "s")
    mine.start()
    (record,) = cloud.sandboxes.values()
    for metadata in ({}, {"app": "another"}, {"app": remote.APP, "pid": "999999999"}):
        record.metadata = dict(metadata)
        assert e2b_list.with_marks(settings, {"one": "a"}, PATIENCE) == []
        assert sandbox.leftovers(settings) == []
        assert len(sandbox.remotes(settings, "e2b")) == (metadata.get("app") == remote.APP)
    mine.close()
    mine.release()


@pytest.mark.parametrize("cloud", [{"prestart": 0}], indirect=True)
def test_a_list_without_end_ends(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(e2b_list, "_PAGES", 5)
    cloud.fail("list", 200, page="[]", headers={"x-next-token": "again"}, times=None)
    assert sandbox.remotes(cloud_settings(cloud), "e2b") == []
    assert len(cloud.requests) == 5


@pytest.mark.parametrize("cloud", [{"prestart": 0, "api": "v1"}], indirect=True)
@pytest.mark.parametrize(
    ("page", "known"), [("5", False), ("{}", False), ("[1]", True), ('[{"metadata": 1}]', True)]
)
def test_a_list_that_is_none_is_said(cloud: Cloud, page: str, known: bool) -> None:
    cloud.fail("list", 200, page=page, times=None)
    if known:
        assert sandbox.remotes(cloud_settings(cloud), "e2b") == []
    else:
        with pytest.raises(SandboxError, match="makes no sense"):
            sandbox.remotes(cloud_settings(cloud), "e2b")
