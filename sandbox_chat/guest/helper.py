"""Programs beside the shell that the host has started in the sandbox: the keeper of the gateway, the way to the host.

They are the host's and not the code's: a run that is stopped takes nothing of them with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from . import processes

BOOT = """
import sys
sys.path.insert(0, sys.argv[1])
if len(sys.argv) > 3:
    from gateway.bridge import main
else:
    from gateway.relay import main
main(int(sys.argv[2]), int(sys.argv[2]), *sys.argv[3:])
"""
"""Program of the interpreter: arguments are the folder that holds the gateway's package, the socket, and for the way to
the host the file at which it listens."""
_started: list[subprocess.Popen[bytes]] = []


def start_keeper(fd: int, folder: str, path: str = "") -> dict[str, Any]:
    """Start the keeper, or the way to the host at ``path``, with the socket ``fd``, which is closed here.

    An earlier one ends with its own socket.
    """
    try:
        command = [
            sys.executable,
            "-s",
            "-P",
            "-X",
            "utf8",
            "-c",
            BOOT,
            folder,
            str(fd),
            *([path] if path else []),
        ]
        process = subprocess.Popen(
            command,
            pass_fds=(fd,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    finally:
        os.close(fd)
    _started[:] = [one for one in _started if one.poll() is None] + [process]
    processes.SPARED.clear()
    processes.SPARED.update(one.pid for one in _started)
    return {"pid": process.pid}
