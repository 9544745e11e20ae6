"""One long-lived thread that drives one sandbox: lazy, serial, cancellable, always closed.

The thread starts the back end at first use and again after it was lost. It lives until ``close``,
because the local sandbox ends with the thread that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO, TypeVar, cast

from sandbox_chat.sandbox.base import (
    Bridge,
    Execution,
    FileEntry,
    GatewayFailed,
    GatewayGone,
    McpAddress,
    OutputSink,
    Progress,
    RawSink,
    Sandbox,
    SandboxClosed,
    SandboxError,
    SandboxFileError,
    SandboxInfo,
    SandboxLetGo,
    SandboxLost,
)
from sandbox_chat.sandbox.jobs import Job, give_up
from sandbox_chat.sandbox.kept_workspace import KeptWorkspace

T = TypeVar("T")
StateSink = Callable[[str, str], None]
log = logging.getLogger(__name__)
CANCEL_WAIT = 1.5
"""Seconds that a cancelled run may take to stop before its whole sandbox is ended."""
FAULT = "It was ended because of a fault in this program."
RESTARTED = "The sandbox was ended, as you asked: its variables and files are gone, and a new one is made when it is needed."
_INSIST_AFTER = (0.02, 0.1, 0.3)  # an interrupt that came just before the code began is given again


class SandboxWorker:
    """Drives one back end from one thread; its coroutines can be awaited from any loop."""

    def __init__(
        self,
        factory: Callable[[], Sandbox],
        *,
        info: SandboxInfo,
        on_state: StateSink | None = None,
        on_close: Callable[[], None] | None = None,
        warm: Callable[[], None] | None = None,
        kept: KeptWorkspace | None = None,
    ) -> None:
        """``factory`` makes a back end that is not started. Nothing runs before the first use.

        ``on_state(state, text)`` is called on the worker's thread with ``starting``, ``ready``, ``busy``, ``lost``,
        ``none`` (a start ahead of need failed, or it was let go) and ``closed``; ``on_close`` once at the end.
        ``kept`` keeps what is in the workspace.
        """
        self.info = info
        self.generation = 0
        self._factory = factory
        self._on_state = on_state
        self._on_close = on_close
        self._warm = warm
        self._kept = kept
        self._jobs: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._sandbox: Sandbox | None = None
        self._current: Job[Any] | None = None
        self._closed = False
        self._fresh = False
        self._used_at = 0.0
        self._used = False
        """Whether code has run or a file was moved in the present sandbox."""

    # -- use -------------------------------------------------------------------------------------------

    def warm(self) -> None:
        """Begin what makes the first start quick, in the background. Returns at once; failures only cost time."""
        if self._warm is not None and not self._closed:
            self._warm()

    def prestart(self) -> None:
        """Start the sandbox ahead of need. Returns at once; a failure shows at the first real use."""
        with self._lock:
            if self._closed or self._thread is not None:
                return
        with contextlib.suppress(SandboxClosed):
            self._submit(Job("prestart", lambda _sandbox: None))

    async def run_code(
        self,
        code: str,
        *,
        timeout: float,  # noqa: ASYNC109 - the limit of the code, kept by the back end
        on_output: OutputSink | None = None,
        on_late: OutputSink | None = None,
        on_raw: RawSink | None = None,
        bridge: Bridge | None = None,
    ) -> Execution:
        """Run ``code``; see ``Sandbox.run_code``. Cancelling interrupts it and waits until the sandbox is idle."""

        def work(sandbox: Sandbox) -> Execution:
            return sandbox.run_code(
                code, timeout=timeout, on_output=on_output, on_late=on_late, on_raw=on_raw, bridge=bridge
            )

        return await self._await(Job("run", work))

    async def write_file(self, path: str, data: bytes) -> str:
        """Write a file; see ``Sandbox.write_file``."""
        return await self._await(Job("file", lambda sandbox: sandbox.write_file(path, data)))

    async def read_file(self, path: str, *, max_bytes: int) -> bytes:
        """Read a file; see ``Sandbox.read_file``."""
        return await self._await(Job("file", lambda sandbox: sandbox.read_file(path, max_bytes=max_bytes)))

    async def list_files(self, path: str, *, limit: int) -> list[FileEntry]:
        """List a folder; see ``Sandbox.list_files``."""
        return await self._await(Job("file", lambda sandbox: sandbox.list_files(path, limit=limit)))

    async def upload(
        self, source: BinaryIO, size: int, path: str, on_progress: Progress | None = None
    ) -> str:
        """Copy a stream into a file of the sandbox; see ``Sandbox.upload``. Cancelling stops it."""
        start = source.tell() if source.seekable() else None

        def work(sandbox: Sandbox) -> str:
            if start is not None:
                source.seek(start)  # a sandbox may have been lost in the middle of it
            return sandbox.upload(source, size, path, on_progress)

        return await self._await(Job("file", work))

    async def download(
        self, path: str, target: BinaryIO, *, max_bytes: int, on_progress: Progress | None = None
    ) -> int:
        """Copy a file of the sandbox into a stream; see ``Sandbox.download``. Cancelling stops it."""
        start = target.tell() if target.seekable() else None

        def work(sandbox: Sandbox) -> int:
            if start is not None:
                target.seek(start)  # what a lost sandbox has given is not to be before it
                target.truncate()
            return sandbox.download(path, target, max_bytes=max_bytes, on_progress=on_progress)

        return await self._await(Job("file", work))

    async def mcp_endpoint(self) -> McpAddress:
        """Return where the MCP servers in the sandbox answer, once all of them do; starts what is not there.

        Code can run meanwhile. Raises ``SandboxError``: ``Failed to start MCP gateway`` with the gateway's own
        words; a sandbox in which nothing was done yet is ended then.
        """
        asked: list[Sandbox] = []

        def work(sandbox: Sandbox) -> Callable[[], McpAddress]:
            asked.append(sandbox)
            return sandbox.mcp_endpoint()

        try:
            try:
                return await asyncio.to_thread(await self._await(Job("mcp", work)))
            except GatewayGone:
                return await asyncio.to_thread(await self._await(Job("mcp", work)))
        except GatewayFailed as failed:
            why = f"Failed to start MCP gateway: {failed}"
            with contextlib.suppress(SandboxClosed):
                self._submit(Job("unfit", lambda sandbox: why if sandbox in asked else ""))
            raise SandboxError(why) from None

    def touch(self) -> None:
        """The sandbox is in use, by calls that do not go through here: it is not let go as unused. Any thread."""
        self._used_at = time.monotonic()

    def save(self) -> None:
        """Keep what is in the workspace, if it is to be kept, when what runs is done. Returns at once. Any thread."""
        if self._kept is not None and self._thread is not None:
            with contextlib.suppress(SandboxClosed):
                self._submit(self._saving())

    async def saved(self, seconds: float) -> None:
        """The same, waiting for it; it is given up after ``seconds``."""
        if self._kept is not None and self._thread is not None:
            with contextlib.suppress(SandboxClosed, TimeoutError):
                await asyncio.wait_for(self._await(self._saving()), seconds)

    def restart(self) -> None:
        """End the sandbox when what it does is done; the next use starts another one. Returns at once. Any thread."""
        with contextlib.suppress(SandboxClosed):
            self._submit(Job("restart", lambda _sandbox: None))

    def interrupt(self) -> None:
        """Stop the code or file operation that runs now, keeping variables. Does nothing when idle. Any thread."""
        with self._lock:
            job, sandbox = self._current, self._sandbox
        if job is None:
            return
        job.stop = True
        if sandbox is not None:
            sandbox.interrupt()
        threading.Thread(target=self._insist, args=(job,), name="sandbox-interrupt", daemon=True).start()

    def close(self, timeout: float = 5.0) -> None:
        """End the sandbox and the thread, for good. Any thread, any number of times.

        What is queued or running fails with ``SandboxClosed``. Waits at most ``timeout`` seconds.
        """
        with self._lock:
            first, self._closed = not self._closed, True
            thread, sandbox = self._thread, self._sandbox
        if first:
            self._jobs.put(None)
        if sandbox is not None:
            sandbox.close()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        elif first and thread is None:
            self._say_closed()

    # -- waiting ---------------------------------------------------------------------------------------

    def _submit(self, job: Job[Any]) -> None:
        with self._lock:
            if self._closed:
                raise SandboxClosed("The sandbox is closed.")
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="sandbox-worker", daemon=True)
                self._thread.start()
            self._jobs.put(job)

    async def _await(self, job: Job[T]) -> T:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(lambda: None if waiter.done() else waiter.set_result(None))

        self._submit(job)
        job.watch(tell)
        try:
            await asyncio.shield(waiter)
        except asyncio.CancelledError:
            if not job.cancel() and job.name != "mcp":  # servers that nobody waits for start all the same
                await self._stop(job, waiter)
            raise
        return job.outcome()

    async def _stop(self, job: Job[Any], waiter: asyncio.Future[None]) -> None:
        """Interrupt a begun job and wait until the sandbox is idle again; bounded, and not to be cancelled."""
        job.stop = True
        deadline = time.monotonic() + CANCEL_WAIT
        while job.working and not job.done and time.monotonic() < deadline:
            with self._lock:
                sandbox = self._sandbox if self._current is job else None
            if sandbox is not None:
                sandbox.interrupt()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({waiter}, timeout=0.1)
        if job.working and not job.done:
            with self._lock:
                sandbox = self._sandbox if self._current is job else None
            if sandbox is not None:
                sandbox.close()

    def _insist(self, job: Job[Any]) -> None:
        for pause in _INSIST_AFTER:
            time.sleep(pause)
            with self._lock:
                sandbox = self._sandbox if self._current is job else None
            if sandbox is None:
                return
            sandbox.interrupt()

    # -- the thread ------------------------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            while (job := self._next()) is not None:
                if not job.take():
                    continue
                with self._lock:
                    self._current = job
                try:
                    result, error = self._do(job), None
                except BaseException as caught:
                    result, error = None, caught
                with self._lock:
                    self._current = None
                    closed = self._closed
                if closed and isinstance(error, SandboxError):
                    error = SandboxClosed("The sandbox was closed.")
                job.finish(result, error)
        finally:
            self._end()

    def _next(self) -> Job[Any] | None:
        """Wait for the next operation; look after an unused sandbox meanwhile."""
        self._used_at = time.monotonic()
        while True:
            every = self.info.keep_every if self._sandbox is not None else 0.0
            try:
                return self._jobs.get(timeout=every or None)
            except queue.Empty:
                self._keep(time.monotonic() - self._used_at)

    def _keep(self, unused: float) -> None:
        with self._lock:
            sandbox = self._sandbox
        if sandbox is None:
            return
        try:
            sandbox.keep(unused)
        except SandboxLetGo as gone:
            self._drop()
            self._fresh = True
            self._say("none", str(gone))
        except SandboxClosed:
            return
        except SandboxError as lost:
            self._lose(str(lost))
        except Exception:  # the thread must go on: without it, every later use would wait for ever
            log.exception("looking after the sandbox failed")
            self._lose(FAULT)

    def _do(self, job: Job[T]) -> T | None:
        if job.name == "save":
            self._save(job)
            return None
        if job.name == "restart":
            if self._sandbox is not None:
                self._save(job)
                self._lose(RESTARTED)
            return None
        if job.name == "unfit":
            if self._sandbox is not None and not self._used and (why := job.work(self._sandbox)):
                self._drop()
                self._say("lost", str(why))
            return None
        last = job.name == "prestart"
        while True:
            try:
                sandbox = self._ready(quiet=job.name == "prestart")
            except SandboxError:
                if job.name == "prestart":
                    return None
                raise
            if job.stop and job.name == "run":
                return cast("T", Execution(stopped="interrupted"))
            if job.stop and job.name == "file":
                raise SandboxFileError("The file operation was stopped by the user.")
            if job.name not in ("prestart", "mcp"):
                self._used = True
                self._say("busy")
            job.working = True
            try:
                result = job.work(sandbox)
            except (SandboxFileError, GatewayFailed):
                self._say("ready")
                raise
            except SandboxClosed:
                if not self._closed:
                    self._lose("It was ended because the code did not stop.")
                raise
            except SandboxLost as lost:
                self._lose(str(lost))
                if last or self._closed:
                    raise SandboxError(f"The sandbox was lost twice in a row: {lost}") from None
                last = True
                continue
            except SandboxError as error:
                self._lose(str(error))
                raise
            except Exception:
                if job.name == "run":  # the code may be running still, and nobody follows it
                    self._lose(FAULT)
                else:
                    self._say("ready")
                raise
            finally:
                job.working = False
            return self._after(result)

    def _after(self, result: T) -> T:
        """Note what an operation tells about the sandbox."""
        if not isinstance(result, Execution):
            self._say("ready")
            return result
        done: Execution = result
        if self._fresh:
            done = dataclasses.replace(done, fresh=True)
            self._fresh = False
        if done.stopped == "died":
            self._lose(done.error.value if done.error else "")
        else:
            self._say("ready")
        return cast("T", done)

    def _ready(self, *, quiet: bool) -> Sandbox:
        """Return the running sandbox, starting one if there is none."""
        with self._lock:
            if self._closed:
                raise SandboxClosed("The sandbox is closed.")
            if self._sandbox is not None:
                return self._sandbox
        self._say("starting")
        try:
            sandbox = self._factory()
            with self._lock:
                self._sandbox = sandbox
                closed = self._closed
            if closed:
                raise SandboxClosed("The sandbox was closed while it started.")
            sandbox.start()
            if self._kept is not None:
                self._kept.bring(sandbox)
        except BaseException as error:
            self._drop()
            if quiet:
                self._say("none")
            else:
                self._say(
                    "lost", str(error) if isinstance(error, SandboxError) else "It could not be started."
                )
            raise
        self.generation += 1
        self._used = False
        self._say("ready")
        return sandbox

    def _saving(self) -> Job[None]:
        return Job("save", lambda _sandbox: None)

    def _save(self, job: Job[Any]) -> None:
        """Keep what is in the workspace of a sandbox that was used; what fails is told by what keeps it."""
        if self._kept is None or self._sandbox is None or not self._used:
            return
        job.working = True
        try:
            self._kept.save(self._sandbox, lambda: job.stop)
        except SandboxError as problem:
            log.info("the workspace was not kept: %s", problem)
        finally:
            job.working = False

    def _lose(self, reason: str) -> None:
        """The shell is gone: forget it, and remember to say so with the next result."""
        self._drop()
        self._fresh = True
        if not self._closed:
            self._say("lost", reason)

    def _drop(self) -> None:
        with self._lock:
            sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            sandbox.close()
            sandbox.release()

    def _end(self) -> None:
        with self._lock:
            self._closed = True  # also when the thread ends by a fault: nothing may wait for it
        self._drop()
        give_up(self._jobs, SandboxClosed("The sandbox was closed."))
        self._say_closed()

    def _say_closed(self) -> None:
        try:
            if self._on_close is not None:
                self._on_close()
        finally:
            self._say("closed")

    def _say(self, state: str, text: str = "") -> None:
        if self._on_state is not None:
            with contextlib.suppress(Exception):  # a listener's fault must not end the sandbox
                self._on_state(state, text)
