"""What the control group of a container tells of its limits and its processor time."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

# Version 2 of control groups, then version 1; the word before the number.
_COUNTERS = {
    "oom": (
        ("/sys/fs/cgroup/memory.events", b"oom_kill"),
        ("/sys/fs/cgroup/memory/memory.oom_control", b"oom_kill"),
    ),
    "pids": (("/sys/fs/cgroup/pids.events", b"max"), ("/sys/fs/cgroup/pids/pids.events", b"max")),
}


# Processor time of the whole container: nanoseconds, or microseconds behind a word.
_CPU_TIMES = ("/sys/fs/cgroup/cpuacct/cpuacct.usage", "/sys/fs/cgroup/cpu.stat")


class Counters:
    """How often the container's limits struck, read from its control group. Empty where that cannot be seen."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[int, bytes]] = {}
        for name, places in _COUNTERS.items():
            for path, word in places:
                with contextlib.suppress(OSError):
                    self._files[name] = (os.open(path, os.O_RDONLY | os.O_CLOEXEC), word)
                    break

    def read(self) -> dict[str, int]:
        """Return the present numbers."""
        found = {}
        for name, (fd, word) in self._files.items():
            with contextlib.suppress(OSError, ValueError, IndexError):
                for line in os.pread(fd, 4096, 0).splitlines():
                    parts = line.split()
                    if parts and parts[0] == word:
                        found[name] = int(parts[1])
        return found


def cpu_time() -> float:
    """Return the seconds of processor time that the container has used; 0 where that cannot be seen."""
    for path in _CPU_TIMES:
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = Path(path).read_bytes().split()
            if len(words) == 1:
                return int(words[0]) / 1e9
            return int(words[words.index(b"usage_usec") + 1]) / 1e6
    return 0.0
