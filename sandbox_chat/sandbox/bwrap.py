"""What the local sandbox looks like from inside: the arguments for bubblewrap."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from sandbox_chat.sandbox.base import SandboxUnavailable
from sandbox_chat.sandbox.environment import PythonEnvironment

ROOM = "/opt/sandbox"
"""Where the sandbox has what is not the system's: packages, guest, bytecode."""
USER_ID = 1000
"""User and group id inside. Outside it is an ordinary user's."""
HOME = "/home/user"
WORKSPACE = "/workspace"
"""Where a shared folder of this machine is, if the user asked for one; else an empty folder of the sandbox's own."""
HOME_MB = 256
"""Room in the home folder: caches of libraries, nothing that is wanted later."""
SHARED_MB = 256
"""Room in /dev/shm, for programs with several processes."""
_SYSTEM_DIRS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# Of /etc only what programs need to find libraries, fonts and the time. No users, hosts, keys.
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "fonts", "localtime", "mime.types")
_PREFIX_PARTS = ("bin", "lib", "lib64", "libexec", "share")
_STORES = ("/nix/store", "/gnu/store")
_MOST_THREADS = 8
_DATA = {
    "/etc/passwd": f"user:x:{USER_ID}:{USER_ID}::{HOME}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "/etc/group": f"user:x:{USER_ID}:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or folder of this machine that the sandbox sees read-only at ``target``."""

    source: Path
    target: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A sandbox to be made: what it sees, what it may use, what runs in it."""

    binds: tuple[Bind, ...]
    """Folders that may lie where only this program's user can reach them."""
    environ: dict[str, str]
    command: tuple[str, ...]
    disk_mb: int
    workspace: Path | None = None
    """Folder of this machine that the sandbox may write, at ``WORKSPACE``."""
    warm_parent: bool = False
    """It is to make sandboxes inside itself: it keeps what that needs, and must not run anybody's code."""
    data: dict[str, str] = field(default_factory=lambda: dict(_DATA))

    @property
    def sources(self) -> list[Path]:
        """The folders and files of this machine that are bound, in order."""
        return [*(bind.source for bind in self.binds), *([self.workspace] if self.workspace else [])]

    def arguments(self, sources: list[str], data_fds: dict[str, int], seccomp_fd: int | None) -> list[str]:
        """Return bubblewrap's arguments before the command.

        ``sources`` are the present places of ``self.sources``. A warm parent has no filter of system calls (``None``).
        """
        args = [
            "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts",
            "--unshare-cgroup-try",
            "--uid", str(USER_ID), "--gid", str(USER_ID), "--hostname", "sandbox",
            "--die-with-parent", "--new-session", "--cap-drop", "ALL",
            *_tmpfs("/tmp", self.disk_mb, "1777"),  # noqa: S108 - inside the sandbox
            "--ro-bind", "/usr", "/usr", *_system(),
        ]  # fmt: skip
        for name in _ETC:
            args += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
        for target, fd in data_fds.items():
            args += ["--ro-bind-data", str(fd), target]
        if seccomp_fd is not None:
            args += ["--seccomp", str(seccomp_fd)]
        args += ["--proc", "/proc"]
        if not self.warm_parent:  # with either of these, no sandbox could be made inside
            args += ["--ro-bind", "/proc/sys", "/proc/sys", "--disable-userns", "--assert-userns-disabled"]
            # bubblewrap's own first process has this machine's file of it for its program, not a read-only view.
            args += ["--as-pid-1"]
        args += [
            "--dev", "/dev", *_tmpfs("/dev/shm", SHARED_MB, "1777"), "--remount-ro", "/dev",  # noqa: S108
            *_tmpfs(HOME, min(HOME_MB, self.disk_mb), "0700"),
            "--symlink", "/tmp", "/var/tmp", "--dir", "/run",  # noqa: S108
        ]  # fmt: skip
        for bind, source in zip(self.binds, sources, strict=False):
            args += ["--ro-bind", source, bind.target]
        if self.workspace is not None:
            args += ["--bind", sources[len(self.binds)], WORKSPACE]
        else:
            args += _tmpfs(WORKSPACE, self.disk_mb, "0700")
        return [*args, "--remount-ro", "/", "--chdir", "/tmp"]  # noqa: S108


def _tmpfs(target: str, megabytes: int, mode: str) -> list[str]:
    return ["--perms", mode, "--size", str(megabytes << 20), "--tmpfs", target]


def _system() -> list[str]:
    args: list[str] = []
    for name in _SYSTEM_DIRS:
        path = Path("/", name)
        if path.is_symlink():
            args += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            args += ["--ro-bind", str(path), str(path)]
    return args


def python_binds(python: PythonEnvironment) -> list[Bind]:
    """Return what makes ``python`` run inside: its own folders at their own places, its packages under ``ROOM``."""
    binds: list[Bind] = []
    real = python.prefix.resolve()
    for store in _STORES:
        if str(python.executable).startswith(store + "/"):
            binds.append(Bind(Path(store), store))
    if not binds and not real.is_relative_to("/usr"):
        home = Path(os.path.expanduser("~"))  # noqa: PTH111 - never fails
        if real == Path("/") or home.is_relative_to(real):
            raise SandboxUnavailable(
                f"The Python at {python.executable} has the folder {real} to itself, which holds more than Python. "
                "Name another interpreter with SANDBOX_PYTHON."
            )
        # Both names: a library's built-in search path may use the one with symbolic links.
        for prefix in dict.fromkeys((real, python.prefix)):
            binds += [
                Bind(real / part, str(prefix / part)) for part in _PREFIX_PARTS if (real / part).is_dir()
            ]
    for number, path in enumerate(python.packages):
        binds.append(Bind(path, f"{ROOM}/packages/{number}"))
    return binds


def environ(python: PythonEnvironment) -> dict[str, str]:
    """Return the whole environment inside."""
    return common_environ() | {
        "PATH": f"{python.executable.parent}:/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": ":".join(f"{ROOM}/packages/{number}" for number in range(len(python.packages))),
    }


def common_environ() -> dict[str, str]:
    """Return what the environment has in every guest's: nothing of this program's but the time zone."""
    threads = str(min(os.cpu_count() or 1, _MOST_THREADS))
    values = {
        "HOME": HOME,
        "USER": "user",
        "LOGNAME": "user",
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "TMPDIR": "/tmp",  # noqa: S108 - inside
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
    }
    if zone := os.environ.get("TZ", "")[:64]:
        values["TZ"] = zone
    return values
