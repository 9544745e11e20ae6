"""Runs a command as an ordinary user although this process is root.

What the command needs (interpreter, packages, this checkout) may lie in a folder that only root can
enter. In a mount namespace of its own, such a folder is covered by an empty one that everybody can
enter, and what is needed is bound back to its own place. ``python ordinary.py UID HOME PATHS -- COMMAND``;
PATHS is a JSON list.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


@contextmanager
def open_folder() -> Iterator[Path]:
    """A new folder that everybody can enter. (pytest's own are closed to others.)"""
    folder = Path(tempfile.mkdtemp(prefix="sandbox-chat-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_as(
    uid: int, home: Path, command: list[str], *, env: dict[str, str], timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    """Run ``command`` as user ``uid`` with home folder ``home``, which is given to that user."""
    os.chown(home, uid, uid)
    needed = [sys.base_prefix, sys.prefix, sysconfig.get_paths()["purelib"], str(CHECKOUT), str(home)]
    arguments = [sys.executable, __file__, str(uid), str(home), json.dumps(needed), "--", *command]
    return subprocess.run(
        arguments, env={**env, "HOME": str(home)}, capture_output=True, text=True, timeout=timeout
    )


def closed_ancestor(path: Path) -> Path | None:
    """The topmost folder on the way to ``path`` that others may not enter."""
    for folder in reversed(path.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            return folder
    return None


def main() -> None:
    uid, home, needed = int(sys.argv[1]), sys.argv[2], [Path(p) for p in json.loads(sys.argv[3])]
    command = sys.argv[5:]
    libc = ctypes.CDLL(None, use_errno=True)

    def check(result: int) -> None:
        if result != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def mount(source: str, target: str, kind: bytes | None, flags: int, data: bytes | None = None) -> None:
        check(libc.mount(source.encode(), target.encode(), kind, ctypes.c_ulong(flags), data))

    check(libc.unshare(0x00020000))
    mount("none", "/", None, 16384 | 1 << 18)
    inside: dict[Path, list[tuple[Path, int]]] = {}
    for path in dict.fromkeys(needed):
        closed = closed_ancestor(path)
        if closed is not None:
            inside.setdefault(closed, []).append((path, os.open(path, os.O_PATH)))
    for closed, paths in inside.items():
        mount("cover", str(closed), b"tmpfs", 0, b"mode=0755")
        for path, fd in paths:
            path.mkdir(parents=True, exist_ok=True)
            mount(f"/proc/self/fd/{fd}", str(path), None, 4096 | 16384)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    os.chdir(home)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
