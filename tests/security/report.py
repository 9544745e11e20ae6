"""Tries all attempts in all kinds of sandboxes and shows the table of what came of them.

``python tests/security/report.py`` prints it; ``--write`` puts it into the documentation; ``--kinds local,warm``
restricts it; ``--keep FILE`` adds the outcomes to a file and shows all that is in it. Ends with exit code 1 when one attempt worked or could not be judged.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import platform
import shutil
import sys
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "tests")]

from security import kinds  # noqa: E402 - needs the path
from security.attempts import ATTEMPTS, THEMES  # noqa: E402
from security.outside import ORDINARY_UID, Outcome, Outside, prepared  # noqa: E402
from support import docker_daemon, ordinary  # noqa: E402

KINDS = ("local", "warm", "docker")
WHO = ("present", "ordinary")
DOCUMENT = ROOT / "sandbox_chat" / "SANDBOXES.md"
BEGIN, END = "<!-- escapes -->", "<!-- /escapes -->"
GOOD = ("refused", "ended", "stopped")
_NAMES = {"local": "local, cold", "warm": "local, warm", "docker": "Docker"}


class Places(contextlib.ExitStack):
    """Runs the attempts in sandboxes of each kind; a daemon for containers is started when it is first wanted."""

    def __init__(self) -> None:
        super().__init__()
        self._daemon: docker_daemon.Daemon | str | None = None

    def why_not(self, kind: str, who: str) -> str:
        """Why the attempts cannot be tried there, empty if they can."""
        if who == "ordinary" and os.geteuid() != 0:
            return "the tests run as an ordinary user already"
        if kind == "docker":
            daemon = self._docker()
            return daemon if isinstance(daemon, str) else ""
        return ""

    def run(self, outside: Outside, kind: str, who: str) -> Outcome:
        """Try all attempts."""
        more: dict[str, str] = {}
        if kind == "docker":
            daemon = self._docker()
            assert not isinstance(daemon, str)
            more = {"DOCKER_HOST": daemon.host, kinds.IMAGE: daemon.image}
            if who == "ordinary":
                self.enter_context(_admitted(daemon.host))
        folder = self.enter_context(ordinary.open_folder())
        return outside.run(who, kind, folder, **more)

    def _docker(self) -> docker_daemon.Daemon | str:
        if self._daemon is None:
            try:
                self._daemon = self.enter_context(docker_daemon.daemon())
            except docker_daemon.NotHere as reason:
                self._daemon = str(reason)
        return self._daemon


@contextlib.contextmanager
def _admitted(host: str) -> Any:
    """Give the ordinary user access to the daemon's socket, as a member of its group has."""
    path = Path(host.removeprefix("unix://"))
    before = path.stat()
    shutil.chown(path, group=ORDINARY_UID)
    try:
        yield
    finally:
        shutil.chown(path, group=before.st_gid)


def table(outcomes: dict[tuple[str, str], Outcome | str]) -> str:
    """The table in Markdown: a row for each attempt, a column for each run."""
    ran = {place: found for place, found in outcomes.items() if isinstance(found, Outcome)}
    words = {"present": "root" if os.geteuid() == 0 else "user", "ordinary": "user"}
    lines = []
    total = worked = 0
    for (kind, who), outcome in outcomes.items():
        name = f"{_NAMES[kind]}, started by {words[who]}"
        if isinstance(outcome, str):
            lines.append(f"- {name}: *not run* ({outcome}).")
            continue
        verdicts = [_verdict(outcome, attempt) for attempt in ATTEMPTS]
        tried = sum(1 for verdict in verdicts if verdict != "–")
        bad = sum(1 for verdict in verdicts if verdict != "–" and verdict not in GOOD)
        total, worked = total + tried, worked + bad
        lines.append(f"- {name}: {tried} attempts, {bad} succeeded.")
    lines.insert(0, f"{len(ATTEMPTS)} attempts, {total} tries in all, {worked} succeeded.\n")
    lines += [
        "",
        "*refused*: the attempt fails with an error. *ended*: the sandbox was ended for it, and the next run starts "
        "afresh. *stopped*: the run's time limit stopped it. –: means nothing there.",
        "",
        "| What is tried | " + " | ".join(f"{_NAMES[kind]}, {words[who]}" for kind, who in ran) + " |",
        "| --- |" + " --- |" * len(ran),
    ]
    for theme, attempts in THEMES.items():
        lines.append(f"| **{theme}** |" + " |" * len(ran))
        for attempt in attempts:
            cells = [_verdict(outcome, attempt) for outcome in ran.values()]
            lines.append(f"| {attempt.tries} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _verdict(outcome: Outcome, attempt: Any) -> str:
    return attempt.verdict(outcome.found[attempt.name]) if attempt.name in outcome.found else "–"


def present_table() -> str:
    """What the documentation has now."""
    text = DOCUMENT.read_text() if DOCUMENT.exists() else ""
    return text.partition(BEGIN)[2].partition(END)[0]


def write(text: str) -> None:
    """Put the table into the documentation, between its markers (at the end when there are none)."""
    page = DOCUMENT.read_text() if DOCUMENT.exists() else "# Sandboxes\n"
    if BEGIN not in page:
        page += f"\n## Ways out that were tried\n\n{BEGIN}\n"
    head, _, rest = page.partition(BEGIN)
    tail = rest.partition(END)[2] if END in rest else rest
    DOCUMENT.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail if tail.strip() else chr(10)}")


def _kept(file: Path | None) -> dict[tuple[str, str], Outcome | str]:
    rows = json.loads(file.read_text()) if file is not None and file.exists() else []
    return {(kind, who): found if isinstance(found, str) else Outcome(**found) for kind, who, found in rows}


def _keep(file: Path | None, outcomes: dict[tuple[str, str], Outcome | str]) -> None:
    if file is not None:
        rows = [
            [kind, who, found if isinstance(found, str) else dataclasses.asdict(found)]
            for (kind, who), found in outcomes.items()
        ]
        file.write_text(json.dumps(rows))


def main() -> int:
    """Run as a program; see the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into the documentation")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--keep", type=Path, help="file in which outcomes are kept from call to call")
    chosen = parser.parse_args()
    outcomes = _kept(chosen.keep)
    harm: list[str] = []
    with Places() as places, prepared() as outside:
        for kind in filter(None, chosen.kinds.split(",")):
            for who in WHO:
                outcomes[kind, who] = places.why_not(kind, who) or places.run(outside, kind, who)
        harm = outside.harm()
    outcomes = {place: outcomes[place] for place in product(KINDS, WHO) if place in outcomes}
    _keep(chosen.keep, outcomes)
    text = table(outcomes)
    print(f"Linux {platform.release()}, {platform.machine()}\n{text}")
    bad = {
        f"{kind} {who} {attempt.name}": outcome.found[attempt.name]
        for (kind, who), outcome in outcomes.items()
        if isinstance(outcome, Outcome)
        for attempt in ATTEMPTS
        if _verdict(outcome, attempt) not in (*GOOD, "–")
    }
    for name, found in bad.items():
        print(f"{name}: {found[:500]}", file=sys.stderr)
    for sentence in harm:
        print(f"outside: {sentence}", file=sys.stderr)
    if chosen.write and not (bad or harm):
        write(text)
    return 1 if bad or harm else 0


if __name__ == "__main__":
    sys.exit(main())
