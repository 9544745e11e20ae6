"""Started as root, become an ordinary user and then bubblewrap. A script of its own: standard library only.

Code in a namespace that root made can still do harm as root's user id (files under ``/proc/sys``), so
bubblewrap must not be run by root. But an ordinary user cannot reach an interpreter that lives in
root's home. So, in a mount namespace of this process alone, what the sandbox needs is bound to a place
that everyone can reach, the user id is dropped, and bubblewrap is executed, which binds it onward.

Run as ``python launcher.py JSON`` with ``{"uid", "gid", "parent", "stage", "sources": [path, …], "writable": [n, …],
"command": […]}``; source number n is then at ``stage/n``, read-only unless it is among the writable ones, which must
belong to ``uid``. Errors are a sentence on standard error, and exit code 1.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import stat
import sys
from typing import NoReturn

_CLONE_NEWNS = 0x00020000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND = 1, 2, 4, 32, 4096
_MS_REC, _MS_PRIVATE = 16384, 1 << 18
_PR_SET_PDEATHSIG = 1


def fail(sentence: str) -> NoReturn:
    """End with ``sentence`` on standard error."""
    sys.stderr.write(sentence + "\n")
    sys.exit(1)


def main(argument: str) -> NoReturn:
    """Do what the module's text says; does not return."""
    task = json.loads(argument)
    libc = ctypes.CDLL(None, use_errno=True)

    def check(result: int, what: str) -> None:
        if result != 0:
            fail(f"{what} was refused: {os.strerror(ctypes.get_errno())}.")

    def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
        texts = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
        extra = None if data is None else data.encode()
        check(libc.mount(*texts, ctypes.c_ulong(flags), extra), f"Mounting {source}")

    check(libc.unshare(_CLONE_NEWNS), "A mount namespace")
    mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    opened = []
    for source in task["sources"]:
        try:
            opened.append(os.open(source, os.O_PATH | os.O_CLOEXEC))
        except OSError as error:
            fail(f"{source} cannot be opened: {error.strerror}.")
    stage = task["stage"]
    mount("stage", stage, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755,size=1m")
    for number, fd in enumerate(opened):
        place = f"{stage}/{number}"
        facts = os.fstat(fd)
        # Its owner may have put something else at its path since it was looked at.
        if number in task["writable"] and (facts.st_uid != task["uid"] or not stat.S_ISDIR(facts.st_mode)):
            fail(f"{task['sources'][number]} is not what it was a moment ago.")
        if stat.S_ISDIR(facts.st_mode):
            os.mkdir(place, 0o755)  # noqa: PTH102 - this script is plain system calls
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))
        mount(f"/proc/self/fd/{fd}", place, None, _MS_BIND)
        read_only = 0 if number in task["writable"] else _MS_RDONLY
        mount("none", place, None, _MS_BIND | _MS_REMOUNT | read_only | _MS_NOSUID | _MS_NODEV)
    try:
        os.setgroups([])
        os.setresgid(task["gid"], task["gid"], task["gid"])
        os.setresuid(task["uid"], task["uid"], task["uid"])
    except OSError as error:
        fail(f"Becoming the ordinary user {task['uid']} was refused: {error.strerror}.")
    libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != task["parent"]:
        fail("The program that started the sandbox is gone.")
    command = task["command"]
    try:
        os.execv(command[0], command)  # noqa: S606 - it is what this script is for
    except OSError as error:
        fail(f"{command[0]} cannot be run: {error.strerror}.")


if __name__ == "__main__":
    main(sys.argv[1])
