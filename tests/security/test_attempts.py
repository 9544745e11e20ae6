"""Every attempt is tried in real sandboxes of each kind: as the present user and, from root, as an ordinary one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from security import report
from security.attempts import ATTEMPTS, THEMES
from security.attempts.base import Attempt
from security.outside import Outcome, Outside, prepared

RUNS = [(kind, who) for kind in report.KINDS for who in report.WHO]
# Attempts that do no harm and that work without isolation: they show that the scripts do what they say.
CONTROLS = (
    "home_file",
    "host_tmp_file",
    "tcp_host_loopback",
    "abstract_socket",
    "service_sockets",
    "see_others",
    "proc_secrets",
    "watch_files",
    "watch_folders",
    "climb",
    "host_users",
    "host_configuration",
    "other_environments",
)
MOST_MEMORY_MB = 300
"""Memory of the program that held the sandboxes, whatever these did: most of it are its own modules."""
SLACK = 60.0
"""Seconds that an attempt may take beyond its time limit on a busy machine, start of the sandbox included."""

Run = Callable[[str, str], Outcome]


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    with prepared() as found:
        yield found


@pytest.fixture(scope="module")
def run(outside: Outside) -> Iterator[Run]:
    """What came of all attempts in sandboxes of a kind as a user; made at first use."""
    made: dict[tuple[str, str], Outcome | str] = {}
    with report.Places() as places:

        def outcome(kind: str, who: str) -> Outcome:
            if (kind, who) not in made:
                reason = places.why_not(kind, who)
                made[kind, who] = reason or places.run(outside, kind, who)
            found = made[kind, who]
            if isinstance(found, str):
                pytest.skip(f"not run: {found}")
            return found

        yield outcome


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "who"), RUNS)
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_attempt(attempt: Attempt, kind: str, who: str, run: Run) -> None:
    if attempt.only and kind not in attempt.only:
        pytest.skip(f"means nothing in {kind}: {attempt.why_only}")
    found = run(kind, who)
    text = found.found[attempt.name]
    assert attempt.verdict(text) in ("refused", "ended", "stopped"), text
    assert found.seconds[attempt.name] < attempt.seconds + SLACK


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "who"), RUNS)
def test_nothing_outside_was_harmed_and_the_program_stayed_small(
    kind: str, who: str, run: Run, outside: Outside
) -> None:
    found = run(kind, who)
    assert len(found.found) > 180
    assert outside.harm() == []
    assert found.memory_mb < MOST_MEMORY_MB


@pytest.mark.slow
def test_the_scripts_would_work_without_isolation(tmp_path: Path) -> None:
    with prepared() as outside:  # a new one: these do reach what lies outside
        found = outside.run("present", "unsafe-local", tmp_path, *CONTROLS).found
    # The guest's own environment holds no credentials even then; its parent's, on the same machine, does.
    assert {name: "WORKED" in found[name] for name in CONTROLS} == dict.fromkeys(CONTROLS, True), found


def test_names_are_unique() -> None:
    assert len({attempt.name for attempt in ATTEMPTS}) == len(ATTEMPTS)
    assert all(attempt.why_only for attempt in ATTEMPTS if attempt.only)


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_each_script_is_python(attempt: Attempt) -> None:
    compile(attempt.code({"PORT": 1}), attempt.name, "exec")
    compile(attempt.first_code({"PORT": 1}), attempt.name, "exec")


def test_the_verdicts() -> None:
    attempt, bounded = Attempt("x", "x", "x"), Attempt("x", "x", "x", "bounded")
    assert attempt.verdict("REFUSED OSError no") == "refused"
    assert attempt.verdict("WORKED 1 REFUSED") == "WORKED"
    assert attempt.verdict("DIED SandboxDied") == attempt.verdict("REFUSED NameError x") == "BROKEN"
    assert attempt.verdict("TIMEOUT REFUSED KeyboardInterrupt") == attempt.verdict("") == "BROKEN"
    assert (bounded.verdict("DIED"), bounded.verdict("TIMEOUT")) == ("ended", "stopped")


def test_the_table_in_the_documentation_has_every_attempt() -> None:
    text = report.present_table()
    assert "0 succeeded" in text, "write it: python tests/security/report.py --write"
    for attempt in ATTEMPTS:
        assert f"| {attempt.tries} |" in text, attempt.name
    assert all(f"**{theme}**" in text for theme in THEMES)
    assert "WORKED" not in text
    assert "BROKEN" not in text


def test_the_ordinary_user_is_one() -> None:
    if os.geteuid() != 0:
        assert report.Places().why_not("local", "ordinary")
