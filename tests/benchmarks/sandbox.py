"""The local sandbox through its worker, beside a bare ipykernel over tcp, in the same run.

    python tests/benchmarks/sandbox.py [--rounds N] [--only WORD] [--check]

The two sides alternate, so that a machine that slows down slows both. The table gives medians, the ratio, and the
target; targets in milliseconds hold on an idle machine. ``--check``: exit code 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from bare_kernel import BareKernel  # noqa: E402 - needs the path
from conformance.backends import NotHere, wait_warm  # noqa: E402 - needs the path

from sandbox_chat.sandbox import make_worker  # noqa: E402
from sandbox_chat.sandbox.base import Execution  # noqa: E402
from sandbox_chat.sandbox.worker import SandboxWorker  # noqa: E402
from sandbox_chat.settings import Settings  # noqa: E402

LINES = "for n in range(100_000): print('x' * 99)"
PICTURE = (
    "import os\nfrom IPython.display import Image, display\n"
    "data = b'\\x89PNG\\r\\n\\x1a\\n' + bytes(13) + os.urandom(1_000_000)"
)
FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);"
TIMEOUT = 120.0


@dataclass
class Row:
    """One line of the table. Times in seconds; a limit is a ratio to the bare kernel, or a time of ours."""

    name: str
    ratio_limit: float = 0.0
    time_limit: float = 0.0
    bare: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)

    def lines(self) -> tuple[str, bool]:
        """The line, and whether the targets are met."""
        ours = statistics.median(self.ours)
        text = f"{self.name:44}"
        good = True
        if self.bare:
            bare = statistics.median(self.bare)
            text += f"{bare * 1000:10.1f}{ours * 1000:10.1f}{ours / bare:8.2f}×"
        else:
            text += f"{'':10}{ours * 1000:10.1f}{'':9}"
        if self.ratio_limit:
            met = ours / statistics.median(self.bare) <= self.ratio_limit
            good = good and met
            text += f"  ≤ {self.ratio_limit}× {'ok' if met else 'MISSED'}"
        if self.time_limit:
            met = ours < self.time_limit
            good = good and met
            text += f"  < {self.time_limit * 1000:.0f} ms {'ok' if met else 'MISSED'}"
        return text + f"   (n={len(self.ours)})", good


@asynccontextmanager
async def a_sandbox(folder: Path, *, warm: bool) -> AsyncIterator[SandboxWorker]:
    """A worker of the local sandbox that is not started; with ``warm`` its parent process is ready."""
    worker = make_worker(Settings(data_dir=folder, sandbox="local", sandbox_warm=warm))
    assert worker is not None
    try:
        if warm:
            await asyncio.to_thread(wait_warm, worker)
        yield worker
    finally:
        await asyncio.to_thread(worker.close)


async def run(worker: SandboxWorker, code: str) -> tuple[Execution, float]:
    """Run code that must not fail; return what came and the seconds until it had."""
    started = time.perf_counter()
    done = await worker.run_code(code, timeout=TIMEOUT)
    seconds = time.perf_counter() - started
    assert done.ok, done
    return done, seconds


async def warm_calls(folder: Path, rounds: int) -> list[Row]:
    """What a shell that runs takes for a small result, much output, a picture."""
    small = Row("warm 1+1", ratio_limit=0.3)
    much = Row("10 MB of stdout in 100-byte lines", ratio_limit=0.7)
    gap = Row("  largest gap of the terminal's loop meanwhile", time_limit=0.05)
    picture = Row("1 MB PNG", ratio_limit=0.3)
    kernel = await asyncio.to_thread(BareKernel)
    try:
        async with a_sandbox(folder, warm=False) as worker:
            await run(worker, PICTURE)
            kernel.run(PICTURE)
            for _ in range(rounds * 20):
                ran = kernel.run("1+1")
                assert ran.result == "2"
                small.bare.append(ran.seconds)
                done, seconds = await run(worker, "1+1")
                assert done.result_text == "2"
                small.ours.append(seconds)
            for _ in range(max(3, rounds // 2)):
                ran = kernel.run(LINES)
                assert ran.stdout == 10_000_000, ran.stdout
                much.bare.append(ran.seconds)
                shown = [0]

                def sink(_stream: str, text: str, shown: list[int] = shown) -> None:
                    shown[0] += len(text)

                started = time.perf_counter()
                largest, done = await with_ticker(worker.run_code(LINES, timeout=TIMEOUT, on_output=sink))
                much.ours.append(time.perf_counter() - started)
                assert done.ok, done
                assert "cut out of 10,000,000" in done.stdout
                assert shown[0]
                gap.ours.append(largest)
            for _ in range(rounds):
                ran = kernel.run("display(Image(data=data, format='png'))")
                assert len(base64.b64decode(ran.pictures[0])) > 1_000_000
                picture.bare.append(ran.seconds)
                done, seconds = await run(worker, "display(Image(data=data, format='png'))")
                assert len(done.outputs[0].data["image/png"]) > 1_000_000
                picture.ours.append(seconds)
    finally:
        kernel.close()
    gap.ours = [max(gap.ours)]
    return [small, much, gap, picture]


async def with_ticker(work: Awaitable[Execution]) -> tuple[float, Execution]:
    """Do ``work`` while a task on the same loop wakes every millisecond; return its largest gap in seconds too."""
    largest = 0.0

    async def tick() -> None:
        nonlocal largest
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            largest, last = max(largest, now - last), now

    ticker = asyncio.create_task(tick())
    try:
        done = await work
        return largest, done
    finally:
        ticker.cancel()


async def starts(folder: Path, rounds: int) -> list[Row]:
    """What a new shell takes until its first result, its first figure, and after a crash."""
    cold = Row("first result, cold start")
    first = Row("first result, from the warm parent", ratio_limit=0.15, time_limit=0.06)
    cold_figure = Row("first matplotlib figure, cold start")
    figure = Row("first matplotlib figure, warm", ratio_limit=0.3)
    restart = Row("restart after a crash", time_limit=0.1)
    for _ in range(rounds):
        kernel = await asyncio.to_thread(BareKernel)
        try:
            ran = kernel.run("1+1")
            seconds = time.perf_counter() - kernel.started
            assert ran.result == "2"
            cold.bare.append(seconds)
            first.bare.append(seconds)
            ran = kernel.run(FIGURE)
            assert len(ran.pictures) == 1
            cold_figure.bare.append(ran.seconds)
            figure.bare.append(ran.seconds)
        finally:
            kernel.close()
        async with a_sandbox(folder, warm=False) as worker:
            cold.ours.append((await run(worker, "1+1"))[1])
            done, seconds = await run(worker, FIGURE)
            assert "image/png" in done.outputs[0].data
            cold_figure.ours.append(seconds)
        async with a_sandbox(folder, warm=True) as worker:
            first.ours.append((await run(worker, "1+1"))[1])
            done, seconds = await run(worker, FIGURE)
            assert "image/png" in done.outputs[0].data
            figure.ours.append(seconds)
            died = await worker.run_code("import os; os._exit(1)", timeout=TIMEOUT)
            assert died.stopped == "died"
            done, seconds = await run(worker, "1+1")
            assert done.fresh
            restart.ours.append(seconds)
    return [cold, first, cold_figure, figure, restart]


PARTS: dict[str, Callable[[Path, int], Awaitable[list[Row]]]] = {"calls": warm_calls, "starts": starts}


async def measure(rounds: int, only: str) -> bool:
    """Print the table; return whether every target was met."""
    good = True
    with tempfile.TemporaryDirectory(prefix="sandbox-chat-bench-") as folder:
        async with a_sandbox(Path(folder), warm=False) as worker:
            await run(worker, "1")  # what is prepared once (compiled packages, font list) is not measured
        print(f"{'medians in ms':44}{'ipykernel':>10}{'ours':>10}{'ratio':>9}  target")
        for name, part in PARTS.items():
            if only not in name:
                continue
            try:
                rows = await part(Path(folder), rounds)
            except NotHere as reason:
                print(f"{name}: not run: {reason}")
                good = False
                continue
            for row in rows:
                line, met = row.lines()
                good = good and met
                print(line, flush=True)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", default="", help="calls or starts")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a target is missed")
    chosen = parser.parse_args()
    good = asyncio.run(measure(chosen.rounds, chosen.only))
    return 1 if chosen.check and not good else 0


if __name__ == "__main__":
    sys.exit(main())
