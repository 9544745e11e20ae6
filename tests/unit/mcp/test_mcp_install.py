"""Installing servers: what is complete counts, nothing is left of what is not, and everything has a limit.

``npm`` and ``node`` are small scripts here; the real ones are driven by the check of the catalogue.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox_chat.mcp import catalog, install, program
from sandbox_chat.mcp.base import McpError
from sandbox_chat.mcp.install import InstallError
from sandbox_chat.mcp.installer import Failed, run

ENTRY = catalog.load()["everything"]
MADE = """
while [ "$1" != --prefix ]; do shift; done
place="$2/node_modules/@modelcontextprotocol/server-everything"
mkdir -p "$place/dist"
echo '{"bin": {"mcp-server-everything": "dist/index.js"}}' > "$place/package.json"
echo > "$place/dist/index.js"
"""


@pytest.fixture
def machine(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Makes a search path with scripts for node and npm on it."""

    def make(npm: str = MADE, version: str = "v20.1.0") -> dict[str, str]:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        for name, body in (("npm", npm), ("node", f"echo {version}")):
            (folder / name).write_text(f"#!/bin/sh\n{body}\n")
            (folder / name).chmod(0o755)
        return {"PATH": f"{folder}{os.pathsep}{os.defpath}", "HOME": str(tmp_path)}

    return make


def nobody(_line: str) -> None:
    """Nobody listens."""


def environments(data: Path) -> list[str]:
    return sorted(path.name for path in program.folder(ENTRY, data).glob("env-*"))


def running(word: str) -> list[str]:
    """Command lines of processes with ``word`` in them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if word.encode() in line and int(path.parent.name) != os.getpid():
            found.append(line.decode(errors="replace"))
    return found


def gone(word: str) -> bool:
    """Whether no process has ``word`` in its command line any more, soon."""
    end = time.monotonic() + 10
    while running(word) and time.monotonic() < end:
        time.sleep(0.05)
    return not running(word)


def test_a_server_of_node_is_installed_and_removed(
    tmp_path: Path, machine: Callable[..., dict[str, str]]
) -> None:
    environ = machine()
    assert install.installed(ENTRY, tmp_path, environ) is None
    command = install.install(ENTRY, tmp_path, nobody, environ=environ)
    assert command[0] == str(tmp_path / "bin/node")
    assert command[1].endswith("server-everything/dist/index.js") and Path(command[1]).is_file()
    assert install.installed(ENTRY, tmp_path, environ) == command
    assert install.installed_version(ENTRY, tmp_path) in (ENTRY.version, "")
    assert program.folder(ENTRY, tmp_path).stat().st_mode & 0o077 == 0
    assert install.remove(ENTRY, tmp_path) is True
    assert install.remove(ENTRY, tmp_path) is False
    assert install.installed(ENTRY, tmp_path, environ) is None
    assert not program.folder(ENTRY, tmp_path).exists()


def test_the_old_one_counts_until_the_new_one_is_whole(
    tmp_path: Path, machine: Callable[..., dict[str, str]]
) -> None:
    command = install.install(ENTRY, tmp_path, nobody, environ=machine())
    with pytest.raises(InstallError, match="npm error 404 not found"):
        install.install(ENTRY, tmp_path, nobody, environ=machine("echo npm error 404 not found >&2; exit 1"))
    assert install.installed(ENTRY, tmp_path, machine()) == command
    assert len(environments(tmp_path)) == 1
    newer = install.install(ENTRY, tmp_path, nobody, environ=machine())
    assert newer != command
    assert environments(tmp_path) == [Path(newer[1]).relative_to(program.folder(ENTRY, tmp_path)).parts[0]]


def test_what_was_broken_off_is_swept(tmp_path: Path, machine: Callable[..., dict[str, str]]) -> None:
    left = program.folder(ENTRY, tmp_path) / "env-left" / "node_modules"
    left.mkdir(parents=True)
    assert install.installed(ENTRY, tmp_path, machine()) is None
    install.install(ENTRY, tmp_path, nobody, environ=machine())
    assert not left.exists()


@pytest.mark.parametrize(
    ("npm", "said"),
    [
        ("exit 3", "ended with status 3"),
        (
            "echo npm error code ENOSPC; echo npm error nospc ENOSPC: no space left on device; exit 1",
            "no space left",
        ),
        ("echo one; echo ERROR: two; echo three; exit 1", "ERROR: two"),
        ("printf 'npm error \\033[31mred\\033[0m'; exit 1", "red"),
        ("echo npm error https://me:hunter2@host/x; exit 1", r"//\[secret\]@host"),
        ("exit 0", "could not be installed|No such file"),
        (MADE + 'rm "$place/dist/index.js"', "has no program"),
        (MADE + 'echo "{}" > "$place/package.json"', "has no program"),
        ("kill -9 $$", "ended with status -9"),
    ],
)
def test_a_failure_is_one_sentence(
    npm: str, said: str, tmp_path: Path, machine: Callable[..., dict[str, str]]
) -> None:
    with pytest.raises(InstallError, match=said) as error:
        install.install(ENTRY, tmp_path, nobody, environ=machine(npm))
    assert isinstance(error.value, McpError)
    assert (
        "\n" not in str(error.value) and "\x1b" not in str(error.value) and "hunter2" not in str(error.value)
    )
    assert environments(tmp_path) == []
    assert install.installed(ENTRY, tmp_path, machine()) is None


def test_node_is_missing_or_old(tmp_path: Path, machine: Callable[..., dict[str, str]]) -> None:
    with pytest.raises(InstallError, match="needs node and npm, which are not installed"):
        install.install(ENTRY, tmp_path, nobody, environ={"PATH": str(tmp_path)})
    with pytest.raises(InstallError, match=r"needs node >=18; .* is 16\.2\.0"):
        install.install(ENTRY, tmp_path, nobody, environ=machine(version="v16.2.0"))


def test_a_python_that_is_new_enough_is_found(tmp_path: Path) -> None:
    import dataclasses

    entry = dataclasses.replace(catalog.load()["time"], runtime=">=3.11")
    assert install.find_python(entry, {"PATH": str(tmp_path)}) == sys.executable
    kept = tmp_path / ".kept/versions/9.9.1/bin"
    assert not list(kept.glob("*"))
    newer = dataclasses.replace(entry, runtime=">=9.9")
    with pytest.raises(InstallError, match=r"needs Python >=9\.9"):
        install.find_python(newer, {"PATH": str(tmp_path), "HOME": str(tmp_path)})
    kept = tmp_path / ".kept/versions/3.99.1/bin"
    kept.mkdir(parents=True)
    (kept / "python3").write_text("#!/bin/sh\necho 9.9\n")
    (kept / "python3").chmod(0o755)
    for environ in ({"HOME": str(tmp_path)}, {"PYENV_ROOT": str(tmp_path / ".kept")}, {}):
        path = str(tmp_path if environ else tmp_path / ".kept/shims")
        assert install.find_python(newer, {"PATH": path, **environ}) == str(kept / "python3")


def test_the_installer_gets_no_credential(tmp_path: Path, machine: Callable[..., dict[str, str]]) -> None:
    seen = tmp_path / "seen"
    environ = machine(f"env > {seen}\n{MADE}") | {
        "ANTHROPIC_API_KEY": "k",
        "E2B_API_KEY": "k",
        "npm_config_registry": "r",
    }
    install.install(ENTRY, tmp_path, nobody, environ=environ)
    assert "npm_config_registry=r" in seen.read_text()
    assert "API_KEY" not in seen.read_text()


def test_two_at_once(tmp_path: Path, machine: Callable[..., dict[str, str]]) -> None:
    waiting = tmp_path / "go"
    environ = machine(f"while [ ! -e {waiting} ]; do sleep 0.05; done\n{MADE}")
    begun = threading.Event()
    slow = threading.Thread(
        target=install.install, args=(ENTRY, tmp_path, lambda _: begun.set()), kwargs={"environ": environ}
    )
    slow.start()
    while not environments(tmp_path):
        time.sleep(0.01)
    with pytest.raises(InstallError, match="by another process"):
        install.install(ENTRY, tmp_path, nobody, environ=environ)
    with pytest.raises(InstallError, match="by another process"):
        install.remove(ENTRY, tmp_path)
    waiting.touch()
    slow.join()
    assert install.installed(ENTRY, tmp_path, environ) is not None


def test_a_folder_that_cannot_be_made(tmp_path: Path, machine: Callable[..., dict[str, str]]) -> None:
    (tmp_path / "mcp").write_text("in the way")
    with pytest.raises(InstallError, match="could not be installed in"):
        install.install(ENTRY, tmp_path, nobody, environ=machine())


# -- the installer's process -------------------------------------------------------------------------------


def sh(
    script: str, log: Path, say: Callable[[str], None] = nobody, timeout: float = 60, limit: int = 10_000
) -> None:
    run(["/bin/sh", "-c", script], dict(os.environ), log, say, log_limit=limit, timeout=timeout)


def test_what_is_said_is_clean_and_bounded(tmp_path: Path) -> None:
    said: list[str] = []
    sh(
        "printf 'a\\033[2Jb\\n\\n'; printf '\\377\\n'; yes word | head -5000; head -c 100000 /dev/zero | tr '\\0' x",
        tmp_path / "log",
        said.append,
    )
    assert all("\x1b" not in line and len(line) <= 500 for line in said)
    assert said.count("word") == 5000
    assert (tmp_path / "log").stat().st_size < 11_000


def test_a_listener_that_fails_stops_nothing(tmp_path: Path) -> None:
    def gone_away(_line: str) -> None:
        raise BrokenPipeError

    sh("yes | head -200000", tmp_path / "log", gone_away)


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    sh("echo word", tmp_path / "nowhere" / "log")


def test_what_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    mark = f"86{os.getpid()}.25"
    with pytest.raises(Failed, match="took longer than"):
        sh(f"sleep {mark} & sleep {mark}", tmp_path / "log", timeout=0.5)
    assert gone(f"sleep\0{mark}")


def test_what_is_left_in_the_background_is_ended(tmp_path: Path) -> None:
    mark = f"86{os.getpid()}.5"
    sh(f"sleep {mark} & echo done", tmp_path / "log")
    assert gone(f"sleep\0{mark}")


def test_what_leaves_the_group_is_not_waited_for(tmp_path: Path) -> None:
    mark = f"5.{os.getpid()}"  # it ends by itself
    sh(f"setsid sleep {mark} & echo done", tmp_path / "log")


def test_it_ends_with_the_program_also_when_that_is_killed(tmp_path: Path) -> None:
    mark = f"86{os.getpid()}.75"
    code = (
        "import sys\nfrom pathlib import Path\nfrom sandbox_chat.mcp.installer import run\n"
        f"run(['/bin/sh', '-c', 'sleep {mark} & echo begun; wait'], {{'PATH': '/bin:/usr/bin'}}, Path(sys.argv[1]), "
        "lambda line: print(line, flush=True), log_limit=100, timeout=600)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "log")], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == b"begun\n"
        assert running(f"sleep\0{mark}")
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert gone(f"sleep\0{mark}")


def test_a_record_is_what_was_installed(tmp_path: Path, machine: Callable[..., dict[str, str]]) -> None:
    install.install(ENTRY, tmp_path, nobody, environ=machine())
    told = json.loads((program.folder(ENTRY, tmp_path) / program.INSTALLED).read_text())
    assert told["version"] == ENTRY.version and told["requires"] == []


def test_a_full_disk_is_said_and_is_no_crash(
    tmp_path: Path, machine: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    sh("yes | head -1000", Path("/dev/full"))
    monkeypatch.setattr(install, "_NO_ROOM", 1 << 62)
    with pytest.raises(InstallError, match="there is no room left on the disk of"):
        install.install(ENTRY, tmp_path, nobody, environ=machine("echo some error; exit 1"))


AWAY = "WARNING: Retrying (Retry(total=0)): Failed to establish a new connection: [Errno -3]: x"
NONE = "ERROR: Could not find a version that satisfies the requirement x==1 (from versions: none)"
OTHERS = "ERROR: Could not find a version that satisfies the requirement x==1 (from versions: 2)"


@pytest.mark.parametrize(
    ("lines", "unreachable"),
    [
        ((AWAY, NONE, "ERROR: No matching distribution found for x==1"), True),
        (("npm error code EAI_AGAIN", "npm error request to https://r/x failed, reason: getaddrinfo EAI_AGAIN r"), True),
        ((NONE,), False),
        ((AWAY, OTHERS), False),
        (("npm error code E404", "npm error 404 Not Found - GET https://r/x"), False),
    ],
)  # fmt: skip
def test_no_network_is_told_from_no_package(
    lines: tuple[str, ...], unreachable: bool, tmp_path: Path
) -> None:
    script = "".join(f"echo '{line}'\n" for line in lines) + "exit 1\n"
    with pytest.raises(Failed) as failed:
        run(["/bin/sh", "-c", script], {}, tmp_path / "log", nobody, log_limit=1000, timeout=20)
    assert ("the package registry cannot be reached" in str(failed.value)) is unreachable
