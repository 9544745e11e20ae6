"""Our terminal beside Claude Code's own, on the same work in the same run, driven by ``ttybench.py`` at a real pty.

    python tests/benchmarks/terminals.py --ttybench PATH [--work w2,w3,w4,w5] [--repeat 3] [--turns 50] [--out DIR]

``PATH`` is the driver, a script of its own that any terminal chat can be measured with: it serves a scripted model on
loopback, types letters while the answer streams, and notes when each is echoed. This program runs it for both
interfaces in turn and counts our own process apart from the CLI that the agent SDK starts below it; of Claude Code
everything is counted. Without a way to cut the network off (``unshare``, as root) it runs with it.

The table shows medians over the repeats. A limit that is not kept ends the program with 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
from types import ModuleType
from typing import Any

ECHO_P95, ECHO_MAX, ECHO_RATIO = 30.0, 60.0, 1.2
LAG_MS = 100.0
MEMORY_MB = 200.0

INSIDE = "SANDBOX_CHAT_BENCH_INSIDE"


def load(path: str) -> ModuleType:
    """Import the driver from its file."""
    spec = importlib.util.spec_from_file_location("ttybench", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ttybench"] = module
    spec.loader.exec_module(module)
    return module


def own_usage(pid: int) -> tuple[float, float]:
    """Return processor seconds and resident memory in MB of one process, without its children."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0, 0.0
    fields = stat[stat.rindex(")") + 2 :].split()
    hertz, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    return (int(fields[11]) + int(fields[12])) / hertz, int(fields[21]) * page / 1e6


def split_usage(bench: ModuleType) -> None:
    """Let the driver note what the first process, which is the interface itself, used of all that it counts."""
    usage, typed = bench.App.u, bench.typed_stream
    notes: list[tuple[float, float]] = []

    def noting(app: Any) -> Any:
        found = usage(app)
        seconds, memory = own_usage(app.pid)
        notes.append((found[0], seconds))
        app.own_peak = max(getattr(app, "own_peak", 0.0), memory)
        return found

    def splitting(app: Any, *rest: Any, **named: Any) -> Any:
        notes.clear()
        result = typed(app, *rest, **named)
        if "cpu" in result:
            first = notes[0]
            end = next(note for note in notes[1:] if round(note[0] - first[0], 2) == result["cpu"])
            result["own_cpu"] = round(end[1] - first[1], 2)
            result["own_rss"] = round(app.own_peak, 1)
        return result

    bench.App.u = noting
    bench.typed_stream = splitting


def peers(environment: dict[str, str]) -> list[dict[str, Any]]:
    """Describe both interfaces for the driver: how each is started, and a home in which it asks nothing first."""
    import claude_agent_sdk
    from claude_agent_sdk._cli_version import __cli_version__

    binary = pathlib.Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    folder = {
        "hasTrustDialogAccepted": True,
        "hasCompletedProjectOnboarding": True,
        "projectOnboardingSeenCount": 4,
    }
    state = {
        "hasCompletedOnboarding": True,
        "lastOnboardingVersion": __cli_version__,
        "theme": "dark",
        "numStartups": 5,
        "autoUpdates": False,
        "projects": {"{CWD}": folder},
    }
    model = {"ANTHROPIC_BASE_URL": "{URL}", "ANTHROPIC_AUTH_TOKEN": "x"}
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    programs = pathlib.Path(sys.executable).parent
    path = f"{programs}:/usr/local/bin:/usr/bin:/bin"
    return [
        {
            "name": "ours",
            "argv": [str(programs / "sandbox-chat")],
            "env": {**model, "PATH": path, **environment},
            "main_needs_tools": True,
        },
        {
            "name": "claude",
            "argv": [str(binary)],
            "env": {**model, **quiet, "PATH": "/usr/local/bin:/usr/bin:/bin"},
            "files": {".claude.json": json.dumps(state)},
            "main_needs_tools": True,
        },
    ]


def median(results: list[dict[str, Any]], *names: str) -> float:
    """Return the median of a number in the results; infinite where one run has none."""
    found = []
    for result in results:
        value: Any = result
        for name in names:
            value = (value or {}).get(name)
        found.append(float("inf") if value is None else float(value))
    return statistics.median(found)


def verdicts(
    ours: list[dict[str, Any]], theirs: list[dict[str, Any]]
) -> list[tuple[str, float, float, float]]:
    """Return name, our number, theirs and the limit of ours, for one workload."""

    def pair(*names: str) -> tuple[float, float]:
        return median(ours, "stream", *names), median(theirs, "stream", *names)

    p50, p95 = pair("keys", "p50"), pair("keys", "p95")
    longest = pair("keys", "max")
    lag, cpu = pair("end_lag_ms"), (median(ours, "stream", "own_cpu"), median(theirs, "stream", "cpu"))
    memory = median(ours, "stream", "own_rss"), median(theirs, "stream", "rss_peak")
    tree = pair("cpu")
    shown = float(not all((r.get("final") or {}).get("end_on_final_screen") for r in ours))
    return [
        ("key → echo p50, ms", *p50, float("inf")),
        ("key → echo p95, ms", *p95, min(ECHO_P95, ECHO_RATIO * p95[1])),
        ("key → echo max, ms", *longest, ECHO_MAX),
        ("lag of the end, ms", *lag, max(LAG_MS, lag[1])),
        ("processor time, own, s", *cpu, cpu[1]),
        ("processor time, all, s", *tree, float("inf")),
        ("memory, own, MB", *memory, MEMORY_MB),
        ("memory, all, MB", *pair("rss_peak"), float("inf")),
        ("to the terminal, kB", *(value / 1000 for value in pair("bytes")), float("inf")),
        ("end not on the screen", shown, 0.0, 0.0),
    ]


def report(results: list[dict[str, Any]], works: list[str]) -> bool:
    """Print the table; return whether every limit was kept."""
    kept = True
    print(f"{'':8}{'':26}{'ours':>9}{'theirs':>9}{'ratio':>8}{'limit':>9}")
    for work in works:
        rows = [result for result in results if result["work"] == work]
        ours = [result for result in rows if result["peer"] == "ours"]
        theirs = [result for result in rows if result["peer"] == "claude"]
        for number, (name, mine, other, limit) in enumerate(verdicts(ours, theirs)):
            ratio = f"{mine / other:.2f}×" if other else ""
            bound = "" if limit == float("inf") else f"{limit:.1f}"
            word = "" if not bound else "ok" if mine <= limit else "NOT KEPT"
            kept = kept and word != "NOT KEPT"
            print(
                f"{work if not number else '':8}{name:26}{mine:9.1f}{other:9.1f}{ratio:>8}{bound:>9}  {word}"
            )
    return kept


def main() -> int:
    """Run both interfaces on every workload and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ttybench", required=True, metavar="PATH")
    parser.add_argument("--work", default="w2,w3,w4,w5")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--out", help="folder for screens and numbers; a temporary one without it")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="for our program")
    parser.add_argument("--ours-only", action="store_true")
    arguments = parser.parse_args()
    if os.geteuid() == 0 and shutil.which("unshare") and not os.environ.get(INSIDE):
        inner = 'ip link set lo up 2>/dev/null; exec "$@"'
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "-n", "sh", "-c", inner, "sh", sys.executable, *sys.argv])
    bench = load(arguments.ttybench)
    split_usage(bench)
    out = arguments.out or tempfile.mkdtemp(prefix="terminals-")
    works = arguments.work.split(",")
    named = peers(dict(item.split("=", 1) for item in arguments.env))
    results = []
    for repeat in range(arguments.repeat):
        for work in works:
            for peer in named[: 1 if arguments.ours_only else 2]:
                turns = arguments.turns if work == "w5" else None
                result = bench.run_work(peer, work, out, turns, f"_{repeat}")
                results.append(result)
                stream = result.get("stream") or {}
                print(
                    f"{peer['name']} {work} {repeat}: {stream.get('keys')} lag {stream.get('end_lag_ms')} "
                    f"cpu {stream.get('own_cpu')} of {stream.get('cpu')} memory {stream.get('own_rss')} "
                    f"{result.get('error', '')}",
                    file=sys.stderr,
                    flush=True,
                )
    return 0 if arguments.ours_only or report(results, works) else 1


if __name__ == "__main__":
    sys.exit(main())
