"""The interface under load, beside Textual's own Markdown widget and a bare application, in one run.

    python tests/benchmarks/interface.py [--only stream,growth,chat,resize,scroll,idle] [--quick]

Each case runs in a process of its own at a pseudo-terminal of 120×40 that is read all the time. Processor time and
ratios count; limits are printed beside, and one that is not kept ends the program with 1. The whole takes about
twelve minutes (Textual's widget needs 40 s for what is streamed in ten), ``--quick`` about four. The first frame is
measured by ``startup.py``, a real session beside Claude Code's own interface by ``terminals.py``.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import select
import statistics
import struct
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path
from typing import Any

CASE = Path(__file__).with_name("interface_case.py")
POOL = [
    chr(c) for c in (*range(0x410, 0x450), *range(0x391, 0x3A2), *range(0x3B1, 0x3CA), *range(0x531, 0x557))
]
"""Letters that nothing else on the screen holds; each is typed once."""

failed: list[str] = []


class Played:
    """A case at a terminal: its output is read, and letters can be typed into it."""

    def __init__(self, case: str, environment: dict[str, str] | None = None, **values: Any) -> None:
        self.echoes: list[float] = []
        self.typing = threading.Event()
        self._waiting: dict[bytes, float] = {}
        handle, self._target = tempfile.mkstemp(suffix=".json")
        os.close(handle)
        given = [f"{name}={value}" for name, value in values.items()]
        env = {
            **os.environ,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
            **(environment or {}),
        }
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.execve(sys.executable, [sys.executable, str(CASE), self._target, case, *given], env)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 1080, 720))
        self._ended = threading.Event()
        self.bytes = 0
        self.last = b""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        tail = b""
        while True:
            ready, _, _ = select.select([self._fd], [], [], 0.2)
            if not ready:
                continue
            try:
                data = os.read(self._fd, 1 << 16)
            except OSError:
                break
            if not data:
                break
            now = time.perf_counter()
            self.bytes += len(data)
            self.last = (self.last + data)[-3000:]
            window = tail + data
            if b"\x1b]777;typing\x07" in window:
                self.typing.set()
            if b"\x1b[c" in window:
                os.write(self._fd, b"\x1b[?62;22c")
            for letter in [item for item in self._waiting if item in window]:
                self.echoes.append(now - self._waiting.pop(letter))
            tail = data[-8:]
        self._ended.set()

    def type(self, letter: str) -> None:
        """Type a letter; its echo is timed."""
        data = letter.encode()
        self._waiting[data] = time.perf_counter()
        os.write(self._fd, data)

    @property
    def ended(self) -> bool:
        """True when the case is over."""
        return self._ended.is_set()

    def result(self, patience: float = 300.0) -> dict[str, Any]:
        """Wait for the end and return what the case measured."""
        if not self._ended.wait(patience):
            os.kill(self.pid, 9)
            raise TimeoutError(f"the case did not end in {patience:.0f} s")
        os.waitpid(self.pid, 0)
        try:
            found: dict[str, Any] = json.loads(Path(self._target).read_text())
            Path(self._target).unlink()
        except ValueError:
            said = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", self.last).decode("utf-8", "replace")
            raise RuntimeError(f"the case failed: {said}") from None
        return found


def run(case: str, **values: Any) -> dict[str, Any]:
    """Run one case to its end."""
    return Played(case, **values).result()


def row(name: str, value: str, limit: str = "", ok: bool | None = None) -> None:
    """Print a row of the table, and remember a limit that was not kept."""
    word = "" if ok is None else "ok" if ok else "NOT KEPT"
    if ok is False:
        failed.append(name)
    print(f"{name:58} {value:>26}  {limit:22} {word}", flush=True)


def streaming(quick: bool) -> None:
    """Streamed answers beside Textual's widget and the bare application."""
    bare = run("stream", who="bare")
    ours = run("stream", who="ours")
    row("bare application, 10 s, CPU", f"{bare['cpu']:.2f} s")
    ratio = ours["cpu"] / bare["cpu"]
    row("100 kB mixed in 10 s, CPU", f"{ours['cpu']:.2f} s = {ratio:.1f}× bare", "≤ 4× bare", ratio <= 4)
    row("  flush p95 / max", f"{ours['flush_p95'] * 1e3:.1f} / {ours['flush_max'] * 1e3:.1f} ms", "≤ 5 / 20 ms",
        ours["flush_p95"] <= 0.005 and ours["flush_max"] <= 0.02)  # fmt: skip
    row("  loop late p99 / max", f"{ours['p99'] * 1e3:.1f} / {ours['stall'] * 1e3:.1f} ms")
    row("  memory", f"{ours['rss']:.0f} MB, bare {bare['rss']:.0f}")
    if not quick:
        theirs = run("stream", who="markdown")
        ratio = ours["cpu"] / theirs["cpu"]
        value = f"{ratio:.3f}× of {theirs['cpu']:.1f} s"
        row("  beside Textual's MarkdownStream", value, "≤ 0.04×", ratio <= 0.04)
    large = run("stream", who="ours", size=400_000)
    ratio = large["cpu"] / ours["cpu"]
    row("400 kB mixed in 10 s, CPU", f"{large['cpu']:.2f} s = {ratio:.2f}×", "≤ 1.8× of 100 kB", ratio <= 1.8)
    row("  flush p95 / max", f"{large['flush_p95'] * 1e3:.1f} / {large['flush_max'] * 1e3:.1f} ms")
    row("  memory", f"{large['rss']:.0f} MB")


def growth(quick: bool) -> None:
    """One block that grows: the last tenth must not cost more than the first."""
    for kind in ("fence", "list", "nested list", "table", "paragraph"):
        for size in (100_000,) if quick else (10_000, 100_000):
            found = run("stream", who="ours", kind=kind, size=size)
            tenths = found["tenths"]
            # The first tenth also loads what is used the first time: the second is the fairer beginning.
            first = statistics.mean(tenths[:2])
            ratio = statistics.mean(tenths[-2:]) / first
            name = f"one {kind} of {size // 1000} kB"
            row(f"{name}: last fifth to first", f"{ratio:.2f}×, {found['cpu']:.2f} s", "≤ 1.5×", ratio <= 1.5)
            ok = found["flush_p95"] <= 0.005 and found["flush_max"] <= 0.02
            row(
                "  flush p95 / max",
                f"{found['flush_p95'] * 1e3:.1f} / {found['flush_max'] * 1e3:.1f} ms",
                "≤ 5 / 20 ms",
                ok,
            )


def talked(messages: int, rate: int) -> tuple[dict[str, Any], list[float]]:
    """Run the whole application with a past and type while a reply streams; return its numbers and the echoes."""
    case = Played("chat", {"TEXTUAL_FPS": str(rate)}, messages=messages, seconds=20.0)
    assert case.typing.wait(120), case.last
    time.sleep(0.5)
    for letter in POOL[:90]:
        if case.ended:
            break
        case.type(letter)
        time.sleep(0.2)
    return case.result(), sorted(case.echoes)


def chatting(quick: bool) -> None:
    """Typing while a reply streams, in sessions of growing length."""
    costs: dict[int, float] = {}
    empty = 0.0
    for messages in (0, 1200, 5000):
        for rate in (120,) if quick else (60, 120):
            found, echoes = talked(messages, rate)
            p95 = echoes[int(len(echoes) * 0.95)] * 1e3
            limit = 20 if rate == 120 else 35
            name = f"{messages:,} messages, {rate} frames/s"
            row(
                f"{name}: key → paint p50 / p95 / max",
                f"{echoes[len(echoes) // 2] * 1e3:.0f} / {p95:.0f} / {echoes[-1] * 1e3:.0f} ms",
                f"p95 ≤ {limit} ms",
                p95 <= limit,
            )
            if rate == 120:
                costs[messages] = found["cpu"]
                empty = empty or found["rss"]
                row(
                    "  loop late p99 / max",
                    f"{found['p99'] * 1e3:.0f} / {found['stall'] * 1e3:.0f} ms",
                    "p99 ≤ 50 ms",
                    found["p99"] <= 0.05,
                )
                row("  widgets", str(found["widgets"]), "≤ 200", found["widgets"] <= 200)
                more = found["rss"] - empty
                if messages == 1200:
                    row("  memory over an empty session", f"{more:.0f} MB", "≤ 30 MB", more <= 30)
                elif messages:
                    row("  memory over an empty session", f"{more:.0f} MB")
                    ratio = costs[5000] / costs[1200]
                    row("  CPU beside 1,200 messages", f"{ratio:.2f}×", "≤ 1.2×", ratio <= 1.2)


def resizing(_quick: bool) -> None:
    """A resize with a long past beside an empty transcript, and the same in the whole application."""
    empty = statistics.median(run("alone")["steps"])
    full = statistics.median(run("alone", messages=5000)["steps"])
    more = (full - empty) * 1e3
    value = f"{more:.1f} of {full * 1e3:.0f} ms"
    row("resize with 5,000 messages over an empty transcript", value, "≤ 15 ms", more <= 15)
    short = statistics.median(run("headless", what="resize", messages=40)["steps"])
    full = statistics.median(run("headless", what="resize", messages=5000)["steps"])
    row("  whole application, over 40 messages", f"{(full - short) * 1e3:.1f} of {full * 1e3:.0f} ms")


def scrolling(_quick: bool) -> None:
    """Steps through a transcript with pictures."""
    steps = sorted(run("headless", what="scroll", pictures=100)["steps"])
    value = f"{steps[len(steps) // 2] * 1e3:.1f} / {steps[int(len(steps) * 0.95)] * 1e3:.1f} / {steps[-1] * 1e3:.1f} ms"
    row(
        "scroll step with 100 pictures in half-cells p50/p95/max",
        value,
        "every step < 33 ms",
        steps[-1] < 0.033,
    )


def idling(quick: bool) -> None:
    """Nothing happens."""
    found = run("chat", messages=100, idle=15.0 if quick else 60.0)
    row("idle, part of a processor", f"{found['idle'] * 100:.2f} %", "< 1 %", found["idle"] < 0.01)


PARTS = {
    "stream": streaming,
    "growth": growth,
    "chat": chatting,
    "resize": resizing,
    "scroll": scrolling,
    "idle": idling,
}


def main() -> int:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")
    for part in options.only.split(","):
        PARTS[part](options.quick)
    if failed:
        print("not kept: " + "; ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
