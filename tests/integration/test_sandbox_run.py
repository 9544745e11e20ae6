"""Running code in a real local sandbox: results, errors, output, pictures, files. Names S1… are those of the cases."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sandboxes import PATIENCE, a_worker

from sandbox_chat.sandbox.base import Execution, SandboxFileError
from sandbox_chat.sandbox.worker import SandboxWorker


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxWorker]:
    with a_worker(tmp_path_factory.mktemp("data")) as found:
        yield found


async def run(worker: SandboxWorker, code: str, timeout: float = PATIENCE) -> Execution:
    return await worker.run_code(code, timeout=timeout)


async def test_result_output_and_variables(worker: SandboxWorker) -> None:
    done = await run(worker, "import sys\nx = 41\nprint('out')\nprint('err', file=sys.stderr)\nx + 1")
    assert (done.stdout, done.stderr, done.result_text, done.ok) == ("out\n", "err\n", "42", True)
    assert (await run(worker, "x")).result_text == "41"
    assert (await run(worker, "x;")).result_text == ""
    assert (await run(worker, "")).ok


async def test_errors_are_plain_text(worker: SandboxWorker) -> None:
    done = await run(worker, "def f():\n    return 1 / 0\nprint('before')\nf()")
    assert done.error is not None
    assert (done.error.name, done.error.value) == ("ZeroDivisionError", "division by zero")
    assert "return 1 / 0" in done.error.traceback
    assert "\x1b" not in done.error.traceback
    assert done.stdout == "before\n"
    done = await run(worker, "def broken(:")
    assert done.error is not None
    assert done.error.name == "SyntaxError"
    done = await run(worker, "raise ExceptionGroup('many', [ValueError('one')])")
    assert done.error is not None
    assert "ValueError: one" in done.error.traceback


async def test_order_of_python_c_and_children(worker: SandboxWorker) -> None:
    code = (
        "import os, subprocess, ctypes\nprint('a')\nos.system('echo b')\nsubprocess.run(['echo', 'c'])\n"
        "libc = ctypes.CDLL(None)\nlibc.puts(b'd'); libc.fflush(None)\nprint('e')"
    )
    assert (await run(worker, code)).stdout == "a\nb\nc\nd\ne\n"
    assert (await run(worker, "!echo shell")).stdout == "shell\n"
    assert (await run(worker, "import os; os.system('exit 3')")).result_text == str(3 << 8)


async def test_print_is_what_it_always_was(worker: SandboxWorker) -> None:
    code = (
        "import io, sys, pickle, inspect\nprint()\nprint('a', 1, None, sep='-', end='!\\n')\nprint('b', end='')\n"
        "print('c', sep=None, end=None, flush=True)\nprint(*'de', file=sys.stderr)\nfile = io.StringIO()\n"
        "print('f', file=file)\nfile.getvalue(), pickle.loads(pickle.dumps(print)) is print, str(inspect.signature(print))[:6]"
    )
    done = await run(worker, code)
    assert (done.stdout, done.stderr) == ("\na-1-None!\nbc\n", "d e\n")
    assert done.result_text == "('f\\n', True, '(*args')"
    done = await run(worker, "print('x', sep=1)")
    assert done.error is not None
    assert done.error.value == "sep must be None or a string, not int"
    assert "streams" not in done.error.traceback
    code = "import builtins, contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as f: print('in')\nprint('out')\nf.getvalue()"
    done = await run(worker, code)
    assert (done.stdout, done.result_text) == ("out\n", "'in\\n'")
    done = await run(worker, "class Bad:\n  def __str__(self): 1/0\nprint(Bad())")
    assert done.error is not None
    assert done.error.name == "ZeroDivisionError"
    assert "streams" not in done.error.traceback


async def test_a_pipe_that_a_child_made_non_blocking_still_takes_all(worker: SandboxWorker) -> None:
    code = "import os\nos.set_blocking(1, False)\nfor _ in range(200): print('A' * 100_000)\nos.set_blocking(1, True)\nprint('end')"
    done = await run(worker, code)
    assert done.ok, done.error
    assert "cut out of 20,000,204" in done.stdout
    assert done.stdout.endswith("end\n")


async def test_output_is_not_kept_in_the_sandbox(worker: SandboxWorker) -> None:
    await run(
        worker,
        "def size(): return int(next(x for x in open('/proc/self/status') if 'VmRSS' in x).split()[1])\nbefore = size()",
    )
    assert (await run(worker, "for _ in range(1000): print('A' * 100_000)")).ok
    assert int((await run(worker, "size() - before")).result_text) < 50_000


async def test_all_output_goes_to_who_wants_all(worker: SandboxWorker) -> None:
    size = {"stdout": 0, "stderr": 0}

    def take(stream: str, data: bytes) -> None:
        size[stream] += len(data)

    code = "import sys\nfor _ in range(100): print('A' * 99_999)\nsys.stderr.write('x')"
    done = await worker.run_code(code, timeout=PATIENCE, on_raw=take)
    assert len(done.stdout) < 1_100_000
    assert size == {"stdout": 10_000_000, "stderr": 1}


async def test_output_is_live(worker: SandboxWorker) -> None:
    seen = asyncio.Event()
    loop = asyncio.get_running_loop()

    def sink(_stream: str, text: str) -> None:
        if "first" in text:
            loop.call_soon_threadsafe(seen.set)

    code = "import time\nprint('first')\nfor _ in range(1000): time.sleep(0.1)"
    task = asyncio.create_task(worker.run_code(code, timeout=PATIENCE, on_output=sink))
    await asyncio.wait_for(seen.wait(), PATIENCE)
    assert not task.done()
    worker.interrupt()
    assert (await task).stopped == "interrupted"


async def test_lone_surrogate_is_replaced_s3(worker: SandboxWorker) -> None:
    done = await run(worker, "print('a\\ud83cb'); print('rest')\n'\\ud83c'")
    assert done.stdout == "a\ufffdb\nrest\n"
    assert done.ok


@pytest.mark.parametrize("code", ["input('name? ')", "import getpass; getpass.getpass()"])
async def test_input_is_an_error_at_once_s4(worker: SandboxWorker, code: str) -> None:
    done = await run(worker, code)
    assert done.error is not None
    assert "not available" in done.error.value
    assert done.duration_ms < 20_000
    assert (await run(worker, "1")).ok


@pytest.mark.parametrize(
    "code",
    ["import sys; sys.exit(3)", "raise SystemExit", "quit()", "exit", "exit(1)", "raise KeyboardInterrupt",
     "import os, signal; os.kill(os.getpid(), signal.SIGINT)"],
)  # fmt: skip
async def test_leaving_is_an_error_of_the_run_s13(worker: SandboxWorker, code: str) -> None:
    await run(worker, "kept = 7")
    done = await run(worker, code)
    assert done.error is not None
    assert done.error.name in ("SystemExit", "KeyboardInterrupt")
    assert done.stopped == ""
    assert (await run(worker, "kept")).result_text == "7"


@pytest.mark.parametrize(
    "code",
    ["import sys; sys.stdout = sys.stderr = None", "import os; os.close(1); os.close(2)",
     "import os; os.dup2(os.open('/dev/null', os.O_WRONLY), 1)", "print = sys = None; del print",
     "import sys; sys.stdout.write = None", "import sys; sys.stdout.close(); del sys.stdout"],
)  # fmt: skip
async def test_a_run_cannot_take_the_output_from_the_next(worker: SandboxWorker, code: str) -> None:
    await run(worker, "kept = 7")
    await run(worker, code)
    done = await run(worker, "import sys\nprint('out')\nprint('err', file=sys.stderr)\nkept")
    assert (done.stdout, done.stderr, done.result_text, done.fresh) == ("out\n", "err\n", "7", False)


@pytest.mark.parametrize(
    "code",
    ["files = []\nwhile True: files.append(open('/dev/null'))",
     "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 4096))",
     "import os; real = os.listdir; os.listdir = None"],
)  # fmt: skip
async def test_a_run_that_leaves_no_descriptor_keeps_its_variables(worker: SandboxWorker, code: str) -> None:
    await run(worker, "kept = 7\nfiles = []")
    await run(worker, code)
    assert (await run(worker, "kept")).result_text == "7"
    await run(worker, "import os; os.listdir = globals().get('real', os.listdir); files.clear()")
    await run(worker, "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))")


async def test_what_fails_after_the_code_is_told_with_its_reason(worker: SandboxWorker) -> None:
    await run(worker, "def hook(): raise OSError('the figure is too large')")
    await run(worker, "get_ipython().events.register('post_execute', hook)")
    done = await run(worker, "1 + 1")
    failed = await run(worker, "1 / 0")
    await run(worker, "get_ipython().events.unregister('post_execute', hook)")
    assert done.result_text == "2"
    assert "OSError: the figure is too large" in done.stderr
    assert failed.error is not None
    assert failed.error.name == "ZeroDivisionError"
    assert failed.error.traceback.rstrip().endswith("ZeroDivisionError: division by zero")
    assert "OSError: the figure is too large" in failed.stderr


async def test_endless_recursion_is_told_soon(worker: SandboxWorker) -> None:
    await run(worker, "def f(): return f()")
    done = await run(worker, "f()", timeout=20)
    assert done.error is not None
    assert done.error.name == "RecursionError"
    assert not done.stopped
    assert len(done.error.traceback) < 5000


async def test_a_forked_child_does_not_disturb(worker: SandboxWorker) -> None:
    done = await run(
        worker, "import os\nif os.fork() == 0:\n    print('child')\nelse:\n    os.wait(); print('parent')"
    )
    assert sorted(done.stdout.split()) == ["child", "parent"]
    code = (
        "import multiprocessing as mp\ndef square(n): return n * n\n"
        "with mp.get_context('fork').Pool(2) as pool: print(pool.map(square, range(5)))"
    )
    assert (await run(worker, code)).stdout == "[0, 1, 4, 9, 16]\n"


async def test_tables_and_numbers(worker: SandboxWorker) -> None:
    done = await run(worker, "import numpy as np, pandas as pd\npd.DataFrame({'a': [1, 2]})")
    [output] = done.outputs
    assert output.is_result
    assert "a" in str(output.data["text/plain"])
    assert "<table" in str(output.data["text/html"])
    assert "1.5" in (await run(worker, "np.float64(1.5)")).result_text


async def test_a_script_that_is_displayed_is_a_page(worker: SandboxWorker) -> None:
    code = "display({'application/javascript': 'draw(\"</script>\")'}, raw=True)"
    [output] = (await run(worker, code)).outputs
    assert output.data == {"text/html": '<script>draw("<\\/script>")</script>'}


async def test_figures_come_without_savefig(worker: SandboxWorker) -> None:
    done = await run(worker, "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);")
    [output] = done.outputs
    picture = output.data["image/png"]
    assert isinstance(picture, bytes)
    assert picture.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture[16:24])
    assert width > 100 < height
    done = await run(worker, "plt.plot([1]); plt.show()\nplt.plot([2]); plt.show()\nprint('x')")
    assert len(done.outputs) == 2
    assert done.stdout == "x\n"
    done = await run(worker, "plt.plot([1]); plt.savefig('chart.png'); plt.close()")
    assert done.outputs == ()
    data = await worker.read_file("chart.png", max_bytes=1_000_000)
    assert data.startswith(b"\x89PNG")


async def test_figures_of_a_failed_run_are_kept(worker: SandboxWorker) -> None:
    done = await run(worker, "import matplotlib.pyplot as plt\nplt.plot([1])\n1/0")
    assert done.error is not None
    assert len(done.outputs) == 1


async def test_display_and_await(worker: SandboxWorker) -> None:
    done = await run(worker, "from IPython.display import Markdown, display\ndisplay(Markdown('**hi**'))")
    assert done.outputs[0].data["text/markdown"] == "**hi**"
    assert (await run(worker, "import asyncio\nawait asyncio.sleep(0.01)\n5")).result_text == "5"


async def test_big_results_are_cut(worker: SandboxWorker) -> None:
    done = await run(worker, "class Big:\n    def __repr__(self): return 'x' * 50_000_000\nBig()")
    assert done.ok
    assert 1_000_000 <= len(done.result_text) < 1_000_200
    assert "more characters" in done.result_text
    assert (await run(worker, "raise ValueError('y' * 10_000_000)")).error is not None


async def test_big_output_is_bounded(worker: SandboxWorker) -> None:
    done = await run(worker, "for n in range(300): print('A' * 100_000)\nprint('end')")
    assert len(done.stdout) < 1_100_000
    assert "cut out of 30,000,304" in done.stdout
    assert done.stdout.endswith("end\n")


async def test_files(worker: SandboxWorker) -> None:
    data = bytes(range(256)) * 50_000
    assert await worker.write_file("sub/data.bin", data) == "/tmp/sub/data.bin"
    assert await worker.read_file("/tmp/sub/data.bin", max_bytes=len(data)) == data
    assert (await run(worker, "len(open('/tmp/sub/data.bin', 'rb').read())")).result_text == str(len(data))
    [entry] = await worker.list_files("sub", limit=10)
    assert (entry.path, entry.is_dir, entry.size) == ("/tmp/sub/data.bin", False, len(data))
    assert any(found.path == "/tmp/sub" and found.is_dir for found in await worker.list_files(".", limit=100))
    await run(
        worker, "import os; os.mkdir('/tmp/many')\nfor n in range(50): open(f'/tmp/many/{n:02}', 'w').close()"
    )
    many = await worker.list_files("/tmp/many", limit=5)
    assert [found.path[-2:] for found in many] == ["00", "01", "02", "03", "04"]


@pytest.mark.parametrize(
    ("code", "path"),
    [("", "nothing.txt"), ("", "/tmp"), ("", "/dev/zero"), ("", "/etc/shadow"), ("", ""),
     ("import os; os.mkfifo('/tmp/pipe')", "/tmp/pipe"),
     ("import os; os.symlink('loop', '/tmp/loop')", "/tmp/loop")],
)  # fmt: skip
async def test_what_cannot_be_read(worker: SandboxWorker, code: str, path: str) -> None:
    await run(worker, code)
    with pytest.raises(SandboxFileError):
        await worker.read_file(path, max_bytes=1000)


async def test_what_cannot_be_written(worker: SandboxWorker) -> None:
    for path in ("/etc/x", "/x", "/usr/x", "/tmp", "/proc/sys/kernel/hostname", "a\0b"):
        with pytest.raises(SandboxFileError):
            await worker.write_file(path, b"x")


async def test_user_and_modules(worker: SandboxWorker) -> None:
    assert (
        await run(worker, "import os, pathlib; os.getuid(), os.getcwd(), str(pathlib.Path.home())")
    ).result_text == ("(1000, '/tmp', '/home/user')")
    await worker.write_file("mine.py", b"value = 5")
    assert (await run(worker, "import mine; mine.value")).result_text == "5"
    done = await run(
        worker, "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import numpy; print(1)'])"
    )
    assert done.stdout == "1\n"


async def test_the_programs_own_environment_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("E2B_API_KEY", "canary-abc")
    with a_worker(tmp_path) as worker:
        done = await worker.run_code("import os; print(dict(os.environ))", timeout=PATIENCE)
    assert "canary" not in done.stdout
    assert os.environ["E2B_API_KEY"] == "canary-abc"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("try:\n    raise ExceptionGroup('g', [ValueError(1)])\nexcept ExceptionGroup:\n    raise KeyError('k')", "KeyError"),
        ("e, f = ValueError('a'), ValueError('b')\ne.__context__, f.__context__ = f, e\nraise e", "ValueError"),
        ("e = ValueError('a')\nfor n in range(2000):\n    f = ValueError(n)\n    f.__context__ = e\n    e = f\nraise e", "ValueError"),
    ],
    ids=["after a group", "in a circle", "a long chain"],
)  # fmt: skip
async def test_errors_that_ipython_cannot_format_are_in_the_answer_alone(
    worker: SandboxWorker, code: str, name: str
) -> None:
    done = await run(worker, code)
    assert (done.stdout, done.stderr) == ("", "")
    assert done.error is not None
    assert done.error.name == name
    assert name in done.error.traceback


async def test_a_traceback_that_cannot_be_formatted_is_told_in_pythons_form(tmp_path: Path) -> None:
    with a_worker(tmp_path, sandbox_warm=False) as worker:  # one of its own: the code breaks what formats
        done = await run(worker, "import stack_data\nstack_data.FrameInfo.stack_data = None\n1 / 0")
    assert (done.stdout, done.stderr) == ("", "")
    assert done.error is not None
    assert done.error.name == "ZeroDivisionError"
    assert done.error.traceback.rstrip().endswith("ZeroDivisionError: division by zero")
