"""The list of MCP servers that are known, as text or JSON."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sandbox_chat.mcp.config import CATALOGUE, Known, fault_of, look, not_taken
from sandbox_chat.mcp.entry import Entry
from sandbox_chat.mcp.variables import masked
from sandbox_chat.mcp_face.said import cells, padded, risk_of, say
from sandbox_chat.settings import ConfigError, Settings
from sandbox_chat.text import clean, clean_line
from sandbox_chat.words import tr

HOW_LIMIT = 300
"""Characters of how a server is started that the table shows."""


def print_list(settings: Settings, environ: Mapping[str, str], folder: Path, *, as_json: bool) -> int:
    """Print all servers that are known; return the exit code. Raises ``ConfigError`` when a file cannot be used."""
    survey = look(settings, environ, folder)
    warnings = [*survey.warnings, *survey.unknown]
    own = {each.name: each.entry for each in survey.servers.values()}
    left = [
        each for each in not_taken(settings, folder, warnings) if not _same(each.entry, own.get(each.name))
    ]
    known = sorted(survey.servers.values(), key=lambda each: not each.on)
    if as_json:
        found = [_json(each, settings, environ) for each in (*known, *left)]
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
    else:
        sys.stdout.write("".join(clean(line) + "\n" for line in _lines(known, left, settings, environ)))
    sys.stdout.flush()
    for warning in dict.fromkeys(warnings):
        if as_json or all(warning != each.problem for each in known):  # those stand in the table
            say(settings, warning)
    return 0


def _lines(
    known: Sequence[Known], left: Sequence[Known], settings: Settings, environ: Mapping[str, str]
) -> Iterator[str]:
    rows = [[tr(f"mcp_face.{head}") for head in ("name", "state", "source", "how")]]
    rows += [_row(each, environ, settings.data_path) for each in (*known, *left)]
    widths = [max(cells(row[column]) for row in rows) for column in range(3)]
    notes = [[], *(list(_notes(each, settings, environ)) for each in (*known, *left))]
    for row, more in zip(rows, notes, strict=True):
        yield "  ".join(
            [*(padded(cell, width) for cell, width in zip(row, widths, strict=False)), row[3]]
        ).rstrip()
        for note in more:
            yield " " * (widths[0] + 2) + note
    if left:
        yield tr("mcp_face.not_taken", path=clean_line(left[0].source, 500))
    if settings.sandbox_mcp:
        yield tr(
            "mcp_face.in_sandbox", names=", ".join(clean_line(name, 60) for name in settings.sandbox_mcp)
        )
    yield tr("mcp_face.how_to")


def _same(one: Entry | None, other: Entry | None) -> bool:
    """Has the user taken over just that?"""
    return one is not None and other is not None and one.how() == other.how() and one.env == other.env


def _row(known: Known, environ: Mapping[str, str], data: Path) -> list[str]:
    source = tr("mcp_face.catalogue") if known.source == CATALOGUE else clean_line(known.source, 200)
    how = clean_line(how_of(known, environ, data), HOW_LIMIT)
    return [clean_line(known.name, 64), tr(f"mcp_face.state.{state_of(known)}"), source, how]


def _notes(known: Known, settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    if known.problem:
        yield clean_line(settings.scrub(known.problem), 600)
    if known.listed is not None:
        status, risk = tr(f"mcp_face.status.{known.listed.status}"), risk_of(known.listed)
        if successor := known.listed.successor:
            yield clean_line(tr("mcp_face.note_replaced", status=status, risk=risk, name=successor), 600)
        else:
            yield clean_line(tr("mcp_face.note", status=status, risk=risk), 600)
    if needs := missing(known, environ):
        yield tr("mcp_face.needs", names=", ".join(needs))
    elif known.on and not known.problem and (problem := fault_of(known, environ, settings.data_path)):
        yield clean_line(settings.scrub(problem), 600)
    if known.hides:
        yield tr("mcp_face.hides", sources=", ".join(clean_line(each, 200) for each in known.hides))


def state_of(known: Known) -> str:
    """Return the word for its state: ``on``, ``off``, ``disabled``, ``wrong``, ``not_taken``."""
    if known.origin == "folder":
        return "not_taken"
    if known.problem:
        return "wrong"
    if known.on:
        return "on"
    return "disabled" if known.entry is not None and known.entry.disabled else "off"


def how_of(known: Known, environ: Mapping[str, str], data: Path) -> str:
    """Return how a server is started or reached in one line, without credentials."""
    if known.problem:
        return ""
    if known.listed is None:
        return known.entry.how() if known.entry is not None else ""
    from_catalogue = f"{known.listed.registry} {known.listed.package} {known.listed.version}"
    if not known.on and known.entry is None:  # asking how it would be started may make its folder
        return from_catalogue
    try:
        return masked(shlex.join(known.config(environ, data).command))
    except ConfigError:
        what = known.entry.how() if known.entry is not None else known.listed.program
        return f"{what} ({from_catalogue})"


def missing(known: Known, environ: Mapping[str, str]) -> list[str]:
    """Return what a server needs and does not have: variables by their names, properties as they are given."""
    needs = known.unset(environ)
    if known.listed is not None and not needs:
        properties = dict(known.entry.properties) if known.entry is not None else {}
        given = dict(known.entry.env) if known.entry is not None else {}
        variables = {item.variable for item in known.listed.variables}
        found = known.listed.missing(properties, {**environ, **given})
        needs = [name if name in variables else f"--property {name}=…" for name in found]
    return needs


def _json(known: Known, settings: Settings, environ: Mapping[str, str]) -> dict[str, Any]:
    listed = known.listed
    is_address = known.entry is not None and bool(known.entry.url)
    return {
        "name": clean_line(known.name, 64),
        "state": state_of(known),
        "on": known.on,
        "origin": known.origin,
        "source": clean(known.source),
        "transport": "http" if is_address else "stdio",
        "how": how_of(known, environ, settings.data_path),
        "status": listed.status if listed is not None else None,
        "risk": listed.risk if listed is not None else None,
        "reaches": list(listed.reaches) if listed is not None else None,
        "missing": missing(known, environ),
        "problem": settings.scrub(known.problem)
        or (fault_of(known, environ, settings.data_path) if known.on else ""),
        "hides": list(known.hides),
    }
