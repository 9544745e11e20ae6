"""What a running chat holds: memory, descriptors, threads, processes, files, tasks, objects; and whether it is flat."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import statistics
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

MB = 1 << 20
RATIO = 1.05
"""What may be, of a measure that has no exact value, in the last tenth beside the second tenth."""

Rule = Literal["equal", "ratio", "grows"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A line of the table. ``rule``: counts must be equal, the rest at most ``RATIO`` as much, or it ``grows`` by nature.

    ``why`` says why it grows. ``scale`` divides the number that is printed.
    """

    name: str
    label: str
    rule: Rule
    scale: int = 1
    why: str = ""


MEASURES = (
    Measure("memory", "memory of the program (MB)", "ratio", MB),
    Measure("objects", "objects that Python looks after", "ratio"),
    Measure("tasks", "tasks of the loops", "equal"),
    Measure("threads", "threads", "equal"),
    Measure("descriptors", "file descriptors", "equal"),
    Measure("processes", "processes below it", "equal"),
    Measure("zombies", "processes that nobody took leave of", "equal"),
    Measure("temporary", "temporary files and folders", "equal"),
    Measure("files", "files in the data folder", "equal"),
    Measure("rest", "data folder but journal and transcript (MB)", "ratio", MB),
    Measure("sandbox_memory", "memory of the sandbox and the warm parent (MB)", "ratio", MB),
    Measure("sandbox_descriptors", "file descriptors of those", "equal"),
    Measure("agent_descriptors", "file descriptors of the agent's program", "equal"),
    Measure("agent_memory", "memory of the agent's program (MB)", "grows", MB, "it holds the conversation"),
    Measure("journal", "the journal (MB)", "grows", MB, "it records every turn"),
    Measure("transcript", "the agent's own transcript (MB)", "grows", MB, "it records every turn"),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """What was there after so many turns, by the measures' names."""

    turn: int
    values: dict[str, float]


class Meter:
    """Takes samples of this process and those below it.

    ``loops`` gives the loops whose tasks are counted, ``agent`` the process id of the agent's program (0: none).
    ``ignored`` are the ids of processes of the test itself.
    """

    def __init__(
        self,
        *,
        data: Path,
        temporary: Path,
        agent: Callable[[], int],
        loops: Callable[[], Iterable[asyncio.AbstractEventLoop]],
        ignored: Iterable[int] = (),
    ) -> None:
        self._data = data
        self._temporary = temporary
        self._agent = agent
        self._loops = loops
        self._ignored = set(ignored)

    def sample(self, turn: int) -> Sample:
        """Measure now; garbage is collected first."""
        gc.collect()
        agent = self._agent()
        ours = [
            child for child in psutil.Process().children(recursive=True) if child.pid not in self._ignored
        ]
        zombies = [child for child in ours if _is_zombie(child)]
        living = [child for child in ours if child not in zombies]
        inside = [child.pid for child in living if child.pid != agent and _is_python(child)]
        sizes = [(path, path.lstat().st_size) for path in _files(self._data)]
        journal = sum(size for path, size in sizes if path.name == "events.jsonl")
        transcript = sum(size for path, size in sizes if path.suffix == ".jsonl" and "projects" in path.parts)
        return Sample(
            turn,
            {
                "memory": memory(os.getpid()),
                "objects": len(gc.get_objects()),
                "tasks": sum(map(_tasks, self._loops())),
                "threads": threading.active_count(),
                "descriptors": descriptors(os.getpid()),
                "processes": len(living),
                "zombies": len(zombies),
                "temporary": sum(1 for _ in self._temporary.rglob("*")),
                "files": len(sizes),
                "rest": sum(size for _, size in sizes) - journal - transcript,
                "sandbox_memory": sum(map(memory, inside)),
                "sandbox_descriptors": sum(map(descriptors, inside)),
                "agent_memory": memory(agent),
                "agent_descriptors": descriptors(agent),
                "journal": journal,
                "transcript": transcript,
            },
        )


def memory(pid: int) -> int:
    """Memory of a process in bytes: its own, and its share of what it has in common with its parent and children.

    Without pages of files (libraries): whether these count as its own depends on what else runs on the machine.
    """
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss_Anon:"):
                return int(line.split()[1]) * 1024
    return 0


def descriptors(pid: int) -> int:
    """Open file descriptors of a process; 0 when it is gone. Not the one that this takes."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir())) - (pid == os.getpid())
    except OSError:
        return 0


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def _tasks(loop: asyncio.AbstractEventLoop) -> int:
    for _ in range(20):
        with contextlib.suppress(RuntimeError):  # the set changed while it was read
            return len(asyncio.all_tasks(loop))
    return -1


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _is_python(process: psutil.Process) -> bool:
    """True for what runs Python below the program: the sandbox and the warm parent."""
    try:
        return "python" in process.name()
    except psutil.Error:
        return False


def verdict(measure: Measure, second: Sequence[float], last: Sequence[float]) -> bool:
    """Whether a measure is flat: its last tenth beside its second."""
    if measure.rule == "grows":
        return True
    before, after = statistics.median(second), statistics.median(last)
    return after == before if measure.rule == "equal" else after <= before * RATIO


def table(samples: Sequence[Sample], measures: Iterable[Measure] = MEASURES) -> tuple[list[str], bool]:
    """The lines of the table over all ``samples``, and whether all is flat. Medians of tenths of the turns."""
    second, last = tenth(samples, 1), tenth(samples, 9)
    head = f"{'':50}{'2nd tenth':>12}{'last tenth':>12}{'ratio':>8}"
    lines, flat = [head], True
    for measure in measures:
        one = [sample.values[measure.name] for sample in second]
        other = [sample.values[measure.name] for sample in last]
        before, after = statistics.median(one), statistics.median(other)
        good = verdict(measure, one, other)
        flat = flat and good
        form = ".1f" if measure.scale > 1 else ".0f"
        ratio = f"{after / before:8.3f}" if before else f"{'–':>8}"
        said = f"grows: {measure.why}" if measure.rule == "grows" else "flat" if good else "NOT FLAT"
        lines.append(
            f"{measure.label:50}{before / measure.scale:12{form}}{after / measure.scale:12{form}}{ratio}  {said}"
        )
    return lines, flat


def tenth(samples: Sequence[Sample], number: int) -> Sequence[Sample]:
    """The samples of one tenth of the turns (0 the first); at least one."""
    turns = samples[-1].turn
    found = [each for each in samples if number * turns < each.turn * 10 <= (number + 1) * turns]
    return found or [min(samples, key=lambda each: abs(each.turn * 10 - (number + 0.5) * turns))]


def as_json(samples: Iterable[Sample]) -> list[dict[str, Any]]:
    """The samples for a file."""
    return [{"turn": sample.turn, **sample.values} for sample in samples]
