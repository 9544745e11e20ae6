"""What the model is told of each trouble that code can make, produced by the tools on a real local sandbox.

    python tests/conformance/behaviour.py [--write]

Prints the table; ``--write`` puts it into SANDBOXES.md, and that of the limits. ``test_document.py`` holds the document to it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from conformance.document import DOCUMENT, limits_table, put  # noqa: E402 - needs the path
from support.sandboxes import PATIENCE, until  # noqa: E402
from support.toolbox import Tools  # noqa: E402

from sandbox_chat.sandbox import make_worker  # noqa: E402
from sandbox_chat.settings import Settings  # noqa: E402

NAME = "behaviour"
HEAD = "| trouble | what happens | what the model is told |\n| --- | --- | --- |"
LONGEST = 420
"""Characters of one answer that the table shows."""


@dataclass(frozen=True)
class Row:
    """One trouble: ``happens`` is what a user sees; ``make`` provokes it and returns the text that the model gets."""

    trouble: str
    happens: str
    make: Callable[[Tools], Awaitable[str]]
    values: Mapping[str, Any] = field(default_factory=dict)
    varies: str = ""
    """What is told depends on the machine's control groups; this is in it always."""


def code(text: str, timeout: int = 20) -> Callable[[Tools], Awaitable[str]]:
    """A row made by running ``text``."""

    async def make(tools: Tools) -> str:
        return (await tools.call("run_code", code=text, timeout=timeout)).text

    return make


def then(first: str, second: str, timeout: int = 20) -> Callable[[Tools], Awaitable[str]]:
    """A row about the call after ``first``."""

    async def make(tools: Tools) -> str:
        await tools.call("run_code", code=first, timeout=timeout)
        return (await tools.call("run_code", code=second, timeout=timeout)).text

    return make


async def _interrupted(tools: Tools) -> str:
    task = asyncio.create_task(tools.call("run_code", code="import time; time.sleep(100)"))
    while not tools.sandbox._current:
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    tools.sandbox.interrupt()
    return (await task).text


async def _late(tools: Tools) -> str:
    thread = "import threading\nthreading.Timer(0.3, lambda: print('and now the news')).start()"
    await tools.call("run_code", code=thread)
    assert await asyncio.to_thread(until, lambda: bool(tools.news._late), 20)
    return (await tools.call("run_code", code="1 + 1")).text


async def _binary(tools: Tools) -> str:
    await tools.call("run_code", code="open('/tmp/a.bin', 'wb').write(bytes(range(256)) * 16)")
    return (await tools.call("read_file", path="/tmp/a.bin")).text


EAT = (
    "import subprocess, sys\n"
    "eat = 'import time; x = bytearray(150 << 20); x[::4096] = b\"x\" * len(x[::4096]); time.sleep(10)'\n"
    "all = [subprocess.Popen([sys.executable, '-c', eat]) for _ in range(6)]\nprint([c.wait() for c in all])"
)
ROWS = (
    Row(
        "Time limit passed",
        "The code is stopped at the limit, its child processes with it. Variables stay, the next call works at once.",
        code("import time; time.sleep(30)", 1),
    ),
    Row(
        "Stopped by you (Esc)",
        "The code is stopped within about a second, its child processes with it. Variables stay.",
        _interrupted,
    ),
    Row(
        "The Python process ends (`os._exit`, a crash, a kill)",
        "The card says that it ended and why. Variables are lost, files may be; a new shell is started at the next call.",
        code("import os; os._exit(1)"),
    ),
    Row("… and the call after that", "It runs in the new shell.", then("import os; os._exit(1)", "x")),
    Row(
        "One process wants too much memory",
        "A `MemoryError` of the code; variables stay.",
        code("x = bytearray(6 << 30)"),
    ),
    Row(
        "All processes together use too much memory",
        "The sandbox is ended (in Docker, the largest process is) and memory is named as the reason.",
        code(EAT),
        {"sandbox_memory_mb": 400},
        varies="400 MB of memory",
    ),
    Row(
        "Too many processes or threads",
        "Further ones are refused; the code sees an error, or is stopped by its time limit. Variables stay.",
        code(
            "import threading; go = threading.Event()\nfor _ in range(300): threading.Thread(target=go.wait, daemon=True).start()"
        ),
        {"sandbox_processes": 60},
    ),
    Row(
        "Too large a file, or no room in `/tmp`",
        "An `OSError` of the code; variables stay.",
        code("with open('/tmp/b', 'wb') as f:\n    for _ in range(60): f.write(bytes(1 << 20))"),
        {"sandbox_file_mb": 20},
    ),
    Row(
        "Too much output",
        "Head and tail are shown, with what was cut between them; the whole is kept on disk up to a limit. Endless output ends at the time limit.",
        code("for n in range(100_000): print(n)"),
    ),
    Row(
        "`input()`, `getpass()`", "An error at once: nobody can type into a sandbox.", code("input('name? ')")
    ),
    Row(
        "A thread prints after its run has ended",
        "Shown on the card of the run that started the thread, as background output.",
        _late,
    ),
    Row(
        "`sys.exit(3)`, `quit()`, `exit`, `raise SystemExit`",
        "An error of that run; the shell and its variables stay.",
        code("import sys; sys.exit(3)"),
    ),
    Row(
        "A lone surrogate in the output",
        "The character is replaced by U+FFFD; the rest is there.",
        code("print('a\\ud83cb'); print('rest')"),
    ),
    Row("A binary file is read as text", "Refused, with its type and size.", _binary),
)


def told(text: str) -> str:
    """The part of an answer that belongs into the table: what is said of the trouble, on one line."""
    text = text.replace("\n[traceback]", "\0", 1)
    head, _, rest = text.partition("\0")
    if rest:
        head += "".join(f"\n{line}" for line in rest.splitlines() if line.startswith("[note]"))
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith("[success]")]
    short = []
    for line in lines:
        if line[:1].isdigit() and len(lines) > 20:
            continue  # the output itself
        short.append(line)
    joined = " ".join(short)
    if len(joined) > LONGEST:
        joined = joined[: LONGEST - 1] + "…"
    return joined.replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


async def table() -> str:
    """Provoke every trouble and return the table."""
    lines = [HEAD]
    for row in ROWS:
        with tempfile.TemporaryDirectory(prefix="sandbox-chat-test-") as folder:
            settings = Settings(
                data_dir=Path(folder),
                start_timeout=PATIENCE,
                sandbox_warm=False,
                run_timeout=60,
                **row.values,
            )
            worker = make_worker(settings)
            assert worker is not None
            try:
                text = await row.make(Tools(settings, Path(folder), sandbox=worker, keep_output=True))
            finally:
                await asyncio.to_thread(worker.close)
        lines.append(f"| {row.trouble} | {row.happens} | {told(text)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--write", action="store_true", help="put the table into SANDBOXES.md")
    chosen = parser.parse_args()
    made = asyncio.run(table())
    print(made)
    if chosen.write:
        text = put(DOCUMENT.read_text(encoding="utf-8"), NAME, made)
        DOCUMENT.write_text(put(text, "limits", limits_table()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
