"""Seeing and ending the sandboxes in the cloud; what a killed run leaves (S9)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.cloud_worker import a_cloud_worker, cloud_settings, run
from support.e2b_server import Cloud
from support.e2b_server.fixtures import cloud_fixture  # noqa: F401
from support.sandboxes import PATIENCE, until

from sandbox_chat import sandbox
from sandbox_chat.sandbox import e2b_list
from sandbox_chat.sandbox.base import SandboxError, SandboxUnavailable
from sandbox_chat.settings import Secret, Settings

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from sandbox_chat.sandbox.e2b import E2BSandbox
from sandbox_chat.settings import load
sandbox = E2BSandbox(load({"sandbox": "e2b"}), "session-of-the-killed")
sandbox.start()
print(sandbox.id, flush=True)
sandbox.run_code("import time; time.sleep(3000)", timeout=60)
"""


def environment(cloud: Cloud, folder: Path) -> dict[str, str]:
    return {
        **{
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("E2B_", "SANDBOX_CHAT_"))
        },
        "E2B_API_KEY": cloud.key,
        "E2B_API_URL": cloud.url,
        "E2B_DOMAIN": cloud.domain,
        "E2B_SANDBOX_URL": cloud.sandbox_url,
        "SANDBOX_CHAT_CONFIG_DIR": str(folder),
        "SANDBOX_CHAT_DATA_DIR": str(folder / "data"),
        "SANDBOX_CHAT_START_TIMEOUT": str(PATIENCE),
        "SANDBOX_CHAT_DOCKER_COMMAND": "no-such-docker",
    }


def command(cloud: Cloud, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sandbox_chat", "sandboxes", *words],
        env=environment(cloud, folder),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE * 2,
    )


def killed_run(cloud: Cloud, folder: Path) -> str:
    """Start a program that makes a sandbox and runs code in it, and kill it. Returns the sandbox's id."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(Path(__file__).parents[2])],
        env=environment(cloud, folder),
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        name = program.stdout.readline().strip()
        assert name
        program.send_signal(signal.SIGKILL)
        program.wait()
    return name


@pytest.mark.parametrize("cloud", [{}, {"api": "v1"}], indirect=True)
async def test_s9_what_a_killed_run_left_is_found_and_ended(cloud: Cloud, tmp_path: Path) -> None:
    name = killed_run(cloud, tmp_path)
    settings = cloud_settings(cloud)
    with a_cloud_worker(cloud) as worker:
        await run(worker, "1")
        assert len(sandbox.remotes(settings, "e2b")) == 2
        (left,) = sandbox.leftovers(settings)
        assert (left.id, left.kind, left.session, left.left, left.here) == (
            name, "e2b", "session-of-the-killed", True, True,
        )  # fmt: skip
        assert left.started is not None
        assert left.ends is not None
        assert left.ends > left.started
        assert sandbox.end(settings, [left]) == [left]
        assert name not in cloud.sandboxes
        assert len(cloud.sandboxes) == 1, "that of the running program lives"
        assert sandbox.leftovers(settings) == []


def test_s9_it_also_ends_by_itself(cloud: Cloud, tmp_path: Path) -> None:
    name = killed_run(cloud, tmp_path)
    assert name in cloud.sandboxes
    cloud.advance(901)
    assert until(lambda: name not in cloud.sandboxes)


async def test_one_of_this_session_made_by_another_process_counts_as_left(
    cloud: Cloud, tmp_path: Path
) -> None:
    from sandbox_chat.sandbox import remote

    settings = cloud_settings(cloud)
    with a_cloud_worker(cloud, session_id="mine") as worker:
        await run(worker, "1")
        assert sandbox.leftovers(settings, session_id="mine") == []
        (record,) = cloud.sandboxes.values()
        record.metadata = {**remote.marks("mine", ""), "host": "elsewhere"}
        assert len(sandbox.leftovers(settings, session_id="mine")) == 1
        assert sandbox.leftovers(settings, session_id="other") == []


async def test_all_pages_are_read_and_others_are_left_alone(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    from e2b_code_interpreter import Sandbox

    monkeypatch.setattr(e2b_list, "_PAGE", 1)
    other = Sandbox.create(**cloud.client(), metadata={"app": "another"})
    settings = cloud_settings(cloud)
    with a_cloud_worker(cloud) as first, a_cloud_worker(cloud) as second:
        await run(first, "1")
        await run(second, "1")
        found = e2b_list.list_sandboxes(settings)
        assert len(found) == 2
        assert other.sandbox_id not in [one.id for one in found]
    assert other.kill()


async def test_the_commands(cloud: Cloud, tmp_path: Path) -> None:
    done = command(cloud, tmp_path, "list")
    assert (done.returncode, done.stdout, done.stderr) == (0, "No sandbox of ours is alive (e2b).\n", "")
    name = killed_run(cloud, tmp_path)
    with a_cloud_worker(cloud, e2b_tag="my-tag") as worker:
        await run(worker, "1")
        done = command(cloud, tmp_path)
        assert done.returncode == 0
        assert name in done.stdout
        assert "a crashed run" in done.stdout
        assert "this machine" in done.stdout
        assert "my-tag" in done.stdout
        assert "sandboxes kill --left" in done.stdout
        rows = json.loads(command(cloud, tmp_path, "list", "--json").stdout)
        assert [(row["id"] == name, row["left"]) for row in rows] == [(True, True), (False, False)]
        done = command(cloud, tmp_path, "kill", "nope")
        assert done.returncode == 1
        assert "No sandbox of ours begins with 'nope'" in done.stderr
        done = command(cloud, tmp_path, "kill", "--left")
        assert (done.returncode, done.stdout) == (0, f"ended e2b {name}\n")
        (mine,) = cloud.sandboxes
        done = command(cloud, tmp_path, "kill", mine[:8])
        assert (done.returncode, done.stdout) == (0, f"ended e2b {mine}\n")
        assert not cloud.sandboxes
    done = command(cloud, tmp_path, "kill", "--all")
    assert (done.returncode, done.stdout) == (0, "There is nothing to end.\n")
    cloud.fail("list", 401, times=None)
    done = command(cloud, tmp_path, "list")
    assert done.returncode == 1
    assert "the key is not accepted (401)" in done.stderr
    assert "Traceback" not in done.stderr
    assert cloud.key not in done.stderr


@pytest.mark.parametrize("cloud", [{"prestart": 0}], indirect=True)
def test_failures_are_sentences(cloud: Cloud) -> None:
    settings = cloud_settings(cloud)
    cloud.fail("list", 500, times=None)
    with pytest.raises(SandboxError, match="could not be listed"):
        sandbox.leftovers(settings)
    cloud.fail("kill", 500, times=None)
    with pytest.raises(SandboxError, match="could not be ended"):
        e2b_list.kill(settings, "abc")
    cloud.heal()
    assert e2b_list.kill(settings, "abc") is False
    with pytest.raises(SandboxUnavailable, match="E2B_API_KEY"):
        sandbox.leftovers(Settings(sandbox="e2b"))
    with pytest.raises(SandboxError, match="refused"):
        sandbox.leftovers(Settings(sandbox="e2b", e2b_api_key=Secret("x"), e2b_api_url="http://127.0.0.1:1"))
    assert sandbox.leftovers(Settings(sandbox="local")) == []
