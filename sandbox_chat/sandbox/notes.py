"""The limits in words: which one a run came up against, told from what it left behind, and which hold here."""

from __future__ import annotations

from sandbox_chat.sandbox import cgroups
from sandbox_chat.sandbox.base import Execution
from sandbox_chat.settings import Settings

_TAIL = 20_000  # characters at the end of standard error that are looked at
_TOO_MANY = ("can't start new thread", "Cannot fork", "fork: retry", "pthread_create failed")
_REFUSED = "Resource temporarily unavailable"  # said of a socket that has nothing, too
_STARTS = ("fork", "spawn", "Popen", "start_new_thread")
_TOO_LARGE = ("File too large", "File size limit exceeded", "SIGXFSZ")
_FULL = ("No space left on device",)
_MEMORY = ("MemoryError", "Cannot allocate memory", "std::bad_alloc")


def of_limits(
    done: Execution, settings: Settings, *, at_process_limit: bool, isolated: bool
) -> tuple[str, ...]:
    """Return a sentence for each limit of ``settings`` that shows in ``done``.

    ``at_process_limit``: it was seen from outside that no more processes could be started. ``isolated``: the
    limits on processes and on room for files hold here.
    """
    if done.stopped == "died":
        return ()
    error = "" if done.error is None else f"{done.error.name}: {done.error.value}"
    said = f"{error}\n{done.stderr[-_TAIL:]}"

    def holds(words: tuple[str, ...]) -> bool:
        return any(word in said for word in words)

    notes = []
    trace = "" if done.error is None else done.error.traceback
    refused = _REFUSED in error and any(word in trace for word in _STARTS)
    if at_process_limit or (isolated and (refused or holds(_TOO_MANY))):
        notes.append(
            f"Too many processes: the limit of {settings.sandbox_processes:,} processes and threads was reached; "
            "further ones were refused (SANDBOX_CHAT_SANDBOX_PROCESSES)."
        )
    if holds(_TOO_LARGE):
        notes.append(
            f"A file grew up to the limit of {settings.sandbox_file_mb:,} MB for one file "
            "(SANDBOX_CHAT_SANDBOX_FILE_MB)."
        )
    if isolated and holds(_FULL):
        notes.append(
            f"The sandbox has no more room for files: {_room(settings)} {settings.sandbox_disk_mb:,} MB "
            "(SANDBOX_CHAT_SANDBOX_DISK_MB), the home folder and /dev/shm less; very many small files fill them too. "
            "Delete what is not needed."
        )
    if holds(_MEMORY):
        notes.append(
            f"The code wanted more memory than it may have, {settings.sandbox_memory_mb:,} MB in all "
            "(SANDBOX_CHAT_SANDBOX_MEMORY_MB). Variables are kept."
        )
    return tuple(notes)


def of_file(problem: str, settings: Settings) -> str:
    """Return what to add to ``problem``, the sentence of a file operation that failed: the limit that it met."""
    low = problem.lower()
    if _TOO_LARGE[0].lower() in low:
        return f" One file may have {settings.sandbox_file_mb:,} MB (SANDBOX_CHAT_SANDBOX_FILE_MB)."
    if _FULL[0].lower() in low:
        return f" {_room(settings)} {settings.sandbox_disk_mb:,} MB (SANDBOX_CHAT_SANDBOX_DISK_MB). Delete what is not needed."
    return ""


def _room(settings: Settings) -> str:
    return "/tmp holds" if settings.sandbox_workspace is not None else "/tmp and /workspace each hold"  # noqa: S108 - inside


def report(settings: Settings) -> list[str]:
    """Return what limits the code under these settings on this machine, a sentence each."""
    if settings.sandbox in ("off", "e2b"):
        return []
    memory = f"All processes of a sandbox together have at most {settings.sandbox_memory_mb:,} MB of memory"
    processes = f"At most {settings.sandbox_processes:,} processes and threads run in it"
    found = []
    controllers: tuple[str, ...] = ("memory", "pids", "cpu")
    if settings.sandbox == "docker":
        found += [f"{memory} (kept by the container).", f"{processes} (kept by the container)."]
    else:
        place = cgroups.find()
        controllers = () if place is None else place.controllers
        how = (
            "seen to about 30 times a second; for a moment it may be passed, as no control groups can be had here"
            if place is None
            else f"kept by a control group, version {place.version}"
        )
        found.append(f"{memory} ({how}).")
        found.append(
            f"{processes} (kept by the kernel)."
            if settings.sandbox == "local" or "pids" in controllers
            else f"{processes}; with more, it is ended."
        )
    if settings.sandbox_cpus:
        found.append(
            f"It uses at most {settings.sandbox_cpus:g} processors."
            if "cpu" in controllers
            else "SANDBOX_CHAT_SANDBOX_CPUS is set, but processors cannot be limited here: no control group for them "
            "can be had."
        )
    if settings.sandbox_cpu_seconds and settings.sandbox != "docker":
        found.append(
            f"From the start of one run to the next it uses at most {settings.sandbox_cpu_seconds:,} seconds of "
            "processor time."
        )
    room = f"; its /tmp holds {settings.sandbox_disk_mb:,} MB" if settings.sandbox != "unsafe-local" else ""
    found.append(f"A file has at most {settings.sandbox_file_mb:,} MB{room}.")
    return found
