"""The test cloud, driven by the real client: it must not notice that this is not the real thing."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import e2b
import httpx
import psutil
import pytest
from e2b import CommandExitException, FileType, SandboxQuery, SandboxState
from e2b_code_interpreter import AsyncSandbox, Sandbox
from support.e2b_server import Cloud, record
from support.e2b_server import cloud as cloud_module
from support.e2b_server.fixtures import cloud_fixture  # noqa: F401
from support.ordinary import CHECKOUT, open_folder, run_as
from support.sandboxes import alive, until

PATIENCE = 60.0
"""Seconds that anything may take on a busy machine."""


@pytest.fixture(scope="module")
def place() -> Iterator[Cloud]:
    """One cloud for the tests that only use it."""
    with Cloud() as made:
        yield made
        assert not made.errors, "\n".join(made.errors)


@pytest.fixture(scope="module")
def box(place: Cloud) -> Iterator[Sandbox]:
    """One sandbox for the tests that only use it."""
    made = Sandbox.create(**place.client(), timeout=600)
    yield made
    made.kill()


# Control API


def test_create_info_timeout_connect_kill(cloud: Cloud) -> None:
    box = Sandbox.create(
        **cloud.client(),
        template="base",
        timeout=60,
        metadata={"app": "a b&c=ü"},
        envs={"X": "1"},
        allow_internet_access=False,
    )
    record = cloud.sandboxes[box.sandbox_id]
    assert (record.template, record.timeout, record.metadata) == ("base", 60, {"app": "a b&c=ü"})
    assert record.internet is False
    assert box.is_running()
    info = box.get_info()
    assert info.metadata == {"app": "a b&c=ü"}
    assert info.state is SandboxState.RUNNING
    assert 50 < (info.end_at - info.started_at).total_seconds() < 70
    box.set_timeout(500)
    assert 490 < record.end_at - cloud.now() <= 500
    other = Sandbox.connect(box.sandbox_id, timeout=100, **cloud.client())
    assert 480 < record.end_at - cloud.now() <= 500, "connecting only ever prolongs"
    assert other.run_code("import os; os.environ['X']").text == "'1'"
    assert box.kill() is True
    assert box.kill() is False
    assert not box.is_running()
    with pytest.raises(e2b.SandboxNotFoundException):
        Sandbox.connect(box.sandbox_id, **cloud.client())
    with pytest.raises(e2b.SandboxNotFoundException):
        box.set_timeout(10)


def test_list_pages_filters_and_order(cloud: Cloud) -> None:
    made = [
        Sandbox.create(**cloud.client(), metadata={"session": "s 1&2", "n": str(number)})
        for number in range(3)
    ]
    ids = [box.sandbox_id for box in made]
    pages = Sandbox.list(limit=2, order="asc", **cloud.client())
    first, second = pages.next_items(), pages.next_items()
    assert [i.sandbox_id for i in first + second] == ids
    assert len(first) == 2
    assert not pages.has_next
    found = Sandbox.list(
        query=SandboxQuery(metadata={"session": "s 1&2", "n": "1"}), **cloud.client()
    ).next_items()
    assert [i.sandbox_id for i in found] == [ids[1]]
    assert made[0].pause()
    assert not made[0].pause()
    assert not made[0].is_running()
    paused = Sandbox.list(query=SandboxQuery(state=[SandboxState.PAUSED]), **cloud.client()).next_items()
    assert [i.sandbox_id for i in paused] == [ids[0]]
    for name in ids:
        assert Sandbox.kill(name, **cloud.client())
    assert not Sandbox.list(**cloud.client()).next_items()


def test_pause_keeps_variables(cloud: Cloud) -> None:
    box = Sandbox.create(**cloud.client())
    box.run_code("x = 41")
    box.pause()
    with pytest.raises(e2b.TimeoutException):
        box.run_code("x", timeout=20)
    box.connect()
    assert box.run_code("x + 1", timeout=PATIENCE).text == "42"
    box.kill()


def test_time_to_live_is_real(cloud: Cloud) -> None:
    box = Sandbox.create(**cloud.client(), timeout=30)
    cloud.advance(20)
    box.set_timeout(30)
    cloud.advance(20)
    assert box.is_running()
    cloud.advance(20)
    assert not box.is_running()
    assert cloud.ended == [box.sandbox_id]
    with pytest.raises(e2b.TimeoutException, match="was not found"):
        box.run_code("1")
    with pytest.raises(e2b.SandboxNotRunningException):
        box.files.read("/tmp/x")
    with pytest.raises(e2b.SandboxNotRunningException):
        box.commands.run("true")
    pausing = Sandbox.create(**cloud.client(), timeout=30, lifecycle={"on_timeout": "pause"})
    cloud.advance(40)
    assert cloud.sandboxes[pausing.sandbox_id].state == "paused"
    pausing.kill()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, e2b.AuthenticationException),
        (403, e2b.SandboxException),
        (404, e2b.SandboxException),
        (405, e2b.SandboxException),
        (429, e2b.RateLimitException),
        (500, e2b.SandboxException),
        (502, e2b.SandboxException),
        (503, e2b.ServiceBusyException),
    ],
)
def test_create_fails_by_status(place: Cloud, status: int, kind: type[Exception]) -> None:
    place.fail("create", status, times=None)
    try:
        with pytest.raises(kind) as caught:
            Sandbox.create(**place.client(), retries=0)
        assert str(status) in str(caught.value)
    finally:
        place.heal()


def test_the_client_repeats_what_may_pass(cloud: Cloud) -> None:
    cloud.fail("create", 503, times=2)
    box = Sandbox.create(**cloud.client())
    assert [r[2] for r in cloud.requests if r[0] == "POST"] == [503, 503, 201]
    box.kill()


def test_wrong_key_and_unknown_template(place: Cloud) -> None:
    with pytest.raises(e2b.AuthenticationException):
        Sandbox.create(**{**place.client(), "api_key": "e2b_wrong"})
    with pytest.raises(e2b.SandboxException, match="404"):
        Sandbox.create(**place.client(), template="nothing-of-the-kind")


def test_hang_delay_and_cut_of_the_control_api(cloud: Cloud) -> None:
    cloud.fail("create", hang=True)
    started = time.monotonic()
    with pytest.raises((e2b.TimeoutException, httpx.TimeoutException)):
        Sandbox.create(**cloud.client(), request_timeout=1.0)
    assert time.monotonic() - started < PATIENCE
    cloud.fail("create", delay=0.5)
    started = time.monotonic()
    box = Sandbox.create(**cloud.client())
    assert time.monotonic() - started >= 0.5
    cloud.fail("timeout", cut=True)
    cloud.fail("list", cut=True)
    with pytest.raises(httpx.TransportError):
        Sandbox.list(**cloud.client()).next_items()
    assert Sandbox.list(**cloud.client()).next_items()
    box.kill()


@pytest.mark.parametrize("cloud", [{"api": "v1"}], indirect=True)
def test_old_api_refuses_the_new_addresses(cloud: Cloud) -> None:
    with pytest.raises(e2b.SandboxException, match="405"):
        Sandbox.create(**cloud.client())
    headers = {"X-API-KEY": cloud.key}
    made = httpx.post(
        f"{cloud.url}/sandboxes",
        json={"templateID": "base", "timeout": 60},
        headers=headers,
        timeout=PATIENCE,
    )
    assert made.status_code == 201
    name = made.json()["sandboxID"]
    assert [s["sandboxID"] for s in httpx.get(f"{cloud.url}/sandboxes", headers=headers).json()] == [name]
    assert Sandbox.kill(name, **cloud.client())


# Files


def test_files(box: Sandbox) -> None:
    files = box.files
    assert files.write("/tmp/f/a.txt", "grüß\n").path == "/tmp/f/a.txt"
    assert files.read("/tmp/f/a.txt") == "grüß\n"
    assert bytes(files.read("/tmp/f/a.txt", format="bytes")) == "grüß\n".encode()
    assert files.read("/tmp/f/a.txt", gzip=True) == "grüß\n"
    files.write("/tmp/f/z.txt", "zipped" * 100, gzip=True)
    assert files.read("/tmp/f/z.txt") == "zipped" * 100
    names = ["b c.bin", "ünï #%&?.txt"]
    files.write_files([{"path": f"/tmp/f/{name}", "data": b"\0\1"} for name in names])
    for name in names:
        assert bytes(files.read(f"/tmp/f/{name}", format="bytes")) == b"\0\1"
    files.write("relative.txt", "home")
    assert box.run_code("open('relative.txt').read()").text == "'home'"
    assert files.exists("/tmp/f/a.txt")
    assert not files.exists("/tmp/f/none")
    info = files.get_info("/tmp/f/a.txt")
    assert (info.name, info.type, info.size, info.permissions[:4]) == ("a.txt", FileType.FILE, 7, "-rw-")
    assert files.make_dir("/tmp/f/deep/down") is True
    assert files.make_dir("/tmp/f/deep") is False
    box.commands.run("ln -s a.txt /tmp/f/link")
    link = files.get_info("/tmp/f/link")
    assert (link.type, link.symlink_target) == (FileType.SYMLINK, "a.txt")
    listed = {entry.path for entry in files.list("/tmp/f", depth=2)}
    assert {"/tmp/f/deep", "/tmp/f/deep/down", "/tmp/f/a.txt", "/tmp/f/b c.bin"} <= listed
    assert files.rename("/tmp/f/a.txt", "/tmp/f/deep/moved.txt").path == "/tmp/f/deep/moved.txt"
    files.remove("/tmp/f/deep")
    assert not files.exists("/tmp/f/deep/moved.txt")


def test_file_errors(box: Sandbox) -> None:
    for call in (box.files.read, box.files.get_info, box.files.list):
        with pytest.raises(e2b.NotFoundException):
            call("/tmp/no/such")
    with pytest.raises(e2b.InvalidArgumentException, match="directory"):
        box.files.read("/tmp")
    with pytest.raises(e2b.InvalidArgumentException, match="directory"):
        box.files.write("/tmp", "x")
    box.files.write("/tmp/plain", "x")
    with pytest.raises(e2b.InvalidArgumentException, match="not a directory"):
        box.files.list("/tmp/plain")


def test_large_files_are_streamed(box: Sandbox) -> None:
    data = bytes(range(256)) * (30 << 12)  # 30 MiB
    box.files.write("/tmp/large.bin", io.BytesIO(data))
    assert box.files.get_info("/tmp/large.bin").size == len(data)
    with box.files.read("/tmp/large.bin", format="stream") as stream:
        chunks = list(stream)
    assert b"".join(chunks) == data
    assert len(chunks) > 10


def test_files_and_code_see_the_same_tmp(place: Cloud, box: Sandbox) -> None:
    if not place.isolated:
        pytest.skip("namespaces are refused here: sandboxes share the host's /tmp")
    box.files.write("/tmp/both", "1")
    assert box.run_code("open('/tmp/both').read()").text == "'1'"
    other = Sandbox.create(**place.client())
    assert not other.files.exists("/tmp/both")
    assert other.files.list("/tmp") == []
    other.kill()


def test_tokens_are_checked(place: Cloud, box: Sandbox) -> None:
    ways = {"E2b-Sandbox-Id": box.sandbox_id, "E2b-Sandbox-Port": "49983", "X-Access-Token": "wrong"}
    answer = httpx.get(f"{place.sandbox_url}/files", params={"path": "/tmp"}, headers=ways)
    assert answer.status_code == 401
    answer = httpx.post(
        f"{place.sandbox_url}/filesystem.Filesystem/Stat", json={"path": "/tmp"}, headers=ways
    )
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    ways["E2b-Sandbox-Port"] = "49999"
    assert httpx.post(f"{place.sandbox_url}/execute", json={"code": "1"}, headers=ways).status_code == 401
    box.files.write("/tmp/signed", "yes")
    assert (
        httpx.get(
            box.download_url("/tmp/signed", use_signature_expiration=60),
            headers={**ways, "X-Access-Token": "", "E2b-Sandbox-Port": "49983"},
        ).text
        == "yes"
    )


# Commands


def test_commands(box: Sandbox) -> None:
    lines: list[str] = []
    done = box.commands.run(
        "echo out; echo err >&2; echo $X; pwd", envs={"X": "é"}, cwd="/tmp", on_stdout=lines.append
    )
    assert (done.stdout, done.stderr, done.exit_code) == ("out\né\n/tmp\n", "err\n", 0)
    assert "".join(lines) == done.stdout
    with pytest.raises(CommandExitException) as caught:
        box.commands.run("echo no; exit 3")
    assert (caught.value.exit_code, caught.value.stdout) == (3, "no\n")
    with pytest.raises(e2b.TimeoutException):
        box.commands.run("sleep 100", timeout=0.5)
    assert until(lambda: not box.commands.list())


def test_background_commands(box: Sandbox) -> None:
    handle = box.commands.run("read line; echo got $line; cat", background=True, stdin=True, timeout=PATIENCE)
    assert [p.pid for p in box.commands.list()] == [handle.pid]
    box.commands.send_stdin(handle.pid, "hello\n")
    box.commands.stream_input(handle.pid, ["a", "b\n"])
    box.commands.close_stdin(handle.pid)
    assert handle.wait().stdout == "got hello\nab\n"
    sleeper = box.commands.run("sleep 1000", background=True)
    again = box.commands.connect(sleeper.pid)
    assert box.commands.kill(sleeper.pid) is True
    for listener in (sleeper, again):
        with pytest.raises(CommandExitException) as caught:
            listener.wait()
        assert caught.value.error == "signal: killed"
    assert box.commands.kill(sleeper.pid) is False


# Code


def test_output_is_streamed(box: Sandbox) -> None:
    seen: list[tuple[float, str]] = []
    started = time.monotonic()
    run = box.run_code(
        "import time, sys\nprint('one', flush=True)\ntime.sleep(1)\nprint('two', file=sys.stderr)",
        on_stdout=lambda m: seen.append((time.monotonic() - started, m.line)),
        on_stderr=lambda m: seen.append((time.monotonic() - started, m.line)),
    )
    assert [text for _, text in seen] == ["one\n", "two\n"]
    assert seen[1][0] - seen[0][0] > 0.5
    assert run.logs.stdout == ["one\n"]
    assert run.logs.stderr == ["two\n"]
    assert run.execution_count is not None


def test_results_of_every_kind(box: Sandbox) -> None:
    run = box.run_code(
        "from IPython.display import *\n"
        "display(HTML('<b>h</b>'), Markdown('*m*'), SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'), Latex('$l$'),"
        " JSON({'j': 1}), Javascript('1'))\n"
        "display({'application/x-own': 'mine', 'text/plain': 't'}, raw=True)\n"
        "import pandas; pandas.DataFrame({'a': [1]})"
    )
    assert run.error is None
    html, markdown, svg, latex, json_, script, own, frame = run.results
    assert (html.html, markdown.markdown, latex.latex, json_.json) == ("<b>h</b>", "*m*", "$l$", {"j": 1})
    assert svg.svg.startswith("<svg")
    assert script.javascript == "1"
    assert own.extra == {"application/x-own": "mine"}
    assert frame.is_main_result
    assert "<table" in frame.html
    assert "a" in frame.text


@pytest.mark.slow
def test_charts_come_inline_or_not(cloud: Cloud) -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    box = Sandbox.create(**cloud.client())
    run = box.run_code(code, timeout=PATIENCE)
    assert [r.png[:8] for r in run.results if r.png] == ["iVBORw0K"]
    box.kill()
    with Cloud(charts=False) as plain:
        box = Sandbox.create(**plain.client())
        run = box.run_code(code, timeout=PATIENCE)
        assert run.error is None
        assert not [r for r in run.results if r.png]
        box.kill()


def test_errors(box: Sandbox) -> None:
    run = box.run_code("1/0")
    assert run.error is not None
    assert (run.error.name, run.error.value) == ("ZeroDivisionError", "division by zero")
    assert "Traceback" in run.error.traceback
    assert "\x1b[" in run.error.traceback
    run = box.run_code("input('name? ')")
    assert run.error is not None
    assert run.error.name == "StdinNotImplementedError"
    assert box.run_code("1 + 1").text == "2"


def test_contexts(box: Sandbox) -> None:
    box.files.make_dir("/tmp/work")
    context = box.create_code_context(cwd="/tmp/work")
    assert context.id in [c.id for c in box.list_code_contexts()]
    assert box.run_code("import os; y = 1; os.getcwd()", context=context).text == "'/tmp/work'"
    assert box.run_code("y").error is not None
    box.restart_code_context(context)
    gone = box.run_code("y", context=context)
    assert gone.error is not None
    assert gone.error.name == "NameError"
    assert box.run_code("import os; os.getcwd()", context=context).text == "'/tmp/work'"
    box.remove_code_context(context)
    with pytest.raises(e2b.NotFoundException):
        box.run_code("1", context=context)
    run = box.run_code("import os; os.environ['ONCE']", envs={"ONCE": "1"})
    assert run.text == "'1'"
    assert box.run_code("'ONCE' in os.environ").text == "False"


@pytest.mark.slow
def test_contexts_run_side_by_side_and_one_in_turn(box: Sandbox) -> None:
    contexts = [box.create_code_context() for _ in range(2)]
    ended: list[str] = []

    def run(name: str, code: str, context: object) -> None:
        box.run_code(code, context=context)  # type: ignore[call-overload]
        ended.append(name)

    slow = threading.Thread(target=run, args=("slow", "import time; time.sleep(4)", contexts[0]))
    slow.start()
    time.sleep(0.5)
    after = threading.Thread(target=run, args=("after", "1", contexts[0]))
    after.start()
    run("beside", "1", contexts[1])
    slow.join(PATIENCE)
    after.join(PATIENCE)
    assert ended == ["beside", "slow", "after"]
    for context in contexts:
        box.remove_code_context(context)


def test_ten_megabytes_of_output(box: Sandbox) -> None:
    size = 0

    def count(message: object) -> None:
        nonlocal size
        size += len(message.line)  # type: ignore[attr-defined]

    run = box.run_code("for _ in range(100_000): print('x' * 99)", on_stdout=count)
    assert run.error is None
    assert size == 10_000_000


def test_client_timeout_interrupts_and_keeps_variables(cloud: Cloud) -> None:
    box = Sandbox.create(**cloud.client())
    box.run_code("x = 41")
    started = time.monotonic()
    with pytest.raises(e2b.TimeoutException):
        box.run_code("import time; time.sleep(100)", timeout=1)
    assert time.monotonic() - started < 30
    time.sleep(1.5)
    assert box.run_code("x + 1", timeout=PATIENCE).text == "42"
    box.kill()


@pytest.mark.slow
def test_the_hole_after_a_client_timeout(cloud: Cloud) -> None:
    box = Sandbox.create(**cloud.client())
    box.run_code("x = 41")
    with pytest.raises(e2b.TimeoutException):
        box.run_code("import time; time.sleep(100)", timeout=1)
    with pytest.raises(e2b.TimeoutException):
        box.run_code("x = 0", timeout=3)
    time.sleep(1.5)
    assert box.run_code("x + 1", timeout=PATIENCE).text == "42"
    box.kill()


@pytest.mark.slow
@pytest.mark.parametrize("cloud", [{"quirks": False}], indirect=True)
def test_no_hole_without_quirks(cloud: Cloud) -> None:
    box = Sandbox.create(**cloud.client())
    box.run_code("x = 41")
    with pytest.raises(e2b.TimeoutException):
        box.run_code("import time; time.sleep(100)", timeout=1)
    assert box.run_code("x + 1", timeout=PATIENCE).text == "42"
    box.kill()


def test_kernel_death_is_told_once(box: Sandbox) -> None:
    box.run_code("x = 41")
    run = box.run_code("import os; os._exit(1)")
    assert run.error is not None
    assert run.error.name == "ContextRestarting"
    run = box.run_code("x")
    assert run.error is not None
    assert run.error.name == "NameError"


def test_surrogates_and_late_output_are_lost(box: Sandbox) -> None:
    run = box.run_code("print('before \\ud83c after')")
    assert run.logs.stdout == []
    assert box.run_code("print('fine')").logs.stdout == ["fine\n"]
    box.run_code("import threading, time\nthreading.Timer(0.5, lambda: print('late')).start()")
    time.sleep(1.5)
    assert box.run_code("print('next')").logs.stdout == ["next\n"]


# The gateway, faults of the way in, addresses


@pytest.mark.slow
@pytest.mark.parametrize("cloud", [{"gateway_limit": 2.0}], indirect=True)
def test_gateway_cuts_long_calls(cloud: Cloud) -> None:
    box = Sandbox.create(**cloud.client())
    assert box.run_code("x = 1; x").text == "1"
    with pytest.raises(e2b.TimeoutException, match="502 Bad Gateway"):
        box.run_code("import time; time.sleep(60)", timeout=PATIENCE)
    assert box.is_running()
    time.sleep(1.5)
    assert box.run_code("x").text == "1"
    box.kill()


@pytest.mark.slow
def test_faults_of_the_way_in(cloud: Cloud) -> None:
    box = Sandbox.create(**cloud.client())
    cloud.fail("run", 500)
    with pytest.raises(e2b.SandboxException, match="500"):
        box.run_code("1")
    cloud.fail("run", after=1.0)
    with pytest.raises(e2b.TimeoutException, match="502"):
        box.run_code("import time; time.sleep(60)", timeout=PATIENCE)
    time.sleep(1.5)
    cloud.fail("run", cut=True)
    with pytest.raises(httpx.RemoteProtocolError):
        box.run_code("print('x' * 1000)")
    time.sleep(1.5)
    cloud.fail("run", hang=True)
    with pytest.raises(e2b.TimeoutException):
        box.run_code("1", timeout=1)
    cloud.fail("files", 401)
    with pytest.raises(e2b.AuthenticationException):
        box.files.read("/tmp/x")
    cloud.fail("files", 507)
    with pytest.raises(e2b.NotEnoughSpaceException):
        box.files.write("/tmp/x", "x")
    cloud.fail("commands", 429)
    with pytest.raises(e2b.RateLimitException):
        box.commands.run("true")
    box.files.write("/tmp/large", "x" * 1_000_000)
    cloud.fail("files", cut=True)
    with pytest.raises(httpx.TransportError):
        box.files.read("/tmp/large")
    assert box.run_code("1 + 1", timeout=PATIENCE).text == "2"
    box.kill()


def test_sandbox_killed_during_a_run(cloud: Cloud) -> None:
    box = Sandbox.create(**cloud.client())
    box.run_code("1")
    killer = threading.Timer(1.0, cloud.vanish, [box.sandbox_id])
    killer.start()
    with pytest.raises((e2b.SandboxException, httpx.TransportError)):
        box.run_code("import time; time.sleep(60)", timeout=PATIENCE)
    killer.join(PATIENCE)
    assert not box.is_running()


def test_route_by_host_name(place: Cloud, box: Sandbox) -> None:
    token = {"X-Access-Token": place.sandboxes[box.sandbox_id].token}
    box.files.write("/tmp/by-host", "found")
    host = {"Host": f"49983-{box.sandbox_id}.{place.domain}"}
    answer = httpx.get(f"{place.sandbox_url}/files", params={"path": "/tmp/by-host"}, headers=host | token)
    assert answer.text == "found"
    other_port = {"Host": f"8080-{box.sandbox_id}.{place.domain}"}
    answer = httpx.get(f"{place.sandbox_url}/", headers=other_port)
    assert (answer.status_code, "port is not open" in answer.json()["message"]) == (502, True)


def test_nothing_is_left() -> None:
    before = set(psutil.Process().children(recursive=True))
    with Cloud() as made:
        box = Sandbox.create(**made.client())
        box.run_code("import subprocess; p = subprocess.Popen(['sleep', '1234'], start_new_session=True)")
        box.commands.run("sleep 1234", background=True)
        folder = made._folder
        below = set(psutil.Process().children(recursive=True)) - before
        assert len(below) >= 5
    assert not made.sandboxes
    assert not alive(list(below))
    assert not folder.exists()


async def test_the_asynchronous_client(cloud: Cloud) -> None:
    box = await AsyncSandbox.create(**cloud.client())
    started = asyncio.Event()
    await box.run_code("x = 41")
    code = "import time; print('on', flush=True); time.sleep(100)"
    run = asyncio.create_task(box.run_code(code, on_stdout=lambda message: started.set()))
    await asyncio.wait_for(started.wait(), PATIENCE)
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    await asyncio.sleep(1.5)
    assert (await box.run_code("x + 1", timeout=PATIENCE)).text == "42"
    await box.files.write("/tmp/x", b"1")
    assert await box.files.read("/tmp/x") == "1"
    assert await box.kill()


def test_a_page_instead_of_json(place: Cloud) -> None:
    place.fail("create", 403, page="<html>no</html>")
    with pytest.raises(ValueError):  # the client does not expect it
        Sandbox.create(**place.client())


def test_without_namespaces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(record, "namespaces", lambda: None)
    monkeypatch.setattr(cloud_module, "namespaces", lambda: None)
    before = set(psutil.Process().children(recursive=True))
    with Cloud() as made:
        assert not made.isolated
        box = Sandbox.create(**made.client())
        box.files.write(f"{tmp_path}/x", "1")
        assert box.run_code(f"open('{tmp_path}/x').read()").text == "'1'"
        box.commands.run("setsid sleep 1234 >/dev/null 2>&1 &")
        below: set[psutil.Process] = set()

        def orphan_found() -> bool:
            below.update(set(psutil.Process().children(recursive=True)) - before)
            return any("sleep" in p.cmdline() for p in alive(list(below)))

        assert until(orphan_found)
    assert not alive(list(below))


ORDINARY = """
import os
from e2b_code_interpreter import Sandbox
from support.e2b_server import Cloud

with Cloud() as cloud:
    box = Sandbox.create(**cloud.client())
    box.files.write("/tmp/x", "1")
    print(os.getuid(), box.run_code("open('/tmp/x').read()").text, cloud.isolated, cloud.errors)
    box.files.remove("/tmp/x")
"""


def test_as_an_ordinary_user() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; all other tests run as an ordinary user already")
    with open_folder() as folder:
        env = {"PATH": os.environ["PATH"], "TMPDIR": str(folder), "PYTHONPATH": str(CHECKOUT / "tests")}
        done = run_as(1234, folder, [sys.executable, "-c", ORDINARY], env=env)
    assert done.stdout.split()[:2] == ["1234", "'1'"], done.stdout + done.stderr
    assert done.stdout.endswith("[]\n")


def test_killed_with_its_owner() -> None:
    code = """
import time, psutil
from e2b_code_interpreter import Sandbox
from support.e2b_server import Cloud
with Cloud() as cloud:
    box = Sandbox.create(**cloud.client())
    box.run_code("1")
    print(cloud._folder, *(p.pid for p in psutil.Process().children(recursive=True)), flush=True)
    time.sleep(1000)
"""
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT / "tests")}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=env) as owner:
        assert owner.stdout is not None
        folder, *pids = owner.stdout.readline().split()
        processes = [psutil.Process(int(pid)) for pid in pids]
        assert len(processes) >= 4
        owner.kill()
    try:
        assert until(lambda: not alive(processes))
    finally:
        shutil.rmtree(folder)
