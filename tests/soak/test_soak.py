"""The soak and the random faults, with few turns; and the instruments themselves, which must be able to find a fault."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from soak import account
from soak.course import KINDS, course, second
from soak.faults import session, table
from soak.measure import MEASURES, RATIO, Meter, Sample, tenth, verdict
from soak.measure import table as flatness
from soak.turns import soak
from support.faulty import FAULTS, Plan, answer, faulty, plan_of, prompt, sendings, tags
from support.http_client import post

from sandbox_chat.events import (
    Event,
    Text,
    TextContent,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)

# -- the instruments -----------------------------------------------------------------------------------------


def ended(turn_id: str, **changes: Any) -> TurnFinished:
    values: dict[str, Any] = {
        "turn_id": turn_id, "subtype": "success", "is_error": False, "interrupted": False, "num_turns": 1,
        "duration_ms": 1, "cost_usd": 0.0, "total_cost_usd": 0.0, **changes,
    }  # fmt: skip
    return TurnFinished(**values)


def story(*turns: str) -> list[Event]:
    """Turns that went well, numbered."""
    events: list[Event] = []
    for tag in turns:
        events += [
            TurnStarted(turn_id=tag, prompt=prompt(*map(int, tag.split(".")), shape="tool")),
            ToolStarted(tool_use_id=f"call-{tag}", name="run_code", input={"code": "1"}),
            ToolFinished(
                tool_use_id=f"call-{tag}", is_error=False, content=(TextContent("1"),), duration_ms=1
            ),
            TextDelta(text="Answer"),
            Text(text=answer(tag)),
            ended(tag),
        ]
    return numbered(events)


def numbered(events: list[Event]) -> list[Event]:
    return [dataclasses.replace(event, seq=number) for number, event in enumerate(events, 1)]


def asked(*turns: str, **changes: Any) -> Iterator[dict[str, Any]]:
    for tag in turns:
        yield {"tag": tag, "occurrences": 1, "peer": 7, **changes}


def complaints_of(
    events: list[Event], requests: list[dict[str, Any]], sent: list[str], stoppable: list[str] | None = None
) -> list[str]:
    found, wrong = account.turns(events)
    prompts = {tag: prompt(*map(int, tag.split("."))) for tag in sent}
    once = dict.fromkeys(sent, 1)
    return account.order(events) + wrong + account.prompts(found, prompts, stoppable or [], requests, once)


def test_the_account_finds_what_was_handed_on_twice() -> None:
    found, _ = account.turns(story("1.1"))
    [line] = account.prompts(found, {"1.1": prompt(1, 1)}, [], asked("1.1"), {"1.1": 2})
    assert "went to the agent's program 2 times" in line


def test_a_prompt_that_failed_and_went_on_by_the_users_word_may_be_sent_again() -> None:
    failed = [
        dataclasses.replace(event, is_error=True) if isinstance(event, TurnFinished) else event
        for event in story("1.1")
        if not isinstance(event, Text)
    ]
    found, _ = account.turns([*failed, *story("1.1")])
    sent, twice = {"1.1": prompt(1, 1)}, {"1.1": 2}
    assert account.prompts(found, sent, [], asked("1.1", "1.1"), twice, {"1.1": 1}) == []
    assert account.prompts(found, sent, [], asked("1.1", "1.1"), twice) == [
        "prompt 1.1 went to the agent's program 2 times",
        "prompt 1.1 has 2 turns",
    ]
    answered, _ = account.turns([*story("1.1"), *story("1.1")])
    [line] = account.prompts(answered, sent, [], asked("1.1", "1.1"), twice, {"1.1": 1})
    assert line == "prompt 1.1 was sent again although it had its answer"


def test_a_session_that_went_well_has_nothing_wrong() -> None:
    events = story("1.1", "2.1")
    assert complaints_of(events, [*asked("1.1", "2.1")], ["1.1", "2.1"]) == []
    assert account.replay(events, events) == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda events: events[:3] + events[4:], "not numbered on"),
        (lambda events: numbered(events[:5] + events[6:]), "had not ended"),
        (lambda events: numbered(events[:-1]), "never ended"),
        (lambda events: numbered(events[:2] + events[3:]), "calls began and ended differently"),
        (lambda events: numbered(events[6:] + events[:6]), "not in the order"),
        (lambda events: numbered(events[6:]), "has 0 turns"),
        (lambda events: numbered([*events, *events[6:]]), "has 2 turns"),
        (lambda events: numbered([*events[:4], Text(text="nothing"), *events[5:]]), "without its answer"),
        (lambda events: numbered([*events[:4], Text(text=answer("2.1")), *events[4:]]), "what belongs to"),
        (lambda events: numbered([*events, Text(text="late")]), "outside of all turns"),
        (lambda events: numbered([*events[:5], ended("1.1", interrupted=True), *events[6:]]), "by nobody"),
    ],
    ids=[
        "gap",
        "open turn",
        "no end",
        "open call",
        "order",
        "lost",
        "twice",
        "no answer",
        "foreign",
        "late",
        "stopped",
    ],
)
def test_the_account_finds_what_is_wrong(spoil: Any, words: str) -> None:
    wrong = complaints_of(spoil(story("1.1", "2.1")), [*asked("1.1", "2.1")], ["1.1", "2.1"])
    assert any(words in line for line in wrong), wrong


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        ([*asked("1.1")], "never reached the model"),
        ([*asked("1.1", "2.1"), *asked("2.1", peer=8)], "sent 2 times"),
        ([*asked("1.1"), *asked("2.1", occurrences=2)], "sent 2 times"),
    ],
    ids=["not sent", "by another process", "again in the history"],
)
def test_the_account_finds_what_was_not_sent_once(requests: list[dict[str, Any]], words: str) -> None:
    wrong = complaints_of(story("1.1", "2.1"), requests, ["1.1", "2.1"])
    assert any(words in line for line in wrong), wrong


def test_a_try_of_the_same_request_is_no_second_sending() -> None:
    requests = [*asked("1.1", "1.1", "1.1")]
    assert sendings(requests)["1.1"].times == 1
    requests[1]["peer"] = 0  # its connection was closed before it was found
    assert sendings(requests)["1.1"].times == 1
    requests[1]["peer"] = requests[0]["peer"] + 1
    assert sendings(requests)["1.1"].times == 2


def test_a_stopped_turn_is_right_when_the_user_may_have_stopped_it() -> None:
    events = story("1.1")
    stopped = numbered([*events[:5], ended("1.1", interrupted=True)])
    assert complaints_of(stopped, [*asked("1.1")], ["1.1"], stoppable=["1.1"]) == []


def test_the_replay_that_differs_is_found() -> None:
    events = story("1.1", "2.1")
    assert account.replay(events, events[:-3])


def test_a_prompt_says_its_plan() -> None:
    plan = {"shape": "tool", "fault": "cut", "at": 1, "times": 9, "place": 40, "pace": 0.05, "sleep": 1.5}
    words = prompt(12, 2, **plan)
    assert tags(f"{words}\n{prompt(13, 1)}") == ["12.2", "13.1"]
    assert plan_of(words.partition(" ")[2]) == Plan(**plan)
    assert plan_of("") == Plan()


def test_a_course_is_decided_by_its_seed() -> None:
    steps = list(course(5, 300))
    assert steps == list(course(5, 300))
    assert steps != list(course(6, 300))
    prompts = [words for step in steps for words in step.prompts]
    assert [tags(words)[0] for words in prompts] == [f"{turn}.1" for turn in range(1, 301)]
    assert {step.kind for step in steps} == set(KINDS)
    faults = {plan_of(words.partition(" ")[2]).fault for words in prompts}
    assert faults == {"", *FAULTS}
    assert second(5, "7.1") == second(5, "7.1") and tags(second(5, "7.1")) == ["7.2"]


def test_what_grows_is_found() -> None:
    def samples(growth: float) -> list[Sample]:
        names = [measure.name for measure in MEASURES]
        return [Sample(turn, dict.fromkeys(names, 100 + growth * turn)) for turn in range(10, 1001, 10)]

    assert [sample.turn for sample in tenth(samples(0), 1)] == list(range(110, 201, 10))
    assert [sample.turn for sample in tenth(samples(0), 9)] == list(range(910, 1001, 10))
    lines, flat = flatness(samples(0))
    assert flat and not any("NOT FLAT" in line for line in lines)
    lines, flat = flatness(samples(0.01))
    assert not flat
    counts = sum(1 for measure in MEASURES if measure.rule == "equal")
    ratios = sum(1 for measure in MEASURES if measure.rule == "ratio")
    assert sum("NOT FLAT" in line for line in lines) == counts + ratios
    memory = next(measure for measure in MEASURES if measure.rule == "ratio")
    assert verdict(memory, [100.0], [100.0 * RATIO]) and not verdict(memory, [100.0], [100.0 * RATIO + 0.1])


def test_the_meter_sees_what_is_there(tmp_path: Path) -> None:
    meter = Meter(data=tmp_path, temporary=tmp_path, agent=lambda: 0, loops=list)
    before = meter.sample(1).values
    kept = [(tmp_path / "file").open("w"), b"x" * (64 << 20)]  # too large for what the heap has left
    after = meter.sample(2).values
    assert after["descriptors"] == before["descriptors"] + 1
    assert after["files"] == after["temporary"] == 1
    assert after["memory"] - before["memory"] > 60 << 20
    assert after["agent_memory"] == 0
    kept[0].close()


# -- the endpoint --------------------------------------------------------------------------------------------


def test_the_endpoint_logs_what_reached_it(tmp_path: Path) -> None:
    with faulty(tmp_path) as server:
        message = {"role": "user", "content": prompt(3, 1, shape="tool", fault="529")}
        body = {
            "model": "m",
            "max_tokens": 10,
            "messages": [message],
            "tools": [{"name": "mcp__sandbox__run_code"}],
        }
        statuses = [post(server, body)[0] for _ in range(2)]
    lines = [json.loads(line) for line in (tmp_path / "requests.jsonl").read_text().splitlines()]
    assert statuses == [529, 200]
    assert [(line["tag"], line["try"], line["fault"]) for line in lines] == [
        ("3.1", 1, "529"),
        ("3.1", 2, ""),
    ]
    assert {line["peer"] for line in lines} != {0}
    assert sendings(lines)["3.1"].times == 1


# -- the runs ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_short_soak_is_flat(tmp_path: Path) -> None:
    soaked = soak(tmp_path / "soak", 60, 2)
    lines, good = soaked.report()
    assert good, "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("app", [False, True], ids=["engine", "application"])
def test_random_faults_lose_nothing(tmp_path: Path, app: bool) -> None:
    outcome = session(tmp_path / "faults", 1, 20, app=app)
    assert not outcome.wrong, "\n".join([*table([outcome]), *outcome.lines, *outcome.wrong])
