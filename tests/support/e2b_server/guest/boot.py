"""First process inside a sandbox of the test cloud: builds its view of the file system, then looks after orphans.

Started as ``python boot.py JSON`` in a mount and a pid namespace of its own (or in none: then only the
program is run). ``JSON`` holds: ``box`` (folder of this sandbox on the host), ``code`` (the folder of this
file), ``prefix`` and ``base`` (of the interpreter), ``gateway`` (the folder of the gateway's package, or nothing),
``servers`` (a folder of packages with programs for it, or nothing), ``isolated``, and ``options`` for the program.

Afterwards /tmp and /home are empty and this sandbox's own; what the program needs and what lay under one of
them is found in /mnt. Nothing else is hidden: this is a double of a cloud, not a jail.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import json
import os
import resource
import sys
from pathlib import Path

MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE, MS_NOSUID, MS_NODEV = 4096, 8192, 16384, 1 << 18, 2, 4
PR_SET_CHILD_SUBREAPER = 36
COVERED = ("/tmp", "/home", "/mnt")
"""Folders that a sandbox has for itself."""


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.mount(
        source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), data.encode() or None
    )
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mounting {source} at {target}: {os.strerror(number)}")


def covered(path: str) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in COVERED)


def build(box: str, code: str, prefix: str, base: str, gateway: str, servers: str) -> str:
    """Mount everything; returns the interpreter to go on with."""
    mount("", "/", flags=MS_REC | MS_PRIVATE)
    stage = Path(box, "ns")
    mount("tmpfs", str(stage), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=16m")
    wanted = {"box": box, "lib/e2b_guest": code}
    if covered(prefix):
        wanted["venv"] = prefix
    if covered(base):
        wanted["base"] = base
    if gateway:
        wanted |= {"lib/gateway": gateway, "etc": "/etc"}
    if servers:
        wanted["servers"] = servers
    for name, source in wanted.items():
        (stage / name).mkdir(parents=True)
        mount(source, str(stage / name), flags=MS_BIND | MS_REC)
    mount(str(stage), "/mnt", flags=MS_MOVE)
    for folder, mode in (("/tmp", "1777"), ("/home", "755")):
        mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, f"mode={mode},size=2g")
    if "base" in wanted and not Path(base).exists():
        # A virtual environment names its interpreter's home by path.
        Path(base).mkdir(parents=True)
        mount("/mnt/base", base, flags=MS_BIND | MS_REC)
    with contextlib.suppress(OSError):  # refused inside some containers: the host's process list is seen then
        mount("proc", "/proc", "proc")
    if gateway:  # it writes there, and each sandbox has its own
        for folder in ("/etc", "/var/log"):
            mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=16m")
        for entry in Path("/mnt/etc").iterdir():
            Path("/etc", entry.name).symlink_to(entry)
    Path("/home/user").mkdir()
    own_root()
    return f"{'/mnt/venv' if 'venv' in wanted else prefix}/bin/python"


def own_root() -> None:
    """Let folders be made at the root without making them on the machine of the one who tests."""
    root = Path("/mnt/root")
    root.mkdir()
    mount("tmpfs", str(root), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64m")
    for entry in Path("/").iterdir():
        place = root / entry.name
        if entry.is_symlink():
            place.symlink_to(entry.readlink())
        elif entry.is_dir():
            place.mkdir()
            mount(str(entry), str(place), flags=MS_BIND | MS_REC)
    os.chroot(root)
    os.chdir("/")


def font_lists() -> dict[str, bytes]:
    """Matplotlib's lists of fonts of the one who tests; building one takes a second in every new home."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "matplotlib")
    try:
        return {file.name: file.read_bytes() for file in cache.glob("fontlist-*.json")}
    except OSError:
        return {}


def look_after(child: int) -> int:
    """Collect orphans until the program ends; returns its exit code."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status) & 0xFF


def program(path: Path, text: str) -> None:
    """Write a program."""
    path.write_text(f"{text}\n")
    path.chmod(0o755)


def main() -> None:
    plan = json.loads(sys.argv[1])
    box, fonts = plan["box"], font_lists()
    if plan["isolated"]:
        python = build(box, plan["code"], plan["prefix"], plan["base"], plan["gateway"], plan["servers"])
        box, home, library = "/mnt/box", "/home/user", "/mnt/lib"
    else:
        # Orphans stay below this process, where they are found at the end.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        python, home, library = sys.executable, f"{box}/home", f"{box}/lib"
        Path(home).mkdir()
        Path(library).mkdir()
        Path(library, "e2b_guest").symlink_to(plan["code"])
    os.chdir(home)
    for name, content in fonts.items():
        Path(".cache/matplotlib").mkdir(parents=True, exist_ok=True)
        Path(".cache/matplotlib", name).write_bytes(content)
    if limit := plan["options"]["memory"]:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    env = {
        "PATH": f"{Path(python).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": home,
        "LANG": "C.UTF-8",
        "PYTHONPATH": library,
        # Byte code beside the sources would be written into the checkout.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if port := plan["options"]["gateway_port"]:
        programs = Path(library, "bin")
        programs.mkdir()
        program(
            programs / "mcp-gateway",
            f'#!/bin/sh\nPYTHONPATH={library} exec {python} -m gateway --port {port} "$@"',
        )
        for found in importlib.metadata.distributions(path=["/mnt/servers"]):
            for entry in found.entry_points.select(group="console_scripts"):
                script = f"import sys\nsys.path.insert(0, '/mnt/servers')\nfrom {entry.module} import {entry.attr}\n"
                program(programs / entry.name, f"#!{python}\n{script}sys.exit({entry.attr}())")
        Path("/etc/profile").unlink(missing_ok=True)  # commands are run by a login shell
        Path("/etc/profile").write_text(
            f"[ -f /mnt/etc/profile ] && . /mnt/etc/profile\nPATH={programs}:$PATH\n"
        )
    options = json.dumps({**plan["options"], "box": box, "home": home})
    child = os.fork()
    if child == 0:
        os.execve(python, [python, "-m", "e2b_guest", options], env)
    sys.exit(look_after(child))


if __name__ == "__main__":
    main()
