"""The host's side of ``guest/cloud.py``: the cell that installs it, and what it tells after each cell."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox_chat.events import Stream
from sandbox_chat.guest import cloud
from sandbox_chat.sandbox.gather import STREAMS

FOLDER = "/tmp/.sandbox-chat"  # noqa: S108 - in the sandbox
"""Where figures are saved in a cloud that shows none."""
PROBE = "pass"
"""A cell that does nothing: to hear whether the shell is there, and what is new."""
SAVE_SHOWN = (
    f"__import__('sys').modules['{cloud.MODULE}'].cells.save_shown(); "
    f"__import__('sys').modules['{cloud.MODULE}'].cells.no_inline()"
)
"""A cell that saves to files what the one before has shown in vain, and lets later figures be saved at once."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the kernel tells after a cell. It comes from the sandbox: checked, but not to be believed."""

    cell: int
    pid: int
    late: tuple[tuple[int, Stream, str], ...] = ()
    threads: int = 0
    files: tuple[str, ...] = ()
    pictures: int = 0


def cell(charts: str) -> str:
    """Return the code of the cell that installs the prelude; it leaves no name behind."""
    source = Path(cloud.__file__).read_text("utf-8")
    call = f"install({FOLDER!r}, {charts!r})"
    return f"exec(compile({source + call!r}, '<sandbox-chat>', 'exec'), {{'__name__': '{cloud.MODULE}'}})"


def told(text: Any) -> Told | None:
    """Read a display's text; ``None`` when it is not the prelude's."""
    if not isinstance(text, str) or not text.startswith(cloud.MARK):
        return None
    try:
        said = json.loads(text[len(cloud.MARK) :])
    except ValueError:
        return None
    if not isinstance(said, dict):
        return None
    late = []
    for row in said.get("late") or ():
        match row:
            case [int(number), str(stream), str(words)] if stream in STREAMS:
                late.append((number, stream, words[: cloud.LATE_LIMIT]))
            case _:
                continue
    files = [
        path for path in said.get("files") or () if isinstance(path, str) and path.startswith(FOLDER + "/")
    ]
    return Told(
        cell=_number(said.get("cell")),
        pid=_number(said.get("pid")),
        late=tuple(late),
        threads=_number(said.get("threads")),
        files=tuple(path for path in files[: cloud.PICTURES] if ".." not in path),
        pictures=_number(said.get("pictures")),
    )


def _number(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else 0
