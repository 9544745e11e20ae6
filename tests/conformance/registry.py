"""What a case of the conformance suite is, and what it runs on."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from support.sandboxes import PATIENCE

from sandbox_chat.sandbox import make_worker
from sandbox_chat.sandbox.base import CodeError, Execution
from sandbox_chat.sandbox.skills_folder import Skills
from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Settings

BACK_ENDS = ("local", "warm", "docker", "e2b")
"""Columns of the table: cold local sandbox, one from the warm parent process, Docker, E2B-compatible cloud."""
TITLES = {"local": "local", "warm": "local (warm)", "docker": "Docker", "e2b": "E2B"}
GUESTS = ("local", "warm", "docker")
"""Those that run our own shell inside."""


class Place(Protocol):
    """A back end that can be had here: the settings that choose it, and a way to end a sandbox behind its back."""

    name: str

    def settings(self) -> dict[str, Any]:
        """Values of ``Settings`` that choose this back end."""

    def ready(self, worker: SandboxWorker) -> None:
        """Wait until the next start of this worker is of the kind that is tested."""

    def check(self, worker: SandboxWorker) -> None:
        """Fail when the sandbox that runs is not of the kind that is tested."""

    async def kill_behind(self, worker: SandboxWorker) -> None:
        """End the running sandbox from outside, as a crash or a cloud would."""


@dataclass
class Ground:
    """What one case runs on."""

    name: str
    place: Place
    folder: Path
    worker: SandboxWorker
    settings: Settings

    async def run(self, code: str, timeout: float = PATIENCE, **sinks: Any) -> Execution:
        """Run code in the sandbox, at most ``timeout`` seconds."""
        return await self.worker.run_code(code, timeout=timeout, **sinks)

    async def result(self, code: str) -> str:
        """Run code that must not fail; return the text of its result."""
        done = await self.run(code)
        assert done.ok, done.error or done.stopped
        return done.result_text

    async def fails(self, code: str, timeout: float = PATIENCE) -> CodeError:
        """Run code that must end with an exception of its own, the shell living on; return that."""
        done = await self.run(code, timeout)
        assert done.stopped == "", done
        assert done.error is not None, done
        return done.error

    @contextlib.contextmanager
    def another(
        self,
        on_state: Callable[[str, str], None] | None = None,
        *,
        skills: Skills | None = None,
        **values: Any,
    ) -> Iterator[SandboxWorker]:
        """A second worker of the same back end, with settings of its own."""
        with a_worker(self.place, self.folder, on_state, skills=skills, **values) as (worker, _settings):
            yield worker


@contextlib.contextmanager
def a_worker(
    place: Place,
    folder: Path,
    on_state: Callable[[str, str], None] | None = None,
    *,
    skills: Skills | None = None,
    **values: Any,
) -> Iterator[tuple[SandboxWorker, Settings]]:
    """A worker of ``place``, closed at the end."""
    chosen = {"start_timeout": PATIENCE, "data_dir": folder, **place.settings(), **values}
    settings = Settings(**chosen)
    worker = make_worker(settings, on_state, session_id="conformance", skills=skills)
    assert worker is not None
    try:
        place.ready(worker)
        yield worker, settings
    finally:
        worker.close(timeout=PATIENCE)


Run = Callable[[Ground], Awaitable[None]]


@dataclass(frozen=True)
class Case:
    """One row of the table. Its text is the docstring of the function: what is the same everywhere."""

    name: str
    theme: str
    text: str
    run: Run
    fast: bool = False
    """Run also without ``-m slow``, on the local back end and on E2B."""
    own: bool = False
    """Runs on a worker of its own, because it ruins or closes it."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Settings that the case needs; then the worker is its own too."""
    differs: Mapping[str, str] = field(default_factory=dict)
    """Back end → a sentence that says what is different there, and why. The case expects just that."""
    not_there: Mapping[str, str] = field(default_factory=dict)
    """Back end → a sentence that says why the case has no meaning there."""

    @property
    def alone(self) -> bool:
        """Whether the case needs a worker of its own."""
        return self.own or bool(self.values)


CASES: list[Case] = []


def case(theme: str, **options: Any) -> Callable[[Run], Run]:
    """Enter a function into the table."""

    def enter(function: Run) -> Run:
        name = getattr(function, "__name__", "")
        text = " ".join((function.__doc__ or "").split())
        assert text, f"{name} has no sentence"
        assert all(found.name != name for found in CASES), f"{name} is there twice"
        CASES.append(Case(name, theme, text, function, **options))
        return function

    return enter
