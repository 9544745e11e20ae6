"""Real ipykernels of one sandbox: start, run, interrupt, notice death. One kernel is held ready."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from .processes import environment

START_LIMIT = 120.0
"""Seconds within which a kernel has to answer."""

DIED = {"header": {"msg_type": "died"}, "content": {}, "parent_header": {}}
"""Put into the queue of the running code when its kernel has ended."""


class Kernel:
    """An ipykernel process and its client. Runs one piece of code at a time (the caller sees to that)."""

    numbers = itertools.count(1)

    def __init__(self, box: Path, home: str, inline: bool) -> None:
        self._folder = box / f"k{next(self.numbers)}"
        self._home = home
        self._inline = inline
        self._reader: asyncio.Task[None] | None = None
        self._current = ""
        self.messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.process: asyncio.subprocess.Process | None = None
        self.client: Any = None

    async def start(self, cwd: str = "/") -> None:
        from jupyter_client.asynchronous.client import AsyncKernelClient
        from jupyter_client.connect import write_connection_file

        self._folder.mkdir()
        connection, _ = write_connection_file(
            str(self._folder / "connection.json"),
            transport="ipc",
            ip=str(self._folder / "s"),
            key=os.urandom(16).hex().encode(),
        )
        env = environment(self._home) | {
            # The kernel ends by itself when this program is gone.
            "JPY_PARENT_PID": str(os.getpid()),
            "JUPYTER_RUNTIME_DIR": str(self._folder),
            "IPYTHONDIR": str(self._folder / "ipython"),
        }
        if not self._inline:
            env["MPLBACKEND"] = "agg"
        with (self._folder / "log").open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "ipykernel_launcher",
                "-f",
                connection,
                "--HistoryManager.enabled=False",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=cwd,
                env=env,
                start_new_session=True,
            )
        self.client = AsyncKernelClient(connection_file=connection)
        self.client.load_connection_file()
        self.client.start_channels(stdin=False, hb=False)
        self._reader = asyncio.create_task(self._read())
        await asyncio.wait_for(self._answering(), START_LIMIT)

    async def _answering(self) -> None:
        """Until the kernel answers; raises when it ends instead."""
        assert self.process is not None
        ended = asyncio.create_task(self.process.wait())
        answer = asyncio.create_task(self.messages.get())
        try:
            # What it publishes must arrive too: that channel may be connected later than the one for requests.
            while not answer.done() and not ended.done():
                self._current = self.client.kernel_info()
                await asyncio.wait({ended, answer}, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise RuntimeError(f"the kernel did not start: {(self._folder / 'log').read_text()[-2000:]}")
        finally:
            for task in (ended, answer):
                task.cancel()
            await asyncio.gather(ended, answer, return_exceptions=True)

    async def _read(self) -> None:
        """Sort what the kernel publishes; the end of the process is published too."""
        assert self.process is not None
        ended = asyncio.create_task(self.process.wait())
        try:
            while True:
                message = asyncio.create_task(self.client.get_iopub_msg())
                await asyncio.wait({ended, message}, return_when=asyncio.FIRST_COMPLETED)
                if not message.done():
                    message.cancel()
                    self.messages.put_nowait(DIED)
                    return
                # Late words of earlier code are dropped, as the real server does.
                if message.result()["parent_header"].get("msg_id") == self._current:
                    self.messages.put_nowait(message.result())
        finally:
            ended.cancel()

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.returncode is None

    def execute(self, code: str) -> None:
        """Begin; what it says comes in ``messages``, the last one is status idle or DIED."""
        self.messages = asyncio.Queue()
        self._current = self.client.execute(code, allow_stdin=False, store_history=True, stop_on_error=False)

    async def quietly(self, code: str) -> None:
        """Run code of the server's own, out of sight."""
        self.messages = asyncio.Queue()
        self._current = self.client.execute(code, silent=True, store_history=False, allow_stdin=False)
        await self.idle()

    async def idle(self) -> None:
        """Until what runs has ended."""
        while self.alive:
            message = await self.messages.get()
            kind = message["header"]["msg_type"]
            if kind == "died" or (kind == "status" and message["content"]["execution_state"] == "idle"):
                return

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def _signal(self, number: int) -> None:
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    async def stop(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        if self.client is not None:
            self.client.stop_channels()
        if self.process is not None:
            self._signal(signal.SIGKILL)
            await self.process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


class Kernels:
    """Gives out kernels; one is prepared in advance, so that a context is there at once."""

    def __init__(self, box: str, home: str, inline: bool) -> None:
        self._box, self._home, self._inline = Path(box), home, inline
        self._ready: asyncio.Task[Kernel] | None = None
        self.envs: dict[str, str] = {}

    def prepare(self) -> None:
        if self._ready is None:
            self._ready = asyncio.create_task(self._started())

    async def _started(self) -> Kernel:
        kernel = Kernel(self._box, self._home, self._inline)
        await kernel.start()
        return kernel

    async def take(self, cwd: str) -> Kernel:
        """A kernel in ``cwd``, with the variables of the sandbox's environment."""
        task, self._ready = self._ready, None
        kernel = await (task or self._started())
        await kernel.quietly(
            f"import os as _os; _os.chdir({cwd!r}); _os.environ.update({self.envs!r}); del _os"
        )
        return kernel
