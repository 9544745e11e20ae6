"""What there is on the machine for the attempts to find or harm, and running all of them beside it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support import ordinary

ORDINARY_UID = 1234
RUNNER = Path(__file__).with_name("run_all.py")
PATIENCE = 500
"""Seconds that all attempts of one kind may take."""
_UNTOUCHED = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/user/max_user_namespaces",
)


@dataclass
class Outcome:
    """What came of all attempts of one run: texts and seconds by name, and the program's most memory in MB."""

    found: dict[str, str]
    seconds: dict[str, float]
    memory_mb: int


@dataclass
class Outside:
    """What there is outside."""

    secret: str
    context: dict[str, Any]
    victim: subprocess.Popen[bytes]
    home: Path
    listeners: dict[str, socket.socket]
    before: dict[str, str] = field(default_factory=dict)

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of the program: the secret as credentials, and the addresses of the baits."""
        keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        names = ("E2B_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "SANDBOX_CHAT_TEST")
        agent, *_ = self.context["BAITS"]
        baits = {"SSH_AUTH_SOCK": agent, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={agent}", "DISPLAY": ":77"}
        return {**keep, **dict.fromkeys(names, self.secret), **baits, "HOME": str(self.home), **more}

    def run(self, who: str, kind: str, folder: Path, *names: str, **more: str) -> Outcome:
        """Run the attempts (all without ``names``) as the present user or as an ordinary one."""
        command = [sys.executable, str(RUNNER), kind, str(folder), json.dumps(self.context), *names]
        environ = self.environment(**more)
        if who == "ordinary":
            done = ordinary.run_as(ORDINARY_UID, folder, command, env=environ, timeout=PATIENCE)
        else:
            done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr[-3000:]
        return Outcome(**json.loads(done.stdout))

    def harm(self) -> list[str]:
        """Sentences about what is not as it was before the attempts."""
        found = []
        if self.victim.poll() is not None:
            found.append("a process of this machine was ended")
        for path in (self.context["HOME_FILE"], self.context["TMP_FILE"]):
            if Path(path).read_text() != self.secret:
                found.append(f"{path} was changed")
        for name, listener in self.listeners.items():
            with contextlib.suppress(BlockingIOError):
                listener.accept()
                found.append(f"somebody reached {name}")
        now = state()
        found += [f"{name} was changed" for name in self.before if self.before[name] != now[name]]
        return found


def state() -> dict[str, str]:
    """What must stay as it is: settings of the kernel, the interpreter, packages, and no intruder beside them."""
    found = {path: Path(path).read_text() for path in _UNTOUCHED if Path(path).exists()}
    paths = sysconfig.get_paths()
    for folder in {sys.prefix, sys.base_prefix, paths["purelib"], paths["stdlib"], "/", "/usr/bin", "/tmp"}:
        found[folder] = str(sorted(path.name for path in Path(folder).glob("intruder*")))
    for file in (Path(paths["purelib"], "numpy", "__init__.py"), Path(os.__file__), Path(sys.executable)):
        found[str(file)] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def _remove_if_empty(folder: Path) -> None:
    """Remove ``folder``, unless another run of these tests has things of its own in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()


@contextmanager
def prepared() -> Iterator[Outside]:
    """Put the things outside in place, and take them away afterwards."""
    secret = "canary-" + secrets.token_hex(16)
    token = secrets.token_hex(8)
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(ordinary.open_folder())
        (home / "private.txt").write_text(secret)
        (home / ".env").write_text(f"ANTHROPIC_API_KEY={secret}\n")
        tmp_file = Path("/tmp") / f"sandbox-chat-test-{token}"
        tmp_file.write_text(secret)
        stack.callback(tmp_file.unlink)
        listeners: dict[str, socket.socket] = {}

        def listen(name: str, listener: socket.socket) -> None:
            listener.setblocking(False)
            listeners[name] = stack.enter_context(listener)

        listen("a TCP port", socket.create_server(("0.0.0.0", 0)))
        port = listeners["a TCP port"].getsockname()[1]
        with contextlib.suppress(OSError):
            listen("a TCP port over IPv6", socket.create_server(("::1", port), family=socket.AF_INET6))
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind("\0sandbox-chat-" + token)
        abstract.listen()
        listen("an abstract socket", abstract)
        baits = []
        for place in _bait_places(stack, token):
            bait = socket.socket(socket.AF_UNIX)
            bait.bind(str(place))
            place.chmod(0o777)
            bait.listen()
            stack.callback(place.unlink, missing_ok=True)
            listen(str(place), bait)
            baits.append(str(place))
        # It starts a program again and again, for who watches that program's file.
        victim = subprocess.Popen(
            ["/bin/sh", "-c", "n=0; while [ $n -lt 9000 ]; do /bin/true; sleep 0.2; n=$((n+1)); done"],
            start_new_session=True,
        )
        context: dict[str, Any] = {
            "PORT": port,
            "ADDRESS": _own_address(),
            "ABSTRACT": "sandbox-chat-" + token,
            "VICTIM": victim.pid,
            "HOME_FILE": str(home / "private.txt"),
            "TMP_FILE": str(tmp_file),
            "BAITS": baits,
            "MARK": "sandbox-chat-mark-" + token,
            "SECRET_HASH": hashlib.sha256(secret.encode()).hexdigest(),
            "SECRET_LENGTH": len(secret),
        }
        try:
            yield Outside(secret, context, victim, home, listeners, state())
        finally:
            victim.kill()
            victim.wait()


def _bait_places(stack: contextlib.ExitStack, token: str) -> list[Path]:
    """Paths for sockets, at the usual places as far as this user may write there."""
    folder = Path(tempfile.mkdtemp(prefix="ssh-", dir="/tmp"))
    folder.chmod(0o755)
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    places = [folder / "agent.1"]
    for usual, name in (
        ("/run", f"docker-{token}.sock"),
        ("/tmp/.X11-unix", f"X{100 + secrets.randbelow(900)}"),
        ("/run/user", f"bus-{token}"),
    ):
        parent = Path(usual)
        with contextlib.suppress(OSError):
            if not parent.exists() and os.access(parent.parent, os.W_OK):
                parent.mkdir()
                stack.callback(_remove_if_empty, parent)
            if os.access(parent, os.W_OK) and not (parent / name).exists():
                places.append(parent / name)
    return places


def _own_address() -> str:
    """An address of this machine that is not loopback, empty when it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return ""
        return str(probe.getsockname()[0])
