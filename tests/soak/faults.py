"""A session of random faults by a seed: nothing is lost, nothing is sent twice, it always comes back to idle.

    python tests/soak/faults.py [--seed 1 2 3] [--turns 100] [--app] [--folder DIR]

The endpoint cuts, stalls and refuses, the agent's program and the sandbox are killed or stopped, the user interrupts and
queues, the terminal changes its size. The whole program runs as in ``turns.py``. Each prompt that came to nothing is sent
once more by the user's word. At the end all is accounted for: prompts, journal, replay, processes, files. The same seed
decides on the same steps; what happens in between is up to the threads. The exit code is 1 when anything is wrong, and the
command that runs the seed again is printed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path[:0] = [path for path in [str(Path(__file__).resolve().parents[1])] if path not in sys.path]

from soak import account  # noqa: E402 - needs the path
from soak.course import Step, course, second  # noqa: E402 - needs the path
from soak.drivers import AppDriver, Driver, EngineDriver, settings  # noqa: E402 - needs the path
from soak.outside import complaints, handed, kill_sandbox, signal_agent, wait_warm  # noqa: E402 - needs the path
from support.faulty import Endpoint, tags  # noqa: E402 - needs the path
from support.program import gone_within, watching_leftovers  # noqa: E402 - needs the path
from support.screen import shown  # noqa: E402 - needs the path

from sandbox_chat.phases import Machine  # noqa: E402 - needs the path
from sandbox_chat.settings import Settings  # noqa: E402 - needs the path
from sandbox_chat.ui.state import ChatState  # noqa: E402 - needs the path

LIMIT = 90.0
"""Seconds within which a turn must have ended, whatever befell it, on a busy machine."""
PATIENCE = 12.0
"""Seconds after which the user presses Esc, when the agent's program was stopped and nothing ends."""
MOMENT = 6.0
"""Seconds that a moment is waited for; then what is to happen happens anyway."""
RESTS = ("idle", "dead")
"""Phases in which the next prompt can be sent."""
GONE = 5.0
"""Seconds within which all processes must be gone after the end."""


class Stuck(Exception):
    """A turn does not end."""


@dataclass
class Outcome:
    """What came of a session. ``counts`` is for the table, ``wrong`` are sentences, ``lines`` the course as it went."""

    seed: int
    turns: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    stops: list[float] = field(default_factory=list)
    slowest: float = 0.0
    seconds: float = 0.0


class Player:
    """Plays a course on a chat, as its user and as its bad luck."""

    def __init__(self, driver: Driver, endpoint: Endpoint, seed: int, *, app: bool) -> None:
        self.driver = driver
        self.endpoint = endpoint
        self.app = app
        self.outcome = Outcome(seed)
        self.sent: dict[str, str] = {}
        self.stoppable: set[str] = set()
        self._state = ChatState()
        self._machine = Machine()
        self._applied = 0
        self._frozen = False
        self._taken: set[str] = set()

    def play(self, step: Step) -> None:
        """Play one step until all its prompts are answered or given up, and the chat is at rest."""
        begun = time.monotonic()
        note = self.outcome
        note.turns += len(step.prompts)
        note.counts[step.kind] += 1
        note.lines.append(step.told())
        first, rest = step.prompts[:1], step.prompts[1:]
        if step.kind == "prompt at its death":
            self._signal(signal.SIGKILL)
            time.sleep(step.delay)
        if step.kind == "interrupt, then a prompt":
            self._send(*first)
            self._await(step)
            self._press()
            self._send(*rest)
        else:
            self._send(*first, *rest)
            self._befall(step)
        self._settle([tags(each)[0] for each in step.prompts])
        for words in step.prompts:
            self._again(tags(words)[0], step)
        self._rest()
        note.slowest = max(note.slowest, time.monotonic() - begun)

    # -- what happens ------------------------------------------------------------------------------------

    def _befall(self, step: Step) -> None:
        match step.kind:
            case "resize":
                self._await(step)
                self.driver.resize(*step.size)
            case "interrupt" | "queue and interrupt":
                self._await(step)
                self._press()
            case "interrupt twice":
                self._await(step)
                self._press()
                time.sleep(step.delay)
                self._press()
            case "kill the agent":
                self._await(step)
                self._signal(signal.SIGKILL)
            case "stop the agent":
                self._await(step)
                self._signal(signal.SIGSTOP)
                time.sleep(0.3)
                self._press()
            case "kill the sandbox":
                self._await(step)
                self.outcome.counts["sandboxes killed"] += kill_sandbox(
                    self.driver.engine, parent=step.parent
                )

    def _await(self, step: Step) -> None:
        """Wait for the moment of a step."""
        seen, tag = self.driver.seen, tags(step.prompts[0])[0]
        over = lambda: seen.finished(tag) is not None  # noqa: E731 - said once, used three times
        match step.moment:
            case "request":
                seen.wait(lambda: over() or self.endpoint.seen(tag), MOMENT)
            case "streaming":
                seen.wait(lambda: over() or seen.has("text_delta") or seen.has("thinking_delta"), MOMENT)
            case "tool":
                seen.wait(lambda: over() or seen.has("tool_started"), MOMENT)
        time.sleep(step.delay)

    def _send(self, *prompts: str) -> None:
        self.sent.update({tags(words)[0]: words for words in prompts})
        if prompts:
            self.driver.send(*prompts)

    def _press(self) -> None:
        """Press Esc, and note how long the turn that runs takes to end."""
        open_tags = {tag for tag in self.sent if self.driver.seen.finished(tag) is None}
        self.stoppable |= open_tags
        ended, begun = self.driver.seen.ended, time.monotonic()
        self.driver.interrupt()
        self.outcome.counts["Esc"] += 1
        if open_tags and self.driver.seen.wait(lambda: self.driver.seen.ended > ended, LIMIT):
            self.outcome.stops.append(time.monotonic() - begun)

    def _signal(self, number: signal.Signals) -> None:
        if signal_agent(self.driver.engine, number):
            self.outcome.counts[f"agent {number.name}"] += 1
            self._frozen = number == signal.SIGSTOP

    # -- the ends ----------------------------------------------------------------------------------------

    def _settle(self, wanted: list[str]) -> None:
        """Wait until the turns of these prompts have ended."""
        seen = self.driver.seen
        begun = progress = time.monotonic()
        count = seen.count
        while not all(seen.finished(tag) for tag in wanted):
            seen.wait(lambda: all(seen.finished(tag) for tag in wanted), 0.2)
            for tag in wanted:
                self._taken_back(tag)
            self.driver.go_on()
            now = time.monotonic()
            if seen.count != count:
                count, progress = seen.count, now
            if self._frozen and now - progress > PATIENCE:
                self.outcome.counts["Esc for want of patience"] += 1
                self._press()
                progress = now
            if now - begun > LIMIT:
                raise Stuck(
                    f"not ended within {LIMIT:g} s: {[tag for tag in wanted if not seen.finished(tag)]}"
                )
        for tag in wanted:
            self._taken_back(tag)

    def _taken_back(self, tag: str) -> None:
        """Look whether the interface gave a prompt back that was not answered."""
        ended = self.driver.seen.finished(tag)
        if ended is None or tag in self._taken or not self.app or self.driver.again[tag]:
            return
        self._taken.add(tag)
        self._catch_up()
        turn = next((turn for turn in self._state.turns if turn.id == ended.turn_id), None)
        if turn is None or turn.answered or not ended.is_error or ended.interrupted:
            return
        end = time.monotonic() + 5
        while not (text := self.driver.given_back()) and time.monotonic() < end:
            time.sleep(0.02)
            if self.driver.again[tag]:
                return  # it waited with others, and went on with them
        if text != self.sent[tag]:
            self.outcome.wrong.append(f"prompt {tag} failed and was not given back: {text!r}")

    def _again(self, tag: str, step: Step) -> None:
        """Be the user after a turn that came to nothing: send the prompt once more, or give it up."""
        ended, counts = self.driver.seen.finished(tag), self.outcome.counts
        assert ended is not None
        if not (ended.is_error or ended.interrupted):
            counts["answered"] += 1
            return
        counts["failed" if ended.is_error else "interrupted"] += 1
        self.outcome.lines.append(
            f"  {tag} {'failed: ' + ended.error if ended.is_error else 'was interrupted'}"
        )
        if ended.interrupted and not step.again:
            counts["given up"] += 1
            return
        words = second(self.outcome.seed, tag)
        self._send(words)
        again = tags(words)[0]
        self._settle([again])
        ended = self.driver.seen.finished(again)
        assert ended is not None
        if ended.is_error or ended.interrupted:
            counts["given up"] += 1
            self.outcome.lines.append(f"  {again} was given up: {ended.error or 'interrupted'}")
        else:
            counts["answered at the second sending"] += 1

    def _rest(self) -> None:
        """The chat comes to rest."""
        end = time.monotonic() + LIMIT
        while True:
            self._catch_up()
            if not self._machine.busy and self._machine.phase in RESTS:
                self.outcome.counts["at rest"] += 1
                return
            if time.monotonic() > end:
                raise Stuck(f"not at rest within {LIMIT:g} s: {self._machine.phase}")
            time.sleep(0.02)

    def _catch_up(self) -> None:
        events = self.driver.seen.events
        while self._applied < len(events):
            self._state.apply(events[self._applied])
            self._machine.apply(events[self._applied])
            self._applied += 1


def session(folder: Path, seed: int, turns: int, *, app: bool = False, say: bool = False) -> Outcome:
    """Play a whole session with all files under ``folder``, which is empty, and account for it."""
    temporary = folder / "tmp"
    temporary.mkdir(parents=True)
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(temporary)
    tempfile.tempdir = None  # it is looked up anew
    begun = time.monotonic()
    try:
        with (
            Endpoint(folder) as endpoint,
            complaints() as said,
            handed() as count,
            watching_leftovers() as left,
        ):
            outcome = _session(folder, endpoint, count, seed, turns, app=app, say=say)
            outcome.wrong += [f"still there: {line}" for line in gone_within(GONE, left)]
            outcome.wrong += [f"complained: {line}" for line in said.errors]
            outcome.lines += [f"warned: {line}" for line in said.warnings]
    finally:
        if before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before
        tempfile.tempdir = None
    names = [str(path.relative_to(folder)) for path in temporary.iterdir()]
    names += [str(path.relative_to(folder)) for path in (folder / "data" / "sessions").rglob(".*.tmp")]
    if names:
        outcome.wrong.append(f"left behind: {sorted(names)[:10]}")
    outcome.seconds = time.monotonic() - begun
    return outcome


def _session(
    folder: Path, endpoint: Endpoint, count: Counter[str], seed: int, turns: int, *, app: bool, say: bool
) -> Outcome:
    chosen = settings(endpoint, folder, reduced_motion=True)
    driver: AppDriver | EngineDriver = (
        AppDriver(chosen, keep=True) if app else EngineDriver(chosen, keep=True)
    )
    player = Player(driver, endpoint, seed, app=app)
    outcome = player.outcome
    driver.start()
    session_id = driver.engine.session_id
    try:
        wait_warm(driver.engine)
        for step in course(seed, turns):
            if say:
                print(f"{seed}: {step.told()}", file=sys.stderr, flush=True)
            player.play(step)
    except Stuck as stuck:
        outcome.wrong.append(str(stuck))
    finally:
        driver.close()
    live = driver.seen.events
    outcome.wrong += account.order(live)
    found, wrong = account.turns(live)
    outcome.wrong += wrong
    requests = endpoint.requests()
    outcome.counts["went on"] = driver.again.total()
    outcome.counts["faults of the endpoint"] = sum(1 for line in requests if line["fault"])
    outcome.wrong += account.prompts(found, player.sent, player.stoppable, requests, count, driver.again)
    past, wrong = account.record(folder / "data", session_id, live)
    outcome.wrong += wrong
    outcome.wrong += account.replay(live, past)
    machine = account.phase(past)
    outcome.counts["odd"] = machine.odd
    if machine.odd:
        outcome.lines.append(f"odd: {machine.oddity}")
    if isinstance(driver, AppDriver):
        outcome.wrong += account.same_rows(
            driver.rows, shown(past, [max(len(past), 1)])[0], "its rows differ"
        )
        if driver.failure is not None:
            outcome.wrong.append(f"the application failed: {driver.failure!r}")
        outcome.wrong += _opened_again(chosen, session_id, driver.rows, len(found))
    return outcome


def _opened_again(chosen: Settings, session_id: str, rows: list[str], turns: int) -> list[str]:
    """What is wrong with the session when the application opens it again."""
    driver = AppDriver(chosen, keep=False, resume=session_id)
    driver.start()
    try:
        again = driver.replayed(turns)
    finally:
        driver.close()
    return account.same_rows(rows, again, "opened again, its rows differ")


ROWS = (
    ("answered", "answered"),
    ("answered at the second sending", "answered at the second sending, by the user's word"),
    ("given up", "given up, and said to be"),
    ("went on", "failed, waited with others, and went on with them by the user's word"),
    ("failed", "turns that failed"),
    ("interrupted", "turns that were interrupted"),
    ("faults of the endpoint", "replies with a fault"),
    ("Esc", "Esc pressed"),
    ("agent SIGKILL", "agent's program killed"),
    ("agent SIGSTOP", "agent's program stopped"),
    ("sandboxes killed", "sandbox killed"),
    ("resize", "terminal resized"),
    ("odd", "events that made no sense in their phase"),
    ("at rest", "steps, each back at rest"),
)


def table(outcomes: list[Outcome]) -> list[str]:
    """The lines of the table, a column for each seed."""
    head = f"{'':52}" + "".join(f"{'seed ' + str(each.seed):>12}" for each in outcomes)
    lines = [head, f"{'prompts':52}" + "".join(f"{each.turns:12}" for each in outcomes)]
    for name, label in ROWS:
        lines.append(f"{label:52}" + "".join(f"{each.counts[name]:12}" for each in outcomes))
    for label, values in (
        ("longest time from Esc to the turn's end (s)", [max(each.stops, default=0.0) for each in outcomes]),
        ("longest step (s)", [each.slowest for each in outcomes]),
        ("all (s)", [each.seconds for each in outcomes]),
    ):
        lines.append(f"{label:52}" + "".join(f"{value:12.2f}" for value in values))
    lines.append(f"{'wrong':52}" + "".join(f"{len(each.wrong):12}" for each in outcomes))
    return lines


def main() -> int:
    """Parse arguments, play, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--app", action="store_true", help="drive the terminal application")
    parser.add_argument("--folder", type=Path, help="for all files; a seed that goes wrong leaves them there")
    parser.add_argument("--say", action="store_true", help="print each step as it comes")
    chosen = parser.parse_args()
    home = chosen.folder or Path(tempfile.mkdtemp(prefix="faults-"))
    outcomes = []
    for seed in chosen.seed:
        folder = home / f"seed-{seed}"
        outcome = session(folder, seed, chosen.turns, app=chosen.app, say=chosen.say)
        outcomes.append(outcome)
        (home / f"seed-{seed}.txt").write_text("\n".join([*outcome.lines, *outcome.wrong]) + "\n")
        if not outcome.wrong:
            shutil.rmtree(folder)
    print("\n".join(table(outcomes)))
    for outcome in outcomes:
        for line in outcome.wrong:
            print(f"seed {outcome.seed}: {line}")
        if outcome.wrong:
            way = " --app" if chosen.app else ""
            again = f"python tests/soak/faults.py --seed {outcome.seed} --turns {chosen.turns}{way}"
            print(f"seed {outcome.seed}: files in {home}; run it again with: {again}")
    wrong = any(outcome.wrong for outcome in outcomes)
    if not wrong and not chosen.folder:
        shutil.rmtree(home, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
