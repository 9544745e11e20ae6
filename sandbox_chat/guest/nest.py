"""Namespaces from within: how a process of the warm parent becomes a sandbox of its own.

Inside bubblewrap the parent has a user namespace without privileges. A new process in new namespaces has
all of them over these, and only these; it uses them to cover what it must not share with its siblings, and
then gives them up. What it sees afterwards is what bubblewrap makes for a sandbox that is started cold.
Plain system calls by ctypes; Linux on x86-64 and 64-bit ARM.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
from typing import Any

_CLONE = {"x86_64": 56, "aarch64": 220}
_PIDFD = 0x00001000
_NAMESPACES = (
    0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
)  # NS UTS IPC USER PID NET
_NEW_CGROUP = 0x02000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_PDEATHSIG, _DUMPABLE, _SECCOMP, _BOUNDING_DROP, _NO_NEW_PRIVS, _AMBIENT = 1, 4, 22, 24, 38, 47
_AMBIENT_CLEAR = 4
_FILTER = 2
_CAPABILITY_VERSION = 0x20080522
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1


class NestError(Exception):
    """A step was refused; the message names it and says why."""


def _libc() -> ctypes.PyDLL:
    # PyDLL keeps the interpreter's lock: the new process must hold it as the old one does.
    return ctypes.PyDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        raise NestError(f"{what} was refused: {os.strerror(ctypes.get_errno())}.")
    return result


def clone() -> tuple[int, int]:
    """Fork into namespaces of its own. Returns ``(pid, pidfd)`` in this process and ``(0, -1)`` in the new one.

    The new process is the first one of its process namespace. It has a copy of this thread only, and the C
    library does not know of it: it must do no more than the functions of this module, and then ``os.fork``.
    """
    number = _CLONE.get(os.uname().machine)
    if number is None:
        raise NestError(f"New namespaces are not known on this machine ({os.uname().machine}).")
    libc = _libc()
    pidfd = ctypes.c_int(-1)
    flags = _NAMESPACES | _NEW_CGROUP | _PIDFD | int(signal.SIGCHLD)
    pid = -1
    for wanted in (flags, flags & ~_NEW_CGROUP):
        pid = libc.syscall(
            ctypes.c_long(number), ctypes.c_ulong(wanted), None, ctypes.byref(pidfd), None, None
        )
        if pid >= 0 or ctypes.get_errno() != errno.EINVAL:
            break
    _check(pid, "Making namespaces inside the sandbox's")
    return (0, -1) if pid == 0 else (pid, pidfd.value)


def settle(room: dict[str, Any]) -> None:
    """Make the namespaces of this new process a sandbox. Raises ``NestError``.

    ``room``: ``user`` (id inside), ``home``, ``home_mb``, ``shm_mb``, ``disk_mb``, ``files`` (most files in each of
    those), ``workspace`` (whether it has one of its own), ``folders`` (to be made in the home folder) and ``keep`` (files in it that stay, read-only).
    """
    libc = _libc()
    libc.prctl(_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    user, home = int(room["user"]), str(room["home"])
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{user} {user} 1")
    _mount("none", "/", None, _REC | _PRIVATE)
    kept = {name: os.open(f"{home}/{name}", os.O_PATH | os.O_CLOEXEC) for name in room["keep"]}
    files = int(room["files"])
    _tmpfs("/tmp", "1777", room["disk_mb"], files)  # noqa: S108 - the sandbox's own
    _tmpfs("/dev/shm", "1777", room["shm_mb"], files)  # noqa: S108
    _tmpfs(home, "0700", room["home_mb"], files)
    if room["workspace"]:  # else it is a folder of the user's
        _tmpfs("/workspace", "0700", room["disk_mb"], files)
    # Terminals are reached by name: with the parent's, one sandbox could open those of another.
    _mount("devpts", "/dev/pts", "devpts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    for name in room["folders"]:
        os.makedirs(f"{home}/{name}", 0o755, exist_ok=True)  # noqa: PTH103 - this module is plain system calls
    for name, fd in kept.items():
        os.close(os.open(f"{home}/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
        _mount(f"/proc/self/fd/{fd}", f"{home}/{name}", None, _BIND)
        os.close(fd)
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    _write("/proc/sys/user/max_user_namespaces", "0")
    _mount("/proc/sys", "/proc/sys", None, _BIND)
    _mount("none", "/proc/sys", None, _BIND | _REMOUNT | _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    _loopback()
    os.chdir("/tmp")  # noqa: S108


def confine(filter_program: bytes) -> None:
    """Give up every capability for good, close this process to its children's eyes, and filter its system calls."""
    libc = _libc()
    libc.prctl(_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)
    for capability in range(64):
        if libc.prctl(_BOUNDING_DROP, capability, 0, 0, 0) < 0:
            if ctypes.get_errno() == errno.EINVAL:  # the kernel knows no more
                break
            _check(-1, "Dropping capabilities")
    head = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _check(libc.capset(head, (ctypes.c_uint32 * 6)()), "Dropping capabilities")
    _check(libc.prctl(_DUMPABLE, 0, 0, 0, 0), "Closing the first process")
    filter_calls(filter_program)


def filter_calls(filter_program: bytes) -> None:
    """Put this process, and all that it starts, under a filter of system calls, without new privileges. Raises ``NestError``."""
    libc = _libc()
    _check(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "Forbidding new privileges")

    class Program(ctypes.Structure):
        _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    program = Program(len(filter_program) // 8, filter_program)
    _check(libc.prctl(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0), "The filter of system calls")


def open_up() -> None:
    """Let this process look at itself under ``/proc`` again, as every ordinary one may."""
    _libc().prctl(_DUMPABLE, 1, 0, 0, 0)


def tasks() -> int:
    """Return how many threads the kernel sees in this process."""
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208


def _write(path: str, text: str) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)
    except OSError as error:
        raise NestError(f"Writing {path} was refused: {error.strerror}.") from None


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    extra = None if data is None else data.encode()
    _check(_libc().mount(*texts, ctypes.c_ulong(flags), extra), f"Mounting {kind or 'over'} {target}")


def _tmpfs(target: str, mode: str, megabytes: int, files: int) -> None:
    _mount(
        "tmpfs", target, "tmpfs", _NOSUID | _NODEV, f"mode={mode},size={int(megabytes)}m,nr_inodes={files}"
    )


def _loopback() -> None:
    """Bring the loopback interface up, so that servers inside can be reached from inside."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        name = b"lo".ljust(16, b"\0")
        answer = fcntl.ioctl(probe, _GET_FLAGS, name + bytes(24))
        (flags,) = struct.unpack_from("=H", answer, 16)
        fcntl.ioctl(probe, _SET_FLAGS, name + struct.pack("=H", flags | _UP) + bytes(22))
