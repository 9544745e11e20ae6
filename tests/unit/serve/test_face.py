"""The arguments of ``serve``, its metrics, and what must be right before it listens."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.http_serving import adds_up, counts_of

from sandbox_chat.arguments import parse
from sandbox_chat.events import (
    Event,
    NestedFinished,
    NestedStarted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnSettled,
    Usage,
)
from sandbox_chat.serve import face, metrics
from sandbox_chat.serve.metrics import Metrics, Tally
from sandbox_chat.settings import ConfigError, Secret, Settings


def test_the_arguments() -> None:
    found = parse(
        ["serve", "--http", "[::1]:8080", "--no-auth", "--allow", "mcp", "--allow", "overwrite", "--demo"]
    )
    assert (found.command, found.http, found.no_auth, found.allow) == (
        "serve",
        "[::1]:8080",
        True,
        ["mcp", "overwrite"],
    )
    assert (found.token_file, found.log_json, found.demo) == ("", False, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve"],
        ["serve", "--http"],
        ["--resume", "serve", "--http", "0"],
        ["serve", "--http", "0", "x"],
        ["serve", "--http", "0", "--allow", "all"],
    ],
)
def test_arguments_that_are_wrong(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        parse(arguments)
    assert left.value.code == 2 and len(capsys.readouterr().err.splitlines()) == 1


def test_a_token_that_can_be_guessed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="shorter than 16 signs"):
        face._token(Settings(data_dir=tmp_path, http_token=Secret("x" * 15)), "")
    token, said = face._token(Settings(data_dir=tmp_path, http_token=Secret("x" * 16)), "")
    assert token.reveal() == "x" * 16 and "x" * 16 not in said
    made, said = face._token(Settings(data_dir=tmp_path), "")
    assert len(made.reveal()) >= 32 and str(tmp_path / face.TOKEN_FILE) in said


def test_no_auth_is_for_this_computer(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    with pytest.raises(ConfigError, match="--no-auth is for this computer only"):
        face._listen(settings, "0.0.0.0", 0, no_auth=True)
    for host in ("127.0.0.1", "localhost"):
        listener, loopback = face._listen(settings, host, 0, no_auth=True)
        listener.close()
        assert loopback


# --- metrics --------------------------------------------------------------------------------------------


def turn(usage: Usage, cost: float | None, turn_id: str = "t") -> TurnFinished:
    return TurnFinished(
        turn_id=turn_id, subtype="success", is_error=False, interrupted=False, num_turns=1, duration_ms=1,
        cost_usd=cost, total_cost_usd=cost, usage=usage,
    )  # fmt: skip


def counted(*events: Event) -> dict[str, float]:
    found = Metrics(lambda: 1, lambda: 2, lambda: 3)
    tally = Tally(found)
    for event in events:
        tally.take(event)
    return counts_of(found.text().decode())


def test_what_there_is_is_counted_at_the_scrape() -> None:
    counts = counted()
    assert (counts["tasks_running"], counts["tasks_queued"], counts["sessions"]) == (1, 2, 3)
    assert counts['tasks_finished_total{outcome="timeout"}'] == 0 and not adds_up(counts)


def test_figures_that_are_settled_later_count_once() -> None:
    counts = counted(
        turn(Usage(1, 2, 3, 4), 0.5),
        turn(Usage(10, 0, 0, 0), None, "u"),
        TurnSettled(turn_id="u", cost_usd=0.25, total_cost_usd=0.75, usage=Usage(10, 7, 0, 0)),
        TurnSettled(turn_id="other", cost_usd=9.0, total_cost_usd=9.0, usage=Usage(9, 9, 9, 9)),
    )
    kinds = ("input", "output", "cache_read", "cache_creation")
    assert [counts[f'tokens_total{{kind="{kind}"}}'] for kind in kinds] == [11, 9, 3, 4]
    assert counts["cost_usd_total"] == 0.75


def test_calls_are_counted_by_tool_and_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "NAMES", 2)
    calls: list[Event] = []
    for number, name in enumerate(("a", "a", "b", "made up", "made up too")):
        calls.append(ToolStarted(tool_use_id=str(number), name=name, input={}))
        calls.append(
            ToolFinished(
                tool_use_id=str(number),
                is_error=number == 1,
                interrupted=number == 2,
                content=(),
                duration_ms=1,
            )
        )
    calls.append(NestedStarted(tool_use_id="0", call_id="n", name="a", input={}))
    calls.append(NestedFinished(tool_use_id="0", call_id="n", is_error=True, content=(), duration_ms=1))
    counts = counted(*calls)
    found = {name: value for name, value in counts.items() if "calls_total" in name}
    assert found == {
        'tool_calls_total{outcome="ok",tool="a"}': 1,
        'tool_calls_total{outcome="error",tool="a"}': 1,
        'tool_calls_total{outcome="interrupted",tool="b"}': 1,
        'tool_calls_total{outcome="ok",tool="other"}': 2,
        'nested_calls_total{outcome="error",tool="a"}': 1,
    }
