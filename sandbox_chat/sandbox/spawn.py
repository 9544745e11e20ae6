"""Starting a guest process: inside bubblewrap, or plainly. The step before the link; knows no protocol."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sandbox_chat.sandbox.base import SandboxUnavailable
from sandbox_chat.sandbox.bwrap import Plan
from sandbox_chat.sandbox.guest_wire import Channel

BOOT = """
import sys, importlib.util as util
spec = util.spec_from_file_location("sandbox_guest", sys.argv[1] + "/__init__.py", submodule_search_locations=[sys.argv[1]])
sys.modules["sandbox_guest"] = module = util.module_from_spec(spec)
spec.loader.exec_module(module)
from sandbox_guest.main import main
main(sys.argv[2])
"""
"""Program of the guest's interpreter: arguments are the folder of the guest package and its configuration."""
# Ids that no distribution gives to anybody (they lie between the ranges of systemd); the second is "nobody",
# for containers that have few ids.
_SPARE_IDS = (60978, 65534)
_STAGES = ("/mnt", "/media", "/srv", "/opt", "/var/tmp", "/tmp")  # noqa: S108 - covered, never written


def guest_folder() -> Path:
    """Return the folder of the guest package."""
    return Path(__file__).resolve().parent.parent / "guest"


class Started:
    """A started guest: the process and this program's ends of its socket and pipes."""

    def __init__(self, process: subprocess.Popen[bytes], sock: socket.socket, out: int, err: int) -> None:
        self.process = process
        self._group = process.pid
        self.channel = Channel(sock, out, err, self.kill, self.ended)
        self.whole_group = False

    def kill(self) -> None:
        """End the guest, and with its process namespace or group everything that it started."""
        if self.process.poll() is not None and not self.whole_group:
            return
        if self.whole_group:
            for pid in _family(self._group):
                _signal(pid)
        if self.process.poll() is None:
            self.process.kill()

    def ended(self) -> str:
        """Return how the guest ended as a sentence, or an empty string while it lives."""
        try:
            code = self.process.wait(timeout=0.2) if self._dying() else self.process.poll()
        except subprocess.TimeoutExpired:
            code = None
        if code is None:
            return ""
        number = -code if code < 0 else code - 128
        if number == signal.SIGKILL:
            how = "The sandbox's Python was killed; most likely it ran out of memory."
        elif number in (
            signal.SIGSEGV,
            signal.SIGBUS,
            signal.SIGILL,
            signal.SIGABRT,
            signal.SIGFPE,
            signal.SIGSYS,
        ):
            how = f"The sandbox's Python crashed ({signal.Signals(number).name})."
        else:
            how = f"The sandbox's Python ended by itself (exit code {code})."
        return how

    def _dying(self) -> bool:
        # The socket's other end is closed a moment before the process can be waited for.
        try:
            return self.channel.sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


def in_bubblewrap(plan: Plan, bwrap: Path, seccomp: bytes) -> Started:
    """Start ``plan`` in bubblewrap. The calling thread must live as long as the sandbox: its end ends it.

    (The kernel's parent-death signal is bound to the thread that started the process; bubblewrap#692.)
    """
    root = os.geteuid() == 0
    stage = next((name for name in _STAGES if Path(name).is_dir()), "/tmp")  # noqa: S108
    real = [str(bind.source) for bind in plan.binds]
    sources = [f"{stage}/{number}" for number in range(len(real))] if root else real
    fds: list[int] = []

    def memory(name: str, content: bytes) -> int:
        fd = os.memfd_create(name)
        fds.append(fd)
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def command(guest_fd: int) -> list[str]:
        data = {target: memory("data", text.encode()) for target, text in plan.data.items()}
        arguments = plan.arguments(sources, data, memory("seccomp", seccomp))
        inside = [part.replace("@FD@", str(guest_fd)) for part in plan.command]
        packed = b"\0".join(os.fsencode(part) for part in arguments)
        # Not on the command line, where the sandbox could read the places of this machine's files.
        inner = ["--args", str(memory("args", packed + b"\0")), "--", *inside]
        if not root:
            return [str(bwrap), *inner]
        # The folder two above holds the program and the library that it is linked to.
        staged = f"{stage}/{len(real)}/" + "/".join(bwrap.parts[-3:])
        uid = _spare_id()
        task = {
            "uid": uid,
            "gid": uid,
            "parent": os.getpid(),
            "stage": stage,
            "sources": [*real, str(bwrap.parents[2])],
            "command": [staged, *inner],
        }
        launcher = Path(__file__).with_name("launcher.py")
        return [sys.executable, "-I", "-S", str(launcher), json.dumps(task)]

    try:
        return _start(command, plan.environ, fds, cwd="/")
    finally:
        for fd in fds:
            os.close(fd)


def plainly(command: Sequence[str], environ: Mapping[str, str], cwd: str) -> Started:
    """Start a guest without isolation, in a session of its own. ``@FD@`` in ``command`` becomes the socket's number."""
    started = _start(lambda fd: [part.replace("@FD@", str(fd)) for part in command], environ, [], cwd=cwd)
    started.whole_group = True
    return started


def _start(
    command: Callable[[int], list[str]], environ: Mapping[str, str], fds: list[int], *, cwd: str
) -> Started:
    ours, theirs = socket.socketpair()
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    try:
        process = subprocess.Popen(
            command(theirs.fileno()),
            stdin=subprocess.DEVNULL,
            stdout=out_write,
            stderr=err_write,
            env=dict(environ),
            cwd=cwd,
            pass_fds=[theirs.fileno(), *fds],
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        os.close(out_read)
        os.close(err_read)
        raise SandboxUnavailable(f"{error.filename} cannot be run: {error.strerror}.") from None
    finally:
        theirs.close()
        os.close(out_write)
        os.close(err_write)
    return Started(process, ours, out_read, err_read)


def _spare_id() -> int:
    """Return a user id that nobody has and that exists in this user namespace."""
    try:
        with Path("/proc/self/uid_map").open() as file:
            rows = [tuple(int(part) for part in line.split()) for line in file]
    except (OSError, ValueError):
        return _SPARE_IDS[-1]
    for uid in _SPARE_IDS:
        if any(first <= uid < first + count for first, _, count in rows):
            return uid
    return _SPARE_IDS[-1]


def _family(leader: int) -> list[int]:
    """Ids of the processes in the session of ``leader`` and of its descendants."""
    parents: dict[int, int] = {}
    found = {leader}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        pid = int(entry.name)
        parents[pid] = int(fields[1])
        if int(fields[3]) == leader:
            found.add(pid)
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return sorted(found - {leader})


def _signal(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return
