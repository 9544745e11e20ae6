"""Sandboxes in an E2B-compatible cloud: E2B, Alibaba FC Agent Sandbox, Tencent CubeSandbox and others.

A blocking back end over the coroutines of ``e2b_shell`` and ``e2b_files``: each operation runs to its end in an
event loop that lives in the worker's thread, and can be given up from another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import logging
import threading
import time
import uuid
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from sandbox_chat.sandbox import e2b_bridge, e2b_errors, remote
from sandbox_chat.sandbox.base import (
    BackEnd,
    Bridge,
    Capabilities,
    Execution,
    FileEntry,
    GatewayFailed,
    McpAddress,
    OutputSink,
    Progress,
    RawSink,
    SandboxClosed,
    SandboxError,
    SandboxFileError,
    SandboxInfo,
    SandboxLetGo,
    SandboxLost,
    SandboxUnavailable,
)
from sandbox_chat.sandbox.bridge_link import NO_WAY, BridgeLink
from sandbox_chat.sandbox.skills_folder import SkillsFolder
from sandbox_chat.settings import Settings

if TYPE_CHECKING:
    from sandbox_chat.sandbox.e2b_files import Files
    from sandbox_chat.sandbox.e2b_shell import Shell

T = TypeVar("T")
log = logging.getLogger(__name__)

KEEP_EVERY = 2.0
"""Seconds between two looks at an unused sandbox. Most of them ask nothing of the cloud."""
FOLDERS_WAIT = 10.0
"""Seconds that making the folders may take longer than making the shell."""
LIVE_CHECK = 60.0
"""Seconds between two questions whether an unused sandbox is still there, at most."""
_LATE_FIRST, _LATE_MOST = 2.0, 60.0  # between two questions for the output of late threads, growing
_LOOKS, _LOOK_AGAIN = 4, 1.0  # for a sandbox of which only its mark is known; seconds
_CREATE_AGAIN = (0.3, 1.0)  # seconds before a cloud that is busy is asked again
_BUSY = (429, 502, 503, 504)
_KILL_AGAIN = 0.3  # seconds before a kill that failed is tried again
_TTL_SLACK = 30.0  # seconds that a sandbox lives on after a run's time limit, at least


def back_end(settings: Settings, session_id: str = "", skills: SkillsFolder | None = None) -> BackEnd:
    """Return how the worker makes sandboxes of this kind. Starts nothing. Raises ``SandboxUnavailable`` without a key."""
    if not settings.e2b_api_key:
        raise SandboxUnavailable(e2b_errors.NO_KEY)
    return BackEnd(lambda: E2BSandbox(settings, session_id, skills), info(settings))


def info(settings: Settings) -> SandboxInfo:
    """What this back end is, with these settings."""
    return SandboxInfo(
        kind="e2b",
        label=f"cloud ({e2b_errors.domain(settings)})",
        capabilities=Capabilities(network=settings.e2b_internet, rich_output=True, pause=True, mcp=True),
        keep_every=min(KEEP_EVERY, settings.e2b_ttl / 8),
        costs=True,
    )


class E2BSandbox:
    """One sandbox in the cloud, from start to close."""

    def __init__(self, settings: Settings, session_id: str = "", skills: SkillsFolder | None = None) -> None:
        from sandbox_chat.sandbox.e2b_client import Cloud
        from sandbox_chat.sandbox.e2b_folders import Folders
        from sandbox_chat.sandbox.e2b_gateway import Gateway

        self.settings = settings
        self.info = info(settings)
        self._marks = {**remote.marks(session_id, settings.e2b_tag), "one": uuid.uuid4().hex}
        self._cloud = Cloud(settings)
        self._gateway = Gateway(self._cloud)
        self._folders = Folders(settings, self._cloud, skills)
        self._shell: Shell | None = None
        self._way: BridgeLink | None = None
        self._way_file = ""
        self._files: Files | None = None
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._interruptible = ""
        """What ``interrupt`` may stop now: ``run``, ``file`` or nothing."""
        self._stopped = False
        self._closed = False
        self._creating = threading.Event()
        self._creating.set()  # cleared while a sandbox is being made
        self._unsure = False
        """True when nobody knows whether a sandbox was made, because the answer did not come."""
        self._killer: threading.Thread | None = None
        self._kill_by = 0.0
        self._ends = 0.0
        self._checked = self._late_at = 0.0
        self._late_pause = _LATE_FIRST

    @property
    def id(self) -> str:
        """The cloud's id of the sandbox, empty before it is made."""
        return self._cloud.id

    # -- the protocol ----------------------------------------------------------------------------------

    def start(self) -> None:
        """See ``Sandbox.start``: make the sandbox and its shell, within ``start_timeout`` seconds."""
        deadline = time.monotonic() + self.settings.start_timeout
        with self._lock:
            if self._closed:
                raise SandboxClosed("The sandbox was closed before it started.")
            self._creating.clear()
        try:
            # Never given up half-way: the cloud would have made a sandbox that nobody knows.
            self._drive(self._create, cancellable=False)
        finally:
            self._creating.set()
        if self._is_closed():
            self.close()
            raise SandboxClosed("The sandbox was closed while it started.")
        if self.settings.sandbox_mcp:
            begun = time.monotonic()
            try:
                self._drive(lambda: self._gateway.start(self.settings.sandbox_mcp_timeout))
            except GatewayFailed as failed:
                raise SandboxError(f"Failed to start MCP gateway: {failed}") from None
            deadline += time.monotonic() - begun
        self._drive(lambda: self._begin(max(deadline - time.monotonic(), 1.0)))

    def run_code(
        self,
        code: str,
        *,
        timeout: float,
        on_output: OutputSink | None = None,
        on_late: OutputSink | None = None,
        on_raw: RawSink | None = None,
        bridge: Bridge | None = None,
    ) -> Execution:
        """See ``Sandbox.run_code``."""

        async def run() -> Execution:
            assert self._shell is not None
            self._shell.wanted.clear()  # before all that takes time: it may be interrupted too
            await self._prolong(timeout + _TTL_SLACK)
            said = await self._folders.renew()
            if bridge is not None and (problem := await self._offer(self._shell, bridge)):
                said.append(problem)
            waited = bridge.waited if bridge is not None else None
            longer = asyncio.ensure_future(self._prolong_often()) if bridge is not None else None
            try:
                result = await self._shell.run(code, timeout, on_output, on_late, on_raw, waited=waited)
            finally:
                if longer is not None:
                    longer.cancel()
            if said:
                result = dataclasses.replace(result, notes=(*result.notes, *said))
            self._late_pause, self._late_at = _LATE_FIRST, time.monotonic() + _LATE_FIRST
            return result

        return self._operation("run", run)

    async def _offer(self, shell: Shell, bridge: Bridge) -> str:
        """Open the way to the host's tools if there is none. Returns why there is none, as a sentence."""
        if self._way is None or self._way.over:
            self._way_file = f"/tmp/.tools-{uuid.uuid4().hex[:16]}"  # noqa: S108 - in the sandbox
            way = e2b_bridge.open_way(self._cloud, self._way_file, bridge.serve)
            with self._lock:
                self._way, closed = way, self._closed
            if closed or not await asyncio.to_thread(way.ready, self.settings.e2b_request_timeout):
                way.close()
                return NO_WAY.format(reason=way.why or "it did not start")
        if not await shell.offer(self._way_file, bridge.token):
            return NO_WAY.format(reason="the cloud's Python did not take them")
        return ""

    async def _prolong_often(self) -> None:
        """A run that waits for the host may take any time."""
        while True:
            await asyncio.sleep(self.settings.e2b_ttl / 4)
            with contextlib.suppress(SandboxError):
                await self._prolong()

    def interrupt(self) -> None:
        """See ``Sandbox.interrupt``."""
        with self._lock:
            loop, task, kind = self._loop, self._task, self._interruptible
            if loop is None or task is None or self._shell is None or not kind or self._closed:
                return
            self._stopped = True
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._shell.wanted.set if kind == "run" else task.cancel)

    def write_file(self, path: str, data: bytes) -> str:
        """See ``Sandbox.write_file``."""
        return self.upload(io.BytesIO(data), len(data), path)

    def read_file(self, path: str, *, max_bytes: int) -> bytes:
        """See ``Sandbox.read_file``."""
        data = io.BytesIO()
        self.download(path, data, max_bytes=max_bytes)
        return data.getvalue()

    def list_files(self, path: str, *, limit: int) -> list[FileEntry]:
        """See ``Sandbox.list_files``."""
        return self._file(lambda files: files.list(path, limit))

    def upload(self, source: BinaryIO, size: int, path: str, on_progress: Progress | None = None) -> str:
        """See ``Sandbox.upload``."""
        return self._file(lambda files: files.upload(source, size, path, on_progress))

    def download(
        self, path: str, target: BinaryIO, *, max_bytes: int, on_progress: Progress | None = None
    ) -> int:
        """See ``Sandbox.download``."""
        return self._file(lambda files: files.download(path, target, max_bytes, on_progress))

    def mcp_endpoint(self) -> Callable[[], McpAddress]:
        """See ``Sandbox.mcp_endpoint``. The servers are started with the sandbox; it has no other life than theirs."""
        if not self.settings.sandbox_mcp:
            raise GatewayFailed("No MCP servers were asked for.")

        async def look() -> McpAddress:
            await self._prolong()
            return await self._gateway.address()

        address = self._operation("", look)
        return lambda: address

    def keep(self, unused: float) -> None:
        """See ``Sandbox.keep``: prolongs what is in use, lets go what is not, hears late threads."""
        limit = self.settings.e2b_idle_limit
        why = ""
        if unused >= limit > 0:
            why = "was ended, because it costs while it lives"
        elif not limit and time.monotonic() >= self._ends:
            why = "its time is over"
        if why:
            self.close()
            raise SandboxLetGo(
                f"The cloud's sandbox was not used for {_span(unused)} and {why}. Its variables and files are gone; the "
                "next run makes a new one."
            )
        now = time.monotonic()
        listen = self._shell is not None and self._shell.threads > 0 and now >= self._late_at
        check = now - self._checked >= min(self.settings.e2b_ttl / 4, LIVE_CHECK)
        if listen or check or (limit and self._due()):
            self._operation("", lambda: self._look(listen=listen, prolong=limit > 0))

    def close(self) -> None:
        """See ``Sandbox.close``. Waits at most about ``close_timeout`` seconds for the cloud's answer."""
        with self._lock:
            self._closed = True
            loop, task, way = self._loop, self._task, self._way
            if way is not None:
                way.close()
            if loop is not None and task is not None and self._creating.is_set():
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(task.cancel)
            if self._killer is None and (self.id or self._unsure or not self._creating.is_set()):
                self._kill_by = time.monotonic() + self.settings.close_timeout
                self._killer = threading.Thread(target=self._kill, name="sandbox-kill", daemon=True)
                self._killer.start()
            killer = self._killer
        # Whoever closes from inside an event loop is not held up; the worker's thread waits.
        if killer is not None and not _in_a_loop():
            killer.join(max(self._kill_by - time.monotonic(), 0.0))

    def release(self) -> None:
        """See ``Sandbox.release``."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            with contextlib.suppress(Exception):
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    # -- inner parts -----------------------------------------------------------------------------------

    def _is_closed(self) -> bool:
        return self._closed

    async def _create(self) -> None:
        timeout = self.settings.start_timeout
        begun = time.monotonic()
        try:
            await asyncio.wait_for(self._make(timeout), timeout)
        except SandboxError:
            raise
        except Exception as error:
            sentence = e2b_errors.create_failed(error, self.settings)
            status = e2b_errors.status_of(error)
            self._unsure = self._unsure or e2b_errors.may_have_worked(error)
            # What a setting can mend is not worth a second try; what the cloud may mend is.
            kind = SandboxUnavailable if 0 < status < 500 and status != 429 else SandboxError
            raise kind(sentence) from error
        self._ends = begun + self.settings.e2b_ttl
        self._checked = time.monotonic()

    async def _make(self, seconds: float) -> None:
        """Ask for a sandbox, again when the cloud is busy. One that was made without our knowing is ended at the end."""
        for pause in _CREATE_AGAIN:
            try:
                await self._cloud.create(self._marks, seconds)
            except Exception as error:
                if e2b_errors.status_of(error) not in _BUSY:
                    raise
                self._unsure = self._unsure or e2b_errors.may_have_worked(error)
                await asyncio.sleep(pause)
            else:
                return
        await self._cloud.create(self._marks, seconds)

    async def _begin(self, seconds: float) -> None:
        from sandbox_chat.sandbox.e2b_files import Files
        from sandbox_chat.sandbox.e2b_shell import Shell

        shell = Shell(self.settings, self._cloud)
        folders = asyncio.ensure_future(self._folders.make())
        try:
            await asyncio.wait_for(shell.begin(seconds), seconds + 5.0)
            await asyncio.wait({folders}, timeout=FOLDERS_WAIT)
        except SandboxError:
            raise
        except Exception as error:
            what = e2b_errors.why(error, self.settings)
            raise SandboxError(
                f"The cloud made a sandbox, but its code interpreter does not answer ({what}). Check that the template "
                f"{self.settings.e2b_template!r} has one, and E2B_DOMAIN and E2B_SANDBOX_URL."
            ) from error
        finally:
            folders.cancel()
            await asyncio.gather(folders, return_exceptions=True)
        self._shell, self._files = shell, Files(self.settings, self._cloud)

    async def _look(self, *, listen: bool, prolong: bool) -> None:
        now = time.monotonic()
        if prolong:
            await self._prolong()
        if listen:
            self._late_pause = min(self._late_pause * 2, _LATE_MOST)
            self._late_at = now + self._late_pause
            assert self._shell is not None
            await self._shell.look()
        elif await self._cloud.lives(self.settings.e2b_request_timeout) is False:
            raise SandboxLost(f"{e2b_errors.GONE} Its variables and files are lost.")
        self._checked = now

    def _due(self) -> bool:
        return self._ends - time.monotonic() < self.settings.e2b_ttl * 2 / 3

    async def _prolong(self, need: float = 0.0) -> None:
        """Let the sandbox live for its full time again when a third of it is over, or when ``need`` is more."""
        left = self._ends - time.monotonic()
        if not self._due() and left >= need:
            return
        seconds = max(self.settings.e2b_ttl, round(need + 0.5))
        begun = time.monotonic()
        try:
            await self._cloud.prolong(seconds, self.settings.e2b_request_timeout)
        except Exception as error:
            if left < 0 or e2b_errors.is_gone(error) or e2b_errors.status_of(error) == 404:
                raise SandboxLost(f"{e2b_errors.GONE} Its variables and files are lost.") from error
            log.warning("the sandbox could not be prolonged: %s", e2b_errors.said(error, self.settings))
            return
        self._ends = begun + seconds

    def _file(self, make: Callable[[Files], Coroutine[Any, Any, T]]) -> T:
        async def work() -> T:
            await self._prolong()
            assert self._files is not None
            return await make(self._files)

        return self._operation("file", work)

    def _operation(self, kind: str, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if self._closed:
            raise SandboxClosed("The sandbox is closed.")
        if self._shell is None:
            raise SandboxError("The sandbox was used before it was started.")
        return self._drive(make, kind=kind)

    def _drive(
        self, make: Callable[[], Coroutine[Any, Any, T]], *, kind: str = "", cancellable: bool = True
    ) -> T:
        """Run a coroutine to its end in this thread."""
        loop = self._loop or asyncio.new_event_loop()
        task = loop.create_task(make())
        with self._lock:
            self._loop, self._task = loop, task
            self._interruptible, self._stopped = kind, False
            if self._closed and cancellable:
                task.cancel()
        try:
            return loop.run_until_complete(task)
        except asyncio.CancelledError:
            if self._stopped and kind == "file" and not self._closed:
                raise SandboxFileError("The file operation was stopped by the user.") from None
            raise SandboxClosed("The sandbox is closed.") from None
        except SandboxError as error:
            if self._closed and not isinstance(error, SandboxClosed):
                raise SandboxClosed("The sandbox is closed.") from error
            raise
        except e2b_errors.ThisSide as failed:
            raise failed.args[0] from None
        except Exception as error:
            log.exception("the cloud's client failed")
            said = e2b_errors.said(error, self.settings)
            raise SandboxError(
                f"The cloud's sandbox failed ({type(error).__name__}: {said}). Try again; a new sandbox is made."
            ) from error
        finally:
            with self._lock:
                self._task, self._interruptible = None, ""

    def _kill(self) -> None:
        """End the sandbox; also one that is being made just now. A thread of its own, so that nothing can hang on it."""
        from sandbox_chat.sandbox import e2b_client, e2b_list

        self._creating.wait(max(self._kill_by - time.monotonic(), 0.0) / 2)
        killed, looks = False, _LOOKS  # what is being made may not be there at the first look
        while (left := self._kill_by - time.monotonic()) > 0:
            try:
                if self.id and not killed:
                    e2b_client.kill(self.settings, self.id, left)
                    killed = True
                if self._creating.is_set() and not self._unsure:
                    return
                if self.id:
                    looks = min(looks, 1)  # the one that answered came later than any other
                for found in e2b_list.with_marks(self.settings, {"one": self._marks["one"]}, left):
                    e2b_client.kill(self.settings, found.id, left)
                    killed = True
                looks -= 1
                if not looks or (killed and not self.id):
                    return
                time.sleep(min(_LOOK_AGAIN, left / 2))
            except Exception as error:
                log.warning("the sandbox could not be ended: %s", e2b_errors.said(error, self.settings))
                time.sleep(_KILL_AGAIN)
        log.warning("the cloud ends the sandbox %s by itself", self.id or "that was being made")


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} s"
