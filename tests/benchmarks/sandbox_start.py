"""How a local sandbox starts: cold, from the warm parent, and beside a bare ipykernel, in the same run.

    python tests/benchmarks/sandbox_start.py [ROUNDS]

The three alternate, so that a machine that slows down slows all. Prints medians (in brackets the 95th percentile),
ratios to the bare kernel and to the cold sandbox, and memory: each process's share (PSS), summed; of a warm
sandbox what it adds to its parent's.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import psutil  # noqa: E402 - needs the path
from bare_kernel import BareKernel  # noqa: E402

from sandbox_chat.sandbox import prepare  # noqa: E402
from sandbox_chat.sandbox.environment import find  # noqa: E402
from sandbox_chat.sandbox.local import LocalSandbox  # noqa: E402
from sandbox_chat.sandbox.warm import Warm  # noqa: E402
from sandbox_chat.settings import Settings  # noqa: E402

FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);"
PATIENCE = 300.0
ROWS = ("start to first 1+1", "first figure after that", "restart after a crash", "closing")


def share(pids: list[int]) -> float:
    """Memory of these processes in megabytes, what they share with others in part."""
    kilobytes = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                kilobytes += int(line.split()[1])
    return kilobytes / 1024


def tree(pid: int) -> list[int]:
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def ours(
    settings: Settings, warm: Warm | None, times: dict[str, list[float]], memory: dict[str, list[float]]
) -> None:
    """One round of a sandbox, cold or warm."""
    parent = warm._parent.process.pid if warm is not None and warm._parent is not None else 0
    before = (
        share(tree(parent)) if parent else 0.0
    )  # a child shares most with its parent: what it adds counts
    sandbox = LocalSandbox(settings, warm=warm, only_warm=warm is not None)
    began = time.perf_counter()
    sandbox.start()
    assert sandbox.run_code("1+1", timeout=PATIENCE).result_text == "2"
    times[ROWS[0]].append(time.perf_counter() - began)
    assert sandbox._started is not None
    top = parent or sandbox._started.root_pid
    memory["idle"].append(share(tree(top)) - before)
    began = time.perf_counter()
    done = sandbox.run_code(FIGURE, timeout=PATIENCE)
    times[ROWS[1]].append(time.perf_counter() - began)
    assert any("image/png" in output.data for output in done.outputs), done
    memory["after a figure"].append(share(tree(top)) - before)
    assert sandbox.run_code("import os; os._exit(1)", timeout=PATIENCE).stopped == "died"
    began = time.perf_counter()
    sandbox.close()
    sandbox.release()
    again = LocalSandbox(settings, warm=warm, only_warm=warm is not None)
    again.start()
    assert again.run_code("1+1", timeout=PATIENCE).result_text == "2"
    times[ROWS[2]].append(time.perf_counter() - began)
    began = time.perf_counter()
    again.close()
    times[ROWS[3]].append(time.perf_counter() - began)
    again.release()


def bare(times: dict[str, list[float]], memory: dict[str, list[float]]) -> None:
    """One round of a bare kernel."""
    kernel = BareKernel()
    try:
        assert kernel.run("1+1").result == "2"
        times[ROWS[0]].append(time.perf_counter() - kernel.started)
        memory["idle"].append(share(tree(kernel._process.pid)))
        ran = kernel.run(FIGURE)
        times[ROWS[1]].append(ran.seconds)
        assert ran.pictures
        memory["after a figure"].append(share(tree(kernel._process.pid)))
    finally:
        kernel.close()


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="sandbox-chat-bench-") as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101 - what is cached there must be readable for the sandbox's user
        settings = Settings(data_dir=Path(folder), start_timeout=PATIENCE)
        preparer = prepare.Preparer(settings)
        began = time.perf_counter()
        preparer.begin(find(None))
        preparer.wait(PATIENCE)
        print(f"caches made, once for each Python: {time.perf_counter() - began:.1f} s")
        warm = Warm(settings)
        began = time.perf_counter()
        warm.start(delay=0.0)
        assert warm.wait(PATIENCE), warm.state
        print(f"warm parent ready after {time.perf_counter() - began:.2f} s ({warm.state})")
        assert warm._parent is not None
        print(f"memory of the parent: {share(tree(warm._parent.process.pid)):.0f} MB")
        times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        memory: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        try:
            for number in range(rounds + 1):
                if number == 1:  # the first round is for the disk
                    times.clear()
                    memory.clear()
                bare(times["bare"], memory["bare"])
                ours(settings, None, times["cold"], memory["cold"])
                ours(settings, warm, times["warm"], memory["warm"])
        finally:
            warm.close()
    print(
        f"\n{'ms, median of ' + str(rounds):28}{'ipykernel':>16}{'cold':>16}{'warm':>16}{'warm/kernel':>13}{'warm/cold':>11}"
    )
    for row in ROWS:
        cells = ""
        middle = {}
        for kind in ("bare", "cold", "warm"):
            values = sorted(times[kind][row])
            if not values:
                cells += f"{'–':>16}"
                continue
            middle[kind] = statistics.median(values)
            cells += f"{middle[kind] * 1000:9.1f} ({values[int(0.95 * (len(values) - 1))] * 1000:.0f})".rjust(
                16
            )
        kernel = f"{middle['warm'] / middle['bare']:.2f}×" if "bare" in middle else "–"
        print(f"{row:28}{cells}{kernel:>13}{middle['warm'] / middle['cold']:10.2f}×")
    for row in ("idle", "after a figure"):
        cells = "".join(f"{statistics.median(memory[kind][row]):15.0f} " for kind in ("bare", "cold", "warm"))
        print(f"{'MB, ' + row:28}{cells}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
