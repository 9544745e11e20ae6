"""A folder of this machine that code may write: that one, as its owner, and nothing else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ordinary
from support.sandboxes import PATIENCE

from sandbox_chat.sandbox import workspace
from sandbox_chat.sandbox.base import SandboxUnavailable
from sandbox_chat.sandbox.local import LocalSandbox
from sandbox_chat.sandbox.warm import Warm
from sandbox_chat.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the local sandbox needs Linux")
OWNER = 1236
CODE = """
import os, stat
open("/workspace/made.txt", "w").write("by code")
os.makedirs("/workspace/folder/inner")
print(open("/workspace/given.txt").read(), os.listdir("/workspace/closed") if os.access("/workspace/closed", os.R_OK) else "closed")
worked = []
for path in ("/workspace/../intruder", "/workspace/link/intruder", "/workspace/of-root.txt"):
    try: open(path, "a").write("x"); worked.append(path)
    except OSError: pass
try: os.mknod("/workspace/device", 0o666 | stat.S_IFCHR, os.makedev(1, 3)); open("/workspace/device", "rb"); worked.append("device")
except OSError: pass
print(worked, os.statvfs("/workspace").f_flag & (os.ST_NOSUID | os.ST_NODEV) == os.ST_NOSUID | os.ST_NODEV)
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder to be shared, with what is beside it."""
    with ordinary.open_folder() as place:
        folder = place / "shared"
        folder.mkdir()
        (folder / "given.txt").write_text("given")
        (folder / "link").symlink_to(place)
        if os.geteuid() == 0:
            for path in (place, folder, folder / "given.txt"):
                os.chown(path, OWNER, OWNER)
            (folder / "of-root.txt").write_text("")
            (folder / "closed").mkdir(mode=0o700)
        yield folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cold", "warm"])
def test_code_reads_and_writes_there(kind: str, shared: Path, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, start_timeout=PATIENCE, sandbox_workspace=shared)
    warm = Warm(settings) if kind == "warm" else None
    if warm is not None:
        warm.start(delay=0.0)
        assert warm.wait(PATIENCE), warm.state
    sandbox = LocalSandbox(settings, warm=warm, only_warm=warm is not None)
    try:
        sandbox.start()
        done = sandbox.run_code(CODE, timeout=PATIENCE)
        assert done.ok, (done.error, done.stderr)
        assert done.stdout.splitlines() == ["given closed", "[] True"]
        assert sandbox.read_file("/workspace/made.txt", max_bytes=100) == b"by code"
    finally:
        sandbox.close()
        sandbox.release()
        if warm is not None:
            warm.close()
    made = shared / "made.txt"
    assert made.read_text() == "by code"
    assert made.stat().st_uid == shared.stat().st_uid
    assert (shared / "folder" / "inner").is_dir()
    assert not (shared.parent / "intruder").exists()


def test_without_the_setting_there_is_none_of_this_machine(tmp_path: Path) -> None:
    code = "import os; os.listdir('/workspace'), os.stat('/workspace').st_dev == os.stat('/').st_dev"
    sandbox = LocalSandbox(Settings(data_dir=tmp_path, start_timeout=PATIENCE))
    try:
        sandbox.start()
        assert sandbox.run_code(code, timeout=PATIENCE).result_text == "([], False)"
    finally:
        sandbox.close()
        sandbox.release()


def refused(folder: Path, data: Path, match: str) -> None:
    with pytest.raises(SandboxUnavailable, match=match) as caught:
        workspace.check(Settings(data_dir=data, sandbox_workspace=folder))
    assert "SANDBOX_CHAT_SANDBOX_WORKSPACE" in str(caught.value)


def test_what_must_not_be_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: Path) -> None:
    home = shared / "home"
    for path in (home / "work", home / ".config" / "sandbox-chat", shared / "data" / "inner"):
        path.mkdir(parents=True)
        if os.geteuid() == 0:
            for part in (path, path.parent):
                os.chown(part, OWNER, OWNER)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.chdir(tmp_path)
    data = shared / "data"
    refused(Path("/"), data, "belongs to the system")
    refused(Path("/etc"), data, "belongs to the system")
    refused(Path("/usr/share"), data, "belongs to the system")
    refused(home, data, "holds your home folder")
    refused(shared, data, "holds your home folder")
    refused(data, data, "holds this program's data")
    refused(data / "inner", data, "lies in this program's data")
    refused(home / ".config", tmp_path, "holds this program's configuration")
    refused(home / ".config" / "sandbox-chat", tmp_path, "configuration")
    refused(shared / "absent", data, "No such file")
    refused(shared / "given.txt", data, "not a folder")
    link = tmp_path / "innocent"
    link.symlink_to("/etc")
    refused(link, data, "belongs to the system")
    monkeypatch.chdir(home / "work")
    refused(home / "work", tmp_path, "holds the working folder")
    monkeypatch.chdir(tmp_path)
    found = workspace.check(Settings(data_dir=data, sandbox_workspace=home / "work"))
    assert found == (home / "work").resolve()


def test_started_by_root_a_folder_of_root_is_not_shared(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can try it")
    (tmp_path / "of-root").mkdir()
    with ordinary.open_folder() as place:
        refused(place, tmp_path, "belongs to root")


def test_where_python_lives_is_not_shared(tmp_path: Path, shared: Path) -> None:
    python = shared / "env" / "bin" / "python3"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    with pytest.raises(SandboxUnavailable, match="holds an installed Python"):
        workspace.check(Settings(data_dir=tmp_path, sandbox_workspace=shared, sandbox_python=python))
