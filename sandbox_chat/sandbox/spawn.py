"""Starting a guest process: inside bubblewrap, or plainly. The step before the link; knows no protocol."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

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
DYING_WAIT = 2.0
"""Seconds that a guest whose socket is closed gets to be over, so that its end can be named: a full /tmp takes a while."""
DISCARD_WAIT = 2.0
"""Seconds that a killed guest may take to be gone."""
# Ids that no distribution gives to anybody (they lie between the ranges of systemd); the second is "nobody",
# for containers that have few ids.
_SPARE_IDS = (60978, 65534)
_STAGES = ("/mnt", "/media", "/srv", "/opt", "/var/tmp", "/tmp")  # noqa: S108 - covered, never written


def guest_folder() -> Path:
    """Return the folder of the guest package."""
    return Path(__file__).resolve().parent.parent / "guest"


def gateway_folder() -> Path:
    """Return the folder of the gateway's package."""
    return Path(__file__).resolve().parent.parent / "gateway"


class Process(Protocol):
    """What is needed of the process behind a guest; ``subprocess.Popen`` is one."""

    @property
    def pid(self) -> int:
        """Its id on this machine."""

    def poll(self) -> int | None:
        """Return its exit code (negative for a signal, or 128 + the signal), or None while it lives."""

    def wait(self, timeout: float | None = None) -> int:
        """The same, waiting. Raises ``subprocess.TimeoutExpired``."""

    def kill(self) -> None:
        """End it, and with it all that lives in its process namespace."""


class Started:
    """A started guest: the process and this program's ends of its socket and pipes.

    ``root_pid``: the process on this machine above all of the sandbox's; itself, or those below it, are the sandbox.
    """

    def __init__(self, process: Process, sock: socket.socket, out: int, err: int) -> None:
        self.process = process
        self.root_pid = process.pid
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
            code = self.process.wait(timeout=DYING_WAIT) if self._dying() else self.process.poll()
        except subprocess.TimeoutExpired:
            code = None
        return "" if code is None else how_it_ended(code)

    def _dying(self) -> bool:
        # The socket's other end is closed a moment before the process can be waited for.
        try:
            return self.channel.sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


def discard(started: Started) -> None:
    """End a guest that nobody speaks with, and close what is held of it."""
    started.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        started.process.wait(timeout=DISCARD_WAIT)
    started.channel.sock.close()
    os.close(started.channel.stdout)
    os.close(started.channel.stderr)


def how_it_ended(code: int) -> str:
    """Return a sentence about a guest that ended with exit code ``code`` (a signal: negative, or 128 more)."""
    number = -code if code < 0 else code - 128
    if number == signal.SIGKILL:
        return "The sandbox's Python was killed; most likely it ran out of memory."
    if number in (
        signal.SIGSEGV,
        signal.SIGBUS,
        signal.SIGILL,
        signal.SIGABRT,
        signal.SIGFPE,
        signal.SIGSYS,
    ):
        return f"The sandbox's Python crashed ({signal.Signals(number).name})."
    return f"The sandbox's Python ended by itself (exit code {code})."


def in_bubblewrap(plan: Plan, bwrap: Path, seccomp: bytes) -> Started:
    """Start ``plan`` in bubblewrap. The calling thread must live as long as the sandbox: its end ends it.

    (The kernel's parent-death signal is bound to the thread that started the process; bubblewrap#692.)
    """
    with wired() as wires:
        process = _in_bubblewrap(plan, bwrap, seccomp, (wires.sock, wires.out, wires.err))
        return wires.started(process)


def warm_parent(plan: Plan, bwrap: Path) -> tuple[subprocess.Popen[bytes], socket.socket, int]:
    """Start the parent of warm sandboxes; see ``in_bubblewrap``. Returns it, its control connection and its stderr."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    err_read, err_write = os.pipe()
    try:
        process = _in_bubblewrap(plan, bwrap, None, (theirs.fileno(), err_write, err_write))
    except BaseException:
        ours.close()
        os.close(err_read)
        raise
    finally:
        theirs.close()
        os.close(err_write)
    return process, ours, err_read


def plainly(command: Sequence[str], environ: Mapping[str, str], cwd: str) -> Started:
    """Start a guest without isolation, in a session of its own. ``@FD@`` in ``command`` becomes the socket's number."""
    with wired() as wires:
        inside = [part.replace("@FD@", str(wires.sock)) for part in command]
        started = wires.started(_popen(inside, environ, [wires.sock], wires.out, wires.err, cwd=cwd))
    started.whole_group = True
    return started


class Wires:
    """A guest's connection before there is the guest: its ends are numbers, ours are taken by ``started``."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self.sock = self._theirs.fileno()
        self._out, self.out = os.pipe()
        self._err, self.err = os.pipe()
        self._taken = False

    def started(self, process: Process) -> Started:
        """Return the guest that ``process`` is, with our ends of the connection."""
        self._taken = True
        return Started(process, self._ours, self._out, self._err)

    def close(self) -> None:
        """Close the guest's ends, and ours if nobody took them."""
        self._theirs.close()
        os.close(self.out)
        os.close(self.err)
        if not self._taken:
            self._ours.close()
            os.close(self._out)
            os.close(self._err)


@contextlib.contextmanager
def wired() -> Iterator[Wires]:
    """Give a new connection. Afterwards this program holds its own ends only, or none."""
    wires = Wires()
    try:
        yield wires
    finally:
        wires.close()


def _in_bubblewrap(
    plan: Plan, bwrap: Path, seccomp: bytes | None, ends: tuple[int, int, int]
) -> subprocess.Popen[bytes]:
    """Start it with ``ends``: its socket, standard output and standard error."""
    guest_fd, out, err = ends
    root = os.geteuid() == 0
    stage = next((name for name in _STAGES if Path(name).is_dir()), "/tmp")  # noqa: S108
    real = [str(source) for source in plan.sources]
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

    try:
        data = {target: memory("data", text.encode()) for target, text in plan.data.items()}
        seccomp_fd = None if seccomp is None else memory("seccomp", seccomp)
        arguments = plan.arguments(sources, data, seccomp_fd)
        inside = [part.replace("@FD@", str(guest_fd)) for part in plan.command]
        packed = b"\0".join(os.fsencode(part) for part in arguments)
        # Not on the command line, where the sandbox could read the places of this machine's files.
        command = [str(bwrap), "--args", str(memory("args", packed + b"\0")), "--", *inside]
        if root:
            # The folder two above holds the program and the library that it is linked to.
            command[0] = f"{stage}/{len(real)}/" + "/".join(bwrap.parts[-3:])
            command = _launched(command, [*real, str(bwrap.parents[2])], stage, plan.workspace)
        return _popen(command, plan.environ, [guest_fd, *fds], out, err, cwd="/")
    finally:
        for fd in fds:
            os.close(fd)


def _launched(command: list[str], sources: list[str], stage: str, workspace: Path | None) -> list[str]:
    """Return the command by which root becomes an ordinary user who runs ``command``.

    ``sources`` ends with the workspace, if there is one, and bubblewrap's folder.
    """
    uid = gid = _spare_id()
    writable = []
    if workspace is not None:  # only as its owner can the sandbox write there, and only as that
        facts = workspace.stat()
        uid, gid = facts.st_uid, facts.st_gid or gid
        if uid == 0:
            raise SandboxUnavailable(f"The folder {workspace} belongs to root, so it is not shared.")
        writable = [len(sources) - 2]
    task = {
        "uid": uid,
        "gid": gid,
        "parent": os.getpid(),
        "stage": stage,
        "sources": sources,
        "writable": writable,
        "command": command,
    }
    launcher = Path(__file__).with_name("launcher.py")
    return [sys.executable, "-I", "-S", str(launcher), json.dumps(task)]


def _popen(
    command: Sequence[str], environ: Mapping[str, str], fds: Sequence[int], out: int, err: int, *, cwd: str
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=dict(environ),
            cwd=cwd,
            pass_fds=list(fds),
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxUnavailable(f"{error.filename} cannot be run: {error.strerror}.") from None


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
