"""``--fork`` and ``--read-only``: what goes together, and what each face is told."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox_chat import arguments, cli


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fork"], "--fork needs a session"),
        (["--read-only"], "--read-only needs a session"),
        (["--resume", "a1", "--fork", "--read-only"], "not with both"),
        (["run", "--resume", "a1", "--read-only", "--", "p"], "sessions show ID"),
        (["--plain", "--resume", "--read-only"], "sessions show ID"),
        (["run", "--fork", "p"], "--fork needs a session"),
    ],
)
def test_ways_to_open_a_session_that_cannot_be(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        arguments.parse(words)
    assert left.value.code == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "face", "told"),
    [
        (["--demo", "--resume", "a1"], "ui", {"opening": {}}),
        (["--demo", "--resume", "a1", "--fork"], "ui", {"opening": {"fork": True}}),
        (["--demo", "--read-only", "--resume"], "ui", {"opening": {"read_only": True}}),
        (["--plain", "--demo", "--fork", "--resume", "a1"], "linear", {"fork": True}),
        (["run", "--demo", "--resume", "a1", "--fork", "--", "p"], "headless", {"fork": True}),
        (["run", "--demo", "--resume", "a1", "--", "p"], "headless", {"fork": False}),
    ],
)
def test_the_face_is_told_how(
    words: list[str], face: str, told: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    given: dict[str, Any] = {}

    def run(settings: object, *words: object, **how: Any) -> int:
        given.update(how)
        return 0

    monkeypatch.setattr(importlib.import_module(f"sandbox_chat.{face}"), "run", run)
    monkeypatch.setattr(cli, "_session_to_resume", lambda wanted, root: "a1-session")
    monkeypatch.setattr(cli, "_terminal_problem", lambda: "")
    assert cli.main(words) == 0
    assert given["resume"] == "a1-session"
    assert {name: given[name] for name in told} == told
