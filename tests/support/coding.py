"""Code mode in tests, without an agent: real sandboxes, real servers, and what is told and asked is recorded.

async with coding(tmp_path, way("good"), **options) as c:
    done = await c.run("print(call_mcp_tool('bad__echo', {'text': 'hi'}))")
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from support.mcp_host import Hosted, hosted
from support.sandboxes import PATIENCE

from sandbox_chat.bridge.server import CodeBridge
from sandbox_chat.events import Event, NestedFinished, NestedStarted
from sandbox_chat.mcp.base import ServerConfig
from sandbox_chat.sandbox import make_worker
from sandbox_chat.sandbox.base import Execution
from sandbox_chat.sandbox.skills_folder import Skills
from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Settings

E = TypeVar("E", bound=Event)


@dataclass
class Coding:
    """A session in code mode, as far as code sees it."""

    host: Hosted
    bridge: CodeBridge
    worker: SandboxWorker
    settings: Settings
    runs: int = 0
    late: list[str] = field(default_factory=list)

    async def run(self, code: str, *, timeout: float = PATIENCE, call_id: str = "") -> Execution:
        """Run code that may call tools."""
        self.runs += 1
        async with self.bridge.run(call_id or f"run-{self.runs}") as way:
            return await self.worker.run_code(
                code, timeout=timeout, bridge=way, on_late=lambda _stream, text: self.late.append(text)
            )

    async def said(self, code: str, **options: Any) -> str:
        """Run code that must not fail, and return what it printed."""
        done = await self.run(code, **options)
        assert done.ok, (done.error, done.stopped, done.stderr, done.notes)
        assert not done.notes, done.notes
        return done.stdout

    def of(self, kind: type[E]) -> list[E]:
        """The events of a type, in order."""
        return self.host.of(kind)

    @property
    def calls(self) -> list[tuple[str, bool]]:
        """The nested calls that ended: the tool and whether it failed, in the order in which they began."""
        ends = {event.call_id: event for event in self.of(NestedFinished)}
        return [
            (event.name, ends[event.call_id].is_error)
            for event in self.of(NestedStarted)
            if event.call_id in ends
        ]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something holds."""
        await self.host.until(condition)


@asynccontextmanager
async def coding(
    folder: Path,
    *configs: ServerConfig,
    policy: tuple[str, ...] = ("*=free",),
    answers: tuple[str, ...] = (),
    more: Callable[[Settings, Hosted], dict[str, Any]] = lambda settings, host: {},
    skills: Skills | None = None,
    **values: Any,
) -> AsyncIterator[Coding]:
    """Servers and a sandbox in code mode; ``more`` gives further arguments of the bridge, ``skills`` what is in ``/skills``."""
    chosen: dict[str, Any] = {
        "code_mode": "on",
        "code_mode_policy": policy,
        "pii": "off",
        "start_timeout": PATIENCE,
        "sandbox_warm": False,
        **values,
    }
    async with hosted(folder, *configs, allow=(), answers=answers, **chosen) as host:
        worker = make_worker(host.settings, skills=skills)
        assert worker is not None
        bridge = CodeBridge(
            host.servers,
            host.settings,
            host.events.append,
            host.ask,
            save_picture=host.make_context().save_picture,
            **more(host.settings, host),
        )
        try:
            yield Coding(host, bridge, worker, host.settings)
        finally:
            await asyncio.to_thread(worker.close)
