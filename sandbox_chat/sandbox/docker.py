"""The Docker back end: the guest in a container without network, rights or a writable disk.

The program that runs containers (``docker`` or ``podman``) is called as a command with attached standard streams,
which are the only channel. In the container, ``guest/relay`` is the first process.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import os
import re
import secrets
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from sandbox_chat.sandbox import bwrap, docker_program, local, notes, seccomp, spawn, watch, workspace
from sandbox_chat.sandbox.base import (
    BackEnd,
    Bridge,
    Capabilities,
    Execution,
    OutputSink,
    RawSink,
    SandboxError,
    SandboxInfo,
    SandboxUnavailable,
)
from sandbox_chat.sandbox.bridge_link import BridgeLink
from sandbox_chat.sandbox.docker_gateway import open_gateway, open_way
from sandbox_chat.sandbox.docker_link import END_WAIT, Container
from sandbox_chat.sandbox.gateway_link import GatewayLink
from sandbox_chat.sandbox.guest_link import GuestLink
from sandbox_chat.sandbox.guest_sandbox import KEEP_EVERY, GuestSandbox
from sandbox_chat.sandbox.remote import marks
from sandbox_chat.sandbox.skills_folder import NOT_THERE, SKILLS, SkillsFolder
from sandbox_chat.settings import Settings

USER = 60978
"""User and group id in our own image: one that no distribution gives to anybody."""
NOBODY = 65534
"""User and group id in other images."""
FONTS = "/opt/sandbox/fonts"
"""Where our image has matplotlib's list of fonts."""
INODES = 200_000
"""Files that fit into /tmp."""
SILENCE = 900.0
"""Seconds without a word from here after which a container ends itself. Longer than a chat is likely to be suspended."""
# Runs the command that it gets until that succeeds or there is nothing to remove, for some seconds.
REMOVE = """
for pause in 1 1 2 3 5 8; do
  said=$("$0" "$@" 2>&1) && exit 0
  case $said in *"o such container"*|*"already in progress"*) exit 0;; esac
  sleep $pause
done
"""
_NETWORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)
_OPEN_NETWORKS = ("host", "pasta", "slirp4netns")
_PID_ROOM = 8  # the relay, and threads of the program that starts a container
# What the program says when its connection to the daemon breaks.
_CUT_OFF = (
    "connection reset",
    "broken pipe",
    "unexpected eof",
    "error waiting for container",
    "use of closed network",
)
_MACHINES = ("x86_64", "aarch64")
# The first thing that runs in a container: takes the guest's source from standard input.
LOADER = """
import json, os, sys
if sys.version_info < (3, 11):
    sys.exit("this Python is too old: " + sys.version.split()[0])
def take(count):
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part:
            os._exit(0)
        data += part
    return data
box = json.loads(take(int.from_bytes(take(4), "big")))
space = {"__name__": "sandbox_boot"}
exec(compile(box["files"]["boot"], "<sandbox_boot>", "exec"), space)
space["start"](box)
"""


class DockerSandbox(GuestSandbox):
    """Code runs in a container of its own, which ends with the program."""

    def __init__(self, settings: Settings, session_id: str = "", skills: SkillsFolder | None = None) -> None:
        super().__init__(settings, skills)
        self.info = info(settings)
        self.name = _name()
        """Name of the container."""
        self._copy: Path | None = None
        self._refused = False
        """Whether the folder of the skills is what a container could not be started with."""
        self._session_id = session_id
        self._container: Container | None = None

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
        """See ``Sandbox.run_code``; also says when a limit of the container struck."""
        before = dict(self._container.counts) if self._container is not None else {}
        done = super().run_code(
            code, timeout=timeout, on_output=on_output, on_late=on_late, on_raw=on_raw, bridge=bridge
        )
        after = self._container.counts if self._container is not None else {}
        found = list(done.notes)
        if after.get("pids", 0) > before.get("pids", 0):
            found += notes.of_limits(done, self.settings, at_process_limit=True, isolated=True)
        if after.get("oom", 0) > before.get("oom", 0) and done.stopped != "died":
            found.append(
                "A process in the sandbox was killed because all of them used more than "
                f"{self.settings.sandbox_memory_mb:,} MB of memory together (SANDBOX_CHAT_SANDBOX_MEMORY_MB)."
            )
        return dataclasses.replace(done, notes=tuple(dict.fromkeys(found)))

    def start(self) -> None:
        """See ``Sandbox.start``. A daemon that cannot see the folder of the skills makes a container without it."""
        try:
            super().start()
        except SandboxUnavailable:
            if not self._refused:
                raise
            self._skills, self.name = None, _name()
            self._unsaid = NOT_THERE.format(
                place=SKILLS, why="the daemon cannot reach this machine's folders"
            )
            super().start()

    def _spawn(self) -> Container:
        program = docker_program.find(self.settings)
        podman = docker_program.is_podman(program)
        self._copy = self._skills.path() if self._skills is not None else None
        command = [
            program,
            *arguments(self.settings, self.name, self._session_id, podman=podman, skills=self._copy),
        ]
        first = box(self.settings)
        try:
            process = docker_program.hold(command)  # when its input ends, it sees the container off
        except OSError as error:
            raise SandboxUnavailable(
                f"{program} cannot be run: {error.strerror}. {docker_program.INSTEAD}"
            ) from None
        try:
            self._container = Container(process, first, self._describe, partial(self._remove, self.name))
        except BaseException:  # out of descriptors or threads
            process.kill()
            raise
        return self._container

    def release(self) -> None:
        """See ``Sandbox.release``; also waits until what holds the container is gone, if its daemon hangs."""
        super().release()
        if self._container is not None:
            self._container.gone(END_WAIT + 1.0)

    def _open_gateway(self, link: GuestLink) -> GatewayLink:
        return open_gateway(self.settings, self.name, filters())

    def _open_way(self, link: GuestLink, path: str, serve: Callable[[socket.socket], None]) -> BridgeLink:
        return open_way(self.settings, self.name, filters(), path, serve)

    def _explain(self, reason: str) -> SandboxError:
        if self._container is not None:
            self._container.gone(1.0)
        self._refused = self._copy is not None and str(self._copy) in reason
        return docker_program.explain(self.settings, reason)

    def _remove(self, name: str) -> None:
        """Make the container go in the background, whatever becomes of this process."""
        with contextlib.suppress(OSError, SandboxError):
            program = docker_program.find(self.settings)
            remove = [program, "rm", "--force", "--volumes", name]
            if os.name == "posix":  # a daemon that was started again needs a moment
                remove = ["/bin/sh", "-c", REMOVE, *remove]
            subprocess.Popen(
                remove,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=docker_program.environ(),
                cwd="/",
                start_new_session=True,
            )

    def _describe(self, guest: int | None, program: int, said: str) -> str:
        counts = self._container.counts if self._container is not None else {}
        return describe(self.settings, guest, program, said, counts)


def back_end(settings: Settings, session_id: str = "", skills: SkillsFolder | None = None) -> BackEnd:
    """Return how the worker makes containers. Starts nothing. Raises ``SandboxUnavailable`` for bad settings."""
    check(settings)
    return BackEnd(lambda: DockerSandbox(settings, session_id, skills), info(settings))


def _name() -> str:
    return f"sandbox-chat-{secrets.token_hex(6)}"


def check(settings: Settings) -> None:
    """Raise ``SandboxUnavailable`` for settings with which there can be no container. Starts nothing."""
    docker_program.find(settings)
    docker_program.check_name(docker_program.image(settings), "SANDBOX_CHAT_DOCKER_IMAGE")
    network(settings)
    user_id(settings, workspace.check(settings))


def info(settings: Settings) -> SandboxInfo:
    """Return what this back end is with these settings."""
    return SandboxInfo(
        "docker",
        f"{Path(settings.docker_command).name} container",
        capabilities=Capabilities(network=settings.docker_network != "none", mcp=True),
        keep_every=KEEP_EVERY,
    )


def network(settings: Settings) -> str:
    """Return the network of containers. Raises ``SandboxUnavailable`` for one that would undo the isolation."""
    name = settings.docker_network or "none"
    # Docker and Podman take more than names here, as name=host, container:ID, or slirp4netns with options.
    if name.lower() in _OPEN_NETWORKS or not _NETWORK.fullmatch(name):
        raise SandboxUnavailable(
            f"SANDBOX_CHAT_DOCKER_NETWORK={name} is not the name of a network, or would let code reach the services of "
            "this machine. Use none, or the name of a Docker network that lets out only what you allow."
        )
    return name


def user_id(settings: Settings, folder: Path | None) -> int:
    """Return the user id of code: one that nobody has, or that of the owner of the shared folder, to write to it."""
    if folder is None:
        own = docker_program.image(settings).rpartition("/")[2].partition(":")[0] == "sandbox-chat"
        return USER if own else NOBODY
    owner = folder.stat().st_uid
    if owner == 0:
        raise SandboxUnavailable(
            f"The folder {folder} cannot be shared with the sandbox: it belongs to root, and code does not run as "
            "root. Give it to an ordinary user (chown), or leave SANDBOX_CHAT_SANDBOX_WORKSPACE empty."
        )
    return owner


def arguments(
    settings: Settings, name: str, session_id: str, *, podman: bool = False, skills: Path | None = None
) -> list[str]:
    """Return the arguments with which the program runs a container named ``name``. ``skills`` is a copy of the user's."""
    folder = workspace.check(settings)
    user = user_id(settings, folder)
    memory = f"{settings.sandbox_memory_mb}m"
    files = settings.sandbox_file_mb << 20
    room = "rw,exec,nosuid,nodev"
    whose = "mode=1777"  # Podman knows no owner here, and no number of files
    if not podman:
        room += f",nr_inodes={INODES}"
        whose = f"mode=0700,uid={user},gid={user}"
    home = min(bwrap.HOME_MB, settings.sandbox_disk_mb)
    args = [
        "run", "--interactive", "--rm", "--name", name, "--pull", "never", "--log-driver", "none",
        # The relay is the first process and does what an init does. One above it would leave it open to
        # signals from the code, whose user is its own.
        "--init=false", "--sig-proxy=false", "--stop-signal", "SIGKILL",
        "--read-only", "--network", network(settings), "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", "--user", f"{user}:{user}",
        "--memory", memory, "--memory-swap", memory, "--pids-limit", str(settings.sandbox_processes + _PID_ROOM),
        "--ulimit", "core=0:0", "--ulimit", "nofile=4096:4096", "--ulimit", f"fsize={files}:{files}",
        "--tmpfs", f"/tmp:{room},mode=1777,size={settings.sandbox_disk_mb}m",  # noqa: S108 - in the container
        "--tmpfs", f"{bwrap.HOME}:{room},{whose},size={home}m",
        "--shm-size", f"{bwrap.SHARED_MB}m", "--ipc", "private", "--hostname", "sandbox", "--workdir", "/tmp",  # noqa: S108
        "--entrypoint", "python3",
    ]  # fmt: skip
    if podman:  # which else asks for more than a machine without CAP_SYS_RESOURCE may give
        args += ["--ulimit", "nproc=4096:4096"]
    if settings.sandbox_cpus:
        args += ["--cpus", f"{settings.sandbox_cpus:g}"]
    if folder is None:
        args += ["--tmpfs", f"{bwrap.WORKSPACE}:{room},{whose},size={settings.sandbox_disk_mb}m"]
    else:
        args += ["--mount", f"type=bind,{_field(f'source={folder}')},target={bwrap.WORKSPACE}"]
    if skills is not None:
        args += ["--mount", f"type=bind,{_field(f'source={skills}')},target={SKILLS},readonly"]
    for key, value in marks(session_id, "").items():
        args += ["--label", f"{key}={value}"]
    for key, value in bwrap.common_environ().items():
        args += ["--env", f"{key}={value}"]
    return [*args, docker_program.image(settings), "-s", "-P", "-X", "utf8", "-c", LOADER]


def _field(text: str) -> str:
    """Return one of comma-separated values: what holds a comma or a quote is quoted, as in a spreadsheet."""
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


def filters() -> dict[str, str]:
    """Return the filters of system calls by machine, in base64."""
    found = {}
    for machine in _MACHINES:
        program = seccomp.program(machine)
        assert program is not None
        found[machine] = base64.b64encode(program).decode("ascii")
    return found


def box(settings: Settings) -> bytes:
    """Return what a container gets first: the source of what runs in it, and its configuration."""
    folder = spawn.guest_folder()
    # The number of processes is limited for the container. By user id it would be for all containers together.
    limits = {name: value for name, value in local.limits(settings).items() if name != "NPROC"}
    content = {
        "files": {file.stem: file.read_text("utf-8") for file in folder.glob("*.py")},
        "config": {
            "guest": {"alone": True, "limits": limits},
            "filters": filters(),
            "fonts": FONTS,
            "cpu_seconds": settings.sandbox_cpu_seconds,
            "silence": SILENCE,
        },
    }
    data = json.dumps(content, separators=(",", ":")).encode("ascii")
    return len(data).to_bytes(4, "big") + data


def describe(
    settings: Settings, guest: int | None, program: int, said: str, struck: Mapping[str, int]
) -> str:
    """Return a sentence about how a container ended.

    ``guest`` is the guest's exit code as the relay told it, ``None`` when it could not; ``program`` that of
    the program that ran the container, ``said`` its last words, ``struck`` how often which limit did.
    """
    if guest is None:
        low = said.lower()
        if program < 0:
            return f"The {settings.docker_command} program that held the sandbox was ended."
        if program != 0 and any(word in low for word in _CUT_OFF):
            what = f"The daemon of {settings.docker_command} ended or does not answer, and so the sandbox is lost."
            return f"{what} ({docker_program.shorten(said)})"
        if said.strip():
            return said.strip()
        if program == 137:
            return "The container was killed from outside, or it ran out of memory."
        return f"The container ended by itself (exit code {program})."
    if guest == -signal.SIGKILL and struck.get("cpu"):
        return watch.cpu_sentence(settings.sandbox_cpu_seconds)
    if guest == -signal.SIGKILL and struck.get("oom"):
        return watch.memory_sentence(settings.sandbox_memory_mb << 20)
    return spawn.how_it_ended(guest)
