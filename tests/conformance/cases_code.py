"""Cases: starting, results, output, errors."""

from __future__ import annotations

import asyncio
import time

from conformance.registry import GUESTS, Ground, case
from support.sandboxes import PATIENCE, until

from sandbox_chat.values import Secret

CLOUD_NETWORK = "Whether code reaches a network is the cloud's affair (`SANDBOX_CHAT_E2B_INTERNET` asks it not to let it)."


# -- starting -------------------------------------------------------------------------------------------


@case("Start", own=True, fast=True)
async def starts_at_first_use(ground: Ground) -> None:
    """No sandbox exists before the first use; then it starts, and says so: starting, ready, busy, ready, closed."""
    states: list[str] = []
    with ground.another(lambda state, _text: states.append(state)) as worker:
        assert states == []
        assert worker.generation == 0
        assert (await worker.run_code("1 + 1", timeout=PATIENCE)).result_text == "2"
        assert worker.generation == 1
    assert states == ["starting", "ready", "busy", "ready", "closed"]


@case("Start", fast=True)
async def says_what_it_is(ground: Ground) -> None:
    """The back end says its kind, a label for people, whether it is isolated, and what it can do."""
    info = ground.worker.info
    assert info.kind == ground.settings.sandbox
    assert info.label
    assert info.safe
    assert info.capabilities.rich_output
    assert info.costs == (ground.name == "e2b")


@case("Start", own=True)
async def can_be_started_ahead(ground: Ground) -> None:
    """A start ahead of need makes one sandbox, and the first run uses it."""
    ground.worker.prestart()
    ground.worker.prestart()
    assert await ground.result("2 + 2") == "4"
    assert ground.worker.generation == 1


@case("Start", own=True)
async def two_sandboxes_share_nothing(ground: Ground) -> None:
    """Two sandboxes at the same time share neither variables nor files nor random numbers."""
    with ground.another() as other:
        await ground.run("mine = 1; open('/tmp/mine.txt', 'w').close()")
        code = "import os; ('mine' in globals(), os.path.exists('/tmp/mine.txt'))"
        assert (await other.run_code(code, timeout=PATIENCE)).result_text == "(False, False)"
        code = "import random, numpy; (random.random(), numpy.random.random(), numpy.random.default_rng().random())"
        one = await ground.result(code)
        two = (await other.run_code(code, timeout=PATIENCE)).result_text
        assert len({*one.strip("()").split(", "), *two.strip("()").split(", ")}) == 6, (one, two)


@case("Start")
async def the_folder_is_tmp(ground: Ground) -> None:
    """Code runs in `/tmp`, which it can write to, and so it can to its home."""
    assert await ground.result("import os; os.getcwd()") == "'/tmp'"
    code = "from pathlib import Path\nPath('here.txt').write_text('x'); (Path.home() / 'there.txt').write_text('y')"
    assert await ground.result(code) == "1"


@case(
    "Start",
    values={"anthropic_api_key": Secret("canary-4711"), "anthropic_auth_token": Secret("canary-4712")},
    own=True,
)
async def no_credentials_inside(ground: Ground) -> None:
    """No credential of the program is in the environment of the code."""
    done = await ground.run("import os; print(dict(os.environ))")
    assert done.ok
    assert "canary" not in done.stdout
    key = ground.settings.e2b_api_key.reveal()
    assert not key or key not in done.stdout
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "E2B_API_KEY"):
        assert name not in done.stdout


@case("Start", not_there={"e2b": CLOUD_NETWORK})
async def no_network_unless_said(ground: Ground) -> None:
    """Code reaches no network (not even this machine's own services), and the back end says so."""
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5)"
        assert (await ground.fails(code)).name in ("ConnectionRefusedError", "OSError", "PermissionError")
        code = "import socket; socket.getaddrinfo('example.org', 80)"
        assert (await ground.fails(code)).name == "gaierror"
    assert not ground.worker.info.capabilities.network


# -- results --------------------------------------------------------------------------------------------


@case("Results", fast=True)
async def the_last_value_is_the_result(ground: Ground) -> None:
    """The value of the last expression is the result; an assignment, a final semicolon, or None give none."""
    assert await ground.result("x = 41\nx + 1") == "42"
    for code in ("y = 1", "x;", "None", "", "# only a comment"):
        assert await ground.result(code) == "", code


@case("Results", fast=True)
async def variables_persist(ground: Ground) -> None:
    """Variables, imports and functions of one run are there in the next."""
    await ground.run("import math as m\nroot = 3\ndef twice(n): return 2 * n")
    assert await ground.result("twice(root) + m.floor(1.5)") == "7"


@case("Results")
async def the_namespace_is_the_users(ground: Ground) -> None:
    """The namespace holds no names but the shell's usual ones."""
    code = "sorted(n for n in globals() if not n.startswith('_'))"
    with ground.another() as worker:
        names = (await worker.run_code(code, timeout=PATIENCE)).result_text
    usual = {"'In'", "'Out'", "'exit'", "'get_ipython'", "'quit'", "'open'"}
    assert set(names.strip("[]").split(", ")) <= usual, names


@case("Results")
async def the_code_is_the_main_module(ground: Ground) -> None:
    """Code is the main module: its functions can be pickled and given to other processes."""
    assert await ground.result("__name__") == "'__main__'"
    code = (
        "import multiprocessing, pickle\ndef square(n): return n * n\npickle.loads(pickle.dumps(square))\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool: numbers = pool.map(square, range(4))\nnumbers"
    )
    assert await ground.result(code) == "[0, 1, 4, 9]"


@case("Results")
async def a_big_result_is_cut(ground: Ground) -> None:
    """A result of 50 MB of text is cut to a megabyte, and the cut is said in it."""
    text = await ground.result("class Big:\n    def __repr__(self): return 'x' * 50_000_000\nBig()")
    assert 100_000 <= len(text) < 1_000_300
    assert "more characters" in text[-200:]


@case("Results")
async def a_seed_holds(ground: Ground) -> None:
    """Random numbers go on from a seed that was set in an earlier run."""
    await ground.run("import random, numpy as np; random.seed(7); np.random.seed(7)")
    got = await ground.result("(round(random.random(), 6), round(float(np.random.random()), 6))")
    assert got == "(0.323833, 0.076308)"


@case("Results")
async def await_at_the_top(ground: Ground) -> None:
    """`await` works at the top level."""
    assert await ground.result("import asyncio\nawait asyncio.sleep(0.01)\n5") == "5"


@case("Results")
async def magics(ground: Ground) -> None:
    """IPython's magics and `!command` work; their output is the run's."""
    assert (await ground.run("!echo shell")).stdout.replace("\r", "") == "shell\n"
    assert await ground.result("%pwd") == "'/tmp'"
    assert "loop" in (await ground.run("%timeit -n1 -r1 pass")).stdout
    assert (await ground.run("%matplotlib inline")).ok


@case("Results")
async def a_broken_repr_is_no_catastrophe(ground: Ground) -> None:
    """A value whose text cannot be made does not break the shell; the reason is told."""
    done = await ground.run("class Bad:\n    def __repr__(self): raise ValueError('no text')\nBad()")
    told = done.stderr + done.stdout + (done.error.traceback if done.error else "") + done.result_text
    assert "no text" in told
    assert await ground.result("1 + 1") == "2"


# -- output ---------------------------------------------------------------------------------------------


@case("Output", fast=True)
async def both_streams_come_apart(ground: Ground) -> None:
    """Standard output and standard error come apart, each in its order, without colours or changes."""
    done = await ground.run(
        "import sys\nfor n in range(3):\n    print('out', n)\n    print('err', n, file=sys.stderr)"
    )
    assert done.stdout == "out 0\nout 1\nout 2\n"
    assert done.stderr == "err 0\nerr 1\nerr 2\n"


@case("Output", fast=True)
async def output_is_live(ground: Ground) -> None:
    """Output is handed on while the code runs."""
    seen = asyncio.Event()
    loop = asyncio.get_running_loop()

    def sink(_stream: str, text: str) -> None:
        if "first" in text:
            loop.call_soon_threadsafe(seen.set)

    code = "import time\nprint('first', flush=True)\nfor _ in range(1000): time.sleep(0.1)"
    task = asyncio.create_task(ground.run(code, on_output=sink))
    await asyncio.wait_for(seen.wait(), PATIENCE)
    assert not task.done()
    ground.worker.interrupt()
    done = await task
    assert (done.stopped, done.stdout) == ("interrupted", "first\n")


@case("Output")
async def live_output_is_the_output(ground: Ground) -> None:
    """The live pieces put together are the output that is reported at the end."""
    pieces: list[str] = []
    code = "import time\nfor n in range(20):\n    print(n); time.sleep(0.01)\nprint('end', end='')"
    done = await ground.run(code, on_output=lambda _stream, text: pieces.append(text))
    assert "".join(pieces) == done.stdout
    assert done.stdout.endswith("19\nend")


@case("Output", fast=True)
async def a_lone_surrogate_s3(ground: Ground) -> None:
    """A lone surrogate in the output becomes U+FFFD; the rest of the output is there. (S3)"""
    done = await ground.run("print('a\\ud83cb'); print('rest')\n5")
    assert done.ok, done.error
    assert done.stdout == "a\ufffdb\nrest\n"
    assert done.result_text == "5"
    done = await ground.run("'\\ud83c'")
    assert done.ok
    assert (await ground.fails("raise ValueError('x\\ud83cy')")).name == "ValueError"


@case("Output")
async def all_of_unicode(ground: Ground) -> None:
    """Text of any language comes as it was written."""
    text = "Größe 你好 한글 🎉 e\u0301 \u202eabc"
    assert (await ground.run(f"print({text!r})")).stdout == text + "\n"
    assert await ground.result(repr(text)) == repr(text)


@case("Output")
async def carriage_returns_are_kept(ground: Ground) -> None:
    """Carriage returns and tabs come as they were written; what they mean is decided on the screen."""
    done = await ground.run("import sys\nsys.stdout.write('10%\\r20%\\r100%\\n\\tx\\n'); None")
    assert done.stdout == "10%\r20%\r100%\n\tx\n"


@case("Output")
async def bytes_that_are_no_text(ground: Ground) -> None:
    """Bytes that are not UTF-8 become U+FFFD; the rest is there."""
    done = await ground.run("import os\nos.write(1, b'a\\xff\\xfeb\\n')\nimport time; time.sleep(0.2)")
    assert "a" in done.stdout
    assert "b\n" in done.stdout
    assert "\ufffd" in done.stdout


@case("Output")
async def children_write_too(ground: Ground) -> None:
    """What child processes and C code write is output of the run."""
    code = (
        "import os, subprocess, ctypes, time\nos.system('echo b')\nsubprocess.run(['echo', 'c'])\n"
        "libc = ctypes.CDLL(None)\nlibc.puts(b'd'); libc.fflush(None); time.sleep(0.3)"
    )
    done = await ground.run(code)
    assert done.stdout.split() == ["b", "c", "d"]


@case("Output")
async def threads_of_the_run_write_too(ground: Ground) -> None:
    """What threads write while their run lasts is output of the run."""
    code = (
        "import threading, sys\nthreads = [threading.Thread(target=sys.stdout.write, args=(f'{n}\\n',)) for n in range(5)]\n"
        "for t in threads: t.start()\nfor t in threads: t.join()"
    )
    assert sorted((await ground.run(code)).stdout.split()) == list("01234")


@case(
    "Output",
    differs={
        "e2b": "What the cloud's shell still holds of an ended run is handed on with the next call or look, not at once."
    },
)
async def late_output_of_a_thread_s5(ground: Ground) -> None:
    """What a thread prints after its run has ended is background output of that run, never of the next. (S5)"""
    code = "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.5), print('late'))).start()"
    late: list[str] = []
    await ground.run(code, on_late=lambda _stream, text: late.append(text))
    done = await ground.run("time.sleep(1.5); print('mine')")
    assert done.stdout == "mine\n"
    if ground.name == "e2b":
        await ground.run("1")
    assert await asyncio.to_thread(until, lambda: "".join(late) == "late\n", 20), late


@case("Output", own=True)
async def late_output_without_another_run(ground: Ground) -> None:
    """Background output comes by itself, without another run, when the sandbox is next looked after."""
    code = "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.5), print('late'))).start()"
    late: list[str] = []
    await ground.run(code, on_late=lambda _stream, text: late.append(text))
    patience = max(20.0, 3 * ground.worker.info.keep_every)
    if ground.name in GUESTS:
        assert await asyncio.to_thread(until, lambda: "".join(late) == "late\n", patience), late
    else:
        await ground.worker.list_files("/tmp", limit=5)
        await ground.run("1")
        assert await asyncio.to_thread(until, lambda: "".join(late) == "late\n", patience), late


@case("Output", values={"output_limit": 1_000_000})
async def ten_megabytes_of_output(ground: Ground) -> None:
    """Of 10 MB of output the head and the tail are kept, and what was cut is said between them. (T6)"""
    done = await ground.run("for n in range(100_000): print(f'{n:099}')\nprint('end')")
    assert done.ok, done
    assert len(done.stdout) < 1_100_000
    assert done.stdout.startswith(f"{0:099}\n{1:099}\n")
    assert done.stdout.endswith("end\n")
    assert "characters cut" in done.stdout


@case("Output", values={"output_limit": 2000})
async def the_whole_output_can_be_kept(ground: Ground) -> None:
    """Who asks for it gets the whole output, also what is cut from the answer, for a file on disk."""
    taken: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
    code = "import sys\nfor n in range(3000): print(n)\nprint('end', file=sys.stderr)"
    done = await ground.run(code, on_raw=lambda stream, data: taken[stream].extend(data))
    assert done.ok, done
    assert len(done.stdout) < 2200
    assert "characters cut" in done.stdout
    assert taken["stdout"].decode().split() == [str(n) for n in range(3000)]
    assert taken["stderr"].decode() == "end\n"


@case("Output", values={"output_limit": 1_000_000})
async def endless_output_s7(ground: Ground) -> None:
    """Endless output is bounded in memory and ended by the time limit; the next run works. (S7)"""
    import psutil

    await ground.run("kept = 1")
    before = psutil.Process().memory_info().rss
    done = await ground.run("while True: print('A' * 10000)", 2)
    assert done.stopped == "timeout", done.error
    assert 10_000 < len(done.stdout) < 1_100_000
    assert psutil.Process().memory_info().rss - before < 150_000_000
    assert await ground.result("kept") == "1"


@case("Output")
async def output_cannot_be_taken_away(ground: Ground) -> None:
    """Code that closes or replaces `sys.stdout` does not take the output from the next run."""
    await ground.run("kept = 7")
    for code in ("import sys; sys.stdout.close()", "import sys; sys.stdout = sys.stderr = None"):
        await ground.run(code)
        done = await ground.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\nkept")
        assert (done.stdout, done.stderr, done.result_text) == ("out\n", "err\n", "7"), code


@case("Output")
async def output_can_be_redirected(ground: Ground) -> None:
    """`contextlib.redirect_stdout` takes the output of its block, and of no more."""
    code = (
        "import contextlib, io\nheld = io.StringIO()\nwith contextlib.redirect_stdout(held): print('inside')\n"
        "print('outside')\nheld.getvalue()"
    )
    done = await ground.run(code)
    assert (done.stdout, done.result_text) == ("outside\n", repr("inside\n"))


@case("Output")
async def warnings_go_to_stderr(ground: Ground) -> None:
    """Warnings and log lines come on standard error."""
    done = await ground.run(
        "import warnings, logging\nwarnings.warn('watch out')\nlogging.getLogger('x').warning('logged')"
    )
    assert done.ok
    assert "watch out" in done.stderr
    assert "logged" in done.stderr
    assert done.stdout == ""


# -- errors ---------------------------------------------------------------------------------------------


@case("Errors", fast=True)
async def an_exception_is_an_error(ground: Ground) -> None:
    """An exception is an error of the run, with its name, text and traceback in plain text; what came before is kept."""
    done = await ground.run("def f():\n    return 1 / 0\nprint('before')\nf()")
    assert not done.ok
    assert done.stopped == ""
    assert done.error is not None
    assert (done.error.name, done.error.value) == ("ZeroDivisionError", "division by zero")
    assert done.stdout == "before\n"
    assert done.result_text == ""


@case("Errors")
async def tracebacks_are_plain(ground: Ground) -> None:
    """A traceback has no colour codes, shows the failing lines, and names the nested functions."""
    code = "def inner(n):\n    return 1 / n\ndef outer():\n    return inner(0)  # here\nouter()"
    error = await ground.fails(code)
    assert "\x1b" not in error.traceback + error.value
    for part in ("outer()", "return inner(0)  # here", "return 1 / n", "ZeroDivisionError: division by zero"):
        assert part in error.traceback, part


@case("Errors")
async def chains_and_groups(ground: Ground) -> None:
    """The cause of an exception and the members of a group are in the traceback."""
    code = "try:\n    {}['k']\nexcept KeyError as e:\n    raise RuntimeError('second') from e"
    error = await ground.fails(code)
    assert error.name == "RuntimeError"
    assert "KeyError" in error.traceback
    done = await ground.run("raise ExceptionGroup('many', [ValueError('one'), TypeError('two')])")
    assert done.error is not None
    assert done.error.name == "ExceptionGroup"
    assert "ValueError: one" in done.error.traceback
    assert "TypeError: two" in done.error.traceback


@case("Errors", fast=True)
async def syntax_errors(ground: Ground) -> None:
    """A syntax error is an error of the run that shows the line; nothing of the code is run."""
    error = await ground.fails("print('never')\ndef broken(:\n    pass")
    assert error.name == "SyntaxError"
    assert "def broken(:" in error.traceback
    error = await ground.fails("if True:\nprint(1)")
    assert error.name == "IndentationError"


@case("Errors")
async def endless_recursion(ground: Ground) -> None:
    """Endless recursion is an error, told soon and briefly."""
    await ground.run("def f(): return f()")
    error = await ground.fails("f()")
    assert error.name == "RecursionError"
    assert len(error.traceback) < 120_000


@case("Errors")
async def big_and_odd_exceptions(ground: Ground) -> None:
    """Exceptions of 10 MB, without a text, or of odd classes are errors like any other, within bounds."""
    error = await ground.fails("raise ValueError('y' * 10_000_000)")
    assert error.name == "ValueError"
    assert len(error.value) + len(error.traceback) < 2_500_000
    code = "class Odd(Exception):\n    def __str__(self): raise ValueError('inner')\nraise Odd"
    assert (await ground.fails(code)).name in ("Odd", "ValueError")  # IPython's own formatting may fail on it
    assert (await ground.fails("raise type('X' * 300, (Exception,), {})('v')")).value == "v"
    assert await ground.result("1 + 1") == "2"


async def _no_input(ground: Ground, code: str) -> None:
    started = time.monotonic()
    error = await ground.fails(code)
    assert error.name == "StdinNotImplementedError"
    assert "input" in (error.value + error.traceback).lower()
    assert time.monotonic() - started < 20
    assert await ground.result("1 + 1") == "2"


@case("Errors", fast=True)
async def input_is_an_error_s4(ground: Ground) -> None:
    """`input()` is a clear error at once: nobody can type into a sandbox. (S4)"""
    await _no_input(ground, "input('name? ')")


@case("Errors")
async def getpass_is_an_error_s4(ground: Ground) -> None:
    """`getpass.getpass()` is a clear error at once. (S4)"""
    await _no_input(ground, "import getpass; getpass.getpass()")


@case("Errors", fast=True)
async def leaving_is_an_error_s13(ground: Ground) -> None:
    """`sys.exit(3)`, `raise SystemExit`, `quit()`, `exit` are errors of that run; the shell lives. (S13)"""
    await ground.run("kept = 7; import sys")
    for code in ("sys.exit(3)", "raise SystemExit", "quit()", "exit()", "exit", "exit(1)"):
        assert (await ground.fails(code)).name == "SystemExit", code
        done = await ground.run("kept")
        assert (done.result_text, done.fresh) == ("7", False), code


@case("Errors")
async def keyboard_interrupt_of_the_code_s13(ground: Ground) -> None:
    """A KeyboardInterrupt that the code raises itself is an error of that run, not a stop by the user. (S13)"""
    await ground.run("kept = 7")
    assert (await ground.fails("raise KeyboardInterrupt")).name == "KeyboardInterrupt"
    assert await ground.result("kept") == "7"
