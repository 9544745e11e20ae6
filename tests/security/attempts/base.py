"""What an attempt is, and what all scripts share.

A script defines ``go()``. If ``go`` raises, the attempt was refused. If it returns, the attempt worked,
and what it returns says how. Names that a script can use:

``KIND``        local, warm, docker or unsafe-local
``PORT``        a TCP port on which this machine listens, on loopback and on all its addresses
``ADDRESS``     another address of this machine than loopback, empty when it has none
``ABSTRACT``    an abstract Unix socket of this machine that listens
``VICTIM``      a process id outside; that process starts ``/bin/true`` again and again
``HOME_FILE``   a file in the home of the user who runs the program, with the secret in it
``TMP_FILE``    the same in the machine's ``/tmp``
``BAITS``       paths of listening sockets outside: a container daemon's, a display's, a bus's, a key agent's
``MARK``        a word for the command line of processes that try to outlive the sandbox

The secret itself is never handed in: ``seen(bytes)`` tells when it is found. ``libc`` and
``call(name or number, *args)`` make system calls; ``must(condition)`` refuses; ``reached(...)`` is
``call`` for one that must not even get into the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent
from typing import Literal

Expect = Literal["refused", "killed", "bounded"]
"""``refused``: an error. ``killed``: an error, or the process is killed for it. ``bounded``: either, or the
run's time limit, as a limit has to strike sooner or later."""

HEAD = '''
import ctypes, errno, fcntl, hashlib, mmap, os, pathlib, platform, resource, signal, socket, stat, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
NR = {name: numbers[0 if X86 else 1] for name, numbers in dict(
    ptrace=(101, 117), keyctl=(250, 219), add_key=(248, 217), request_key=(249, 218), unshare=(272, 97),
    setns=(308, 268), mount=(165, 40), umount2=(166, 39), bpf=(321, 280), perf_event_open=(298, 241),
    userfaultfd=(323, 282), memfd_create=(319, 279), process_vm_readv=(310, 270), process_vm_writev=(311, 271),
    open_by_handle_at=(304, 265), name_to_handle_at=(303, 264), init_module=(175, 105), finit_module=(313, 273),
    delete_module=(176, 106), kexec_load=(246, 104), kexec_file_load=(320, 294), clone=(56, 220), kcmp=(312, 272),
    syslog=(103, 116), pivot_root=(155, 41), chroot=(161, 51), acct=(163, 89), swapon=(167, 224), swapoff=(168, 225),
    reboot=(169, 142), setdomainname=(171, 162), quotactl=(179, 60), fanotify_init=(300, 262), adjtimex=(159, 171),
    settimeofday=(164, 170), clock_adjtime=(305, 266), vhangup=(153, 58), move_pages=(279, 239),
    migrate_pages=(256, 238), lookup_dcookie=(212, 18), shmget=(29, 194), msgget=(68, 186), msgsnd=(69, 189),
    capset=(126, 91), inotify_init1=(294, 26), inotify_add_watch=(254, 27), prlimit64=(302, 261),
    ioprio_set=(251, 30), sched_setscheduler=(144, 119), setfsuid=(122, 151), mq_open=(240, 180),
    seccomp=(317, 277), ioperm=(173, -1), iopl=(172, -1), modify_ldt=(154, -1),
).items()}
NR.update(pidfd_send_signal=424, io_uring_setup=425, io_uring_enter=426, io_uring_register=427, open_tree=428,
          move_mount=429, fsopen=430, fsmount=432, pidfd_open=434, clone3=435, pidfd_getfd=438, process_madvise=440,
          mount_setattr=442, quotactl_fd=443, memfd_secret=447, process_mrelease=448)

def call(number, *args):
    """Make a system call; raises OSError when it fails."""
    number = NR[number] if isinstance(number, str) else number
    args = [a if isinstance(a, (bytes, ctypes.Array, ctypes.c_void_p)) else ctypes.c_long(a) for a in args]
    result = libc.syscall(ctypes.c_long(number), *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def reached(number, *args):
    """Make a system call that must be refused before the kernel looks at its arguments."""
    try:
        return call(number, *args)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOSYS, errno.EACCES):
            raise
        return f"it got as far as: {error}"

def seen(data):
    """Return True when the secret is somewhere in data."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    start = data.find(b"canary-")
    while start >= 0:
        if hashlib.sha256(data[start:start + SECRET_LENGTH]).hexdigest() == SECRET_HASH:
            return True
        start = data.find(b"canary-", start + 1)
    return False

def must(condition, why="nothing was found"):
    """Refuse when the condition does not hold."""
    if not condition:
        raise PermissionError(why)

def readable(paths):
    for path in paths:
        try:
            with open(path, "rb") as file:
                yield path, file.read(1 << 20)
        except OSError:
            continue

def writable(paths):
    """Those of the paths that can be opened for writing."""
    found = []
    for path in paths:
        try:
            os.close(os.open(path, os.O_WRONLY)); found.append(path)
        except OSError:
            continue
    return found

def files_below(*tops):
    return [os.path.join(folder, name) for top in tops for folder, _, names in os.walk(top) for name in names]

def memory_of(pid):
    """Pieces of the memory of a process."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            low, high = (int(x, 16) for x in line.split()[0].split("-"))
            if line.split()[1][0] != "r" or "[v" in line:
                continue
            try:
                memory.seek(low)
                while low < high and (part := memory.read(min(high - low, 1 << 24))):
                    yield part
                    low += len(part)
            except (OSError, OverflowError, ValueError):
                continue

def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]
'''
TAIL = """
try:
    _how = go()
except BaseException as _error:
    print("REFUSED", type(_error).__name__, str(_error)[:300])
else:
    print("WORKED", repr(_how)[:300])
"""
FAULTS = (
    "NameError",
    "AttributeError",
    "SyntaxError",
    "ArgumentError",
    "IndentationError",
    "UnboundLocalError",
    "KeyError",
)
"""Exceptions that say that a script is wrong rather than refused."""


@dataclass(frozen=True)
class Attempt:
    """One attempt: its name, what it tries, and the script.

    ``first`` is a script that another sandbox of the same kind runs before, which knows the other secret
    as ``SECRET`` (``seen`` then looks for that one). That sandbox is still there during the attempt, or has
    been closed when ``first_gone``. ``seconds`` is the run's time limit. ``only`` names the kinds for which
    the attempt means something, with the reason in ``why_only``; ``ends`` closes the sandbox right after it.
    """

    name: str
    tries: str
    script: str
    expect: Expect = "refused"
    seconds: float = 60
    first: str = ""
    first_gone: bool = False
    only: tuple[str, ...] = ()
    why_only: str = ""
    ends: bool = False

    def code(self, context: dict[str, object]) -> str:
        """The whole of the code to run."""
        return f"{_names(context)}\n{HEAD}\n{dedent(self.script)}\n{TAIL}"

    def first_code(self, context: dict[str, object]) -> str:
        """What the other sandbox runs before. It prints ``READY`` at its end."""
        return f"{_names(context)}\n{HEAD}\n{dedent(self.first)}\nprint('READY')"

    def verdict(self, text: str) -> str:
        """One word for what came of it: refused, ended, stopped; ``WORKED``; or ``BROKEN`` for a script that is wrong."""
        if "WORKED" in text:
            return "WORKED"
        if any(f"REFUSED {fault}" in text for fault in FAULTS):
            return "BROKEN"
        if text.startswith("DIED"):
            return "ended" if self.expect in ("killed", "bounded") else "BROKEN"
        if text.startswith(("TIMEOUT", "INTERRUPTED")):
            return "stopped" if self.expect == "bounded" else "BROKEN"
        return "refused" if "REFUSED" in text else "BROKEN"


def _names(context: dict[str, object]) -> str:
    return "\n".join(f"{name} = {value!r}" for name, value in context.items())


def a(name: str, tries: str, script: str, expect: Expect = "refused", **more: object) -> Attempt:
    """Shorter than ``Attempt``."""
    return Attempt(name, tries, script, expect, **more)  # type: ignore[arg-type]


def syscall(name: str, *args: int, tries: str = "") -> Attempt:
    """An attempt that is one system call with plain numbers, which must not even reach the kernel."""
    listed = "".join(f", {arg}" for arg in args)
    script = f"def go():\n    must(NR[{name!r}] >= 0, 'not on this processor')\n    return reached({name!r}{listed})"
    return Attempt(f"syscall_{name}", tries or f"call {name}", script)
