"""Control groups, where this program may make them: the kernel then holds a sandbox to its memory, processes, processors.

Version 1: below this program's own groups, which root may do. Version 2: below the nearest group above
this program that is this user's and hands memory and process limits down (a desktop's session, a delegated
container). Where neither is so, ``find`` returns ``None`` and the watchdog (``watch``) is what holds.

A group's name tells whose it is, so that what a crash left is known and removed by the next program. A shell
of about one megabyte waits beside each group for the end of this program, and removes the group then.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PREFIX = "sandbox-chat-"
ROOT = Path("/")
_PERIOD = 100_000  # microseconds over which processor time is shared out
_SPARE_PROCESSES = 16  # the limit of the process count itself is the guest's; this one is behind it
_REMOVE_WITHIN = 1.0
_PAUSE = 0.02
_GUARD_TRIES = 50
_numbers = itertools.count(1)

GUARD = """
read -r _
tries=0
while [ "$tries" -lt "$TRIES" ]; do
  left=
  for group in "$@"; do
    [ -d "$group" ] || continue
    while read -r pid; do [ "$pid" -gt 1 ] && kill -9 "$pid"; done < "$group/cgroup.procs"
    rmdir "$group" || left=1
  done
  [ -z "$left" ] && exit 0
  sleep 0.1
  tries=$((tries + 1))
done
"""
"""Waits for the end of its input, which is the end of the program; then ends what is in the groups and removes them."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where groups can be made: the folder for each controller (``memory``, and perhaps ``pids``, ``cpu``)."""

    version: int
    parents: dict[str, Path]

    @property
    def controllers(self) -> tuple[str, ...]:
        """Names of what can be limited."""
        return tuple(sorted(self.parents))


def find(root: Path = ROOT) -> Place | None:
    """Return where this program may make groups that limit memory; ``None`` where it may not. ``root`` is for tests."""
    try:
        own = _own_groups((root / "proc/self/cgroup").read_text())
        mounts = _mounts((root / "proc/self/mountinfo").read_text())
    except (OSError, ValueError):
        return None
    parents: dict[str, Path] = {}
    for name in ("memory", "pids", "cpu"):
        if name in own and name in mounts:
            folder = _inside(root, mounts[name], own[name])
            if folder is not None and _writable(folder):
                parents[name] = folder
    if "memory" in parents:
        return Place(1, parents)
    if "" not in own or "" not in mounts:
        return None
    top = _inside(root, mounts[""], mounts[""][0])
    folder = _inside(root, mounts[""], own[""])
    while folder is not None and top is not None and folder.is_relative_to(top):
        handed = _handed_down(folder)
        if "memory" in handed and _writable(folder):
            return Place(2, {name: folder for name in ("memory", "pids", "cpu") if name in handed})
        folder = folder.parent
    return None


class Group:
    """The groups of one sandbox, one folder for each hierarchy."""

    def __init__(self, place: Place, folders: dict[str, Path]) -> None:
        self.place = place
        self._folders = folders
        self._lock = threading.Lock()
        self._closed = False
        self._guard = _start_guard(self._unique())

    def add(self, pids: Iterable[int]) -> bool:
        """Put processes in. False when one that still lives could not be."""
        done = True
        for pid in pids:
            for folder in self._unique():
                try:
                    (folder / "cgroup.procs").write_text(str(pid))
                except ProcessLookupError:
                    break
                except OSError:
                    done = False
        return done

    def pids(self) -> set[int]:
        """Ids of the processes that are in it."""
        try:
            text = (self._folders["memory"] / "cgroup.procs").read_text()
        except OSError:
            return set()
        return {pid for pid in map(int, text.split()) if pid > 1}

    def memory_kills(self) -> int:
        """How many processes the kernel has killed because the group was out of memory."""
        name = "memory.oom_control" if self.place.version == 1 else "memory.events"
        return _count(self._folders["memory"] / name, "oom_kill")

    def refused_processes(self) -> int:
        """How often a new process or thread was refused."""
        folder = self._folders.get("pids")
        return 0 if folder is None else _count(folder / "pids.events", "max")

    def close(self) -> None:
        """End what is in it, remove it, and end its guard. Any thread, any number of times; at most about a second."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        remove(self._unique(), within=_REMOVE_WITHIN)
        if self._guard is not None:  # it tries on where this did not come to an end
            with contextlib.suppress(OSError):
                if self._guard.stdin is not None:
                    self._guard.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._guard.wait(timeout=_REMOVE_WITHIN)

    def _unique(self) -> list[Path]:
        return list(dict.fromkeys(self._folders.values()))


def create(place: Place, *, memory: int, processes: int, cpus: float) -> Group | None:
    """Make the groups of one sandbox: ``memory`` in bytes; ``processes`` and ``cpus`` 0 for no limit by a group.

    ``None`` when it is refused. With version 1, putting a process into a group takes milliseconds for each
    controller, so that there is none for what is not limited.
    """
    clear(place)
    name = f"{PREFIX}{_owner(os.getpid())}-{next(_numbers)}"
    wanted = {"memory", *(["pids"] if processes else []), *(["cpu"] if cpus else [])}
    folders: dict[str, Path] = {}
    try:
        for controller in sorted(wanted & place.parents.keys()):
            folder = place.parents[controller] / name
            folder.mkdir(exist_ok=True)
            folders[controller] = folder
        _limit(place, folders, memory, processes, cpus)
    except OSError:
        remove(folders.values(), within=0)
        return None
    return Group(place, folders)


def clear(place: Place) -> None:
    """Remove the groups of programs of this machine that are gone."""
    for parent in dict.fromkeys(place.parents.values()):
        try:
            names = [entry.name for entry in os.scandir(parent) if entry.name.startswith(PREFIX)]
        except OSError:
            continue
        for name in names:
            space, pid, started, _ = (*name.removeprefix(PREFIX).split("-"), "", "", "", "")[:4]
            if space != str(_pid_space()) or not pid.isdigit():
                continue  # of another container: its ids mean nothing here
            if _owner(int(pid)) != f"{space}-{pid}-{started}":
                remove([parent / name], within=0.2)


def remove(folders: Iterable[Path], *, within: float) -> bool:
    """Kill what is in ``folders`` and remove them; False when that did not succeed within that many seconds."""
    deadline = time.monotonic() + within
    left = list(dict.fromkeys(folders))
    while True:
        for folder in list(left):
            with contextlib.suppress(OSError):
                for pid in (folder / "cgroup.procs").read_text().split():
                    if int(pid) > 1 and int(pid) != os.getpid():
                        os.kill(int(pid), signal.SIGKILL)
            with contextlib.suppress(OSError):
                folder.rmdir()
            if not folder.exists():
                left.remove(folder)
        if not left or time.monotonic() >= deadline:
            return not left
        time.sleep(_PAUSE)


def _limit(place: Place, folders: dict[str, Path], memory: int, processes: int, cpus: float) -> None:
    quota = max(1000, round(cpus * _PERIOD)) if cpus else 0
    if place.version == 1:
        (folders["memory"] / "memory.limit_in_bytes").write_text(str(memory))
        with contextlib.suppress(OSError):  # only where swap is accounted
            (folders["memory"] / "memory.memsw.limit_in_bytes").write_text(str(memory))
        if quota and "cpu" in folders:
            (folders["cpu"] / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (folders["cpu"] / "cpu.cfs_quota_us").write_text(str(quota))
    else:
        (folders["memory"] / "memory.max").write_text(str(memory))
        for name, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
            with contextlib.suppress(OSError):  # older kernels, or no swap
                (folders["memory"] / name).write_text(value)
        if quota and "cpu" in folders:
            (folders["cpu"] / "cpu.max").write_text(f"{quota} {_PERIOD}")
    if "pids" in folders:
        (folders["pids"] / "pids.max").write_text(str(processes + _SPARE_PROCESSES))


def _start_guard(folders: list[Path]) -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "sandbox-chat-guard", *map(str, folders)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "TRIES": str(_GUARD_TRIES)},
            cwd="/",
            start_new_session=True,
        )
    except OSError:
        return None


def _owner(pid: int) -> str:
    """What a group's name says of the program that made it: process namespace, id, start time; empty if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else f"{_pid_space()}-{pid}-{int(fields[19])}"


def _pid_space() -> int:
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


def _own_groups(text: str) -> dict[str, str]:
    """Map each controller to this program's group; the empty name stands for version 2."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            found[name] = path
    return found


def _mounts(text: str) -> dict[str, tuple[str, str]]:
    """Map each controller to the group that is mounted and where; the empty name stands for version 2."""
    found: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, (kind, _, options) = before.split(), (*after.split(), "", "", "")[:3]
        if kind == "cgroup2":
            found.setdefault("", (fields[3], fields[4]))
        elif kind == "cgroup":
            for name in options.split(","):
                found.setdefault(name, (fields[3], fields[4]))
    return found


def _inside(root: Path, mount: tuple[str, str], group: str) -> Path | None:
    """Return the folder of ``group`` below a mount; ``None`` when it lies outside what is mounted."""
    top, point = mount
    base = top.rstrip("/")
    if (group != top and not group.startswith(base + "/")) or ".." in group.split("/"):
        return None
    return root / point.lstrip("/") / group[len(base) :].lstrip("/")


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK) and os.access(folder / "cgroup.procs", os.W_OK)


def _handed_down(folder: Path) -> set[str]:
    try:
        return set((folder / "cgroup.subtree_control").read_text().split())
    except OSError:
        return set()


def _count(file: Path, name: str) -> int:
    try:
        for line in file.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    except (OSError, ValueError):
        return 0
    return 0
