"""The program that runs containers (Docker's or Podman's command line): calling it, and what its errors mean."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox_chat import __version__
from sandbox_chat.sandbox.base import SandboxError, SandboxUnavailable
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean_line

CALL_TIMEOUT = 20.0
"""Seconds that a short call of the program may take."""
INSTEAD = "Or use --sandbox local (Linux), or --sandbox off to chat without running code."
# What the program needs to find its configuration and its daemon. Nothing else of the environment is handed
# down: no key of a model or a cloud.
_KEEP = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME",
    "XDG_DATA_HOME", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "SYSTEMROOT", "USERPROFILE", "APPDATA",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip
_KEEP_BEGINNINGS = ("DOCKER_", "CONTAINER_", "CONTAINERS_", "BUILDKIT_", "BUILDX_", "BUILDAH_", "PODMAN_")
_MAX_COMPLAINT = 600
_LONGEST_NAME = 400
# Registry with its port, folders and name, then a tag or a digest; or the id of an image.
_IMAGE = re.compile(
    r"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::\d+)?/)?[a-z0-9][a-z0-9._-]*(?:/[a-z0-9][a-z0-9._-]*)*"
    r"(?::\w[\w.-]*)?(?:@[A-Za-z0-9+._-]+:[0-9a-fA-F]+)?",
    re.ASCII,
)
_SCRIPT = 2000


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call of the program gave: exit code and text."""

    code: int
    out: str
    err: str


def default_image() -> str:
    """Name of the image that ``sandbox-chat docker build`` makes."""
    return f"sandbox-chat:{__version__.replace('+', '-')}"


def image(settings: Settings) -> str:
    """Name of the image that containers are made of."""
    return settings.docker_image or default_image()


def check_name(name: str, where: str) -> str:
    """Return the name of an image. Raises ``SandboxUnavailable`` for what is none: it would be read as an option."""
    if len(name) > _LONGEST_NAME or not _IMAGE.fullmatch(name):
        raise SandboxUnavailable(
            f"{where} {clean_line(name)!r} is not the name of an image. One has small letters, as in name:tag or "
            "registry.example.com/folder/name:tag."
        )
    return name


def environ(source: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for the program, without anything that is not for it."""
    source = os.environ if source is None else source
    return {
        name: value
        for name, value in source.items()
        if name in _KEEP or any(name.startswith(beginning) for beginning in _KEEP_BEGINNINGS)
    }


def find(settings: Settings) -> str:
    """Return the path of the program. Raises ``SandboxUnavailable`` when it is not installed."""
    path = shutil.which(settings.docker_command)
    if path is None:
        raise SandboxUnavailable(
            f"The program {settings.docker_command!r}, which runs containers, is not installed or not on PATH. "
            f"Install Docker (or Podman, with SANDBOX_CHAT_DOCKER_COMMAND=podman). {INSTEAD}"
        )
    return path


def is_podman(program: str) -> bool:
    """True when ``program`` is Podman, also as the little script that calls itself ``docker`` on some systems."""
    path = Path(program)
    if "podman" in path.name or "podman" in path.resolve().name:
        return True
    try:
        with path.open("rb") as file:
            start = file.read(_SCRIPT)
    except OSError:
        return False
    return start.startswith(b"#!") and b"podman" in start


def call(settings: Settings, arguments: Sequence[str], *, timeout: float = CALL_TIMEOUT) -> Answer:
    """Run the program with ``arguments``. Raises ``SandboxError`` when it does not answer."""
    program = find(settings)
    try:
        process = subprocess.Popen(
            [program, *arguments],
            env=environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise SandboxUnavailable(
            f"{program} cannot be run: {getattr(error, 'strerror', None) or error}. {INSTEAD}"
        ) from None
    with process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise SandboxError(
                f"{settings.docker_command} did not answer within {timeout:g} s. Is its daemon well? Try: "
                f"{settings.docker_command} ps"
            ) from None
        finally:
            end_group(process)
    return Answer(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def hold(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start the program as one whose three streams are held here, without buffers. Raises ``OSError``.

    It has a session of its own: Ctrl-C at the terminal is for the chat, and so no signal reaches it. When this process
    ends in whatever way, its input ends.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env=environ(),
        cwd="/",
        start_new_session=True,
    )


def end_group(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Kill a process, which has a session of its own, if it still runs, and all that it has started there."""
    running = process.poll() is None
    if os.name == "posix":
        with contextlib.suppress(OSError):  # also what a program that has ended has left behind
            os.killpg(process.pid, signal.SIGKILL)
    if running:
        process.kill()
        process.wait()


def explain(settings: Settings, said: str) -> SandboxUnavailable:
    """Turn what the program said when it failed into an error with advice."""
    name = settings.docker_command
    text = " ".join(said.split())
    low = text.lower()
    about = "(" + shorten(text) + ")" if text else ""
    if "permission denied" in low and (
        "docker.sock" in low or "daemon socket" in low or "podman.sock" in low
    ):
        what = (
            "You may not use the Docker daemon: access to its socket was denied. Add yourself to the group 'docker' "
            "and log in again, or use rootless Docker."
        )
    elif re.search(
        r"docker endpoint|invalid bind address|docker host|context not found|invalid proto|current context",
        low,
    ):
        what = f"{name} does not understand where its daemon is. Check DOCKER_HOST and DOCKER_CONTEXT, or remove them."
    elif re.search(
        r"cannot connect to the .*daemon|is the docker daemon running|error during connect|unable to connect to podman",
        low,
    ):
        what = (
            "The Docker daemon does not answer. Start it (for example 'sudo systemctl start docker', or Docker "
            "Desktop), or set DOCKER_HOST to where it is."
        )
    elif re.search(
        r"no such image|unable to find image|image not known|image .* not found|pull policy|does not exist locally|short-name",
        low,
    ):
        what = _no_image(settings)
    elif "no such network" in low or ("network" in low and "not found" in low):
        what = (
            f"There is no Docker network {settings.docker_network!r}. Make it with "
            f"'{name} network create {settings.docker_network}', or set SANDBOX_CHAT_DOCKER_NETWORK to none."
        )
    elif "executable file not found" in low or ("python3" in low and "no such file" in low):
        what = (
            f"The image {image(settings)} has no python3. An image for the sandbox needs Python 3.11 or newer and "
            "IPython; 'sandbox-chat docker build' makes one."
        )
    elif "no module named" in low:
        what = (
            f"The image {image(settings)} lacks a package that the sandbox needs: IPython and matplotlib-inline "
            "must be in it. 'sandbox-chat docker build' makes an image with all of them."
        )
    elif "python is too old" in low:
        what = (
            f"The Python in the image {image(settings)} is too old: the sandbox needs 3.11 or newer. "
            "'sandbox-chat docker build' makes an image with one."
        )
    elif "did not answer within" in low:
        what = (
            f"{name} took the order and then gave no word. Is its daemon well? Try: {name} ps. "
            "SANDBOX_CHAT_START_TIMEOUT gives it more time."
        )
    elif "no space left" in low:
        what = f"The disk on which {name} keeps its data is full. Free some room, for example with '{name} system prune'."
    else:
        what = f"{name} failed and no container could be had."
    return SandboxUnavailable(" ".join(part for part in (what, INSTEAD, about) if part))


def _no_image(settings: Settings) -> str:
    if settings.docker_image:
        return (
            f"The image {settings.docker_image} is not there. Fetch it with "
            f"'{settings.docker_command} pull {settings.docker_image}', or leave SANDBOX_CHAT_DOCKER_IMAGE empty "
            "and run: sandbox-chat docker build."
        )
    return f"The image {default_image()} is not there. Make it once with: sandbox-chat docker build."


def shorten(text: str) -> str:
    """Return the end of ``text`` on one line, for the brackets behind a sentence."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_COMPLAINT else "… " + line[-_MAX_COMPLAINT:]
