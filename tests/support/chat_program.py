"""The chat over a ``PlayedEngine`` at a pseudo-terminal, as a program of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .terminal import Terminal, terminal

TESTS = Path(__file__).parents[1]

PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support.screen import chat_app
from sandbox_chat.ui import start
sys.exit(start.run_app(chat_app(Path(sys.argv[2]), draft_delay=0.05)))
"""


@contextmanager
def chat_program(folder: Path, **env: str) -> Iterator[Terminal]:
    """Run the chat with its data in ``folder``; its environment is this one and ``env``."""
    variables = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", **env}
    variables.pop("TMUX", None)
    with terminal([sys.executable, "-c", PROGRAM, str(TESTS), str(folder)], env=variables) as opened:
        opened.shows("idle")
        yield opened
