"""The servers behind the gateway: started together, started again one by one, and their tools as one list."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import VERSION
from .clone import GITHUB, prepare
from .config import Plan
from .errors import StartError
from .link import Link, LinkClosed, OnProgress, RemoteError
from .log import Log
from .tools import MOST_TOOLS, Offered, merged, usable

PROTOCOL = "2025-11-25"
"""The version of the protocol that servers are offered."""
_MOST_PAGES = 100  # of a list of tools
_METHOD_NOT_FOUND = -32601

Accepts = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True)
class Places:
    """Where repositories are cloned to and from, and the seconds that a server has to start."""

    clones: Path
    github: str = GITHUB
    timeout: float = 55.0


class Server:
    """One server. It is started once with all others, and again at the next call after it has ended."""

    def __init__(self, plan: Plan, places: Places, log: Log, on_change: Callable[[Server], None]) -> None:
        self.plan = plan
        self.listed: list[Any] = []
        """The definitions of its tools, as it gave them."""
        self._places = places
        self._log = log
        self._on_change = on_change
        self._link: Link | None = None
        self._starting = asyncio.Lock()
        self._listing: asyncio.Task[None] | None = None
        self._outdated = False
        self._closed = False

    @property
    def name(self) -> str:
        """The name that the configuration gives it."""
        return self.plan.name

    async def start(self) -> Link:
        """Start it unless it runs, and read the list of its tools. Raises ``LinkClosed``."""
        async with self._starting:
            if self._closed:
                raise LinkClosed("the gateway ends")
            if self._link is not None and not self._link.closed:
                return self._link
            if self._link is not None:
                await self._link.close()
                self._log.line(self.name, f"({self._link.closed}; it is started again)")
                self._link = None
            self._link = await self._open()
            return self._link

    async def call(self, params: Mapping[str, Any], on_progress: OnProgress | None) -> dict[str, Any]:
        """Call a tool. Raises ``RemoteError`` and ``LinkClosed``."""
        link = self._link
        if link is None or link.closed:
            try:
                link = await asyncio.wait_for(self.start(), self._places.timeout)
            except TimeoutError:
                raise LinkClosed(f"it did not start within {self._places.timeout:g} s") from None
        return await link.request("tools/call", params, on_progress)

    async def close(self) -> None:
        """End it, gently."""
        self._closed = True
        await self._stop_listing()
        if self._link is not None:
            await self._link.close()

    async def _open(self) -> Link:
        environment = {**os.environ, **self.plan.environment}
        folder: str | None = None
        if self.plan.repository:
            folder = str(
                await prepare(
                    self.plan,
                    folder=self._places.clones,
                    github=self._places.github,
                    environment=environment,
                    log=self._log,
                )
            )
        link = await Link.open(
            self.name,
            self.plan.command,
            environment=environment,
            folder=folder,
            log=self._log,
            on_tools_changed=self._tools_changed,
        )
        try:
            await link.request(
                "initialize",
                {
                    "protocolVersion": PROTOCOL,
                    "capabilities": {},
                    "clientInfo": {"name": "mcp-gateway", "version": VERSION},
                },
            )
            link.notify("notifications/initialized")
            self.listed = await _list(link)
        except RemoteError as error:
            link.kill()
            await link.close()
            raise LinkClosed(f"it refused to start: {error.message[:500]}") from None
        except BaseException:
            link.kill()
            raise
        self._on_change(self)
        return link

    def _tools_changed(self) -> None:
        self._outdated = True
        if self._listing is None or self._listing.done():
            self._listing = asyncio.get_running_loop().create_task(self._list_again())

    async def _list_again(self) -> None:
        while self._outdated:
            await asyncio.sleep(0.1)  # several changes are one
            async with (
                self._starting
            ):  # a start reads the list too, and what changes meanwhile comes after it
                link = self._link
            self._outdated = False  # what changes from here on is listed again
            if link is not None and not link.closed:
                with contextlib.suppress(LinkClosed, RemoteError):
                    self.listed = await _list(link)
                    self._on_change(self)

    async def _stop_listing(self) -> None:
        if self._listing is not None:
            self._listing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listing


class Servers:
    """All servers. ``accepts`` says which definitions of tools the clients' library takes."""

    def __init__(self, plans: list[Plan], places: Places, log: Log) -> None:
        self._log = log
        self._timeout = places.timeout
        self._servers = {plan.name: Server(plan, places, log, self._changed) for plan in plans}
        self._accepts: Accepts | None = None
        self._seen: dict[str, list[Any]] = {}
        self._usable: dict[str, list[dict[str, Any]]] = {}
        self._offered: dict[str, Offered] = {}
        self._complaints: set[str] = set()

    def __len__(self) -> int:
        return len(self._servers)

    @property
    def offered(self) -> Mapping[str, Offered]:
        """The tools by their public names."""
        return self._offered

    async def start(self) -> None:
        """Start all at the same time. Raises ``StartError`` as soon as one cannot start, or time is over."""
        tasks = {asyncio.create_task(server.start()): server.name for server in self._servers.values()}
        if not tasks:
            return
        try:
            done, waiting = await asyncio.wait(
                tasks, timeout=self._timeout, return_when=asyncio.FIRST_EXCEPTION
            )
            for task in done:
                error = task.exception()
                if error is not None:
                    raise StartError(f"The server {tasks[task]} did not start: {error}.") from None
            if waiting:
                late = ", ".join(sorted(tasks[task] for task in waiting))
                raise StartError(f"Not ready within {self._timeout:g} s: {late}.")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def offer(self, accepts: Accepts) -> None:
        """Make the list of tools, and keep it up to date from now on."""
        self._accepts = accepts
        for server in self._servers.values():
            self._changed(server)

    async def call(
        self, name: str, params: Mapping[str, Any], on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        """Call a tool by its public name; ``params`` are the client's. Raises ``RemoteError``."""
        offered = self._offered.get(name)
        if offered is None:
            raise RemoteError(-32602, f"Unknown tool: {name[:128]}")
        try:
            return await self._servers[offered.server].call({**params, "name": offered.original}, on_progress)
        except LinkClosed as error:
            raise RemoteError(
                -32000,
                f"The server {offered.server} is not there: {error}. It is started again at the next call.",
            ) from None

    async def close(self) -> None:
        """End all at the same time, gently."""
        await asyncio.gather(*(server.close() for server in self._servers.values()), return_exceptions=True)

    def _changed(self, server: Server) -> None:
        """Take the list of a server into that of all, unless it is as before."""
        name = server.name
        if self._accepts is None or self._seen.get(name) == server.listed:
            return
        self._seen[name] = server.listed
        self._usable[name] = usable(server.listed, self._accepts, lambda text: self._complain(name, text))
        self._offered = merged(self._usable)

    def _complain(self, name: str, text: str) -> None:
        if (line := f"{name}: {text}") not in self._complaints and len(self._complaints) < 10 * MOST_TOOLS:
            self._complaints.add(line)
            self._log.line(name, f"({text})")


async def _list(link: Link) -> list[Any]:
    """All tools of a server, page by page; a list that does not come to its end is cut."""
    found: list[Any] = []
    seen: set[str] = set()
    params: dict[str, Any] | None = None
    for _ in range(_MOST_PAGES):
        try:
            page = await link.request("tools/list", params)
        except RemoteError as error:
            if error.code == _METHOD_NOT_FOUND and params is None:
                return []  # a server of prompts or resources only
            raise
        tools = page.get("tools")
        found += tools if isinstance(tools, list) else []
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or cursor in seen or len(found) > MOST_TOOLS:
            break
        seen.add(cursor)
        params = {"cursor": cursor}
    return found
