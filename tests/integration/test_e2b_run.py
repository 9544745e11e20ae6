"""Running code in a cloud sandbox: the real client, the cloud on loopback. Names S1… are those of the cases."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from support.cloud_worker import a_cloud_worker, run
from support.e2b_server import Cloud
from support.e2b_server.fixtures import cloud_fixture  # noqa: F401
from support.sandboxes import PATIENCE

from sandbox_chat.sandbox.worker import SandboxWorker

PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def shared() -> Iterator[Cloud]:
    with Cloud() as cloud:
        yield cloud
        assert not cloud.sandboxes
        assert not cloud.errors


@pytest.fixture(scope="module")
def worker(shared: Cloud) -> Iterator[SandboxWorker]:
    with a_cloud_worker(shared) as made:
        yield made


async def test_result_output_and_variables(worker: SandboxWorker) -> None:
    live: list[tuple[str, str]] = []
    code = "import sys\nx = 41\nprint('out')\nprint('err', file=sys.stderr)\nx + 1"
    done = await run(worker, code, on_output=lambda *said: live.append(said))
    assert (done.stdout, done.stderr, done.result_text, done.ok) == ("out\n", "err\n", "42", True)
    assert ("stdout", "out\n") in live
    assert ("stderr", "err\n") in live
    assert (await run(worker, "x")).result_text == "41"
    assert (await run(worker, "")).ok
    assert (await run(worker, "import os; os.getcwd()")).result_text == "'/tmp'"


async def test_output_is_live(worker: SandboxWorker) -> None:
    seen = asyncio.Event()
    loop = asyncio.get_running_loop()
    code = "import time\nprint('first', flush=True)\ntime.sleep(3000)"
    task = asyncio.create_task(
        run(worker, code, timeout=3000, on_output=lambda *_: loop.call_soon_threadsafe(seen.set))
    )
    await asyncio.wait_for(seen.wait(), PATIENCE)
    worker.interrupt()
    assert ((await task).stopped, (await task).stdout) == ("interrupted", "first\n")


async def test_groups_of_exceptions_are_errors_too(worker: SandboxWorker) -> None:
    done = await run(worker, "raise ExceptionGroup('many', [ValueError('one'), TypeError('two')])")
    assert done.error is not None
    assert done.error.name == "ExceptionGroup"
    assert "ValueError: one" in done.error.traceback
    await run(worker, "import sys; sys.stdout = sys.stderr = None")
    done = await run(worker, "print('out'); 1")
    assert (done.stdout, done.result_text) == ("out\n", "1")


async def test_what_the_program_adds_is_invisible(worker: SandboxWorker) -> None:
    seen = (await run(worker, "sorted(n for n in dir() if not n.startswith('_'))")).result_text
    assert "sandbox" not in seen
    assert "cells" not in seen
    assert "sandbox" not in (await run(worker, "In[:3]")).result_text
    done = await run(worker, "1")
    assert len(done.outputs) == 1


async def test_errors_are_plain_text(worker: SandboxWorker) -> None:
    done = await run(worker, "print('before')\n1 / 0")
    assert done.error is not None
    assert (done.error.name, done.error.value) == ("ZeroDivisionError", "division by zero")
    assert "1 / 0" in done.error.traceback
    assert "\x1b" not in done.error.traceback
    assert done.stdout == "before\n"
    done = await run(worker, "def broken(:")
    assert done.error is not None
    assert done.error.name == "SyntaxError"


async def test_results_in_all_forms(worker: SandboxWorker) -> None:
    code = """
from IPython.display import display, HTML, Markdown, Latex, SVG, JSON
display(HTML('<b>h</b>')); display(Markdown('**m**')); display(Latex('$l$'))
display(SVG('<svg xmlns="http://www.w3.org/2000/svg"/>')); display(JSON({'a': 1}))
"""
    done = await run(worker, code)
    kinds = {mime for output in done.outputs for mime in output.data}
    assert {
        "text/html", "text/markdown", "text/latex", "image/svg+xml", "application/json",
    } <= kinds  # fmt: skip


async def test_a_figure_comes_inline(worker: SandboxWorker) -> None:
    done = await run(worker, PLOT)
    pictures = [output.data["image/png"] for output in done.outputs if "image/png" in output.data]
    assert len(pictures) == 1
    assert bytes(pictures[0])[:8] == PNG  # type: ignore[arg-type]


async def test_output_is_bounded_and_the_whole_of_it_handed_on(worker: SandboxWorker, shared: Cloud) -> None:
    raw = 0

    def take(_stream: str, data: bytes) -> None:
        nonlocal raw
        raw += len(data)

    with a_cloud_worker(shared, output_limit=5000) as small:
        done = await run(small, "for i in range(3000): print(f'{i:09d}')", on_raw=take)
    assert raw == 30_000
    assert len(done.stdout) < 5200
    assert done.stdout.startswith("000000000\n")
    assert done.stdout.endswith("000002999\n")
    assert "cut out of 30,000" in done.stdout


# -- the cases ---------------------------------------------------------------------------------------------


async def test_s1_a_timeout_keeps_the_variables_and_the_next_run_works_at_once(worker: SandboxWorker) -> None:
    started = time.monotonic()
    done = await run(worker, "y = 41\nimport time; time.sleep(3000)", timeout=2)
    assert done.stopped == "timeout"
    assert done.duration_ms >= 2000
    assert (await run(worker, "y + 1")).result_text == "42"
    assert time.monotonic() - started < PATIENCE


async def test_s1_also_when_the_code_can_only_be_stopped_by_dropping_the_connection(cloud: Cloud) -> None:
    """Then the server would hang on a call that comes at once; it is waited for and asked first."""
    with a_cloud_worker(cloud) as worker:
        await run(worker, "y = 41")
        cloud.fail("commands", 500, times=None)
        done = await run(worker, "import time; time.sleep(3000)", timeout=1)
        assert done.stopped == "timeout"
        assert (await run(worker, "y + 1")).result_text == "42"


async def test_s2_a_dead_kernel_is_said_and_replaced(shared: Cloud) -> None:
    with a_cloud_worker(shared) as worker:
        await run(worker, "x = 1")
        done = await run(worker, "import os; os._exit(1)")
        assert done.stopped == "died"
        assert done.error is not None
        assert done.error.name == "SandboxDied"
        assert "variables and files are lost" in done.error.value
        done = await run(worker, "x")
        assert done.fresh
        assert done.error is not None
        assert done.error.name == "NameError"


async def test_s2_a_kernel_that_died_between_two_runs_is_noticed(shared: Cloud) -> None:
    with a_cloud_worker(shared) as worker:
        code = "import os, threading\nthreading.Timer(0.2, lambda: os._exit(1)).start()"
        assert (await run(worker, code)).ok
        await asyncio.sleep(1.0)
        while (done := await run(worker, "'os' in dir()")).stopped == "died":
            pass  # it died only now
        assert done.fresh
        assert done.result_text == "False"
        assert not (await run(worker, "1")).fresh
        assert (await run(worker, "quit()")).error is not None, "the new kernel is prepared as the first was"
        assert (await run(worker, "1")).ok


async def test_s3_lone_surrogates(worker: SandboxWorker) -> None:
    done = await run(worker, "print('before \\ud83c after'); print('rest')")
    assert done.stdout == "before \ufffd after\nrest\n"
    done = await run(worker, "raise ValueError('\\ud83c')")
    assert done.error is not None
    assert done.error.value == "\ufffd"


async def test_s4_input_is_an_error_at_once(worker: SandboxWorker) -> None:
    done = await run(worker, "input('name? ')")
    assert done.error is not None
    assert done.error.name == "StdinNotImplementedError"
    assert (await run(worker, "1")).result_text == "1"


async def test_s5_late_output_goes_to_its_own_run(worker: SandboxWorker) -> None:
    late: list[tuple[str, str]] = []
    code = "import threading, time\ndef f():\n    time.sleep(0.3); print('late')\nthreading.Thread(target=f).start()"
    done = await run(worker, code, on_late=lambda *said: late.append(said))
    assert "late" not in done.stdout
    await asyncio.sleep(1.0)
    assert (await run(worker, "print('next')")).stdout == "next\n"
    assert late == [("stdout", "late\n")]


async def test_s5_late_output_comes_without_another_run(worker: SandboxWorker) -> None:
    late: list[str] = []
    code = "threading.Thread(target=f).start()"
    await run(worker, "import threading, time\ndef f():\n    time.sleep(0.3); print('late')")
    await run(worker, code, on_late=lambda _stream, text: late.append(text))
    deadline = time.monotonic() + PATIENCE
    while not late and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    assert late == ["late\n"]


async def test_s6_children_of_stopped_code_are_ended(worker: SandboxWorker) -> None:
    code = "import subprocess, os\nchild = subprocess.Popen(['sleep', '3000'])\nchild.wait()"
    done = await run(worker, code, timeout=1)
    assert done.stopped == "timeout"
    assert (
        await run(worker, "child.poll() is not None or not os.path.exists(f'/proc/{child.pid}')")
    ).result_text == "True"


async def test_an_interrupt_keeps_the_variables(worker: SandboxWorker) -> None:
    task = asyncio.create_task(run(worker, "z = 7\nimport time\nprint('on')\ntime.sleep(3000)"))
    await asyncio.sleep(1.0)
    worker.interrupt()
    assert (await task).stopped == "interrupted"
    assert (await run(worker, "z")).result_text == "7"
    task = asyncio.create_task(run(worker, "time.sleep(3000)"))
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_s7_a_flood_ends_by_its_time_limit(worker: SandboxWorker) -> None:
    done = await run(worker, "while True: print('A' * 10000)", timeout=1)
    assert done.stopped == "timeout"
    assert len(done.stdout) < 1_001_000
    assert (await run(worker, "1")).result_text == "1"


@pytest.mark.parametrize("code", ["import sys; sys.exit(3)", "raise SystemExit", "quit()", "exit"])
async def test_s13_leaving_ends_the_run_only(worker: SandboxWorker, code: str) -> None:
    await run(worker, "kept = 1")
    done = await run(worker, code)
    assert done.error is not None
    assert done.error.name == "SystemExit"
    assert "the shell goes on" in done.error.value
    assert (await run(worker, "kept")).result_text == "1"


async def test_s13_an_interrupt_of_the_code_itself(worker: SandboxWorker) -> None:
    done = await run(worker, "raise KeyboardInterrupt")
    assert (done.error and done.error.name, done.stopped) == ("KeyboardInterrupt", "")


async def test_code_that_will_not_stop_is_ended(cloud: Cloud) -> None:
    with a_cloud_worker(cloud) as worker:
        code = (
            "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(0.1)"
        )
        done = await run(worker, code, timeout=1)
        assert done.stopped == "died"
        assert done.error is not None
        assert "did not stop at its time limit" in done.error.value
        assert (await run(worker, "1")).fresh


# -- clouds that are different -----------------------------------------------------------------------------


@pytest.mark.parametrize("cloud", [{"charts": False}], indirect=True)
async def test_figures_come_as_files_where_a_cloud_shows_none(cloud: Cloud) -> None:
    for charts in ("auto", "files"):
        with a_cloud_worker(cloud, e2b_charts=charts) as worker:
            for _ in range(2):
                done = await run(worker, PLOT)
                assert [list(output.data) for output in done.outputs if "image/png" in output.data] == [
                    ["image/png"]
                ]
                assert done.stderr == ""
            assert (await run(worker, "import os; os.listdir('/tmp/.sandbox-chat')")).result_text == "[]"


async def test_a_cloud_that_holds_displayed_pictures_back(
    worker: SandboxWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel shows pictures inline, but none arrives: they are written to files after the fact, and fetched."""
    from sandbox_chat.sandbox import e2b_cell

    monkeypatch.setattr(e2b_cell, "_PICTURE_KINDS", {})
    done = await run(worker, PLOT)
    assert [list(output.data) for output in done.outputs if "image/png" in output.data] == [["image/png"]]
    done = await run(worker, PLOT)
    assert [list(output.data) for output in done.outputs if "image/png" in output.data] == [["image/png"]]


@pytest.mark.parametrize("cloud", [{"gateway_limit": 2.0}], indirect=True)
async def test_a_gateway_that_cuts_long_calls(cloud: Cloud) -> None:
    with a_cloud_worker(cloud) as worker:
        await run(worker, "x = 41")
        done = await run(worker, "import time; time.sleep(3000)", timeout=20)
        assert not done.ok
        assert done.error is not None
        assert done.error.name == "GatewayTimeout"
        assert "Split the work" in done.error.value
        done = await run(worker, "x + 1")
        assert (done.result_text, done.fresh) == ("42", False)
        assert len(cloud.sandboxes) == 1


async def test_a_connection_cut_while_code_runs(cloud: Cloud) -> None:
    with a_cloud_worker(cloud) as worker:
        await run(worker, "x = 41")
        cloud.fail("run", cut=True)
        done = await run(worker, "print('a' * 1000)")
        assert done.error is not None
        assert done.error.name == "ConnectionCut"
        assert (await run(worker, "x + 1")).result_text == "42"


async def test_a_call_that_is_never_answered(cloud: Cloud) -> None:
    with a_cloud_worker(cloud) as worker:
        await run(worker, "x = 41")
        cloud.fail("run", hang=True)
        assert (await run(worker, "1", timeout=1)).stopped == "timeout"
        assert (await run(worker, "x + 1")).result_text == "42"


@pytest.mark.parametrize("cloud", [{"hosts": True}], indirect=True)
async def test_the_way_over_a_proxy_node(cloud: Cloud) -> None:
    with a_cloud_worker(cloud) as worker:
        assert (await run(worker, "1 + 1")).result_text == "2"
        assert await worker.write_file("a/b.txt", b"hello") == "/tmp/a/b.txt"
        assert (await run(worker, "open('/tmp/a/b.txt').read()")).result_text == "'hello'"


@pytest.mark.parametrize("cloud", [{"api": "v1"}], indirect=True)
async def test_a_server_with_only_the_old_control_api(cloud: Cloud) -> None:
    with a_cloud_worker(cloud, e2b_ttl=60) as worker:
        assert (await run(worker, "x = 1; x")).result_text == "1"
        assert await worker.read_file(await worker.write_file("a", b"hello"), max_bytes=10) == b"hello"
        assert (await run(worker, "import time; time.sleep(3000)", timeout=1)).stopped == "timeout"
        (record,) = cloud.sandboxes.values()
        before = record.end_at
        assert (await run(worker, "x", timeout=100)).result_text == "1"
        assert record.end_at > before, "it is prolonged"
    assert ("POST", "/sandboxes", 201) in cloud.requests
