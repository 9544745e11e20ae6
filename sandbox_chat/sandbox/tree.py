"""The processes of one sandbox seen from outside: which there are, and what they use together. Linux only."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_INODE = 1024  # bytes of the kernel's memory that a file takes beside what is in it


@dataclass(slots=True)
class Usage:
    """What the processes of a sandbox use at one moment. Memory in bytes, processor time in seconds.

    ``resident`` counts pages as often as they are mapped, the system's libraries among them: no sandbox uses more
    than that and its files. ``threads`` counts each process once for each of its threads.
    """

    pids: list[int] = field(default_factory=list)
    threads: int = 0
    resident: int = 0
    cpu: float = 0.0


class Tree:
    """Finds the descendants of one process again and again, reading as little as may be.

    A process that is not a descendant never becomes one, so it is looked at once only. The processes of a
    sandbox cannot leave the tree: their orphans go to its first process.
    """

    def __init__(self, root: int) -> None:
        """``root`` is a process of this program's. Below 0 and 1 is the whole machine: then there is nothing to see."""
        self.root = root
        self._strangers: set[int] = set()

    def usage(self, more: set[int] | None = None) -> Usage:
        """Look at all of them now; ``more`` are processes that are known to belong to them."""
        parents: dict[int, int] = {}
        stats: dict[int, list[bytes]] = {}
        names = {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208 - names only
        self._strangers &= names
        for pid in names - self._strangers:
            fields = _stat(pid)
            if fields is not None:
                stats[pid] = fields
                parents[pid] = int(fields[1])
        members = ({self.root} if self.root > 1 else set()) | (more or set())
        undecided: set[int] = set()
        for pid in stats:
            path = []
            above = pid
            while above in parents and above not in members:
                path.append(above)
                above = parents[above]
                if above in path:
                    break
            if above in members:
                members.update(path)
            elif above in self._strangers or above == 0:
                self._strangers.update(path)
            else:  # its parent came or went while this was read
                undecided.update(path)
        self._strangers -= undecided
        found = Usage()
        for pid in sorted(members & stats.keys()):
            fields = stats[pid]
            # Of a child that has ended, the time counts with its parent once that has waited for it.
            found.cpu += sum(int(value) for value in fields[11:15]) / _TICKS
            found.threads += int(fields[17])  # one that has ended counts until somebody has waited for it
            if fields[0] not in (b"Z", b"X"):
                found.pids.append(pid)
                found.resident += int(fields[21]) * _PAGE
        return found


def private_memory(pids: list[int]) -> tuple[int, int]:
    """Return (own, shared) bytes: anonymous and swapped pages, and shared ones that lie in no file on a disk.

    Each is counted in every process that maps it, so the sums are at least what there is.
    """
    own = shared = 0
    for pid in pids:
        sizes = _sizes(Path(f"/proc/{pid}/status"))
        own += sizes.get("RssAnon", 0) + sizes.get("VmSwap", 0)
        shared += sizes.get("RssShmem", 0)
    return own, shared


def exact_memory(pids: list[int]) -> tuple[int, int]:
    """As ``private_memory``, with a page that several share counted once; slower."""
    own = shared = 0
    for pid in pids:
        sizes = _sizes(Path(f"/proc/{pid}/smaps_rollup"))
        if "Pss_Anon" in sizes:
            own += sizes["Pss_Anon"] + sizes.get("SwapPss", 0)
            shared += sizes.get("Pss_Shmem", 0)
        else:  # it is about to be gone and has nothing any more, or the kernel does not tell
            private = private_memory([pid])
            own += private[0]
            shared += private[1]
    return own, shared


def inside(pids: list[int]) -> int:
    """Return one of ``pids`` that has another process namespace than this program; 0 when none is seen to have."""
    try:
        ours = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - text
    except OSError:
        return 0
    for pid in reversed(pids):
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") != ours:  # noqa: PTH115
                return pid
        except OSError:
            continue
    return 0


def files_in_memory(pid: int, folders: tuple[str, ...]) -> int:
    """Return the bytes that files in ``folders`` of process ``pid`` take, each a file system in memory of its own."""
    total = 0
    for folder in folders:
        try:
            found = os.statvfs(f"/proc/{pid}/root{folder}")
        except OSError:
            continue
        total += (found.f_blocks - found.f_bfree) * found.f_frsize + (found.f_files - found.f_ffree) * _INODE
    return total


def swap_in_use() -> bool:
    """True when this machine has swap space."""
    try:
        return len(Path("/proc/swaps").read_text().splitlines()) > 1
    except OSError:
        return False


def _stat(pid: int) -> list[bytes] | None:
    """Fields of ``/proc/<pid>/stat`` after the name: state, parent, …"""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - many times a second
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None


def _sizes(file: Path) -> dict[str, int]:
    """Sizes in bytes from lines such as ``RssAnon:  12 kB``."""
    found: dict[str, int] = {}
    try:
        text = file.read_text()
    except OSError:
        return found
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB":
            found[name] = int(words[0]) << 10
    return found
