"""A Docker daemon and an image for tests, on a machine that may reach no registry of images.

``daemon()`` is a context manager that gives a ``Daemon``: the one that ``SANDBOX_CHAT_TEST_DOCKER_HOST`` names, or
a private one that is started here as root. The image is made by the real ``sandbox-chat docker build`` from a
base that ``debootstrap`` makes, and wheels that ``pip download`` fetches; both are kept in a folder outside the
checkout for the next time (``SANDBOX_CHAT_TEST_DOCKER_CACHE``). Raises ``NotHere`` with the reason where that cannot be.

Run as a program it makes everything and prints the variables for a shell: ``python docker_daemon.py``; with
``--keep`` the daemon stays until ``python docker_daemon.py --stop``.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOST = "SANDBOX_CHAT_TEST_DOCKER_HOST"
IMAGE = "SANDBOX_CHAT_TEST_DOCKER_IMAGE"
CACHE = "SANDBOX_CHAT_TEST_DOCKER_CACHE"
PYTHON = "3.11"
"""Python of the base, which is Debian 12's."""
SUITE = "bookworm"
PATIENCE = 120.0
_SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d")
_LAYERS = ("Dockerfile", "requirements.txt")


class NotHere(Exception):
    """No daemon or no image can be had on this machine; the message says why."""


@dataclass(frozen=True)
class Daemon:
    """A daemon that answers, and the image that sandboxes are made of."""

    host: str
    image: str

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a program that is to use it."""
        return {**os.environ, "DOCKER_HOST": self.host}

    def call(self, *arguments: str, check: bool = True, timeout: float = 120) -> str:
        """Run ``docker`` with ``arguments``; returns what it prints."""
        done = subprocess.run(
            ["docker", *arguments], env=self.environ, capture_output=True, text=True, timeout=timeout
        )
        if check and done.returncode != 0:
            raise RuntimeError(f"docker {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def all_containers(self) -> dict[str, int]:
        """Names of all containers of ours, in whatever state, and the process that each was made by.

        Other test runs may use the same daemon at the same time: theirs are among them.
        """
        lines = self.call(
            "ps", "--all", "--filter", "label=app=sandbox-chat", "--format", '{{.Names}} {{.Label "pid"}}'
        ).splitlines()
        return {name: int(pid) for name, pid in (line.split() for line in lines)}

    def containers(self, pid: int | None = None) -> list[str]:
        """Names of the containers that process ``pid`` (this one, if not given) made, in whatever state."""
        pid = pid or os.getpid()
        return [name for name, made_by in self.all_containers().items() if made_by == pid]

    def left(self) -> set[str]:
        """Names of the containers of this process, and of those that do not run any more."""
        found = self.all_containers().items()
        return {name for name, pid in found if pid == os.getpid() or not Path(f"/proc/{pid}").exists()}

    def wait_gone(self, names: set[str], seconds: float = 10.0) -> set[str]:
        """Wait until none of ``names`` exists, at most ``seconds``; return those that still do."""
        end = time.monotonic() + seconds
        while (left := names & self.all_containers().keys()) and time.monotonic() < end:
            time.sleep(0.1)
        return left


def cache() -> Path:
    """The folder that is kept."""
    return Path(os.environ.get(CACHE) or Path(tempfile.gettempdir()) / "sandbox-chat-test-docker")


@functools.cache
def why_not() -> str:
    """Return why no daemon and image can be had here, empty if they can. Cheap: starts nothing."""
    if os.environ.get(HOST):
        return "" if shutil.which("docker") else "the program docker is not installed"
    if sys.platform != "linux":
        return "a daemon for tests is only started on Linux"
    if os.geteuid() != 0:
        return f"a daemon for tests can be started by root only (or set {HOST})"
    missing = [name for name in ("docker", "dockerd", "containerd", "runc") if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: docker.io)"
    if shutil.which("debootstrap") is None and not _base_archive().is_file():
        return "debootstrap, which makes the base image, is not installed"
    return ""


@contextmanager
def daemon() -> Iterator[Daemon]:
    """A daemon with the image. Several test processes share one; the last one to leave ends it."""
    if reason := why_not():
        raise NotHere(reason)
    if host := os.environ.get(HOST):
        yield Daemon(host, os.environ.get(IMAGE) or _image(host))
        return
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder / "users", fcntl.LOCK_SH) as users:
        with _lock(folder / "starting", fcntl.LOCK_EX):
            host = start(folder / "daemon")
            image = _image(host)
        try:
            yield Daemon(host, image)
        finally:
            with _lock(folder / "starting", fcntl.LOCK_EX):
                try:  # nobody else uses it
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    pass
                else:
                    stop(folder / "daemon")


@contextmanager
def _lock(path: Path, how: int) -> Iterator[int]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, how)
        yield fd
    finally:
        os.close(fd)


def running(folder: Path) -> int:
    """Process id of the daemon that runs in ``folder``, 0 when none does."""
    return _process(folder / "pid", folder)


def _process(file: Path, folder: Path) -> int:
    """The process that ``file`` names, if its command line tells that it belongs to ``folder``; otherwise 0."""
    try:
        pid = int(file.read_text())
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return 0
    return pid if os.fsencode(folder) in line else 0


def _end(pid: int, still: Callable[[], object], number: int = signal.SIGTERM) -> None:
    """Signal ``pid``, and kill it when it is ``still`` there after some time."""
    os.kill(pid, number)
    deadline = time.monotonic() + 20
    while still() and time.monotonic() < deadline:
        reap(pid)
        time.sleep(0.05)
    if still():
        os.kill(pid, signal.SIGKILL)
        reap(pid)


def start(folder: Path) -> str:
    """Start a daemon whose files are all in ``folder``, if none runs; return its address."""
    folder.mkdir(parents=True, exist_ok=True)
    host = f"unix://{folder}/docker.sock"
    if not running(folder):
        stop(folder)
        (folder / "pid").unlink(missing_ok=True)
        _mount_cgroups()
        command = [
            "dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver", _driver(folder),
            "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec",
            "-H", host, "--pidfile", f"{folder}/pid",
        ]  # fmt: skip
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + PATIENCE
        while not _answers(host):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                lines = (folder / "log").read_text(errors="replace").splitlines()
                raise NotHere(f"the Docker daemon does not start here: {' '.join(lines[-2:])[-400:]}")
            time.sleep(0.1)
    return host


def stop(folder: Path) -> None:
    """End the daemon of ``folder`` with its containers, and what one that was killed has left."""
    if pid := running(folder):
        _end(pid, lambda: running(folder))
    store = folder / "exec/containerd/containerd.pid"
    if pid := _process(store, folder):
        _end(pid, lambda: _process(store, folder))
    for line in Path("/proc").glob("[0-9]*/cmdline"):  # each container's own, which outlives a killed daemon
        with contextlib.suppress(OSError):
            command = line.read_bytes()
            if b"containerd-shim" in command and os.fsencode(folder) in command:
                os.kill(int(line.parent.name), signal.SIGKILL)
    for mount in Path("/proc/self/mounts").read_text().splitlines():
        if (place := mount.split()[1]).startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)
    # One that nobody waits for keeps its number, by which the next daemon would take it for alive.
    store.unlink(missing_ok=True)


def reap(pid: int) -> None:
    """Wait for ``pid`` if it is a child of this process."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _driver(folder: Path) -> str:
    """The quick storage driver, or, where that file system is an overlay itself (inside a container), the plain one."""
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return "vfs" if kind == "overlayfs" else "overlay2"


def _mount_cgroups() -> None:
    """A daemon needs control groups; in a bare machine they may not be mounted."""
    root = Path("/sys/fs/cgroup")
    if root.is_dir() and not any(root.iterdir()):
        subprocess.run(["mount", "-t", "cgroup2", "none", str(root)], check=False, capture_output=True)


def _answers(host: str) -> bool:
    done = subprocess.run(
        ["docker", "-H", host, "version", "--format", "{{.Server.Version}}"], capture_output=True, timeout=60
    )
    return done.returncode == 0


def _image(host: str) -> str:
    """Return the image's name, building it when it is not there or its Dockerfile has changed."""
    import hashlib

    import sandbox_chat
    from sandbox_chat.sandbox import docker_build

    source = b"".join((docker_build.source_folder() / name).read_bytes() for name in _LAYERS)
    tag = f"sandbox-chat:{sandbox_chat.__version__}-test-{hashlib.sha256(source).hexdigest()[:8]}"
    environ = {**os.environ, "DOCKER_HOST": host}
    there = ["docker", "image", "inspect", tag]
    if subprocess.run(there, env=environ, capture_output=True).returncode == 0:
        return tag
    command = [sys.executable, "-m", "sandbox_chat", "docker", "build", "--tag", tag, "--quiet"]
    cache().mkdir(parents=True, exist_ok=True)
    if _base_archive().is_file() or (os.geteuid() == 0 and shutil.which("debootstrap")):
        command += ["--base", _base(environ), "--wheels", str(_wheels())]
    done = subprocess.run(  # else from a registry, as users do
        command,
        env=environ,
        capture_output=True,
        text=True,
        timeout=900,
    )
    if done.returncode != 0:
        raise NotHere(f"'sandbox-chat docker build' failed: {(done.stdout + done.stderr).strip()[-600:]}")
    return tag


def _base_archive() -> Path:
    return cache() / f"base-{SUITE}.tar"


def _base(environ: dict[str, str]) -> str:
    """Make the base image with the system's own package archive; return its name."""
    name = f"sandbox-chat-test-base:{SUITE}"
    if subprocess.run(["docker", "image", "inspect", name], env=environ, capture_output=True).returncode == 0:
        return name
    archive = _base_archive()
    if not archive.is_file():
        _bootstrap(archive)
    with archive.open("rb") as file:
        done = subprocess.run(
            ["docker", "import", "-", name],
            stdin=file,
            env=environ,
            capture_output=True,
            text=True,
            timeout=300,
        )
    if done.returncode != 0:
        raise RuntimeError(f"docker import failed: {done.stderr}")
    return name


def _bootstrap(archive: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="rootfs-", dir=archive.parent) as name:
        root = Path(name) / "root"
        command = ["debootstrap", "--variant=minbase", "--include=python3,python3-pip,ca-certificates", SUITE]
        done = subprocess.run(
            [*command, str(root), *_mirror()], capture_output=True, text=True, timeout=900, errors="replace"
        )
        if done.returncode != 0:
            raise NotHere(f"the base image cannot be made: {(done.stdout + done.stderr).strip()[-400:]}")
        part = archive.with_suffix(".part")
        leave = ["--exclude=./var/cache/apt", "--exclude=./var/lib/apt/lists"]
        subprocess.run(["tar", "-C", str(root), *leave, "-cf", str(part), "."], check=True, timeout=300)
        part.rename(archive)


def _mirror() -> list[str]:
    """The archive that this machine's own apt uses, if it is Debian; otherwise none, and the program's own default serves."""
    import re

    files: list[Path] = []
    for source in map(Path, _SOURCES):
        files += [source] if source.is_file() else sorted(source.glob("*")) if source.is_dir() else []
    for file in files:
        found = re.search(r"https?://[^\s\]]*/debian/?(?=\s|$)", file.read_text(errors="replace"))
        if found:
            return [found.group(0)]
    return []


def _wheels() -> Path:
    """Fetch wheels for the base's Python, once."""
    import hashlib

    from sandbox_chat.sandbox import docker_build

    requirements = docker_build.source_folder() / "requirements.txt"
    key = hashlib.sha256(requirements.read_bytes()).hexdigest()[:8]
    folder = cache() / f"wheels-{PYTHON}-{key}"
    if not any(folder.glob("*.whl")):
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--python-version", PYTHON,
             "--dest", str(part), "--requirement", str(requirements)],
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        if done.returncode != 0:
            raise NotHere(f"the image's packages cannot be fetched: {done.stderr.strip()[-400:]}")
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    return folder


def main() -> None:
    if "--stop" in sys.argv[1:]:
        stop(cache() / "daemon")
        return
    try:
        with daemon() as found:
            print(f"export DOCKER_HOST={found.host}")
            print(f"export {HOST}={found.host}")
            print(f"export {IMAGE}={found.image}")
            sys.stdout.flush()
            if "--keep" in sys.argv[1:]:
                os._exit(0)
    except NotHere as reason:
        sys.exit(f"not here: {reason}")


if __name__ == "__main__":
    main()
