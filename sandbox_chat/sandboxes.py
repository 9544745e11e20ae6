"""The sandboxes of ours that are alive in the cloud or in Docker, as text or JSON; and ending them."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sandbox_chat.text import clean, clean_line

if TYPE_CHECKING:
    from sandbox_chat.sandbox.remote import Remote
    from sandbox_chat.settings import Settings

OK, FAILED, USAGE = 0, 1, 2
KINDS = ("e2b", "docker")


def kinds(settings: Settings) -> tuple[str, ...]:
    """Return which kinds are looked at: the one that the settings name, else each that is set up here."""
    if settings.sandbox in KINDS:
        return (settings.sandbox,)
    import shutil

    found = ("e2b",) if settings.e2b_api_key else ()
    return (*found, "docker") if shutil.which(settings.docker_command) else found


def print_list(settings: Settings, *, as_json: bool = False) -> int:
    """Print all of ours; return the exit code: 1 when one kind could not be asked."""
    looked = kinds(settings)
    if not looked:
        _say("Neither a cloud (E2B_API_KEY) nor Docker is set up here, so there are no sandboxes to list.")
        if as_json:
            sys.stdout.write("[]\n")
        return OK
    found, asked, failed = _all(settings, looked)
    if as_json:
        sys.stdout.write(json.dumps([_plain(one) for one in found], indent=1) + "\n")
    elif found:
        sys.stdout.write("".join(line + "\n" for line in _table(found)))
        if any(one.left for one in found):
            sys.stdout.write("Those of a crashed run are ended with: sandbox-chat sandboxes kill --left\n")
    elif not failed:
        sys.stdout.write(f"No sandbox of ours is alive ({', '.join(asked)}).\n")
    sys.stdout.flush()
    return FAILED if failed else OK


def end(settings: Settings, ids: Sequence[str], *, left: bool = False, everything: bool = False) -> int:
    """End sandboxes by id (or the beginning of one), those of crashed runs, or all; return the exit code."""
    from sandbox_chat import sandbox
    from sandbox_chat.sandbox.base import SandboxError

    looked = kinds(settings)
    if not looked:
        _say("Neither a cloud (E2B_API_KEY) nor Docker is set up here, so there is nothing to end.")
        return FAILED
    found, _, failed = _all(settings, looked)
    if everything:
        wanted = found
    elif left:
        wanted = [one for one in found if one.left]
    else:
        wanted = []
        for word in ids:
            matches = [one for one in found if one.id.startswith(word)]
            if len(matches) == 1:
                wanted += [one for one in matches if one not in wanted]
                continue
            failed = True
            what = "Several sandboxes of ours begin" if matches else "No sandbox of ours begins"
            _say(f"{what} with {clean_line(word)!r}. See: sandbox-chat sandboxes list")
    for one in wanted:
        try:
            gone = sandbox.end(settings, [one])
        except SandboxError as error:
            _say(settings.scrub(str(error)))
            gone = []
        if gone:
            sys.stdout.write(f"ended {one.kind} {clean_line(one.id)}\n")
        else:
            failed = True
            _say(f"The sandbox {clean_line(one.id)} ({one.kind}) could not be ended.")
    if not wanted and not failed:
        sys.stdout.write("There is nothing to end.\n")
    sys.stdout.flush()
    return FAILED if failed else OK


def _all(settings: Settings, looked: Sequence[str]) -> tuple[list[Remote], list[str], bool]:
    """All of ours of some kinds, the kinds that answered, and whether one failed; that is said on stderr."""
    from sandbox_chat import sandbox
    from sandbox_chat.sandbox.base import SandboxError

    found: list[Remote] = []
    asked: list[str] = []
    failed = False
    for kind in looked:
        try:
            found += sandbox.remotes(settings, kind)
            asked.append(kind)
        except SandboxError as error:
            # A daemon that happens not to run is no trouble of who uses another kind.
            if len(looked) > 1 and kind == "docker":
                _say("Docker could not be asked; with --sandbox docker it is said why.")
                continue
            failed = True
            _say(settings.scrub(str(error)))
    return found, asked, failed


def _plain(one: Remote) -> dict[str, object]:
    plain = dataclasses.asdict(one)
    for name in ("started", "ends"):
        value = plain[name]
        plain[name] = value.astimezone(UTC).isoformat() if isinstance(value, datetime) else None
    return plain


def _table(found: Sequence[Remote]) -> Iterator[str]:
    rows = [("KIND", "ID", "STARTED", "ENDS", "STATE", "MADE BY", "SESSION", "TAG")]
    for one in found:
        whose = "a crashed run" if one.left else "this machine" if one.here else "another machine"
        rows.append(
            (
                one.kind,
                clean_line(one.id)[:20],
                _local(one.started),
                _local(one.ends),
                clean_line(one.state),
                whose,
                clean_line(one.session)[:8],
                clean_line(one.tag),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(8)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _local(time: datetime | None) -> str:
    return f"{time.astimezone():%Y-%m-%d %H:%M}" if time is not None else ""


def _say(text: str) -> None:
    sys.stderr.write(f"sandbox-chat: {clean(text)}\n")
