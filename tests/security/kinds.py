"""The kinds of sandbox in which the attempts are made, each by its name.

``local``: bubblewrap, started cold. ``warm``: a child of the warm parent process, one parent for all of them.
``docker``: a container of the daemon that ``DOCKER_HOST`` names.
``unsafe-local``: no isolation, to show that the attempts do what they say.
"""

from __future__ import annotations

import dataclasses
import os

from sandbox_chat.sandbox.base import Sandbox
from sandbox_chat.sandbox.local import LocalSandbox, UnsafeLocal
from sandbox_chat.settings import Settings

KINDS = ("local", "warm", "docker", "unsafe-local")
IMAGE = "SANDBOX_CHAT_DOCKER_IMAGE"
"""Variable that names the image of containers."""
_parents: list[object] = []


def make(kind: str, settings: Settings) -> Sandbox:
    """Return a sandbox of that kind, not started. Warm ones come from one parent; ``finish`` ends it."""
    if kind == "unsafe-local":
        return UnsafeLocal(settings)
    if kind == "local":
        return LocalSandbox(settings)
    if kind == "warm":
        return _warm(dataclasses.replace(settings, sandbox_warm=True))
    if kind == "docker":
        from sandbox_chat.sandbox import docker

        image = os.environ.get(IMAGE, "")
        return docker.back_end(dataclasses.replace(settings, sandbox="docker", docker_image=image)).factory()
    raise ValueError(f"there is no kind {kind!r}")


def _warm(settings: Settings) -> Sandbox:
    from sandbox_chat.sandbox.warm import Warm

    if not _parents:
        parent = Warm(settings)
        _parents.append(parent)
        parent.start(delay=0.0)
        if not parent.wait(settings.start_timeout):
            raise RuntimeError(f"there is no warm parent: {parent.state}")
    parent = _parents[0]
    assert isinstance(parent, Warm)
    return LocalSandbox(settings, warm=parent, only_warm=True)


def finish() -> None:
    """End what ``make`` has kept for the sandboxes."""
    while _parents:
        parent = _parents.pop()
        close = getattr(parent, "close")  # noqa: B009 - the type is imported only where it is used
        close()
