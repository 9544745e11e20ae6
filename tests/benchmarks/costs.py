"""``sandbox-chat costs`` over many sessions: how long the adding up takes.

    python tests/benchmarks/costs.py [SESSIONS]

Makes the sessions in a temporary folder (12 turns and about 100 kB each) and adds them up three times. Prints
processor seconds, and wall seconds beside them; about a second for 1,000 sessions is wanted.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.screen import START, turn_finished

from sandbox_chat import costs
from sandbox_chat import events as ev
from sandbox_chat.event_json import to_json

TURNS = 12
PIECES = 60


def session(number: int) -> str:
    """The journal of a session."""
    events: list[ev.Event] = [
        ev.SessionStarted(at=START, session_id=f"{number}", model="m", sandbox="local", demo=False)
    ]
    for turn in range(1, TURNS + 1):
        events += [ev.TurnStarted(at=START, turn_id=f"t{turn}", prompt="a prompt")]
        events += [ev.TextDelta(at=START, text="word " * 10) for _ in range(PIECES)]
        usage = ev.Usage(100 * turn, 10 * turn, turn, turn)
        models = (ev.ModelUse("claude-x", usage, 0.1 * turn),)
        events.append(turn_finished(f"t{turn}", usage=ev.Usage(100, 10, 1, 1), cost_usd=0.1, models=models))
    stamped = (dataclasses.replace(event, seq=seq) for seq, event in enumerate(events, 1))
    return "".join(to_json(event) + "\n" for event in stamped)


def main(count: int) -> None:
    """Make the sessions, add them up, print the times."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        journal = session(0)
        for number in range(count):
            folder = root / f"{number:08x}"
            folder.mkdir()
            (folder / "events.jsonl").write_text(journal)
        print(f"{count:,} sessions, {count * TURNS:,} turns, {count * len(journal) / 1e6:.0f} MB")
        for group in ("day", "model", "session"):
            cpu, wall = time.process_time(), time.monotonic()
            report = costs.collect(root, by=group)
            cpu, wall = time.process_time() - cpu, time.monotonic() - wall
            assert report.total.turns == count * TURNS
            print(f"by {group:<8} {cpu:.2f} s of processor, {wall:.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
