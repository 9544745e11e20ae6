"""The Docker back end against a real daemon: isolation, limits and their reasons, files, how it ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.docker_daemon import Daemon
from support.sandboxes import PATIENCE, a_worker

from sandbox_chat.sandbox.base import Execution, SandboxUnavailable
from sandbox_chat.sandbox.docker import DockerSandbox
from sandbox_chat.sandbox.skills_folder import SkillsFolder
from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Settings

pytestmark = pytest.mark.slow


def make(docker: Daemon, folder: Path, **values: object) -> DockerSandbox:
    """A sandbox that is not started."""
    options = {"sandbox": "docker", "docker_image": docker.image, "start_timeout": PATIENCE, **values}
    return DockerSandbox(Settings(data_dir=folder, **options))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def shared(docker: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerSandbox]:
    """A started sandbox that tests share: they must leave it usable."""
    sandbox = make(docker, tmp_path_factory.mktemp("shared"))
    sandbox.start()
    yield sandbox
    sandbox.close()
    sandbox.release()


def run(sandbox: DockerSandbox, code: str, timeout: float = PATIENCE) -> Execution:
    return sandbox.run_code(code, timeout=timeout)


def test_it_looks_like_the_local_sandbox(shared: DockerSandbox) -> None:
    done = run(
        shared,
        "import os, socket, getpass\n"
        "(os.getcwd(), os.path.expanduser('~'), socket.gethostname(), getpass.getuser(), os.environ['TMPDIR'])",
    )
    assert done.result_text == "('/tmp', '/home/user', 'sandbox', 'user', '/tmp')"
    assert shared.info.kind == "docker"
    assert not shared.info.capabilities.network


def test_nothing_of_the_image_can_be_written(shared: DockerSandbox) -> None:
    code = """
import os
refused = []
for path in ("/", "/etc/x", "/usr/x", "/opt/sandbox/packages/x", "/dev/x", "/proc/sys/kernel/core_pattern", "/sys/x"):
    try:
        open(path if path != "/" else "/x", "w")
    except OSError as error:
        refused.append(path)
len(refused)
"""
    assert run(shared, code).result_text == "7"


def test_code_has_no_rights_and_is_under_the_filter(shared: DockerSandbox) -> None:
    done = run(shared, "print(open('/proc/self/status').read())")
    facts = dict(line.split(":\t", 1) for line in done.stdout.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(facts[name], 16) == 0, name
    assert facts["NoNewPrivs"].strip() == "1"
    assert facts["Seccomp"].strip() == "2"
    assert int(facts["Uid"].split()[0]) not in (0, 1000)
    # What Docker's own filter allows and ours does not.
    asked = "import os\ntry:\n    os.memfd_create('x')\nexcept OSError as error:\n    print(error.errno)"
    assert run(shared, asked).stdout == "1\n"


def test_the_first_process_cannot_be_reached(shared: DockerSandbox) -> None:
    code = """
import os, signal
open_to_us = []
for name in ("fd", "environ", "mem", "cwd", "maps"):
    try:
        os.listdir("/proc/1/" + name) if name == "fd" else open("/proc/1/" + name).read(1)
        open_to_us.append(name)
    except OSError:
        pass
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
    os.kill(1, number)
open_to_us
"""
    assert run(shared, code).result_text == "[]"
    assert (
        run(shared, "x = 5\nimport os, signal\nos.kill(-1, signal.SIGKILL)").error is not None
    )  # nobody else is there
    assert run(shared, "x").result_text == "5"


def test_the_descriptors_of_code_are_its_own(shared: DockerSandbox) -> None:
    done = run(
        shared,
        "import os\nsorted({os.readlink(f'/proc/self/fd/{fd}').split(':')[0] for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{fd}')})",
    )
    assert set(eval(done.result_text)) <= {"/dev/null", "pipe", "socket"}, done.result_text


def test_there_is_no_network(shared: DockerSandbox) -> None:
    done = run(shared, "import os; os.listdir('/sys/class/net')")
    assert done.result_text == "['lo']"
    done = run(shared, "import socket\nsocket.create_connection(('192.0.2.1', 80), 3)")
    assert done.error is not None
    assert done.error.name == "OSError"


def test_timeouts_and_interrupts_keep_variables(shared: DockerSandbox) -> None:
    done = run(shared, "kept = 7\nimport time\ntime.sleep(600)", timeout=1)
    assert (done.stopped, run(shared, "kept").result_text) == ("timeout", "7")


def test_order_of_output_and_results_is_kept(shared: DockerSandbox) -> None:
    """All that was printed before the end of a run belongs to it, however much that is."""
    for number in range(20):
        done = run(
            shared, f"import sys\nfor i in range(2000): print('{number}', i)\nprint('end', file=sys.stderr)"
        )
        lines = done.stdout.splitlines()
        assert len(lines) == 2000
        assert lines[-1] == f"{number} 1999"
        assert done.stderr == "end\n"


def test_a_figure_comes_without_savefig(shared: DockerSandbox) -> None:
    done = run(shared, "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()")
    (picture,) = [output.data["image/png"] for output in done.outputs if "image/png" in output.data]
    assert isinstance(picture, bytes)
    assert picture.startswith(b"\x89PNG")
    assert done.stderr == ""


def test_a_large_file_goes_in_and_comes_back(shared: DockerSandbox) -> None:
    data = os.urandom(1 << 20) * 20
    assert shared.write_file("large.bin", data) == "/tmp/large.bin"
    assert shared.read_file("large.bin", max_bytes=1 << 30) == data
    run(shared, "import os; os.remove('large.bin')")


def test_a_flood_is_bounded_and_ends_at_its_limit(shared: DockerSandbox) -> None:
    done = run(shared, "while True: print('A' * 10_000)", timeout=2)
    assert done.stopped == "timeout"
    assert len(done.stdout) < 1_200_000
    assert run(shared, "1 + 1").result_text == "2"


def test_the_process_limit_is_named_and_orphans_leave_nothing(docker: Daemon, tmp_path: Path) -> None:
    sandbox = make(docker, tmp_path, sandbox_processes=40)
    try:
        sandbox.start()
        done = run(
            sandbox, "import subprocess\nps = [subprocess.Popen(['sleep', '600']) for _ in range(100)]"
        )
        assert done.error is not None
        assert any("40 processes and threads" in note for note in done.notes), done.notes
        run(
            sandbox,
            "import gc\nps = None\nimport os, signal\nos.kill(-1, signal.SIGKILL)\nimport time; time.sleep(.5)\nwhile True:\n    try: os.waitpid(-1, 0)\n    except ChildProcessError: break",
        )
        orphans = """
import os
for _ in range(200):
    pid = os.fork()
    if pid == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.waitpid(pid, 0)
"""
        done = run(sandbox, orphans)
        assert done.ok, done
        count = "import os, time\ntime.sleep(1)\nlen([n for n in os.listdir('/proc') if n.isdigit()])"
        assert run(sandbox, count).result_text == "2"  # the relay and the shell
    finally:
        sandbox.close()
        sandbox.release()


def test_memory_has_a_limit_with_a_reason(docker: Daemon, tmp_path: Path) -> None:
    sandbox = make(docker, tmp_path, sandbox_memory_mb=300)
    try:
        sandbox.start()
        done = run(sandbox, "kept = 1\ndata = bytearray(900 << 20)")
        assert done.error is not None
        assert done.error.name == "MemoryError"
        assert run(sandbox, "kept").result_text == "1"
        # Memory that is not data of one process: only the container's limit sees it.
        code = "import mmap\nm = []\nwhile True:\n    part = mmap.mmap(-1, 16 << 20)\n    part.write(b'x' * (16 << 20))\n    m.append(part)"
        done = run(sandbox, code)
        assert done.stopped == "died"
        assert done.error is not None
        assert "more than 300 MB of memory together" in done.error.value, done.error
    finally:
        sandbox.close()
        sandbox.release()


def test_processor_time_has_a_limit_with_a_reason(docker: Daemon, tmp_path: Path) -> None:
    sandbox = make(docker, tmp_path, sandbox_cpu_seconds=3)
    try:
        sandbox.start()
        done = run(sandbox, "while True: pass")
        assert done.stopped == "died"
        assert done.error is not None
        assert "more than 3 seconds of processor time" in done.error.value
    finally:
        sandbox.close()
        sandbox.release()


def test_a_shared_folder_can_be_written_by_its_owner(docker: Daemon, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    os.chown(folder, 4321, 4321)
    sandbox = make(docker, tmp_path / "data", sandbox_workspace=folder)
    try:
        sandbox.start()
        done = run(sandbox, "open('/workspace/made', 'w').write('inside')\nimport os\nos.getuid()")
        assert done.ok, done
        assert (folder / "made").read_text() == "inside"
        assert (folder / "made").stat().st_uid == int(done.result_text) == 4321
        assert run(sandbox, "import matplotlib.pyplot").stderr == ""  # the home folder is that user's, too
    finally:
        sandbox.close()
        sandbox.release()


async def test_the_worker_replaces_a_container_that_was_killed(docker: Daemon, tmp_path: Path) -> None:
    said: list[tuple[str, str]] = []
    with a_worker(
        tmp_path, lambda state, text: said.append((state, text)), sandbox="docker", docker_image=docker.image
    ) as worker:
        before = set(docker.containers())
        assert (await worker.run_code("x = 1\nx", timeout=PATIENCE)).result_text == "1"
        (name,) = set(docker.containers()) - before
        docker.call("kill", name)
        await _lost(worker, said)
        done = await worker.run_code("'x' in dir()", timeout=PATIENCE)
        assert (done.result_text, done.fresh) == ("False", True)
        await worker.run_code("import os; os._exit(3)", timeout=PATIENCE)
        assert (await worker.run_code("1 + 1", timeout=PATIENCE)).fresh
    reasons = [text for state, text in said if state == "lost"]
    assert "killed from outside" in reasons[0], reasons
    assert "exit code 3" in reasons[1], reasons


async def _lost(worker: SandboxWorker, said: list[tuple[str, str]]) -> None:
    """An unused container's death is noticed without anybody's asking."""
    end = time.monotonic() + PATIENCE
    while not any(state == "lost" for state, _ in said):
        assert time.monotonic() < end, said
        await asyncio.sleep(0.05)


def test_each_trouble_at_the_start_has_its_own_sentence(
    docker: Daemon,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def problem(**values: object) -> str:
        sandbox = make(docker, tmp_path, **values)
        with pytest.raises(SandboxUnavailable) as caught:
            sandbox.start()
        sandbox.close()
        sandbox.release()
        assert "--sandbox local" in str(caught.value)
        return str(caught.value)

    assert "docker pull nobody/nothing:1" in problem(docker_image="nobody/nothing:1")
    assert "There is no Docker network 'nowhere'" in problem(docker_network="nowhere")
    base = docker.call("image", "ls", "--quiet", "sandbox-chat-test-base").split()
    if base:  # not where the daemon is not ours
        assert "lacks a package" in problem(docker_image=base[0])
    with monkeypatch.context() as patch:
        patch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
        assert "The Docker daemon does not answer." in problem()
    assert "is not installed" in problem(docker_command="no-such-docker")


def test_a_daemon_that_may_not_be_used_is_said(docker: Daemon) -> None:
    if os.geteuid() != 0 or not docker.host.startswith("unix://"):
        pytest.skip("not run: needs root, to become another user, and a daemon on this machine")
    from sandbox_chat.sandbox import docker_program

    done = subprocess.run(
        ["docker", "ps"], env={**docker.environ, "HOME": "/"}, capture_output=True, text=True, user=4321, group=4321,
        extra_groups=[],
    )  # fmt: skip
    assert done.returncode != 0
    assert "You may not use the Docker daemon" in str(docker_program.explain(Settings(), done.stderr))


def test_a_daemon_that_cannot_see_the_skills(
    docker: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One on another machine, for example: there is a container all the same, and what is missing is said once."""
    folder = SkillsFolder(lambda: {"one": {"one.py": b"x = 1\n"}})
    monkeypatch.setattr(folder, "path", lambda: tmp_path / "not-there")
    settings = Settings(
        data_dir=tmp_path, sandbox="docker", docker_image=docker.image, start_timeout=PATIENCE, code_mode="on"
    )
    sandbox = DockerSandbox(settings, skills=folder)
    try:
        sandbox.start()
        done = run(sandbox, "import os\n(os.path.exists('/skills'), os.listdir('/workspace'))")
        assert done.result_text == "(False, [])"
        (note,) = done.notes
        assert note.startswith("The user's skills are not in /skills: the daemon cannot reach")
        assert run(sandbox, "1").notes == ()
    finally:
        sandbox.close()
        sandbox.release()
        folder.close()
    name = f"name={sandbox.name}"
    assert not docker.call("ps", "-aq", "--filter", name).split()
