"""What happens in a session of random faults, step by step: decided by the seed alone, before anything runs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from support.faulty import FAULTS, SHAPES, prompt

KINDS = {
    "plain": 26,
    "resize": 8,
    "queue": 10,
    "interrupt": 14,
    "interrupt twice": 6,
    "interrupt, then a prompt": 6,
    "queue and interrupt": 6,
    "kill the agent": 8,
    "stop the agent": 4,
    "prompt at its death": 5,
    "kill the sandbox": 7,
}
"""Kinds of steps and how often they come, of a hundred."""
MOMENTS = ("sending", "request", "streaming", "tool")
"""When it happens: right after sending, before the first word of the answer, in the middle of it, while code runs."""
SIZES = ((120, 40), (80, 24), (60, 20), (200, 60), (100, 30))
LASTING = 9
"""Tries that meet a fault which does not pass: more than the agent makes."""


@dataclass(frozen=True, slots=True)
class Step:
    """What the user does, and what befalls the parts meanwhile.

    ``prompts`` are sent one right after the other; ``delay`` is in seconds after the ``moment``. ``parent``: with the
    sandbox its warm parent is killed. ``again``: the user sends a prompt that he stopped once more.
    """

    turn: int
    kind: str
    moment: str
    delay: float
    prompts: tuple[str, ...]
    size: tuple[int, int]
    parent: bool
    again: bool

    def told(self) -> str:
        """The step as a line of words."""
        when = f" at {self.moment} + {self.delay:.3f} s" if self.kind not in ("plain", "queue") else ""
        return f"{self.kind}{when}: {' | '.join(self.prompts)}"


def course(seed: int, turns: int) -> Iterator[Step]:
    """The steps of a session with so many prompts."""
    turn = 1
    while turn <= turns:
        step = _step(random.Random(f"{seed}/{turn}"), turn, turns)
        turn += len(step.prompts)
        yield step


def second(seed: int, tag: str) -> str:
    """The prompt that the user sends when the one with ``tag`` came to nothing: rarely it fails again."""
    turn = int(tag.partition(".")[0])
    chance = random.Random(f"{seed}/{turn}/second")
    plan = (
        _faulty(chance, chance.choice(SHAPES)) if chance.random() < 0.15 else {"shape": chance.choice(SHAPES)}
    )
    return prompt(turn, 2, **plan)


def _step(chance: random.Random, turn: int, turns: int) -> Step:
    kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
    moment = chance.choice(MOMENTS)
    count = chance.randint(2, 3) if kind.startswith("queue") else 2 if kind.endswith("then a prompt") else 1
    count = min(count, turns - turn + 1)
    prompts = []
    for number in range(count):
        plan = _plan(chance, kind if number == 0 else "plain", moment)
        prompts.append(prompt(turn + number, 1, **plan))
    return Step(
        turn=turn,
        kind=kind,
        moment=moment,
        delay=round(chance.choice((0.0, 0.005, 0.02, 0.1, 0.3)) * chance.random(), 4),
        prompts=tuple(prompts),
        size=chance.choice(SIZES),
        parent=chance.random() < 0.3,
        again=chance.random() < 0.3,
    )


def _plan(chance: random.Random, kind: str, moment: str) -> dict[str, Any]:
    """How a prompt is answered, so that there is a ``moment`` at which something can befall it."""
    shape = chance.choice(SHAPES)
    if kind in ("plain", "resize", "queue", "prompt at its death"):
        return _faulty(chance, shape) if chance.random() < 0.55 else {"shape": shape}
    if kind == "kill the sandbox" or moment == "tool":
        return {"shape": chance.choice(("tool", "two")), "sleep": 1.5}
    if moment == "request":
        return {"shape": shape, "fault": "slow"}
    if moment == "streaming":
        return {"shape": chance.choice(("text", "thinking")), "pace": 0.05}
    return {"shape": shape}


def _faulty(chance: random.Random, shape: str) -> dict[str, Any]:
    plan: dict[str, Any] = {"shape": shape, "fault": chance.choice(FAULTS)}
    if shape in ("tool", "two"):
        plan["at"] = chance.randint(0, 1)
    if plan["fault"] in ("cut", "error", "slow"):
        plan["place"] = chance.choice((0, 10, 40, 1000))
    if plan["fault"] == "429":
        plan["retry"] = chance.choice((0.0, 1.0))
    if plan["fault"] != "slow" and chance.random() < 0.25:
        plan["times"] = LASTING
    return plan
