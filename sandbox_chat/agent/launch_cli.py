"""Starts the SDK's CLI with exactly the environment meant for it, and lets it die with the program.

This file is run as a program of its own (``python -I -S launch_cli.py …``), in place of the CLI: the SDK
would hand down the whole environment of the program, with every credential in it. It imports nothing of
ours. What it needs comes in variables, so that no credential is on a command line or in a file:

``SANDBOX_CHAT_CLI_PATH``
    the CLI to start;
``SANDBOX_CHAT_CLI_KEEP``
    names of the variables that it gets, with commas;
``SANDBOX_CHAT_CLI_PARENT``
    process id of the program: if that has ended already, nothing is started.
"""

from __future__ import annotations

import os
import sys

PATH = "SANDBOX_CHAT_CLI_PATH"
KEEP = "SANDBOX_CHAT_CLI_KEEP"
PARENT = "SANDBOX_CHAT_CLI_PARENT"

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9


def main() -> None:
    """Replace this process by the CLI. Exits with status 1 if the program has gone."""
    environ = os.environ
    if sys.platform == "linux":
        import ctypes

        # Also after ``kill -9`` of the program. The signal comes when the thread that started the CLI
        # ends: that is the session's, which outlives the CLI. It stays in force across execve.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    os.setsid()  # Ctrl-C at the terminal is for the program, which tells the CLI in its own way
    if os.getppid() != int(environ[PARENT]):
        sys.exit(1)
    path = environ[PATH]
    keep = {name: environ[name] for name in environ[KEEP].split(",") if name in environ}
    os.execve(path, [path, *sys.argv[1:]], keep)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
