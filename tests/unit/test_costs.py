"""``sandbox-chat costs``: sums over all sessions."""

from __future__ import annotations

import dataclasses
import json
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.screen import START, turn_finished

from sandbox_chat import costs, words
from sandbox_chat import events as ev
from sandbox_chat.agent.totals import add
from sandbox_chat.cli import main
from sandbox_chat.event_json import to_json
from sandbox_chat.settings import Settings

USAGE = ev.Usage(1000, 20, 300, 4)


@pytest.fixture(autouse=True)
def english() -> Any:
    yield
    words.use("en")


def noon(day: int) -> datetime:
    """Noon of a day of 2026-01, where the tests run, so that no time zone moves it."""
    return datetime(2026, 1, day, 12).astimezone()


def save(
    root: Path, name: str, *turns: tuple[int, str, float | None], demo: bool = False, prompt: str = "hello"
) -> None:
    """Write a session with turns: day, model, cost."""
    folder = root / "sessions" / name
    folder.mkdir(parents=True)
    events: list[ev.Event] = [
        ev.SessionStarted(at=START, session_id=name, model="m", sandbox="local", demo=demo),
        ev.TurnStarted(at=START, turn_id="t", prompt=prompt),
    ]
    totals: dict[str, ev.ModelUse] = {}
    for day, model, cost in turns:
        last = totals.get(model, ev.ModelUse(model, ev.Usage(), 0.0))
        usage = add(last.usage, USAGE)
        known = None if cost is None else (last.cost_usd or 0.0) + cost
        totals[model] = ev.ModelUse(model, usage, known, complete=cost is not None)
        models = tuple(totals.values())
        events.append(turn_finished("t", at=noon(day), usage=USAGE, cost_usd=cost, models=models))
    stamped = (dataclasses.replace(event, seq=number) for number, event in enumerate(events, 1))
    (folder / "events.jsonl").write_text("".join(to_json(event) + "\n" for event in stamped))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    save(tmp_path, "aaaaaaaa-1", (1, "claude-a", 0.5), (2, "claude-a", 0.25), prompt="plot a sine")
    save(tmp_path, "bbbbbbbb-2", (2, "claude-b", 1.0), (3, "own", None), prompt="画一条正弦曲线" * 10)
    save(tmp_path, "cccccccc-3", (3, "demo", None), demo=True)
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], data: Path, *arguments: str, language: str = "en") -> str:
    settings = Settings(data_dir=data, language=language)
    options: dict[str, Any] = dict(zip(arguments[::2], arguments[1::2], strict=True))
    assert costs.run(settings, since=options.get("since"), by=options.get("by", "")) == 0
    return capsys.readouterr().out


def test_all_in_one_row(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, total, *notes = printed(capsys, data).splitlines()
    assert head.split() == ["TURNS", "COST", "IN", "OUT", "CACHE", "READ", "CACHE", "WRITTEN"]
    assert total.split() == ["total", "4", "$1.75", "+", "n/a", "4,000", "80", "1,200", "16"]
    assert notes == [
        "The cost of 1 turn is not known (n/a) and is not in the sums.",
        "1 demo session was left out: the demo costs nothing.",
    ]


def test_by_day_in_order(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split()[:3] for line in printed(capsys, data, "by", "day").splitlines()[1:5]]
    assert rows == [
        ["2026-01-01", "1", "$0.5000"],
        ["2026-01-02", "2", "$1.25"],
        ["2026-01-03", "1", "n/a"],
        ["total", "4", "$1.75"],
    ]


def test_by_model_the_dearest_first(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split()[:3] for line in printed(capsys, data, "by", "model").splitlines()[1:4]]
    assert rows == [["claude-b", "1", "$1.00"], ["claude-a", "2", "$0.7500"], ["own", "1", "n/a"]]


def test_by_session_with_its_title(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, first, second, total, *_ = printed(capsys, data, "by", "session").splitlines()
    assert first.startswith("bbbbbbbb ") and first.endswith("…")
    assert second.startswith("aaaaaaaa ") and second.endswith("plot a sine")
    assert total.startswith("total ")


def test_since_a_day(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, data, "since", "2026-01-02").splitlines()[1].split()[1:3] == ["3", "$1.25"]
    out = printed(capsys, data, "since", "2027-01-01")
    assert out == "Nothing has been spent since 2027-01-01.\n"


def test_nothing_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, tmp_path) == "Nothing has been spent yet.\n"


def test_in_chinese_the_columns_stand_below_each_other(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.cells import cell_len

    head, *rows = printed(capsys, data, "by", "day", language="zh").splitlines()[:5]
    assert head.split()[0] == "日期"
    ends = {cell_len(row[: row.rindex(row.split()[-1]) + len(row.split()[-1])]) for row in (head, *rows)}
    assert len(ends) == 1


def test_as_json(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(data_dir=data)
    assert costs.run(settings, by="day", since="2026-01-02", as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["since"] == "2026-01-02" and told["by"] == "day"
    assert told["rows"][0] == {
        "day": "2026-01-02", "turns": 2, "cost_usd": 1.25, "unknown_turns": 0, "input_tokens": 2000,
        "output_tokens": 40, "cache_read_tokens": 600, "cache_written_tokens": 8,
    }  # fmt: skip
    assert told["total"]["unknown_turns"] == 1
    assert (told["sessions"], told["demo_sessions_left_out"], told["sessions_not_read"]) == (2, 1, 0)


def test_a_session_that_cannot_be_read_is_said(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = costs.read_spending

    def refuse(folder: Path) -> Any:
        if folder.name.startswith("a"):
            raise PermissionError(13, "no")
        return reading(folder)

    monkeypatch.setattr(costs, "read_spending", refuse)
    report = costs.collect(data / "sessions")
    assert (report.sessions, report.damaged) == (1, 1)


def test_a_day_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SANDBOX_CHAT_DATA_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["costs", "--since", "yesterday"]) == 2
    assert "--since must be a day such as 2026-01-31. It is 'yesterday'." in capsys.readouterr().err
    assert main(["costs", "--by", "week"]) == 2
    assert main(["costs", "--json"]) == 0
    assert main(["--resume", "costs"]) == 2


def test_days_are_those_of_this_place(data: Path) -> None:
    report = costs.collect(data / "sessions", since=date(2026, 1, 1) + timedelta(days=2), by="day")
    assert list(report.rows) == ["2026-01-03"]
