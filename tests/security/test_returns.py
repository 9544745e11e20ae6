"""Files that come back from the sandbox: their names, what they are, where they go."""

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from security.acting import ACTING
from support.sandboxes import PATIENCE
from support.toolbox import Tools

from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Settings
from sandbox_chat.tools.downloads import safe_name

NAMES = [
    "../../etc/passwd", "/etc/passwd", "..", ".", "", "/", "a/../../b", "..\\..\\x", "C:\\x\\y", "~/.bashrc", "~root",
    ".bashrc", ".ssh", "-rf", "--help", "a\0b", "a\nb", "\x1b[2Jx", "x\u202egnp.exe", "CON", "con.txt", "LPT1", "NUL.tar.gz",
    "COM1 .txt", "a" * 5000, "\U0001f600" * 300, "x." + "y" * 400, "a:b", "file.txt:stream", "a|b", "$(id)", "`id`", " x ", "x.",
    "x ", "%2e%2e%2fx", "\u2025/x", "\uff0e\uff0e\uff0fx", "\ud800x", "e\u0301", "x\u200b.txt", "aux.", "prn .c",
]  # fmt: skip


def harmless(name: str) -> None:
    """Fail when ``name`` is more than the plain name of a file."""
    assert name not in ("", ".", "..")
    assert not set(name) & set('/\\\0:*?"<>|')
    assert not name.startswith((".", "-", "~", " "))
    assert not name.endswith((" ", "."))
    assert not ACTING.search(name)
    assert len(name.encode()) <= 200
    assert not re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)( *\..*)?", name)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_made_harmless(name: str) -> None:
    harmless(safe_name(name))


@given(st.text(max_size=300))
def test_any_name_is_made_harmless(name: str) -> None:
    harmless(safe_name(name))


@pytest.mark.parametrize("name", NAMES)
async def test_a_download_stays_in_its_folder(tools: Tools, name: str, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    before = sorted(path for path in tmp_path.rglob("*"))
    tools.sandbox.files["/tmp/x"] = b"data"
    outcome = await tools.call("download_file", path="/tmp/x", name=name)
    assert not outcome.is_error, outcome.text
    made = [path for path in tmp_path.rglob("*") if path not in before and path.is_file()]
    assert [path.parent for path in made] == [tmp_path / "downloads"]
    assert made[0].read_bytes() == b"data"
    assert stat.S_IMODE(made[0].stat().st_mode) & 0o133 == 0  # nobody can run it, nobody else can write it
    assert not ACTING.search(outcome.text)


@pytest.mark.parametrize("leads", ["nowhere", "outside", "folder", "itself"])
async def test_a_link_that_lies_in_wait_is_not_followed(tools: Tools, tmp_path: Path, leads: str) -> None:
    folder = tmp_path / "downloads"
    folder.mkdir()
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    targets = {
        "nowhere": tmp_path / "new.txt",
        "outside": outside,
        "folder": tmp_path,
        "itself": folder / "x.txt",
    }
    (folder / "x.txt").symlink_to(targets[leads])
    tools.sandbox.files["/tmp/x.txt"] = b"evil"
    for answer in ("keep_both", "replace", "no"):
        tools.answers.append(answer)
        await tools.call("download_file", path="/tmp/x.txt")
        assert outside.read_text() == "mine"
        assert not (tmp_path / "new.txt").exists()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert set(names) <= {"downloads", "outside.txt"}


SOURCES = """
import os, socket
os.makedirs("/tmp/src", exist_ok=True); os.chdir("/tmp/src")
for name, target in dict(passwd="/etc/passwd", shadow="/etc/shadow", zero="/dev/zero", self="/proc/self/environ", folder="/tmp",
                         up="../../../../../../etc/hostname", loop="loop", mem="/proc/1/mem", kmsg="/proc/kmsg").items():
    os.path.lexists(name) or os.symlink(target, name)
os.path.exists("fifo") or os.mkfifo("fifo")
s = socket.socket(socket.AF_UNIX)
os.path.exists("sock") or s.bind("sock")
open("sparse", "wb").truncate(900_000_000)
os.path.exists("none") or open("none", "wb").close(); os.chmod("none", 0)
os.chdir("/tmp")
"""
ODD = (
    "/tmp/src/zero", "/dev/zero", "/dev/random", "/dev/full", "/dev/stdin", "/dev/fd/1", "/tmp/src/fifo", "/tmp/src/sock",
    "/tmp/src/folder", "/tmp/src/loop", "/tmp/src/sparse", "/tmp/src/none", "/tmp/src/mem", "/tmp/src/kmsg", "/tmp/src/shadow",
    "/etc/shadow", "/proc/kcore", "/proc/1/mem", "/proc/self/mem", "/nothing", "/tmp\0x", "", "/tmp/" + "x" * 300,
)  # fmt: skip


@pytest.mark.parametrize("path", ODD)
async def test_what_is_no_plain_file_is_refused_at_once(
    real: Tools, worker: SandboxWorker, path: str
) -> None:
    assert (await worker.run_code(SOURCES, timeout=PATIENCE)).ok
    for name in ("download_file", "read_file", "read_image"):
        began = time.monotonic()
        outcome = await real.call(name, path=path)
        assert time.monotonic() - began < 30
        assert outcome.is_error or len(outcome.text) < 200, (name, outcome.text[:300])
        assert len(outcome.text) <= real.settings.text_limit
    assert not list((real.folder / "downloads").glob("*"))
    assert (await worker.run_code("1+1", timeout=PATIENCE)).result_text == "2"


async def test_a_link_in_the_sandbox_gives_the_sandbox_s_file(real: Tools, worker: SandboxWorker) -> None:
    assert (await worker.run_code(SOURCES, timeout=PATIENCE)).ok
    text = (await real.call("read_file", path="/tmp/src/passwd")).text
    assert text.startswith("user:x:1000") and "root" not in text
    for name in ("self", "up"):
        outcome = await real.call("read_file", path=f"/tmp/src/{name}")
        assert "ANTHROPIC" not in outcome.text and "E2B" not in outcome.text
        assert os.uname().nodename not in outcome.text


async def test_names_with_control_characters_come_back_harmless(real: Tools, worker: SandboxWorker) -> None:
    code = "import os\nos.makedirs('/tmp/odd', exist_ok=True)\n" + "\n".join(
        f"open(b'/tmp/odd/' + {os.fsencode(name)!r}, 'w').close()"
        for name in ("\x1b[2J\x1b]0;x\x07", "a\nb", "tab\tb", "\u202egnp", "-rf", "x" * 255, "\r\x08\x7f")
    )
    code += "\nopen(b'/tmp/odd/\\xff\\xfe\\x9b', 'w').close()"
    assert (await worker.run_code(code, timeout=PATIENCE)).ok
    outcome = await real.call("list_files", path="/tmp/odd")
    assert not outcome.is_error
    assert not ACTING.search(outcome.text)
    assert len(outcome.text.splitlines()) == 9
    entries = await worker.list_files("/tmp/odd", limit=100)
    for number, entry in enumerate(entries):
        done = await real.call("download_file", path=entry.path)
        assert not ACTING.search(done.text)
        if not done.is_error:
            harmless(sorted((real.folder / "downloads").iterdir())[0].name)
        assert number < 100


async def test_a_download_of_a_sandbox_that_is_lost_on_the_way_is_not_mixed_up(
    worker: SandboxWorker, tmp_path: Path
) -> None:
    lies = """
import os, sys
files = next(m for n, m in list(sys.modules.items()) if n.endswith(".files") and hasattr(m, "entries"))
def read(path, offset, size):
    if offset: os._exit(1)
    return {"path": path, "size": 60_000_000}, bytes(size)
files.read = read
"""
    path = (await worker.run_code("import os; print(os.__file__)", timeout=PATIENCE)).stdout.strip()
    assert (await worker.run_code(lies, timeout=PATIENCE)).ok
    with (tmp_path / "x").open("w+b") as target:
        size = await worker.download(path, target, max_bytes=100_000_000)
    data = (tmp_path / "x").read_bytes()
    assert size == len(data)
    assert data.startswith(b'r"""OS routines')


async def test_a_download_is_bounded_by_size(real: Tools, worker: SandboxWorker) -> None:
    small = Tools(Settings(downloads_dir=real.folder / "d", download_limit=1000), real.folder, sandbox=worker)
    await worker.write_file("/tmp/big", b"x" * 1001)
    outcome = await small.call("download_file", path="/tmp/big")
    assert outcome.is_error and "1,001" in outcome.text
    assert not list((real.folder / "d").glob("*"))
