"""The folder of this machine that code may write, if the user named one: what may be shared, and what never.

What is refused are folders whose files decide what runs outside the sandbox, or with what credentials: then
code could get out by writing there.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from sandbox_chat.sandbox.base import SandboxUnavailable
from sandbox_chat.settings import Settings, config_path

_HOW = "Set SANDBOX_CHAT_SANDBOX_WORKSPACE to another folder, or leave it empty to share none."
_SYSTEM = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
)


def check(settings: Settings) -> Path | None:
    """Return the folder to be shared, without symbolic links, or ``None`` when there is none.

    Raises ``SandboxUnavailable`` with the reason when it must not be shared.
    """
    asked = settings.sandbox_workspace
    if asked is None:
        return None
    try:
        folder = asked.expanduser().resolve(strict=True)
        facts = folder.stat()
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise SandboxUnavailable(
            f"The folder {asked} cannot be shared with the sandbox: {why}. {_HOW}"
        ) from None
    reason = ""
    if not folder.is_dir():
        reason = "it is not a folder"
    elif folder == Path("/") or any(folder == Path(top) or Path(top) in folder.parents for top in _SYSTEM):
        reason = "it belongs to the system"
    elif os.geteuid() == 0 and facts.st_uid == 0:
        reason = (
            "it belongs to root, and this program, which runs as root, lets code run only as an ordinary user. "
            "Give the folder to an ordinary user (chown); code then runs as that user"
        )
    else:
        for name, place in _guarded(settings):
            if place == folder or folder in place.parents:
                reason = f"it holds {name} ({place})"
            elif name in _CLOSED and place in folder.parents:
                reason = f"it lies in {name} ({place})"
            if reason:
                break
    if reason:
        raise SandboxUnavailable(f"The folder {folder} cannot be shared with the sandbox: {reason}. {_HOW}")
    return folder


_CLOSED = (
    "this program's data",
    "this program's cache",
    "this program's configuration",
    "this program's own files",
    "an installed Python",
)


def _guarded(settings: Settings) -> list[tuple[str, Path]]:
    """What a shared folder must not hold, and for the names in ``_CLOSED`` must not lie in either."""
    places: list[tuple[str, Path | str]] = [
        ("your home folder", "~"),
        ("this program's data", settings.data_path),
        ("this program's cache", settings.cache_path),
        ("this program's configuration", config_path(os.environ).parent),
        ("this program's own files", Path(__file__).parents[1]),
        ("an installed Python", sys.prefix),
        ("an installed Python", sys.base_prefix),
    ]
    with contextlib.suppress(OSError):  # it is gone
        places.append(("the working folder", Path.cwd()))  # settings are read from .env there, at every start
    if settings.sandbox_python is not None:
        places.append(("an installed Python", Path(os.path.realpath(settings.sandbox_python)).parents[1]))
        places.append(("an installed Python", settings.sandbox_python.expanduser().absolute().parents[1]))
    found = []
    for name, place in places:
        path = Path(os.path.expanduser(place))  # noqa: PTH111 - never fails
        found.append((name, path.resolve()))
    return found
