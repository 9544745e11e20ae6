"""One private temporary folder of the interface, made when it is first needed and gone with the program."""

from __future__ import annotations

import atexit
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from sandbox_chat.scratch import Scratch

_lock = threading.Lock()
_made: list[Scratch] = []


def scratch_folder() -> Path:
    """Return the folder. Blocking at the first call: not for the terminal's loop. Raises ``OSError``."""
    from sandbox_chat.scratch import Scratch

    with _lock:
        if not _made:
            _made.append(Scratch())
            atexit.register(remove_scratch)
        return _made[0].path


def remove_scratch() -> None:
    """Remove the folder with all that is in it. Any number of times."""
    with _lock:
        while _made:
            _made.pop().remove()
