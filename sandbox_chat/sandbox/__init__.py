"""Where code runs. Knows nothing of the agent SDK and can be used alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox_chat.sandbox.base import BackEnd
    from sandbox_chat.sandbox.kept_workspace import KeptWorkspace
    from sandbox_chat.sandbox.remote import Remote
    from sandbox_chat.sandbox.skills_folder import Skills, SkillsFolder
    from sandbox_chat.sandbox.worker import SandboxWorker
    from sandbox_chat.settings import Settings

__all__ = ["end", "leftovers", "limits_report", "make_worker", "probe", "remotes", "warm_report"]


def probe(settings: Settings) -> tuple[bool, str]:
    """Try for real whether the local sandbox works here; returns that and a sentence. Takes about a second."""
    from sandbox_chat.sandbox import local

    return local.probe(settings)


def limits_report(settings: Settings) -> list[str]:
    """Return which limits the code has under these settings on this machine, a sentence each. Starts nothing."""
    from sandbox_chat.sandbox import notes

    return notes.report(settings)


def remotes(settings: Settings, kind: str, *, session_id: str = "") -> list[Remote]:
    """Return all sandboxes of ours of a kind (``e2b``, ``docker``) that are alive; of other kinds there are none.

    Blocks until the cloud or the daemon has answered. Raises ``SandboxError`` with a sentence.
    """
    if kind == "e2b":
        from sandbox_chat.sandbox import e2b_list

        return e2b_list.list_sandboxes(settings, session_id)
    if kind == "docker":
        from sandbox_chat.sandbox import docker_list

        return docker_list.list_containers(settings)
    return []


def leftovers(settings: Settings, *, session_id: str = "") -> list[Remote]:
    """Return those of the settings' kind that a crashed run has left: nobody else will end them.

    ``session_id``: a chat that is open here; what another process made for it counts as left. Blocks, see ``remotes``.
    """
    return [found for found in remotes(settings, settings.sandbox, session_id=session_id) if found.left]


def end(settings: Settings, wanted: Sequence[Remote]) -> list[Remote]:
    """End sandboxes that ``remotes`` gave; return those that are gone now. Blocks.

    Tries each; raises the last ``SandboxError`` only when none could be ended.
    """
    from sandbox_chat.sandbox.base import SandboxError

    gone: list[Remote] = []
    problem: SandboxError | None = None
    for one in wanted:
        try:
            if one.kind == "e2b":
                from sandbox_chat.sandbox import e2b_list

                e2b_list.kill(settings, one.id)
                gone.append(one)
            elif one.kind == "docker":
                from sandbox_chat.sandbox import docker_list

                if docker_list.kill(settings, [one.id]):
                    gone.append(one)
        except SandboxError as error:
            problem = error
    if problem is not None and not gone:
        raise problem
    return gone


def warm_report(settings: Settings) -> tuple[bool, str]:
    """Try for real whether local sandboxes are ready at once here; returns that and a sentence. Takes some seconds."""
    from sandbox_chat.sandbox import warm

    return warm.report(settings)


def make_worker(
    settings: Settings,
    on_state: Callable[[str, str], None] | None = None,
    *,
    session_id: str = "",
    skills: Skills | None = None,
    kept: KeptWorkspace | None = None,
) -> SandboxWorker | None:
    """Return the worker of the back end that the settings name, or ``None`` for ``off``. Starts nothing.

    ``session_id`` marks what is made in a cloud or in Docker, so that it can be found again. ``skills`` gives what code sees
    in ``/skills``, in code mode; ``kept`` keeps what is in ``/workspace``. Raises ``SandboxUnavailable`` with advice for a
    kind that this machine or these settings cannot have.
    """
    folder = None
    if skills is not None and settings.code_mode != "off":
        from sandbox_chat.sandbox.skills_folder import SkillsFolder

        folder = SkillsFolder(skills)
    back_end = _back_end(settings, session_id, folder)
    if back_end is None:
        return None
    from sandbox_chat.sandbox.worker import SandboxWorker

    def close() -> None:
        try:
            if back_end.on_close is not None:
                back_end.on_close()
        finally:
            if folder is not None:
                folder.close()

    return SandboxWorker(
        back_end.factory, info=back_end.info, on_state=on_state, on_close=close, warm=back_end.warm, kept=kept
    )


def _back_end(settings: Settings, session_id: str, skills: SkillsFolder | None) -> BackEnd | None:
    if settings.sandbox == "off":
        return None
    if settings.sandbox == "e2b":
        from sandbox_chat.sandbox import e2b

        return e2b.back_end(settings, session_id, skills)
    if settings.sandbox == "docker":
        from sandbox_chat.sandbox import docker

        return docker.back_end(settings, session_id, skills)
    from sandbox_chat.sandbox import local

    return local.back_end(settings, session_id, skills)
