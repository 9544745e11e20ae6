"""The watchdog of a sandbox on this machine: holds all its processes together to their limits, and says which one struck.

The kernel's own limits are for each process (``limits`` in ``local``) or need control groups (``cgroups``).
A thread looks at the sandbox's processes from outside: often while code runs, seldom otherwise. What passes
a limit ends the sandbox, and the reason is there before the end is noticed. Memory may be passed by what can be
taken between two looks, about 30 ms; where there is a control group, by nothing.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sandbox_chat.sandbox import cgroups, tree
from sandbox_chat.settings import Settings

BUSY_PAUSE = 0.03
"""Seconds between two looks while code runs."""
IDLE_PAUSE = 0.2
"""Seconds between two looks between runs."""
ASLEEP_PAUSE = 1.0
"""Seconds between two looks when nothing has run for ``ASLEEP_AFTER`` seconds."""
ASLEEP_AFTER = 30.0
_SHARE = 20  # a look may take one part in so many of the time
_LONGEST = 0.5
_BURST = 0.01  # seconds: a run of this length may have started very many processes
_BURST_SHARE = 10  # and is looked at once more at its end where that costs it at most a tenth
_CLOSE_ENOUGH = 0.7  # part of the memory limit from which it is counted exactly
_STIR = (
    0.05  # processor seconds used between two looks that show that something runs although no code was sent
)
_SPARE = 16


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one sandbox, all its processes together. ``memory`` in bytes; 0 is no limit."""

    memory: int
    processes: int
    cpu_seconds: int = 0
    cpus: float = 0.0
    folders: tuple[str, ...] = ()
    """Folders inside whose files lie in memory and count as its memory."""
    counted: bool = False
    """The kernel holds the sandbox to ``processes`` without a control group."""


def bounds_of(settings: Settings, folders: tuple[str, ...] = ()) -> Bounds:
    """Return what the settings allow all processes of a sandbox together; an isolated one has ``folders``."""
    return Bounds(
        memory=settings.sandbox_memory_mb << 20,
        processes=settings.sandbox_processes,
        cpu_seconds=settings.sandbox_cpu_seconds,
        cpus=settings.sandbox_cpus,
        folders=folders,
        counted=bool(folders),
    )


class Watch:
    """Watches one sandbox. ``begin`` and ``end`` of runs and ``explain`` are called by the thread that drives it."""

    def __init__(self, root: int, bounds: Bounds, kill: Callable[[], None]) -> None:
        """``root`` is the process whose descendants are the sandbox; ``kill`` ends them all. Starts nothing."""
        self._bounds = bounds
        self._kill = kill
        self._tree = tree.Tree(root)
        self._group: cgroups.Group | None = None
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._stopped = False
        self._running = False
        self._quiet_since = time.monotonic()
        self._reason = ""
        self._most_threads = self._counting = 0
        self._began = self._cost = 0.0
        self._refused_before = 0
        self._cpu = _Clock()
        self._swap = tree.swap_in_use()
        self._count_again = 0.0
        self._inside = 0

    def prepare(self) -> None:
        """Make the sandbox's group, where that can be had, while the sandbox starts; what starts later starts in it."""
        place = cgroups.find()
        if place is None:
            return
        bounds = self._bounds
        memory = bounds.memory + bounds.memory // 16  # what is above the limit is room for the kernel's own
        processes = 0 if bounds.counted else bounds.processes
        group = cgroups.create(place, memory=memory, processes=processes, cpus=bounds.cpus)
        if group is not None and not group.add(self._tree.usage().pids) and not group.pids():
            group.close()  # it takes nobody in: then the looking alone is what holds
            group = None
        with self._lock:
            stopped, self._group = self._stopped, group
        if stopped and group is not None:
            group.close()

    def start(self) -> None:
        """See that all its processes are in the group, and look from now on. When it is up and has run no code yet."""
        pids = self._tree.usage().pids
        if self._group is not None:
            self._group.add(set(pids) - self._group.pids())
        self._inside = tree.inside(pids) if self._bounds.folders else 0
        threading.Thread(target=self._watch, name="sandbox-watch", daemon=True).start()

    def stop(self) -> None:
        """Look no more, and remove the group; after the sandbox was ended. Any thread, any number of times."""
        with self._lock:
            self._stopped = True
            group = self._group
        self._wake.set()
        if group is not None:
            group.close()

    def begin(self) -> None:
        """A run begins: its processor time and its processes are counted from here."""
        with self._lock:
            asleep = not self._running and time.monotonic() - self._quiet_since > ASLEEP_AFTER
            self._running = True
            self._began = time.monotonic()
            self._cpu.restart()
            self._count_afresh()
            if self._group is not None:
                self._refused_before = self._group.refused_processes()
        if asleep:
            self._wake.set()

    def count_afresh(self) -> None:
        """Forget how many processes were seen: they were those of an earlier run, which are gone now."""
        with self._lock:
            self._count_afresh()

    def _count_afresh(self) -> None:
        self._most_threads = 0
        self._counting += 1  # a look that began before this does not count

    def end(self) -> bool:
        """A run has ended. Returns true when it came up to the limit of processes."""
        with self._lock:
            self._running = False
            self._quiet_since = now = time.monotonic()
            near = self._most_threads >= self._bounds.processes // 2
            long = now - self._began > max(_BURST, self._cost * _BURST_SHARE)
        if near or long:  # there may have been more since the last look: a burst of forks needs no 30 ms
            with contextlib.suppress(OSError, ValueError, IndexError):
                self._usage()
        with self._lock:
            refused = 0 if self._group is None else self._group.refused_processes() - self._refused_before
            return refused > 0 or self._most_threads >= self._bounds.processes - 1

    def explain(self, how: str) -> str:
        """Return why the sandbox ended: the limit that struck, or ``how``, which is what its process shows of it.

        A sandbox that a limit struck is as good as ended, also while its processes are still seen (``how`` is empty).
        """
        with self._lock:
            group = self._group
        if not self._reason and group is not None and group.memory_kills():
            self._reason = memory_sentence(self._bounds.memory)
        return self._reason or how

    # -- the thread ------------------------------------------------------------------------------------

    def _watch(self) -> None:
        spent = 0.0
        while True:
            self._wake.wait(self._pause(spent))
            self._wake.clear()
            with self._lock:
                if self._stopped:
                    return
            started = time.monotonic()
            with contextlib.suppress(OSError, ValueError, IndexError):  # a process that ends while it is read
                reason = self.look()
                if reason:
                    self._reason = reason
                    self._kill()
                    return
            spent = time.monotonic() - started

    def _pause(self, spent: float) -> float:
        with self._lock:
            quiet = time.monotonic() - self._quiet_since
            pause = BUSY_PAUSE if self._running else IDLE_PAUSE if quiet < ASLEEP_AFTER else ASLEEP_PAUSE
        return min(max(pause, spent * _SHARE), max(pause, _LONGEST))

    def look(self) -> str:
        """Look once; return a sentence when a limit was passed."""
        group, used = self._usage()
        if not used.pids:
            return ""
        with self._lock:
            spent = self._cpu.spent(used.cpu)
            if self._cpu.last > _STIR and not self._running:
                self._quiet_since = time.monotonic()
        bounds = self._bounds
        if bounds.cpu_seconds and spent > bounds.cpu_seconds:
            return cpu_sentence(bounds.cpu_seconds)
        if used.threads > bounds.processes + bounds.processes // 4 + _SPARE:
            return (
                f"The sandbox was ended because it had more than {bounds.processes:,} processes and threads "
                "(SANDBOX_CHAT_SANDBOX_PROCESSES)."
            )
        if group is not None and group.memory_kills():
            return memory_sentence(bounds.memory)
        return self._look_at_memory(used)

    def _usage(self) -> tuple[cgroups.Group | None, tree.Usage]:
        with self._lock:
            group, counting = self._group, self._counting
        started = time.monotonic()
        with self._looking:
            used = self._tree.usage(group.pids() if group is not None else None)
        with self._lock:
            if counting == self._counting:
                self._most_threads = max(self._most_threads, used.threads)
            self._cost = time.monotonic() - started
        return group, used

    def _look_at_memory(self, used: tree.Usage) -> str:
        limit = self._bounds.memory
        files = tree.files_in_memory(self._inside, self._bounds.folders) if self._inside else 0
        if not limit or (not self._swap and used.resident + files < limit * _CLOSE_ENOUGH):
            return ""
        if _together(tree.private_memory(used.pids), files) <= limit:
            return ""
        started = time.monotonic()
        if len(used.pids) > 1:
            # Pages that parent and children share were counted once for each.
            if started < self._count_again:
                return ""
            exact = tree.exact_memory(used.pids)
            now = time.monotonic()
            self._count_again = now + (now - started) * 2
            if _together(exact, files) <= limit:
                return ""
        return memory_sentence(limit, files=files > limit // 8)


class _Clock:
    """Processor time since the last restart, from sums that fall when a process ends for which nobody waited."""

    def __init__(self) -> None:
        self.last = 0.0
        """Seconds used between the last two looks."""
        self._sum: float | None = None
        self._spent = 0.0
        self._restarted = True

    def restart(self) -> None:
        """Count from the next look on."""
        self._restarted = True

    def spent(self, total: float) -> float:
        """Take the sum that was seen now; return the seconds since the restart."""
        self.last = 0.0 if self._sum is None else max(0.0, total - self._sum)
        self._sum = total
        self._spent = 0.0 if self._restarted else self._spent + self.last
        self._restarted = False
        return self._spent


def memory_sentence(limit: int, *, files: bool = False) -> str:
    """Return what is said when a sandbox has passed its memory of ``limit`` bytes."""
    what = "its processes and its files in /tmp" if files else "its processes"
    return (
        f"The sandbox was ended because {what} used more than {limit >> 20:,} MB of memory together "
        "(SANDBOX_CHAT_SANDBOX_MEMORY_MB)."
    )


def cpu_sentence(seconds: int) -> str:
    """Return what is said when a sandbox has used up its processor time."""
    return (
        f"The sandbox was ended because its processes used more than {seconds:,} seconds of "
        "processor time since a run began (SANDBOX_CHAT_SANDBOX_CPU_SECONDS)."
    )


def _together(memory: tuple[int, int], files: int) -> int:
    own, shared = memory
    # Shared pages are mostly those of files in memory, which must not be counted twice.
    return own + max(shared, files)
