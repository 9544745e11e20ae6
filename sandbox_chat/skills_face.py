"""The command ``skills``: what skills and drafts there are, looking at one, promoting it."""

from __future__ import annotations

import json
import os
import sys
from importlib import resources
from typing import TYPE_CHECKING

from sandbox_chat import words
from sandbox_chat.engine_code import skills_folder
from sandbox_chat.settings import Settings
from sandbox_chat.skills import SkillError, Store
from sandbox_chat.text import clean, clean_line
from sandbox_chat.words import tr

if TYPE_CHECKING:
    import argparse

OK, FAILED = 0, 1
EXAMPLES = ("template", "data_processor")
HASH = 12
"""Signs of a hash that are enough on the command line."""


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Do what the arguments of ``skills`` say; return the exit code."""
    words.use(words.choose(settings.language, os.environ))
    store = Store(skills_folder(settings))
    as_json = getattr(options, "json", False)
    try:
        match options.action:
            case "show":
                return _show(store, options.name)
            case "diff":
                return _diff(store, options.name)
            case "promote":
                return _promote(store, options.name, yes=options.yes, digest=options.hash)
            case "discard":
                store.discard(options.name)
                _write(tr("skills.discarded", name=options.name))
            case "remove":
                store.remove(options.name)
                _write(
                    tr(
                        "skills.removed",
                        name=options.name,
                        path=clean_line(str(store.folder / ".versions"), 500),
                    )
                )
            case "search":
                return _list(store, as_json=as_json, query=options.name)
            case "init":
                _init(store)
            case "path":
                _write(str(store.folder))
            case _:
                return _list(store, as_json=as_json)
    except SkillError as problem:
        _say(str(problem))
        return FAILED
    return OK


def _list(store: Store, *, as_json: bool, query: str = "") -> int:
    found = store.search(query) if query else store.skills()
    rows = [
        {
            "name": each.name, "state": each.state, "version": each.version, "about": each.problem or each.first_line,
            "hash": each.digest, "origin": each.origin,
        }
        for each in found
    ]  # fmt: skip
    if not query:
        rows += [
            {
                "name": each.name, "state": "draft", "version": 0, "about": clean_line(each.description, 160),
                "hash": each.digest, "origin": each.origin,
            }
            for each in store.drafts()
        ]  # fmt: skip
    if as_json:
        _write(json.dumps(rows, indent=1, ensure_ascii=False))
        return OK
    if not rows:
        _write(tr("skills.none", path=clean_line(str(store.folder), 500)))
        return OK
    heads = [tr(f"skills.{head}") for head in ("name", "state", "version", "about")]
    table = [heads]
    table += [
        [str(row["name"]), tr(f"skills.state.{row['state']}"), str(row["version"] or ""), str(row["about"])]
        for row in rows
    ]
    from rich.cells import cell_len

    widths = [max(cell_len(line[column]) for line in table) for column in range(3)]
    for line in table:
        cells = [cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=False)]
        _write("  ".join([*cells, line[3]]).rstrip())
    return OK


def _is_draft(store: Store, name: str) -> bool:
    return any(each.name == name for each in store.drafts())


def _show(store: Store, name: str) -> int:
    files = store.files(name, draft=_is_draft(store, name))
    for key, data in sorted(files.items()):
        if not key.startswith("."):
            _write(f"# {clean_line(key, 200)}\n{data.decode('utf-8', 'replace')}")
    return OK


def _look(store: Store, name: str) -> str:
    """Print what a user must know before promoting; returns the digest of what was shown."""
    if not _is_draft(store, name):
        skill = next((each for each in store.skills() if each.name == name), None)
        if skill is None or skill.problem:
            raise SkillError(skill.problem if skill is not None else f"There is no skill or draft {name}.")
    seen = store.look(name)
    _write(seen.difference or tr("skills.same"))
    if seen.origin:
        _write(tr("skills.origin", origin=seen.origin))
    for risk in seen.risks:
        _write(tr("skills.risk", risk=risk))
    if not seen.risks:
        _write(tr("skills.nothing_odd"))
    _write(tr("skills.hash", digest=seen.digest[:HASH]))
    return seen.digest


def _diff(store: Store, name: str) -> int:
    _look(store, name)
    return OK


def _promote(store: Store, name: str, *, yes: bool, digest: str) -> int:
    seen = _look(store, name)
    if digest and (len(digest) < HASH or not seen.startswith(digest)):
        raise SkillError(
            f"What is there now has the hash {seen[:HASH]}, not {clean_line(digest, 64)}. Look at it again."
        )
    if not (yes and digest):
        if not sys.stdin.isatty():
            _say(tr("skills.needs_yes", name=name))
            return FAILED
        sys.stdout.write(tr("skills.ask", name=name))
        sys.stdout.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            _write(tr("skills.not_promoted", name=name))
            return FAILED
    skill = store.promote(name, expected=seen)
    _write(tr("skills.promoted", name=name, version=skill.version))
    return OK


def _init(store: Store) -> None:
    examples = resources.files("sandbox_chat.skills") / "examples"
    for name in EXAMPLES:
        files = {each.name: each.read_bytes() for each in (examples / name).iterdir() if each.is_file()}
        key = "added" if store.add(name, files) else "there"
        _write(tr(f"skills.{key}", name=name, path=clean_line(str(store.folder), 500)))


def _write(text: str) -> None:
    sys.stdout.write(clean(text) + "\n")
    sys.stdout.flush()


def _say(text: str) -> None:
    sys.stderr.write(f"sandbox-chat: {clean(text)}\n")
    sys.stderr.flush()
