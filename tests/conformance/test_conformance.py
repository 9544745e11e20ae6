"""The same cases on every back end. ``report.py`` prints what comes of them as a table.

Without ``-m slow`` a part of the cases runs, on the local back end and on E2B.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance.backends import PLACES, NotHere
from conformance.cases import BACK_ENDS, CASES, Case, cells
from conformance.registry import Ground, Place, a_worker

CASE_LIMIT = 240.0
"""Seconds after which a case has failed, on however slow a machine."""
QUICK = ("local", "e2b")


class Stage:
    """One back end at a time, and the worker that its cases share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._place_stack = contextlib.ExitStack()
        self._worker_stack = contextlib.ExitStack()
        self._missing: dict[str, str] = {}
        self._place: Place | None = None
        self._ground: Ground | None = None

    def place(self, name: str) -> Place:
        """Set ``name`` up, unless it is; skips the test where it cannot be had."""
        if self._place is None or self._place.name != name:
            self.close()
            if name not in self._missing:
                try:
                    self._place = self._place_stack.enter_context(PLACES[name]())
                except NotHere as reason:
                    self._missing[name] = str(reason)
        if name in self._missing:
            pytest.skip(f"not run: {self._missing[name]}")
        assert self._place is not None
        return self._place

    @contextlib.contextmanager
    def ground(self, case: Case, name: str) -> Iterator[Ground]:
        """What ``case`` runs on: the shared worker, or one of its own. One that a case has failed on is not used again."""
        place = self.place(name)
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        if case.alone:
            self.drop()
            with contextlib.ExitStack() as stack:
                yield self._enter(stack, place, folder, case)
            return
        if self._ground is None:
            self._ground = self._enter(self._worker_stack, place, folder, case)
        try:
            yield self._ground
        except BaseException:
            self.drop()
            raise

    def _enter(self, stack: contextlib.ExitStack, place: Place, folder: Path, case: Case) -> Ground:
        try:
            worker, settings = stack.enter_context(a_worker(place, folder, **case.values))
        except NotHere as reason:
            self._missing[place.name] = str(reason)
            pytest.skip(f"not run: {reason}")
        return Ground(place.name, place, folder, worker, settings)

    def drop(self) -> None:
        """Close the shared worker."""
        self._ground = None
        self._worker_stack.close()

    def close(self) -> None:
        """Close what is open."""
        self.drop()
        self._place = None
        self._place_stack.close()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    found = Stage(tmp_path_factory.mktemp("conformance"))
    yield found
    found.close()


def _params() -> list[object]:
    return [
        pytest.param(
            name,
            case,
            id=f"{name}-{case.name}",
            marks=[] if case.fast and name in QUICK else [pytest.mark.slow],
        )
        for name, case in cells()
    ]


@pytest.mark.parametrize(("name", "case"), _params())
async def test_case(stage: Stage, name: str, case: Case) -> None:
    with stage.ground(case, name) as ground:
        await asyncio.wait_for(case.run(ground), CASE_LIMIT)
        ground.place.check(ground.worker)


def test_the_table_is_whole() -> None:
    assert len(CASES) >= 60
    for case in CASES:
        assert {*case.differs, *case.not_there} <= set(BACK_ENDS), case.name
        assert all(reason.endswith(".") for reason in {*case.differs.values(), *case.not_there.values()})
    numbers = {f"S{n}" for n in range(1, 14)} - {"S9", "S11"}  # those two are of the program and of creation
    told = " ".join(case.text for case in CASES)
    assert all(f"({number})" in told for number in numbers), numbers
