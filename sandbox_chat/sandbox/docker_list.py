"""The containers of ours that exist: which there are, which a crashed run has left, and ending them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sandbox_chat.sandbox import docker_program
from sandbox_chat.sandbox.base import SandboxError
from sandbox_chat.sandbox.remote import APP, Remote, is_here, is_left
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean_line

KIND = "docker"
_MOST = 500
_ID = re.compile(r"[0-9a-f]{12,64}")


def list_containers(settings: Settings) -> list[Remote]:
    """Return our containers that the daemon knows, in whatever state. Raises ``SandboxUnavailable`` or ``SandboxError``."""
    answer = docker_program.call(
        settings, ["ps", "--all", "--quiet", "--no-trunc", "--filter", f"label=app={APP}"]
    )
    if answer.code != 0:
        raise docker_program.explain(settings, answer.err)
    ids = [word for word in answer.out.split() if _ID.fullmatch(word)][:_MOST]
    if not ids:
        if answer.out.strip():
            raise _nonsense(settings, answer.out)
        return []
    # One that ends meanwhile is only left out of the answer, which then has an exit code of its own.
    answer = docker_program.call(settings, ["container", "inspect", *ids])
    if answer.code != 0 and "no such" not in answer.err.lower():
        raise docker_program.explain(settings, answer.err)
    try:
        found = json.loads(answer.out or "[]")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise _nonsense(settings, answer.err or answer.out)
    return [remote for entry in found if isinstance(entry, dict) and (remote := _remote(entry)) is not None]


def leftovers(settings: Settings) -> list[Remote]:
    """Return those that a run of the program on this machine has left, so that nobody will end them."""
    return [remote for remote in list_containers(settings) if remote.left]


def kill(settings: Settings, ids: Sequence[str]) -> list[str]:
    """End and remove containers by id or the beginning of one; return those that are gone now.

    Only ours are touched; ids that are not among them are left out of the answer. Raises ``SandboxError`` when
    none could be ended.
    """
    ours = list_containers(settings)
    gone = []
    problem: SandboxError | None = None
    for wanted in ids:
        matches = [remote for remote in ours if wanted and remote.id.startswith(wanted)]
        if len(matches) != 1:
            continue
        answer = docker_program.call(settings, ["rm", "--force", "--volumes", matches[0].id])
        if (
            answer.code == 0
            or "no such container" in answer.err.lower()
            or "already in progress" in answer.err.lower()
        ):
            gone.append(wanted)
        else:
            problem = docker_program.explain(settings, answer.err)
    if problem is not None and not gone:
        raise problem
    return gone


def _nonsense(settings: Settings, said: str) -> SandboxError:
    return SandboxError(
        f"{settings.docker_command} gave a list of containers that makes no sense. Is SANDBOX_CHAT_DOCKER_COMMAND the "
        f"name of Docker or Podman? ({docker_program.shorten(clean_line(said))})"
    )


def _remote(entry: dict[str, Any]) -> Remote | None:
    config, state = entry.get("Config"), entry.get("State")
    labels = config.get("Labels") if isinstance(config, dict) else None
    if not isinstance(labels, dict) or labels.get("app") != APP:
        return None
    marks = {str(name): str(value) for name, value in labels.items()}
    return Remote(
        kind=KIND,
        id=str(entry.get("Id", ""))[:64],
        session=marks.get("session", ""),
        tag=marks.get("tag", ""),
        started=(made := _time(str(entry.get("Created", "")))),
        state=str(state.get("Status", "")) if isinstance(state, dict) else "",
        left=is_left(marks, made),
        here=is_here(marks),
    )


def _time(text: str) -> datetime | None:
    """Read a time as Docker writes it."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.astimezone()
