"""Start-up, measured side by side: ``--help`` against importing argparse, the first frame against a bare Textual app.

    python tests/benchmarks/startup.py [RUNS]

Runs alternate (A B A B …), so that a machine that slows down slows both. The table gives medians of
wall and CPU seconds and the ratio of the medians; limits are printed beside, not enforced.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import resource
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

BARE_APP = """
from textual.app import App
from textual.widgets import Static
class Bare(App):
    def compose(self):
        yield Static("first-frame-marker")
Bare().run()
"""
MARKER_OURS = b"sandbox-chat"
MARKER_BARE = b"first-frame-marker"


def program() -> list[str]:
    """The console script that belongs to this interpreter."""
    return [str(Path(sys.executable).parent / "sandbox-chat")]


def clean_env(home: str) -> dict[str, str]:
    """An environment without credentials and with a home of its own."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": home, "TERM": "xterm-256color",
        "COLORTERM": "truecolor", "LANG": "C.UTF-8",
    }  # fmt: skip


def run_once(argv: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Run to the end; return wall and CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, check=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_frame(argv: list[str], marker: bytes, env: dict[str, str]) -> tuple[float, float]:
    """Start at a pty that answers a terminal's queries; return wall and CPU seconds until the marker is drawn."""
    start = time.perf_counter()
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(argv[0], argv, env)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 1200, 800))
    seen = b""
    deadline = start + 60
    try:
        while marker not in seen:
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{argv[0]} drew no first frame: {seen[-400:]!r}")
            ready, _, _ = select.select([fd], [], [], 1.0)
            if not ready:
                continue
            try:
                seen += os.read(fd, 65536)
            except OSError:
                raise RuntimeError(f"{argv[0]} ended early: {seen[-400:]!r}") from None
            if b"\x1b[c" in seen:
                os.write(fd, b"\x1b[?62;22c")
                seen = seen.replace(b"\x1b[c", b"")
        wall = time.perf_counter() - start
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return wall, cpu
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + 8
        while time.monotonic() < end and os.waitpid(pid, os.WNOHANG) == (0, 0):
            if select.select([fd], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    os.read(fd, 65536)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(fd)


def main(runs: int = 7) -> None:
    """Measure and print the table."""
    with tempfile.TemporaryDirectory() as home:
        env = clean_env(home)
        pairs = {
            "--help / import argparse": (
                lambda: run_once([*program(), "--help"], env),
                lambda: run_once([sys.executable, "-c", "import argparse"], env),
            ),
            "first frame / bare Textual": (
                lambda: first_frame([*program(), "--demo"], MARKER_OURS, env),
                lambda: first_frame([sys.executable, "-c", BARE_APP], MARKER_BARE, env),
            ),
        }
        print(
            f"{'start-up':28} {'ours wall':>10} {'other wall':>10} {'ratio':>6} {'ours cpu':>9} {'other cpu':>9} {'ratio':>6}"
        )
        for name, (ours, other) in pairs.items():
            ours(), other()  # first starts compile bytecode
            a, b = [], []
            for _ in range(runs):
                a.append(ours())
                b.append(other())
            aw, ac = (statistics.median(x[i] for x in a) for i in (0, 1))
            bw, bc = (statistics.median(x[i] for x in b) for i in (0, 1))
            print(f"{name:28} {aw:10.3f} {bw:10.3f} {aw / bw:6.2f} {ac:9.3f} {bc:9.3f} {ac / bc:6.2f}")
        print("limits: --help at most 1.5 x + 0.1 s; first frame at most 1.5 x")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
