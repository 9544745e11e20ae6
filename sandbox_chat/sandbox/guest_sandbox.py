"""A sandbox that holds our guest: the part that is the same wherever the guest runs."""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import BinaryIO

from sandbox_chat.sandbox import notes, spawn
from sandbox_chat.sandbox.base import (
    Bridge,
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
    SandboxLost,
)
from sandbox_chat.sandbox.bridge_link import NO_WAY, BridgeLink
from sandbox_chat.sandbox.gateway_link import GatewayLink
from sandbox_chat.sandbox.guest_link import GuestLink
from sandbox_chat.sandbox.guest_wire import Channel
from sandbox_chat.sandbox.skills_folder import SkillsFolder
from sandbox_chat.sandbox.watch import Bounds, Watch
from sandbox_chat.settings import Secret, Settings

KEEP_EVERY = 0.5
"""Seconds between two looks at a guest that is not in use, for its death and for output that comes late."""
WAY_WAIT = 10.0
"""Seconds that the way to the host's tools may take to open."""
_CLOSE_WAIT = 1.0


class GuestSandbox:
    """What the back ends with a guest share: one guest, from start to close. A back end says how it is spawned."""

    info: SandboxInfo

    def __init__(self, settings: Settings, skills: SkillsFolder | None = None) -> None:
        self.settings = settings
        self._skills = skills
        self._unsaid = ""
        """What the next run is to say about the skills."""
        self._told = False
        self._lock = threading.Lock()
        self._started: spawn.Started | None = None
        self._link: GuestLink | None = None
        self._watch: Watch | None = None
        self._closed = False
        self._gateway: GatewayLink | None = None
        self._way: BridgeLink | None = None
        self._token = Secret(secrets.token_urlsafe(32))

    def _bounds(self) -> Bounds | None:
        """What the watchdog holds all processes together to; ``None`` when they are not this machine's to watch."""
        return None

    def _spawn(self) -> spawn.Started:
        """Start a guest. Raises ``SandboxUnavailable`` when it cannot be had."""
        raise NotImplementedError

    def _explain(self, reason: str) -> SandboxError:
        """Return the error for a guest that ended with ``reason`` before it had answered."""
        raise NotImplementedError

    def _open_gateway(self, link: GuestLink) -> GatewayLink:
        """Start the keeper of the gateway in the sandbox. Raises ``GatewayFailed``."""
        raise GatewayFailed("This kind of sandbox runs no MCP servers.")

    def _open_way(self, link: GuestLink, path: str, serve: Callable[[socket.socket], None]) -> BridgeLink:
        """Start what listens at ``path`` in the sandbox for code that calls the host's tools. Raises ``SandboxError``."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                link.start_bridge(self._programs, path, theirs.fileno())
            except BaseException:
                ours.close()
                raise
        end = ours.detach()
        return BridgeLink(end, end, serve)

    @property
    def _programs(self) -> str:
        """The folder in the sandbox that holds the gateway's package."""
        return str(spawn.gateway_folder().parent)

    def start(self) -> None:
        """Start the guest and wait until it answers."""
        started = self._spawn()
        try:
            watch, channel = self._watched(started)
            link = GuestLink(channel, output_limit=self.settings.output_limit)
        except BaseException:  # out of descriptors
            spawn.discard(started)
            raise
        with self._lock:
            self._started, self._link, self._watch = started, link, watch
            closed = self._closed
        if closed:
            link.close()
        try:
            if watch is not None:
                watch.prepare()
            link.hello(self.settings.start_timeout)
            if watch is not None:
                watch.start()
        except SandboxLost as lost:
            self._finish()
            if self._closed:
                raise SandboxClosed("The sandbox was closed while it started.") from None
            raise self._explain(str(lost)) from None

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
        link, watch = self._use(), self._watch
        at_limit = False
        said = self._offer(link, bridge) if bridge is not None else ""
        about = self._renew_skills()
        if watch is not None:
            watch.begin()
        try:
            waited = bridge.waited if bridge is not None else None
            done = link.execute(code, timeout, on_output, on_late, on_raw, waited=waited)
        finally:
            if watch is not None:
                at_limit = watch.end()
        found = notes.of_limits(done, self.settings, at_process_limit=at_limit, isolated=self.info.safe)
        found = (*(words for words in (said, about) if words), *found)
        return dataclasses.replace(done, notes=(*done.notes, *found)) if found else done

    def interrupt(self) -> None:
        """See ``Sandbox.interrupt``."""
        with self._lock:
            link = self._link
        if link is not None:
            link.interrupt()

    def write_file(self, path: str, data: bytes) -> str:
        """See ``Sandbox.write_file``."""
        with self._naming_limits():
            return self._use().write_file(path, data)

    def read_file(self, path: str, *, max_bytes: int) -> bytes:
        """See ``Sandbox.read_file``."""
        return self._use().read_file(path, max_bytes)

    def list_files(self, path: str, *, limit: int) -> list[FileEntry]:
        """See ``Sandbox.list_files``."""
        return self._use().list_files(path, limit)

    def upload(self, source: BinaryIO, size: int, path: str, on_progress: Progress | None = None) -> str:
        """See ``Sandbox.upload``."""
        with self._naming_limits():
            return self._use().upload(source, size, path, on_progress)

    def download(
        self, path: str, target: BinaryIO, *, max_bytes: int, on_progress: Progress | None = None
    ) -> int:
        """See ``Sandbox.download``."""
        return self._use().download(path, target, max_bytes, on_progress)

    def mcp_endpoint(self) -> Callable[[], McpAddress]:
        """See ``Sandbox.mcp_endpoint``."""
        link = self._use()
        with self._lock:
            gateway = self._gateway
        if gateway is None or gateway.over:
            gateway = self._open_gateway(link)
            with self._lock:
                self._gateway, closed = gateway, self._closed
            if closed:
                gateway.close()
                raise SandboxClosed("The sandbox is closed.")
        return lambda: self._wait_for(gateway)

    def _wait_for(self, gateway: GatewayLink) -> McpAddress:
        try:
            gateway.ready(self.settings.sandbox_mcp, self._token.reveal(), self.settings.sandbox_mcp_timeout)
        except GatewayFailed:
            if self._closed:
                raise SandboxClosed("The sandbox was closed while its MCP servers started.") from None
            raise
        return McpAddress(url=f"http://127.0.0.1:{gateway.port}/mcp", token=self._token)

    def _offer(self, link: GuestLink, bridge: Bridge) -> str:
        """Open the way to the host's tools if there is none. Returns why there is none, as a sentence."""
        if self._way is not None and not self._way.over:
            return ""
        path = f"/tmp/.tools-{secrets.token_hex(8)}"  # noqa: S108 - in the sandbox
        try:
            way = self._open_way(link, path, bridge.serve)
            with self._lock:
                self._way, closed = way, self._closed
            if closed or not way.ready(WAY_WAIT):
                way.close()
                raise SandboxError(way.why or "it did not start")
            link.offer_tools(path, bridge.token.reveal())
        except SandboxLost:
            raise
        except SandboxError as problem:
            return NO_WAY.format(reason=problem)
        return ""

    def _renew_skills(self) -> str:
        """Bring what code sees of the user's skills up to date. Returns what is wrong with it, once."""
        said, self._unsaid = self._unsaid, ""
        if self._skills is not None:
            said = self._skills.refresh() or said
        told, self._told = self._told, self._told or bool(said)
        return "" if told else said

    def keep(self, unused: float) -> None:
        """See ``Sandbox.keep``: notices death and hands on late output. An unused guest costs nothing and stays."""
        self._use().look()

    def close(self) -> None:
        """See ``Sandbox.close``. Waits at most about a second for the process to be gone."""
        with self._lock:
            self._closed = True
            link, started, watch = self._link, self._started, self._watch
            gateway, way = self._gateway, self._way
        if gateway is not None:
            gateway.close()
        if way is not None:
            way.close()
        if link is not None:
            link.close()
        if started is not None:
            _reap(started)
        if watch is not None:
            watch.stop()

    def release(self) -> None:
        """Close the descriptors too; only from the thread that drives this back end, after ``close``."""
        self._finish()

    @contextlib.contextmanager
    def _naming_limits(self) -> Iterator[None]:
        try:
            yield
        except SandboxFileError as problem:
            more = notes.of_file(str(problem), self.settings) if self.info.safe else ""
            if not more:
                raise
            raise SandboxFileError(str(problem) + more) from None

    def _use(self) -> GuestLink:
        if self._closed:
            raise SandboxClosed("The sandbox is closed.")
        if self._link is None:
            raise SandboxError("The sandbox was used before it was started.")
        return self._link

    def _watched(self, started: spawn.Started) -> tuple[Watch | None, Channel]:
        """Return the watchdog of a guest that was just started, and its channel, which knows the limit that struck."""
        bounds, channel = self._bounds(), started.channel
        if bounds is None:
            return None, channel
        root: int = getattr(started, "root_pid", 0) or started.process.pid
        watch = Watch(root, bounds, channel.kill)
        said = dataclasses.replace(
            channel, ended=lambda: watch.explain(channel.ended()), cleared=watch.count_afresh
        )
        return watch, said

    def _finish(self) -> None:
        with self._lock:
            link, started, watch = self._link, self._started, self._watch
            gateway, self._gateway = self._gateway, None
            way, self._way = self._way, None
            self._link = None
        if gateway is not None:
            gateway.close()
            gateway.gone(_CLOSE_WAIT)
        if way is not None:
            way.close()
            way.gone(_CLOSE_WAIT)
        if link is not None and started is not None:
            link.close()
            _reap(started)
            if watch is not None:
                watch.stop()
            link.release()


def _reap(started: spawn.Started) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        started.process.wait(timeout=_CLOSE_WAIT)
