"""Building the image of the Docker sandbox from the Dockerfile that comes with the program."""

from __future__ import annotations

import collections
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox_chat.sandbox import docker_program
from sandbox_chat.sandbox.base import SandboxUnavailable
from sandbox_chat.scratch import Scratch
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean_line

TAIL = 25
"""Lines of the log that are shown when a build fails."""
_LONGEST_LINE = 10_000
_PACKAGE = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9._,-]+\])?(?:[<>=!~]=?[A-Za-z0-9.*+!<>=~,]+)?",
    re.ASCII,
)
END_WAIT = 5.0
"""Seconds that a builder may take to give up when the user has stopped it."""


@dataclass(frozen=True, slots=True)
class Built:
    """What a build made: the image's name, its size in bytes (0 if not known), the seconds that it took."""

    tag: str
    size: int
    seconds: float


class BuildFailed(SandboxUnavailable):
    """The build did not succeed; ``log`` holds the end of what the builder said."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log


def default_tag() -> str:
    """Name that the image gets when none is given: the one that containers are made of by default."""
    return docker_program.default_image()


def source_folder() -> Path:
    """Folder of the Dockerfile."""
    return Path(__file__).resolve().parent / "image"


def build(
    settings: Settings,
    *,
    base: str = "",
    wheels: Path | None = None,
    tag: str = "",
    servers: Sequence[str] = (),
    on_line: Callable[[str], None] | None = None,
) -> Built:
    """Build the image and return what came of it. Takes minutes; ``on_line`` gets what the builder says.

    ``base``: image to begin with (any with Python 3.11 or newer and pip). ``wheels``: folder of wheels for
    that Python, with which the build needs no network. ``servers``: packages of MCP servers that are installed
    too, as pip writes them (``mcp-server-git``, ``name==1.2``). Raises ``BuildFailed``, or ``SandboxUnavailable``
    when there is no builder.
    """
    program = docker_program.find(settings)
    tag = docker_program.check_name(tag or default_tag(), "--tag")
    for name in servers:
        if not _PACKAGE.fullmatch(name):
            raise SandboxUnavailable(
                f"--server {clean_line(name)!r} is not the name of a package. One looks like mcp-server-git, or "
                "mcp-server-git==2026.10.19."
            )
    if base:
        docker_program.check_name(base, "--base")
    with _scratch() as place:
        folder = place / "context"
        try:
            folder.mkdir()
            _fill(folder, wheels, servers)
        except OSError as error:
            raise _not_prepared(error) from None
        command = [program, "build", "--tag", tag]
        if base:
            command += ["--build-arg", f"BASE={base}"]
        if wheels is not None:
            command += ["--network", "none"]
        started = time.monotonic()
        code, tail = _follow([*command, str(folder)], on_line)
        seconds = time.monotonic() - started
    if code != 0:
        raise _failure(settings, tail, base, wheels)
    return Built(tag, image_size(settings, tag), seconds)


def image_size(settings: Settings, tag: str) -> int:
    """Return the size of an image in bytes, 0 when it is not there or the program does not say."""
    answer = docker_program.call(settings, ["image", "inspect", "--format", "{{.Size}}", tag])
    text = answer.out.strip()
    return int(text) if answer.code == 0 and text.isdigit() else 0


def _scratch() -> Scratch:
    try:
        return Scratch()
    except OSError as error:
        raise _not_prepared(error) from None


def _not_prepared(error: OSError) -> SandboxUnavailable:
    where = f" ({error.filename})" if error.filename else ""
    return SandboxUnavailable(
        f"What the builder needs could not be put together: {error.strerror or error}{where}. It needs some room in the "
        "folder for temporary files (TMPDIR), and the right to read the wheels."
    )


def _fill(folder: Path, wheels: Path | None, servers: Sequence[str]) -> None:
    """Put into ``folder`` what the builder gets: nothing but what the image needs."""
    for name in ("Dockerfile", "requirements.txt"):
        shutil.copyfile(source_folder() / name, folder / name)
    if servers:
        with (folder / "requirements.txt").open("a", encoding="utf-8") as file:
            file.write("".join(f"{name}\n" for name in servers))
    target = folder / "wheels"
    target.mkdir()
    (target / "README").write_text("Wheels to install from, where they were given.\n")
    if wheels is None:
        return
    found = sorted(wheels.glob("*.whl"))
    if not found:
        raise SandboxUnavailable(
            f"There are no wheels in {wheels}. Fill it with: pip download --only-binary=:all: -d {wheels} "
            f"-r {source_folder() / 'requirements.txt'} (for the Python of the base image)."
        )
    for wheel in found:
        shutil.copyfile(wheel, target / wheel.name)


def _follow(command: list[str], on_line: Callable[[str], None] | None) -> tuple[int, str]:
    tail: collections.deque[str] = collections.deque(maxlen=TAIL)
    environ = {**docker_program.environ(), "BUILDKIT_PROGRESS": "plain"}
    try:
        process = subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise SandboxUnavailable(f"{command[0]} cannot be run: {error.strerror}.") from None
    assert process.stdout is not None
    try:
        while line := process.stdout.readline(_LONGEST_LINE):
            text = line.rstrip("\r\n")
            tail.append(text)
            if on_line is not None:
                on_line(text)
        code = process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(END_WAIT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        process.stdout.close()
    return code, "\n".join(tail)


def _failure(settings: Settings, tail: str, base: str, wheels: Path | None) -> SandboxUnavailable:
    low = tail.lower()
    if "daemon" in low and ("connect" in low or "permission denied" in low):
        return docker_program.explain(settings, tail)
    if "no matching distribution" in low or "could not find a version" in low:
        what = "A package that the image needs cannot be had" + (
            f" from the wheels in {wheels}: they must be for the Python of the base image." if wheels else "."
        )
    elif any(
        word in low
        for word in ("manifest unknown", "pull access denied", "no such host", "lookup", "dial tcp")
    ):
        what = f"The base image {base or 'python:3.12-slim'} cannot be fetched. Name one that is there with --base."
    elif "no module named pip" in low:
        what = f"The base image {base} has no pip. Use one with Python 3.11 or newer and pip."
    elif "temporary failure in name resolution" in low or "newconnectionerror" in low:
        what = "The build reaches no package index. Give it wheels with --wheels DIR."
    elif "no space left" in low:
        what = f"The disk is full. Free some room, for example with '{settings.docker_command} system prune'."
    else:
        what = "The image was not built."
    return BuildFailed(what, tail)
