"""Run the conformance suite on every back end and print the table case × back end.

    python tests/conformance/report.py [--back-end NAME]… [-k WORDS] [--keep FILE] [--write]

Cells: ``passed``, ``FAILED``, ``not run`` (the back end cannot be had here; the reason is printed), ``n/a`` (the
case has no meaning there). Exit code 1 when a case failed. ``--write`` puts the table into SANDBOXES.md, and takes
a run of everything; ``--keep FILE`` gathers it from several runs, one back end after the other.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from conformance.document import DOCUMENT, put  # noqa: E402 - needs the path
from conformance.registry import BACK_ENDS, CASES, TITLES, Case  # noqa: E402 - needs the path

CHECKOUT = HERE.parents[1]
NAME = "conformance"
NOT_RUN = "not run"
SIGNS = {"passed": "✓", "FAILED": "**failed**", NOT_RUN: NOT_RUN, "n/a": "n/a"}


@dataclass(eq=False)
class Outcomes:
    """What came of each cell. A pytest plugin."""

    cells: dict[tuple[str, str], str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(BACK_ENDS, 0.0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a phase of a test."""
        found = re.search(r"test_case\[(\w+?)-(\w+)\]$", report.nodeid)
        if found is None:
            return
        back_end, case = found.groups()
        self.seconds[back_end] += report.duration
        cell = (back_end, case)
        if report.failed:
            self.cells[cell] = "FAILED"
        elif report.skipped:
            text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.cells[cell] = NOT_RUN
            self.reasons[back_end] = text.removeprefix("Skipped: ").removeprefix("not run: ")
        elif report.when == "call":
            self.cells.setdefault(cell, "passed")

    def load(self, path: Path) -> None:
        """Begin with what earlier runs have kept in ``path``, if it is there."""
        if not path.exists():
            return
        kept = json.loads(path.read_text(encoding="utf-8"))
        for name, words in kept["cells"].items():
            back_end, case = name.split(" ")
            self.cells[back_end, case] = words
        self.reasons.update(kept["reasons"])
        self.seconds.update(kept["seconds"])

    def save(self, path: Path) -> None:
        """Keep all of it in ``path``."""
        cells = {f"{back_end} {case}": words for (back_end, case), words in self.cells.items()}
        kept = {"cells": cells, "reasons": self.reasons, "seconds": self.seconds}
        path.write_text(json.dumps(kept, indent=1), encoding="utf-8")

    def forget(self, back_ends: Sequence[str]) -> None:
        """Take away what is about to be run again."""
        for name in back_ends:
            self.cells = {cell: words for cell, words in self.cells.items() if cell[0] != name}
            self.reasons.pop(name, None)
            self.seconds[name] = 0.0

    def of(self, back_end: str, case: Case) -> str:
        """The word for a cell; ``not run`` when nothing is known of it."""
        return "n/a" if back_end in case.not_there else self.cells.get((back_end, case.name), NOT_RUN)

    def totals(self, back_end: str) -> Counter[str]:
        """How many cells of a back end came out how."""
        return Counter(self.of(back_end, case) for case in CASES)


def load() -> None:
    """Fill ``CASES``. Not before pytest has begun, which explains failed assertions only in what it has seen loaded."""
    import conformance.cases  # noqa: F401 - that is how they get there


def plain_table(outcomes: Outcomes) -> str:
    """The table for a terminal."""
    width = max(len(case.name) for case in CASES)
    lines = [f"{'case':{width}}  " + "  ".join(f"{TITLES[name]:12}" for name in BACK_ENDS)]
    theme = ""
    for case in CASES:
        if case.theme != theme:
            theme = case.theme
            lines.append(f"-- {theme}")
        lines.append(f"{case.name:{width}}  " + "  ".join(f"{outcomes.of(n, case):12}" for n in BACK_ENDS))
    lines.append("")
    for word in ("passed", "FAILED", NOT_RUN, "n/a"):
        counts = "  ".join(f"{outcomes.totals(name)[word]:<12}" for name in BACK_ENDS)
        lines.append(f"{word:{width}}  {counts}")
    seconds = "  ".join(f"{outcomes.seconds[name]:<12.0f}" for name in BACK_ENDS)
    lines.append(f"{'seconds':{width}}  {seconds}")
    lines += [f"{TITLES[name]} not run: {reason}" for name, reason in outcomes.reasons.items()]
    return "\n".join(line.rstrip() for line in lines)


def notes() -> list[str]:
    """The sentences about what differs or has no meaning, each once, in the order in which the table needs them."""
    found: list[str] = []
    for case in CASES:
        for reasons in (case.differs, case.not_there):
            found += [text for text in reasons.values() if text not in found]
    return list(dict.fromkeys(found))


def rows(cell: dict[tuple[str, str], str]) -> list[str]:
    """The rows of the document's table; ``cell`` has a sign for (back end, case)."""
    sentences = notes()
    head = [
        "| what is the same | " + " | ".join(TITLES[name] for name in BACK_ENDS) + " |",
        "| --- |" + " --- |" * len(BACK_ENDS),
    ]
    body, theme = [], ""
    for case in CASES:
        if case.theme != theme:
            theme = case.theme
            body.append(f"| **{theme}** |" + " |" * len(BACK_ENDS))
        signs = []
        for name in BACK_ENDS:
            reason = case.differs.get(name) or case.not_there.get(name)
            mark = f" ({sentences.index(reason) + 1})" if reason else ""
            signs.append(cell[name, case.name] + mark)
        text = case.text.replace("|", "\\|")
        body.append(f"| {text} | " + " | ".join(signs) + " |")
    return head + body


def document_table(outcomes: Outcomes) -> str:
    """The table for the document, with what is to be known of it."""
    cell = {(n, case.name): SIGNS[outcomes.of(n, case)] for n in BACK_ENDS for case in CASES}
    lines = rows(cell)
    for word, title in (("passed", "passed"), ("FAILED", "failed"), (NOT_RUN, NOT_RUN), ("n/a", "n/a")):
        counts = " | ".join(str(outcomes.totals(name)[word]) for name in BACK_ENDS)
        lines.append(f"| **{title}** | {counts} |")
    lines.append("")
    lines += [f"({number}) {text}" + "\n" for number, text in enumerate(notes(), 1)]
    lines += [f"{TITLES[name]} was not run: {reason}\n" for name, reason in outcomes.reasons.items()]
    return "\n".join(lines).rstrip()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--back-end", action="append", choices=BACK_ENDS, help="only this one (repeatable)")
    parser.add_argument("-k", default="", help="only cases whose name holds these words, as of pytest")
    parser.add_argument("--write", action="store_true", help="put the table into SANDBOXES.md")
    parser.add_argument("--keep", type=Path, help="add to what earlier runs have kept in this file")
    chosen = parser.parse_args()
    if chosen.write and (chosen.k or (chosen.back_end and not chosen.keep)):
        parser.error("--write takes a run of everything, at once or gathered with --keep")
    words = " or ".join(f"{name}-" for name in chosen.back_end or BACK_ENDS)
    expression = f"({words}) and ({chosen.k})" if chosen.k else words
    outcomes = Outcomes()
    if chosen.keep and not chosen.k:
        outcomes.load(chosen.keep)
        outcomes.forget(chosen.back_end or BACK_ENDS)
    options = [
        "-q",
        "--tb=short",
        "-m",
        "slow or not slow",
        "-k",
        expression,
        "-p",
        "no:cacheprovider",
        "-n",
        "0",
    ]
    pytest.main([str(HERE / "test_conformance.py"), "--rootdir", str(CHECKOUT), *options], plugins=[outcomes])
    load()
    print("\n" + plain_table(outcomes))
    failed = any(outcome == "FAILED" for outcome in outcomes.cells.values())
    if chosen.keep and not chosen.k:
        outcomes.save(chosen.keep)
    missing = [name for name in BACK_ENDS if not any(cell[0] == name for cell in outcomes.cells)]
    if chosen.write and missing:
        parser.error(f"nothing is written, as these have no cells yet: {', '.join(missing)}")
    if chosen.write:
        DOCUMENT.write_text(
            put(DOCUMENT.read_text(encoding="utf-8"), NAME, document_table(outcomes)), encoding="utf-8"
        )
    return 1 if failed or not outcomes.cells else 0  # without any cell, the suite itself is broken


if __name__ == "__main__":
    sys.exit(main())
