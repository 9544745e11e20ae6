"""Leave the program idle on a cloud back end and watch the cloud: its sandbox is prolonged, then let go, never leaked.

    python tests/benchmarks/idle_cloud.py --minutes 10 --ttl 120 --limit 420

runs the real engine with the demo model against the test cloud, has it run code once, and then does nothing. Prints a
line a minute and a table of what the cloud was asked. Exit code 0 only when the sandbox lived as long as configured and
nothing is left.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.e2b_server import Cloud

from sandbox_chat.engine import Engine
from sandbox_chat.events import Event, Status, TurnFinished
from sandbox_chat.settings import Settings


def main() -> int:
    """Run it; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long the program is idle")
    parser.add_argument(
        "--ttl", type=int, default=120, help="seconds that the cloud keeps a sandbox (e2b_ttl)"
    )
    parser.add_argument(
        "--limit", type=int, default=420, help="seconds that an unused one is kept (e2b_idle_limit)"
    )
    options = parser.parse_args()
    answered = threading.Event()
    began = time.monotonic()

    def take(event: Event) -> None:
        if isinstance(event, TurnFinished):
            answered.set()
        if isinstance(event, Status) and event.component == "sandbox":
            print(f"{time.monotonic() - began:7.1f} s  program: {event.state} {event.text}", flush=True)

    with Cloud() as cloud, tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            **cloud.settings(),
            demo=True,
            demo_pace=0.0,
            data_dir=Path(folder),
            e2b_ttl=options.ttl,
            e2b_idle_limit=options.limit,
            start_timeout=60.0,
        )
        engine = Engine(settings, take)
        engine.start()
        engine.send("x = 41")
        if not answered.wait(120):
            print("the program did not answer")
            return 1
        idle = time.monotonic()
        gone_after = 0.0
        next_line = 0.0
        while (now := time.monotonic() - idle) < options.minutes * 60:
            alive = list(cloud.sandboxes.values())
            if now >= next_line:
                next_line += 60
                left = f"ends in {alive[0].end_at - cloud.now():.0f} s" if alive else "none alive"
                print(f"{time.monotonic() - began:7.1f} s  cloud: {left}", flush=True)
            if not alive and not gone_after:
                gone_after = now
            time.sleep(0.5)
        engine.close()
        asked = Counter((method, path.split("/")[-1], status) for method, path, status in cloud.requests)
        for (method, path, status), count in sorted(asked.items()):
            print(f"{count:5}  {method} …/{path} {status}")
        left = list(cloud.sandboxes)
        wanted = options.limit if options.limit < options.minutes * 60 else 0
        kept = abs(gone_after - wanted) < 30 if wanted else not gone_after
        print(
            f"idle for {options.minutes:g} min; let go after {gone_after:.0f} s of {wanted} s; left at the end: {left}"
        )
        return 0 if kept and not left and not cloud.errors else 1


if __name__ == "__main__":
    sys.exit(main())
