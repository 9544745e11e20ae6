"""The shell of a cloud sandbox: running code in it, stopping it, and knowing whether it still is the same one."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable

from sandbox_chat.sandbox import e2b_bridge, e2b_errors, e2b_prelude
from sandbox_chat.sandbox.base import (
    CodeError,
    Execution,
    OutputSink,
    RawSink,
    SandboxError,
    SandboxLost,
    StopReason,
)
from sandbox_chat.sandbox.e2b_cell import MAX_PICTURE, MAX_TEXT, Cell
from sandbox_chat.sandbox.e2b_client import PATIENCE, Cloud
from sandbox_chat.sandbox.e2b_errors import Disconnected
from sandbox_chat.sandbox.e2b_prelude import Told
from sandbox_chat.sandbox.gather import FLUSH_EVERY, Run
from sandbox_chat.sandbox.guest_link import ASK_AGAIN, INTERRUPT_GRACE, LATE_RUNS, LOST, TIMEOUT_GRACE
from sandbox_chat.settings import Secret, Settings

log = logging.getLogger(__name__)

SETTLE = 1.0
"""Seconds that a cloud needs after a connection was dropped, before it takes code again: sooner, the call would hang."""
PROBE_TIMEOUT = 5.0
"""Seconds that a shell may take to answer that it is there."""
FIRST_CELL = 20.0
"""Seconds for the first cell in a new shell, before it is sent once more."""
_FAULTS = ("CloudAway", "CloudFault")
_GATEWAY = (502, 503, 504)
_AT_ONCE = 1.0  # an answer that comes sooner than this is not that of a gateway whose patience is over
_BACKLOG = 0.5  # seconds since the last output, below which more is under way


class Shell:
    """One code context of a cloud sandbox."""

    def __init__(self, settings: Settings, cloud: Cloud) -> None:
        self.settings = settings
        self.wanted = asyncio.Event()
        """Set to stop the code that runs now."""
        self.threads = 0
        """Threads of ended cells that lived when last heard of."""
        self._cloud = cloud
        self._number = 0
        self._late: dict[int, OutputSink] = {}
        self._prelude = False
        self._charts = settings.e2b_charts
        self._pid = 0
        self._offered = (0, "")
        self._dropped_at = 0.0
        self._problem: Exception | None = None
        """Why the last cell of our own had no answer at all."""

    async def begin(self, seconds: float) -> None:
        """Make the context and prepare it, within ``seconds``."""
        deadline = time.monotonic() + seconds
        await self._cloud.make_context("/tmp", seconds)  # noqa: S108 - the sandbox's own folder
        # The first cell may come while the kernel still starts, and may get lost then.
        left = max(deadline - time.monotonic(), PROBE_TIMEOUT)
        await self._prepare(max(min(left / 2, FIRST_CELL), PROBE_TIMEOUT))
        if self._prelude:
            return
        await self._pause()
        await self._prepare(max(deadline - time.monotonic(), PROBE_TIMEOUT))
        if not self._prelude:  # it may only be of another kind; but run it must
            await self._pause()
            cell = Cell(Run(0, None, MAX_TEXT))
            await asyncio.wait_for(self._execute(e2b_prelude.PROBE, cell), PROBE_TIMEOUT)
            if not cell.heard_at:
                raise e2b_errors.Nonsense("an answer that is none of a code interpreter's")

    async def run(
        self,
        code: str,
        timeout: float,  # noqa: ASYNC109 - the limit of the code
        sink: OutputSink | None,
        on_late: OutputSink | None,
        on_raw: RawSink | None,
        *,
        waited: Callable[[], float] | None = None,
    ) -> Execution:
        """Run ``code``; see ``Sandbox.run_code``. Whoever calls this clears ``wanted`` before."""
        problem = await self._settle()
        if self.wanted.is_set():
            return Execution(stopped="interrupted")
        if problem is not None:
            return Execution(error=problem)
        self._number += 1
        cell = Cell(Run(self._number, sink, self.settings.output_limit, on_raw))
        started = time.monotonic()
        stopped = await self._follow(cell, code, started, timeout, waited or (lambda: 0.0))
        fresh, notes = False, []
        failed = cell.run.error is not None and cell.run.error.name in _FAULTS
        if stopped != "died" and self._prelude and cell.told is None and not self._dropped_at and not failed:
            fresh, stopped = await self._who_answered(cell, stopped)
        if stopped == "died" and (cell.run.error is None or cell.run.error.name != "SandboxDied"):
            cell.run.error = CodeError("SandboxDied", f"The Python process ended. {LOST}", "")
        duration = round((time.monotonic() - started) * 1000)
        if cell.told is not None and stopped != "died":
            if on_late is not None:
                self._late[cell.told.cell] = on_late
                while len(self._late) > LATE_RUNS:
                    del self._late[next(iter(self._late))]
            notes = await self._pictures(cell)
        if fresh:
            notes.append("The cloud had started a new Python process before this run.")
        result = cell.run.result(stopped, duration)
        return dataclasses.replace(result, fresh=fresh, notes=(*result.notes, *notes))

    async def offer(self, path: str, token: Secret) -> bool:
        """Let code use the way to the host's tools at ``path``. False when the shell did not take it."""
        if self._offered == (self._pid, path) and self._pid:
            return True
        if await self._settle() is not None:
            return False
        if await self._ask_shell(e2b_bridge.offer(path, token.reveal()), PROBE_TIMEOUT) is None:
            return False
        self._offered = (self._pid, path)
        return True

    async def look(self) -> None:
        """Hear what late threads wrote, and that the shell is there. Raises ``SandboxLost``."""
        if await self._settle() is not None:
            return
        told = await self._ask_shell(e2b_prelude.PROBE, PROBE_TIMEOUT)
        if told is None and self._prelude and self._problem is None:
            raise SandboxLost("The Python process in the cloud's sandbox is gone.")

    # -- a run -----------------------------------------------------------------------------------------

    async def _follow(
        self, cell: Cell, code: str, started: float, limit: float, waited: Callable[[], float]
    ) -> StopReason:
        """Read until the run is over; stop it when its time is up or when asked to. Returns why it ended early."""
        run = cell.run
        stream = asyncio.ensure_future(self._execute(code, cell))
        wanted = asyncio.ensure_future(self.wanted.wait())
        asks: list[asyncio.Task[None]] = []
        stopped: StopReason = ""
        ask_at = kill_at = float("inf")
        try:
            while True:
                deadline = started + limit + waited()
                wake = min(ask_at, kill_at) if stopped else deadline
                waiting = {stream} if stopped else {stream, wanted}
                # Output comes in another task: it is looked for often enough to be live.
                pause = min(max(wake - time.monotonic(), 0.0), FLUSH_EVERY)
                await asyncio.wait(waiting, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
                run.flush()
                if stream.done():
                    return await self._ended(stream, cell, stopped, time.monotonic() - started)
                now = time.monotonic()
                if not stopped and (wanted.done() or now >= started + limit + waited()):
                    stopped = "interrupted" if wanted.done() else "timeout"
                    ask_at = now
                    kill_at = now + (INTERRUPT_GRACE if wanted.done() else TIMEOUT_GRACE)
                failed = [task for task in asks if task.done() and task.exception() is not None]
                if stopped and (not self._pid or failed):
                    await self._drop(stream)
                    return stopped
                if now >= kill_at:
                    return await self._give_up(stream, cell, stopped, asks)
                if now >= ask_at:
                    ask_at = now + ASK_AGAIN
                    if not asks or asks[-1].done():
                        asks.append(asyncio.ensure_future(self._signal()))
        finally:
            for task in (stream, wanted, *asks):
                task.cancel()
            await asyncio.gather(stream, wanted, *asks, return_exceptions=True)

    async def _execute(self, code: str, cell: Cell) -> None:
        await self._cloud.execute(code, cell.take, connect_timeout=self.settings.e2b_request_timeout)

    async def _signal(self) -> None:
        try:
            await self._cloud.signal(self._pid, TIMEOUT_GRACE)
        except Exception as error:
            if type(error).__name__ == "CommandExitException":  # the process is gone: the answer will say so
                return
            log.info("the code could not be asked to stop: %s", self.settings.scrub(str(error)))
            raise

    async def _drop(self, stream: asyncio.Future[None]) -> None:
        """Close the connection of a run, at which the cloud interrupts its code and keeps the variables."""
        stream.cancel()
        await asyncio.gather(stream, return_exceptions=True)
        self._dropped_at = time.monotonic()

    async def _give_up(
        self,
        stream: asyncio.Future[None],
        cell: Cell,
        stopped: StopReason,
        asks: list[asyncio.Task[None]],
    ) -> StopReason:
        """The code did not stop in time: it is deaf, unless it could not be asked."""
        asked = any(task.done() for task in asks)
        await self._drop(stream)
        # When nothing came, the connection hangs and not the code. When much comes, it is what was written before and
        # is still under way. The next run finds out whether the shell is there.
        if not asked or not cell.heard_at or time.monotonic() - cell.heard_at < _BACKLOG:
            return stopped
        how = "its time limit" if stopped == "timeout" else "the interrupt"
        reason = f"The code did not stop at {how}, so its Python process was ended."
        cell.run.error = CodeError("SandboxDied", f"{reason} {LOST}", "")
        return "died"

    async def _ended(
        self, stream: asyncio.Future[None], cell: Cell, stopped: StopReason, seconds: float
    ) -> StopReason:
        """The answer is over; returns how the run ended. Raises ``SandboxError`` when it was no answer."""
        error = stream.exception()
        if error is None:
            self._cloud.troubles = 0
            return "died" if cell.died else stopped
        # A context that is not known is of a sandbox that lives; only its own health tells.
        lives = await self._cloud.lives(min(self.settings.e2b_request_timeout, PROBE_TIMEOUT))
        if isinstance(error, Disconnected):
            if lives is False:
                cell.run.error = CodeError("SandboxDied", f"{e2b_errors.GONE} {LOST}", "")
                return "died"
            await self._stop_quietly()
            sentence = e2b_errors.cut(seconds)
            cell.run.error = CodeError("ConnectionCut", sentence, "")
            return stopped
        if lives is False:
            raise SandboxLost(e2b_errors.GONE)
        status = e2b_errors.status_of(error)
        if status in _GATEWAY and seconds >= _AT_ONCE:
            await self._stop_quietly()
            cell.run.error = CodeError("GatewayTimeout", e2b_errors.gateway(seconds), "")
            return stopped
        if e2b_errors.is_gone(error) and status not in _GATEWAY:
            raise SandboxLost("The cloud no longer knows this shell.")
        said = e2b_errors.said(error, self.settings)
        if status in (401, 403):
            raise SandboxError(
                f"The cloud's sandbox no longer takes our word ({status}: {said}). A new one is made at the next call."
            ) from error
        if lives is None:
            cell.run.error = CodeError("CloudAway", e2b_errors.away(error, self.settings), "")
            return stopped
        if not self._may_pass():
            raise SandboxError(
                f"The cloud's code interpreter failed {PATIENCE} times in a row ({e2b_errors.why(error, self.settings)}). "
                "Try again; a new sandbox is made."
            ) from error
        cell.run.error = CodeError("CloudFault", e2b_errors.failed_once(error, self.settings), "")
        return stopped

    def _may_pass(self) -> bool:
        """Count a fault of a sandbox that lives. It is not given up at once: with it would go all variables."""
        self._cloud.troubles += 1
        return self._cloud.troubles < PATIENCE

    async def _stop_quietly(self) -> None:
        """Code whose connection was cut by others must not run on."""
        self._dropped_at = time.monotonic()
        if self._pid:
            with contextlib.suppress(Exception):
                await self._signal()

    async def _who_answered(self, cell: Cell, stopped: StopReason) -> tuple[bool, StopReason]:
        """The prelude was silent: find out whether the kernel is another one. Returns ``(fresh, stopped)``."""
        if await self._ask_shell(e2b_prelude.PROBE, PROBE_TIMEOUT) is not None:
            return False, stopped
        if cell.count != 1 or self._dropped_at:
            return False, "died"
        await self._prepare(PROBE_TIMEOUT)
        return True, stopped

    # -- the prelude -----------------------------------------------------------------------------------

    async def _prepare(self, seconds: float) -> None:
        """Install the prelude; without it the shell works, but is the cloud's own."""
        self._prelude, self._pid = False, 0
        told = await self._ask_shell(e2b_prelude.cell(self._charts), seconds)
        self._prelude = told is not None
        if told is None:
            log.warning("the cloud's kernel could not be prepared")

    async def _ask_shell(self, code: str, seconds: float) -> Told | None:
        """Run a cell of our own; ``None`` when the prelude did not answer within ``seconds``."""
        cell = Cell(Run(0, None, MAX_TEXT))
        self._problem = None
        try:
            await asyncio.wait_for(self._execute(code, cell), seconds)
        except TimeoutError as error:
            self._dropped_at, self._problem = time.monotonic(), error
            return None
        except Exception as error:
            if await self._cloud.lives(PROBE_TIMEOUT) is False:
                raise SandboxLost(e2b_errors.GONE) from error
            self._problem = error
            log.info("the shell did not answer: %s", self.settings.scrub(str(error)))
            return None
        if cell.run.error is not None:
            log.info("a cell of ours failed: %s", cell.run.error.traceback[-2000:])
        self._hear(cell.told)
        return cell.told

    def _hear(self, told: Told | None) -> None:
        if told is None:
            return
        self._pid = self._pid or told.pid
        self.threads = told.threads
        for number, stream, text in told.late:
            sink = self._late.get(number)
            if sink is not None:
                sink(stream, text)

    async def _pause(self) -> None:
        """Wait until the cloud takes code again, if a connection was dropped just now."""
        if self._dropped_at:
            await asyncio.sleep(max(self._dropped_at + SETTLE - time.monotonic(), 0.0))
        self._dropped_at = 0.0

    async def _settle(self) -> CodeError | None:
        """After a dropped connection: wait until the shell answers again.

        Returns what to say when that cannot be known now. Raises ``SandboxLost``.
        """
        if not self._dropped_at:
            return None
        for _ in range(2):
            dropped = self._dropped_at
            await self._pause()
            if await self._ask_shell(e2b_prelude.PROBE, PROBE_TIMEOUT) is not None or (
                not self._prelude and not self._dropped_at
            ):
                return None
            self._dropped_at = self._dropped_at or dropped
        if self._problem is not None:
            lives = await self._cloud.lives(PROBE_TIMEOUT)
            if lives is None:
                return CodeError("CloudAway", e2b_errors.away(self._problem, self.settings), "")
            if lives and not isinstance(self._problem, TimeoutError) and self._may_pass():
                return CodeError("CloudFault", e2b_errors.failed_once(self._problem, self.settings), "")
        raise SandboxLost("The shell in the cloud did not answer any more after its code was stopped.")

    async def _pictures(self, cell: Cell) -> list[str]:
        """Hear what the prelude told of the cell, and fetch the figures that came as files. Returns notes."""
        told = cell.told
        self._hear(told)
        if told is None:
            return []
        files = told.files
        if not files and told.pictures > cell.pictures == 0 and self._charts == "auto":
            again = await self._ask_shell(e2b_prelude.SAVE_SHOWN, PROBE_TIMEOUT)
            if again is not None:
                files, self._charts = again.files, "files"
        notes = []
        for path in files:
            try:
                cell.show_picture(*await self._fetch(path))
            except Exception as error:
                notes.append(f"A figure could not be fetched ({e2b_errors.said(error, self.settings)}).")
        return notes

    async def _fetch(self, path: str) -> tuple[bytes, str]:
        files, timeout = self._cloud.box.files, self.settings.e2b_request_timeout
        info = await files.get_info(path, request_timeout=timeout)
        if info.size > MAX_PICTURE:
            raise ValueError(f"it has {info.size:,} bytes")
        data = bytes(await files.read(path, format="bytes", request_timeout=timeout))
        with contextlib.suppress(Exception):
            await files.remove(path, request_timeout=timeout)
        return data, "image/jpeg" if path.endswith(".jpg") else "image/png"
