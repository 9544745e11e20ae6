"""Which calls of a session become cells that run, so that a notebook runs from its top to its end.

Successful calls do. A call that failed has often set names first, which later calls use: then what ran of it before
it failed is a cell too. Names that nothing in the notebook sets are told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sandbox_chat.journal.export.items import Attachment, Call, Item
from sandbox_chat.journal.export.names import Names, lines_run, names_of, needed, outside_packages

WORKSPACE = "/workspace"
"""The user's folder as code in the sandbox sees it."""


@dataclass(slots=True)
class _Seen:
    number: int
    ok: bool
    fresh: bool
    names: Names
    run: int = 0
    """Lines of a failed call that ran whole."""
    whole: Names = field(default_factory=Names)
    """Names of all of its code."""


@dataclass
class Plan:
    """What a notebook holds beside its successful calls, and what it lacks.

    ``run`` are the lines of failed calls that had run, by the call's number, 0 where that is not known; ``wanted`` the
    failed calls that later ones need. ``unset`` are names that are needed and that nothing sets.
    """

    run: dict[int, int] = field(default_factory=dict)
    wanted: set[int] = field(default_factory=set)
    failed: int = 0
    unset: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    attached: dict[str, int] = field(default_factory=dict)
    """Size in bytes by path in the sandbox."""
    written: dict[str, int] = field(default_factory=dict)
    downloaded: dict[str, None] = field(default_factory=dict)
    workspace: bool = False


def plan(items: Iterable[Item], *, include_failed: bool) -> Plan:
    """Read a session and plan its notebook."""
    made = Plan()
    seen: list[_Seen] = []
    nested: set[int] = set()
    for item in items:
        if isinstance(item, Attachment) and not item.event.error:
            made.attached[item.event.path] = item.event.size
        if not isinstance(item, Call):
            continue
        if item.code:
            seen.append(_look(item))
            if item.nested:
                nested.add(item.number)
            made.workspace |= WORKSPACE in item.code
        elif item.outcome == "ok":
            _note_file(item, made)
    _wanted(seen, made, include_failed=include_failed)
    modules: set[str] = set()
    for call in seen:
        if call.ok or call.number in made.wanted:
            modules |= call.names.modules
        if not call.ok and call.number not in nested:
            made.failed += 1
            made.run[call.number] = call.run
    made.packages = outside_packages(frozenset(modules))
    made.unset = _unset(seen, made)
    return made


def _look(call: Call) -> _Seen:
    whole = names_of(call.code)
    if call.nested:  # it needs servers that are not there when the notebook runs
        return _Seen(call.number, False, call.fresh, Names(), 0, whole)
    if call.outcome == "ok":
        return _Seen(call.number, True, call.fresh, whole)
    run = lines_run(call.code, call.section("traceback")) or 0
    names = names_of("\n".join(call.code.split("\n")[:run])) if run else Names()
    return _Seen(call.number, False, call.fresh, names, run, whole)


def _note_file(call: Call, made: Plan) -> None:
    path = call.input.get("path")
    if not isinstance(path, str):
        return
    if call.name == "write_file":
        made.written[path] = len(str(call.input.get("content", "")).encode("utf-8", "replace"))
    elif call.name == "download_file":
        made.downloaded[path] = None


def _wanted(seen: list[_Seen], made: Plan, *, include_failed: bool) -> None:
    """Find the failed calls that later ones need: backwards, with the names that are still to be set."""
    live: set[str] = set()
    for call in reversed(seen):
        names = call.names
        if call.ok:
            live = (live - names.sets) | needed(names)
        elif call.run and (include_failed or live & (names.binds | names.touches)):
            made.wanted.add(call.number)
            live = (live - names.sets) | needed(names)
        if call.fresh:
            live.clear()


def _unset(seen: list[_Seen], made: Plan) -> list[str]:
    """Return the names that a cell needs, that no cell before it sets, and that code which is left out has set."""
    there: set[str] = set()
    lost: set[str] = set()
    found: dict[str, None] = {}
    for call in seen:
        if call.fresh:
            there.clear()
            lost.clear()
        if call.ok or call.number in made.wanted:
            found.update(dict.fromkeys(sorted(call.names.needs & (lost - there))))
            there |= call.names.binds
        if not call.ok:
            lost |= call.whole.binds
    return list(found)
