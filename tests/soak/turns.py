"""A session of many turns, a tool call in each: what it holds after so many of them.

    python tests/soak/turns.py [--turns 1000] [--every 10] [--app] [--folder DIR] [--json FILE]

The whole program runs: engine, SDK, CLI, local sandbox, against an endpoint on loopback in a process of its own; with
``--app`` under the terminal application too. The table compares the medians of the second and the last tenth of the
turns: counts must be equal, memory and numbers of objects at most 5 % more. What grows by nature is told apart (the
application's transcript is: a turn takes it about 20 kB, its texts wait on disk). The exit code is 1 when something is
not flat, or a turn did not go as it should.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path[:0] = [path for path in [str(Path(__file__).resolve().parents[1])] if path not in sys.path]

from soak.drivers import AppDriver, Driver, EngineDriver, settings  # noqa: E402 - needs the path
from soak.measure import MEASURES, Measure, Meter, Sample, as_json, table  # noqa: E402 - needs the path
from soak.outside import agent_pid, complaints, wait_warm  # noqa: E402 - needs the path
from support.faulty import Endpoint, prompt, sendings  # noqa: E402 - needs the path

LIMIT = 120.0
"""Seconds that a turn may take on a busy machine before it counts as one that hangs."""


SHOWN = "the transcript is kept for the screen"
GROWING = {"memory": SHOWN, "objects": SHOWN, "rest": "the prompts are kept in the history"}
"""What grows by nature under the application, and why."""


def under_application() -> tuple[Measure, ...]:
    """The measures of a run with the terminal application."""
    return tuple(
        replace(each, rule="grows", why=GROWING[each.name]) if each.name in GROWING else each
        for each in MEASURES
    )


@dataclass
class Soaked:
    """What came of a run: ``wrong`` are sentences about turns that did not go as they should."""

    samples: list[Sample] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0
    measures: tuple[Measure, ...] = MEASURES

    def report(self) -> tuple[list[str], bool]:
        """The lines to print, and whether all is well."""
        if not self.samples:
            return self.wrong, False
        lines, flat = table(self.samples, self.measures)
        turns = self.samples[-1].turn
        head = f"{turns} turns in {self.seconds:.0f} s, {self.seconds / turns:.2f} s each"
        return [head, "", *lines, *self.wrong], flat and not self.wrong


def soak(folder: Path, turns: int, every: int, *, app: bool = False, say: bool = False) -> Soaked:
    """Run so many turns with all files under ``folder``, which is empty. Measures after each ``every`` turns."""
    soaked = Soaked(measures=under_application() if app else MEASURES)
    temporary = folder / "tmp"
    temporary.mkdir(parents=True)
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(temporary)
    tempfile.tempdir = None  # it is looked up anew
    try:
        with Endpoint(folder) as endpoint, complaints() as said:
            chosen = settings(endpoint, folder, reduced_motion=True)
            driver: Driver = AppDriver(chosen, keep=False) if app else EngineDriver(chosen, keep=False)
            driver.start()
            try:
                wait_warm(driver.engine)
                _run(driver, folder, endpoint, soaked, turns, every, say=say)
            finally:
                driver.close()
            twice = [tag for tag, sent in sendings(endpoint.requests()).items() if sent.times != 1]
            if twice:
                soaked.wrong.append(f"sent more than once: {twice[:10]}")
            soaked.wrong += said.errors
    finally:
        if before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before
        tempfile.tempdir = None
    left = sorted(path.name for path in temporary.iterdir())
    if left:
        soaked.wrong.append(f"left in the temporary folder: {left[:10]}")
    return soaked


def _run(
    driver: Driver, folder: Path, endpoint: Endpoint, soaked: Soaked, turns: int, every: int, *, say: bool
) -> None:
    meter = Meter(
        data=folder / "data",
        temporary=folder / "tmp",
        agent=lambda: agent_pid(driver.engine),
        loops=driver.loops,
        ignored=[endpoint.pid],
    )
    begun = time.monotonic()
    for turn in range(1, turns + 1):
        driver.send(prompt(turn, 1, shape="tool"))
        tag = f"{turn}.1"
        if not driver.seen.wait(lambda tag=tag: driver.seen.finished(tag), LIMIT):
            soaked.wrong.append(f"turn {turn} did not end within {LIMIT:g} s")
            break
        ended = driver.seen.finished(tag)
        assert ended is not None
        if ended.is_error or ended.interrupted or ended.num_turns != 2:
            soaked.wrong.append(f"turn {turn}: {ended.error or ended.subtype}")
        if turn % every == 0:
            driver.given_back()  # the interface has come to rest
            soaked.samples.append(meter.sample(turn))
        if say and turn % 50 == 0:
            print(f"{turn} turns after {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    soaked.seconds = time.monotonic() - begun


def main() -> int:
    """Parse arguments, run, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--every", type=int, default=10, help="turns between two samples")
    parser.add_argument("--app", action="store_true", help="drive the terminal application")
    parser.add_argument("--folder", type=Path, help="for all files; kept when it is given")
    parser.add_argument("--json", type=Path, help="write the samples to this file")
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="soak-"))
    soaked = soak(folder, chosen.turns, chosen.every, app=chosen.app, say=True)
    lines, good = soaked.report()
    print("\n".join(lines))
    if chosen.json:
        chosen.json.write_text(json.dumps(as_json(soaked.samples)))
    if not chosen.folder:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
