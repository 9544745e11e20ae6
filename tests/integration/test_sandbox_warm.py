"""Sandboxes that come from a warm parent: like cold ones from inside, apart from each other, gone with the program."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from support import ordinary
from support.program import gone_within, watching_leftovers
from support.sandboxes import PATIENCE, a_worker, until

from sandbox_chat.engine import Engine
from sandbox_chat.sandbox import bwrap, local, prepare
from sandbox_chat.sandbox.base import SandboxInfo, SandboxLost
from sandbox_chat.sandbox.local import LocalSandbox
from sandbox_chat.sandbox.warm import Warm
from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the local sandbox needs Linux")
ORDINARY_UID = 1235


@contextlib.contextmanager
def a_parent(settings: Settings) -> Iterator[Warm]:
    warm = Warm(settings)
    warm.start(delay=0.0)
    try:
        yield warm
    finally:
        warm.close()


@contextlib.contextmanager
def a_sandbox(settings: Settings, warm: Warm | None = None) -> Iterator[LocalSandbox]:
    """A started one: from ``warm``, or cold."""
    sandbox = LocalSandbox(settings, warm=warm, only_warm=warm is not None)
    try:
        sandbox.start()
        assert sandbox.is_warm == (warm is not None)
        yield sandbox
    finally:
        sandbox.close()
        sandbox.release()


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(data_dir=tmp_path_factory.mktemp("data"), start_timeout=PATIENCE, sandbox_files=5000)


@pytest.fixture(scope="module")
def warm(settings: Settings) -> Iterator[Warm]:
    with a_parent(settings) as parent:
        assert parent.wait(PATIENCE), parent.state
        assert parent.state.startswith("ready"), parent.state
        yield parent


def value(sandbox: LocalSandbox, code: str, timeout: float = PATIENCE) -> Any:
    """Run ``code``, which prints one literal, and return that."""
    done = sandbox.run_code(textwrap.dedent(code), timeout=timeout)
    assert done.ok, (done.error, done.stderr)
    return ast.literal_eval(done.stdout.strip().splitlines()[-1])


LOOK = """
import ctypes, os, pathlib, resource, signal, socket, struct, fcntl, stat, sys
def status():
    names = ("Uid", "Gid", "Groups", "Umask", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
             "Seccomp_filters", "SigBlk", "SigIgn", "SigCgt", "NSpid", "NSsid", "NSpgid", "PPid", "TracerPid", "Threads")
    rows = dict(line.split(":", 1) for line in open("/proc/self/status"))
    # Without two signals of the C library, which takes them when the first thread is made.
    rows["SigCgt"] = hex(int(rows["SigCgt"], 16) & ~(3 << 31))
    return {name: rows[name].split() for name in names}
def mounts():
    last = {}
    for line in open("/proc/mounts"):
        source, target, kind, options = line.split()[:4]
        last[target] = (kind, sorted(o for o in options.split(",") if not o.startswith("nr_inodes")))
    last.pop("/proc/sys")  # of the same kernel, by another way
    return last
def interface():
    with socket.socket() as s:
        return struct.unpack_from("=H", fcntl.ioctl(s, 0x8913, b"lo".ljust(40, bytes(1))), 16)[0]
def fds():
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try: found[name] = os.readlink(f"/proc/self/fd/{name}").split(":")[0]
        except OSError: pass
    # A socket's number is whatever was free outside.
    return sorted(target for name, target in found.items() if not target.startswith("/proc/"))
def mode(path):
    facts = os.stat(path)
    return (stat.filemode(facts.st_mode), facts.st_uid, facts.st_gid)
print({
    "status": status(), "mounts": mounts(), "lo": interface(), "fds": fds(),
    "env": dict(os.environ), "cwd": os.getcwd(), "path": sys.path, "flags": str(sys.flags), "argv": sys.argv[:1],
    "limits": {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT_")},
    "folders": {p: sorted(os.listdir(p)) for p in ("/", "/dev", "/dev/pts", "/dev/shm", "/tmp", "/etc", "/opt/sandbox", "/run", "/home")},
    "modes": {p: mode(p) for p in ("/", "/tmp", "/dev/shm", "/home/user", "/proc", "/dev/null", "/dev/ptmx")},
    "pids": sorted(n for n in os.listdir("/proc") if n.isdigit()), "pid": os.getpid(),
    "names": (socket.gethostname(), os.uname().nodename, os.uname().sysname),
    "nice": os.getpriority(os.PRIO_PROCESS, 0), "oom": open("/proc/self/oom_score_adj").read(),
    "cpus": sorted(os.sched_getaffinity(0)), "policy": os.sched_getscheduler(0),
    "switches": {n: signal.getsignal(getattr(signal, n)) in (signal.SIG_DFL, None) for n in ("SIGCHLD", "SIGTERM", "SIGHUP")},
    "written": open("/proc/self/comm").read(),
    "user": sorted(n for n in globals() if n.startswith("_") or n in ("In", "Out", "exit", "quit", "get_ipython", "plt", "np")),
    "count": get_ipython().execution_count, "in": len(In), "main": __name__,
})
"""
FIGURES = """
import matplotlib, matplotlib.pyplot as plt
plt.plot([1, 2])
print({k: repr(v) for k, v in sorted(matplotlib.rcParams.items())} | {"figures": plt.get_fignums(), "inline": matplotlib.get_backend()})
"""


@pytest.mark.slow
def test_from_inside_it_is_like_a_cold_one(settings: Settings, warm: Warm) -> None:
    with a_sandbox(settings) as cold, a_sandbox(settings, warm) as child:
        first, second = value(cold, LOOK), value(child, LOOK)
        assert sorted(first) == sorted(second)
        for name in first:
            assert first[name] == second[name], name
        assert first["status"]["Seccomp"] == ["2"]
        first_figure, second_figure = (
            sandbox.run_code(FIGURES, timeout=PATIENCE) for sandbox in (cold, child)
        )
        assert first_figure.stdout == second_figure.stdout
        for figure in (first_figure, second_figure):
            assert ["image/png" in output.data for output in figure.outputs] == [True]


SECRET = """
import os, random, socket, multiprocessing.shared_memory as shared
import numpy
secret = "canary-" + "SECRET"
open("/tmp/secret.txt", "w").write(secret); open("/dev/shm/secret", "w").write(secret)
open(os.path.expanduser("~/secret"), "w").write(secret)
server = socket.create_server(("127.0.0.1", 5000))
abstract = socket.socket(socket.AF_UNIX); abstract.bind(chr(0) + "secret"); abstract.listen()
leader, follower = os.openpty()
os.write(leader, secret.encode())
print([random.random(), numpy.random.rand(), numpy.random.default_rng().random(), os.ttyname(follower)])
"""
HUNT = """
import os, random, signal, socket, numpy
found = []
for top in ("/tmp", "/dev/shm", "/home", "/dev/pts", "/run", "/var", "/opt/sandbox/guest", "/proc/1", "/proc/self/task"):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if "pagemap" in path or "/sys/" in path: continue
            try:
                fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                try: data = os.read(fd, 1 << 20)
                finally: os.close(fd)
            except OSError: continue
            if b"canary-" + b"SECRET" in data and not path.startswith("/proc/self"): found.append(path)
for address, kind in ((("127.0.0.1", 5000), socket.AF_INET), (chr(0) + "secret", socket.AF_UNIX)):
    try: socket.socket(kind).connect(address); found.append(repr(address))
    except OSError: pass
try: found.append(os.open("/dev/pts/0", os.O_RDWR | os.O_NOCTTY))
except OSError: pass
seen = sorted(n for n in os.listdir("/proc") if n.isdigit())
reached = []
for pid in range(1, 400):
    if pid == os.getpid(): continue
    try: os.kill(pid, 0); reached.append(pid)
    except OSError: pass
for path in ("/proc/1/mem", "/proc/1/environ", "/proc/1/maps", "/proc/1/fd", "/proc/1/root", "/proc/1/cwd"):
    try: os.listdir(path) if path.endswith(("fd", "root", "cwd")) else open(path, "rb").read(1); reached.append(path)
    except OSError: pass
for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSTOP, signal.SIGUSR1, signal.SIGCHLD):
    os.kill(1, number)
print([found, seen, reached, random.random(), numpy.random.rand(), numpy.random.default_rng().random()])
"""


@pytest.mark.slow
def test_children_of_one_parent_reach_nothing_of_each_other(settings: Settings, warm: Warm) -> None:
    with a_sandbox(settings, warm) as one, a_sandbox(settings, warm) as two:
        numbers = value(one, SECRET)
        assert numbers.pop() == "/dev/pts/0"
        found, seen, reached, *others = value(two, HUNT)
        assert found == []
        assert seen == ["1", "2"]
        assert reached == [1]  # it is there, and that is all
        assert not set(numbers) & set(others)
        assert value(two, "print(1)") == 1  # the signals did nothing
        assert value(one, "print(secret)[0:0] if False else print(repr(secret))") == "canary-SECRET"


def test_nothing_of_the_parent_is_within_reach(settings: Settings, warm: Warm) -> None:
    parent = warm._parent
    assert parent is not None
    with a_sandbox(settings, warm) as child:
        below = psutil.Process(parent.process.pid).children(recursive=True)
        # Its own number outside, and inside bubblewrap, where it is the second.
        pids = {number for process in below for number in (process.pid, *_inner_ids(process.pid))}
        code = f"""
        import os
        reached = []
        for pid in {sorted(pids - {1, 2})}:
            if os.path.exists(f"/proc/{{pid}}"): reached.append(pid)
            try: os.kill(pid, 0); reached.append(-pid)
            except ProcessLookupError: pass
        targets = [os.readlink(f"/proc/self/fd/{{n}}") for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{{n}}")]
        sockets = [t for t in targets if t.startswith("socket:")]
        print([reached, len(set(sockets)), sorted({{t.split(":")[0] for t in targets}}), os.getsid(0), os.getppid()])
        """
        assert value(child, code) == [[], 1, ["/dev/null", "pipe", "socket"], 1, 1]


def _inner_ids(pid: int) -> list[int]:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return [int(part) for part in line.split()[1:]]
    return []


def test_it_is_below_its_root_process(settings: Settings, warm: Warm) -> None:
    with a_sandbox(settings, warm) as child, a_sandbox(settings) as cold:
        for sandbox in (child, cold):
            started = sandbox._started
            assert started is not None
            sandbox.run_code("import subprocess; p = subprocess.Popen(['sleep', '1000'])", timeout=PATIENCE)
            below = psutil.Process(started.root_pid).children(recursive=True)
            assert "sleep" in [process.name() for process in below]


def test_a_number_of_files_is_the_most(settings: Settings, warm: Warm) -> None:
    code = """
    import os
    os.mkdir("/tmp/many")
    try:
        for number in range(20_000): open(f"/tmp/many/{number}", "w").close()
    except OSError as error: print([number, error.strerror])
    """
    with a_sandbox(settings, warm) as child:
        number, why = value(child, code)
        assert why == "No space left on device"
        assert 4000 < number < 5000


@pytest.mark.parametrize(
    "code",
    ["import os; os._exit(3)", "import os; os.kill(os.getpid(), 9)", "import ctypes; ctypes.string_at(0)"],
)
def test_death_is_told_as_of_a_cold_one(settings: Settings, warm: Warm, code: str) -> None:
    with a_sandbox(settings) as cold, a_sandbox(settings, warm) as child:
        first, second = (sandbox.run_code(code, timeout=PATIENCE) for sandbox in (cold, child))
        assert first.stopped == second.stopped == "died"
        assert first.error is not None
        assert first.error == second.error
        with pytest.raises(SandboxLost):
            child.run_code("1", timeout=PATIENCE)


def test_closing_ends_all_of_it_at_once(settings: Settings, warm: Warm) -> None:
    with a_sandbox(settings, warm) as child:
        child.run_code(
            "import subprocess; p = subprocess.Popen(['sleep', '1000'], start_new_session=True)",
            timeout=PATIENCE,
        )
        started = child._started
        assert started is not None
        root = psutil.Process(started.root_pid)
        below = [root, *root.children(recursive=True)]
        assert len(below) == 3
        child.close()
        assert until(lambda: not any(process.is_running() for process in below))
    with a_sandbox(settings, warm) as another:
        assert value(another, "print(2)") == 2


async def test_after_a_crash_the_next_one_is_warm_too(settings: Settings, warm: Warm) -> None:
    made: list[LocalSandbox] = []

    def factory() -> LocalSandbox:
        made.append(LocalSandbox(settings, warm=warm))
        return made[-1]

    worker = SandboxWorker(factory, info=SandboxInfo("local", "local sandbox"))
    try:
        died = await worker.run_code("x = 1; import os; os._exit(1)", timeout=PATIENCE)
        again = await worker.run_code("'x' in globals()", timeout=PATIENCE)
    finally:
        worker.close()
    assert (died.stopped, again.result_text, again.fresh) == ("died", "False", True)
    assert [sandbox.is_warm for sandbox in made] == [True, True]


@pytest.mark.slow
async def test_until_the_parent_is_ready_a_cold_one_serves(tmp_path: Path) -> None:
    with a_worker(tmp_path, sandbox_warm=True) as worker:
        worker.warm()
        done = await worker.run_code("open('/proc/mounts').read().count(' /tmp ')", timeout=PATIENCE)
        assert done.result_text == "1"  # a warm one has its parent's under its own


@pytest.mark.slow
def test_a_parent_that_ends_is_started_once_more(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, start_timeout=PATIENCE)
    with a_parent(settings) as warm:
        assert warm.wait(PATIENCE)
        with a_sandbox(settings, warm) as child:
            first = warm._parent
            assert first is not None
            first.process.kill()
            assert until(lambda: warm._parent is not first)
            assert until(lambda: child._started is not None and child._started.process.poll() is not None)
            with pytest.raises(SandboxLost):  # it went with its parent
                child.run_code("1", timeout=PATIENCE)
        assert until(lambda: warm._parent is not None), warm.state
        second = warm._parent
        with a_sandbox(settings, warm) as child:
            assert value(child, "print(3)") == 3
        assert second is not None
        second.process.kill()
        assert until(lambda: warm._parent is None)
        assert warm.spawn() is None
        with a_sandbox(settings) as cold:
            assert value(cold, "print(4)") == 4


@pytest.mark.slow
def test_where_namespaces_cannot_be_nested_one_is_kept_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_plan = local.make_plan

    def sealed(*args: Any, warm_parent: bool = False, **options: Any) -> bwrap.Plan:
        # The kernel then refuses for real what the parent asks of it.
        plan = make_plan(*args, warm_parent=warm_parent, **options)
        return dataclasses.replace(plan, warm_parent=False)

    monkeypatch.setattr(local, "make_plan", sealed)
    settings = Settings(data_dir=tmp_path, start_timeout=PATIENCE)
    with a_parent(settings) as warm:
        assert warm.wait(PATIENCE), warm.state
        assert warm.state.startswith("one cold sandbox is kept ready"), warm.state
        for _ in range(2):
            with a_sandbox(settings, warm) as spare:
                look = "import sys; print(['pandas' in sys.modules, open('/proc/mounts').read().count(' /tmp ')])"
                assert value(spare, look) == [True, 1]
                assert until(lambda: warm._spare is not None)
                assert warm._spare is not spare._started
        left = warm._spare
    assert left is not None
    assert until(lambda: left.process.poll() is not None)


@pytest.mark.slow
def test_caches_are_made_before_the_parent_starts(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", start_timeout=PATIENCE)
    assert not settings.cache_path.exists()
    preparer = prepare.Preparer(settings)
    warm = Warm(settings, preparer)
    warm.start(delay=0.0)
    try:
        assert until(lambda: warm.state.startswith("ready"), 180), warm.state
        with a_sandbox(settings, warm) as child:
            look = """
            import os
            folder = os.path.expanduser("~/.cache/matplotlib/")
            print([[name[:9], os.access(folder + name, os.W_OK)] for name in os.listdir(folder)])
            """
            assert value(child, look) == [["fontlist-", False]]
    finally:
        preparer.close()
        warm.close()


@pytest.mark.slow
def test_another_python_without_the_usual_packages(tmp_path: Path) -> None:
    with ordinary.open_folder() as folder:
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True, timeout=120
        )
        python = folder / "env" / "bin" / "python"
        (target,) = (folder / "env" / "lib").glob("python*/site-packages")
        import IPython

        source = Path(IPython.__file__).parents[1]
        for name in NEEDED:
            for path in source.glob(name):
                if path.is_dir():
                    subprocess.run(["cp", "-r", str(path), str(target)], check=True, timeout=120)
                else:
                    (target / path.name).write_bytes(path.read_bytes())
        settings = Settings(data_dir=tmp_path, start_timeout=PATIENCE, sandbox_python=python)
        with a_parent(settings) as warm:
            assert warm.wait(PATIENCE), warm.state
            assert "with no packages" in warm.state
            with a_sandbox(settings, warm) as child:
                assert value(child, "import sys; print(['numpy' in sys.modules, 1 + 1])") == [False, 2]
            (target / "new_package").mkdir()
            assert warm.spawn() is None, "packages have changed, so what is in memory is old"
            assert "packages have changed" in warm.state


NEEDED = (
    "IPython", "traitlets", "matplotlib_inline", "decorator.py", "jedi", "parso", "pygments", "prompt_toolkit", "stack_data",
    "pure_eval", "executing", "asttokens", "wcwidth", "pexpect", "ptyprocess", "ipython_pygments_lexers.py",
    "typing_extensions.py", "psutil",
)  # fmt: skip

PROGRAM = """
import os, sys, time
from pathlib import Path
from sandbox_chat.sandbox.local import LocalSandbox
from sandbox_chat.sandbox.warm import Warm
from sandbox_chat.settings import Settings

if __name__ == "__main__":
    settings = Settings(data_dir=Path(sys.argv[1]), start_timeout=120)
    warm = Warm(settings)
    warm.start(delay=0.0)
    assert warm.wait(120), warm.state
    sandboxes = [LocalSandbox(settings, warm=warm, only_warm=True) for _ in range(2)]
    for sandbox in sandboxes:
        sandbox.start()
        code = "import os, subprocess; p = subprocess.Popen(['sleep', '1000'], start_new_session=True); os.getuid()"
        done = sandbox.run_code(code, timeout=120)
        assert done.result_text == "1000", done
    print("UP", os.getuid(), warm.state, flush=True)
    if sys.argv[2] == "wait":
        time.sleep(1000)
    for sandbox in sandboxes:
        sandbox.close()
    warm.close()
    print("CLOSED", flush=True)
"""


@pytest.mark.slow
def test_it_works_for_an_ordinary_user(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("the tests run as an ordinary user already")
    with ordinary.open_folder() as folder:
        script = folder / "program.py"
        script.write_text(PROGRAM)
        command = [sys.executable, str(script), str(folder), "end"]
        done = ordinary.run_as(ORDINARY_UID, folder, command, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
    assert f"UP {ORDINARY_UID} ready" in done.stdout
    assert done.stdout.rstrip().endswith("CLOSED")


@pytest.mark.slow
def test_kill_9_of_the_program_leaves_nothing(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    with watching_leftovers() as left:
        process = subprocess.Popen(
            [sys.executable, str(script), str(tmp_path), "wait"], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"UP"), process.poll()
        assert len(left()) >= 7  # the program, bubblewrap, the parent, and of each sandbox three
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert gone_within(5.0, left) == []


@pytest.mark.slow
def test_what_the_report_says(tmp_path: Path) -> None:
    from sandbox_chat.sandbox import warm as module

    usable, text = module.report(Settings(data_dir=tmp_path, start_timeout=PATIENCE))
    assert usable, text
    assert "A sandbox is made in" in text
    off = module.report(Settings(data_dir=tmp_path, sandbox_warm=False))
    assert off == (False, "Warm start is switched off (SANDBOX_CHAT_SANDBOX_WARM); each sandbox starts cold.")


@pytest.mark.slow
def test_the_engine_begins_it_and_ends_it(tmp_path: Path) -> None:
    settings = Settings(demo=True, demo_pace=0.0, data_dir=tmp_path, start_timeout=PATIENCE)
    engine = Engine(settings, lambda _event: None)
    warm = getattr(engine._worker and engine._worker._warm, "__self__", None)
    assert isinstance(warm, Warm)
    try:
        assert warm.state == "not started"
        engine.start()
        assert until(lambda: warm.state.startswith("ready"), 180), warm.state
        parent = warm._parent
        assert parent is not None
    finally:
        engine.close()
    assert until(lambda: parent.process.poll() is not None)
    assert warm._thread is not None
    warm._thread.join(PATIENCE)
    assert not warm._thread.is_alive()
