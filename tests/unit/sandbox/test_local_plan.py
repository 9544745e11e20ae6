"""What the sandbox is made of: arguments, environment, limits, interpreters, and the choice of a back end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support import ordinary

from sandbox_chat.sandbox import bwrap, environment, local, make_worker, prepare
from sandbox_chat.sandbox.base import SandboxUnavailable
from sandbox_chat.sandbox.environment import PythonEnvironment
from sandbox_chat.sandbox.skills_folder import SkillsFolder
from sandbox_chat.settings import Settings


def settings(tmp_path: Path, **values: object) -> Settings:
    return Settings(data_dir=tmp_path, **values)


def fake(tmp_path: Path, prefix: Path | None = None) -> PythonEnvironment:
    prefix = prefix or tmp_path / "python"
    for part in ("bin", "lib", "secrets"):
        (prefix / part).mkdir(parents=True, exist_ok=True)
    packages = tmp_path / "packages"
    packages.mkdir(exist_ok=True)
    return PythonEnvironment(prefix / "bin" / "python3", prefix, (packages,), "cpython-311", (3, 11, 0))


def test_only_what_is_needed_is_bound(tmp_path: Path) -> None:
    python = fake(tmp_path)
    binds = bwrap.python_binds(python)
    assert {bind.target for bind in binds} == {
        str(tmp_path / "python" / "bin"), str(tmp_path / "python" / "lib"), "/opt/sandbox/packages/0",
    }  # fmt: skip
    assert (
        bwrap.python_binds(PythonEnvironment(Path("/usr/bin/python3"), Path("/usr"), (), "t", (3, 11, 0)))
        == []
    )


def test_a_prefix_with_symbolic_links_is_bound_at_both_names(tmp_path: Path) -> None:
    python = fake(tmp_path)
    (tmp_path / "link").symlink_to(python.prefix)
    linked = PythonEnvironment(python.executable, tmp_path / "link", (), "t", (3, 11, 0))
    targets = {bind.target for bind in bwrap.python_binds(linked)}
    assert {str(tmp_path / "link" / "lib"), str(python.prefix / "lib")} <= targets


def test_a_python_in_the_home_folder_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "python" / "me"))
    with pytest.raises(SandboxUnavailable, match="holds more than Python"):
        bwrap.python_binds(fake(tmp_path))


def test_environment_holds_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    monkeypatch.setenv("SOMETHING", "canary")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    plan = local.make_plan(settings(tmp_path), fake(tmp_path))
    assert "canary" not in repr(plan)
    assert plan.environ["TZ"] == "Europe/Berlin"
    assert plan.environ["HOME"] == bwrap.HOME


def test_arguments(tmp_path: Path) -> None:
    plan = local.make_plan(settings(tmp_path, sandbox_disk_mb=77), fake(tmp_path))
    sources = [str(bind.source) for bind in plan.binds]
    arguments = plan.arguments(sources, {"/etc/passwd": 5}, 6)
    text = " ".join(arguments)
    for part in (
        "--unshare-net", "--unshare-pid", "--unshare-user", "--unshare-ipc", "--disable-userns", "--die-with-parent",
        "--new-session", "--cap-drop ALL", "--seccomp 6", "--proc /proc --ro-bind /proc/sys /proc/sys",
        f"--size {77 << 20} --tmpfs /tmp", "--remount-ro /", "--ro-bind-data 5 /etc/passwd",
    ):  # fmt: skip
        assert part in text, part
    assert "--bind" not in arguments
    assert "--share-net" not in arguments


def test_the_workspace_has_the_room_of_tmp(tmp_path: Path) -> None:
    plan = local.make_plan(settings(tmp_path, sandbox_disk_mb=77), fake(tmp_path))
    text = " ".join(plan.arguments([str(bind.source) for bind in plan.binds], {}, 6))
    assert f"--perms 0700 --size {77 << 20} --tmpfs /workspace" in text
    assert text.index("--tmpfs /workspace") < text.index("--remount-ro / ")
    bounds = local.LocalSandbox(settings(tmp_path))._bounds()
    assert bounds is not None
    assert "/workspace" in bounds.folders
    with ordinary.open_folder() as place:  # one of the user's is on their disk
        if os.geteuid() == 0:
            os.chown(place, 4321, 4321)
        chosen = settings(tmp_path, sandbox_workspace=place)
        plan = local.make_plan(chosen, fake(tmp_path))
        text = " ".join(plan.arguments([*(str(bind.source) for bind in plan.binds), "/given"], {}, 6))
        assert "--tmpfs /workspace" not in text
        assert "--bind /given /workspace" in text
        bounds = local.LocalSandbox(chosen)._bounds()
        assert bounds is not None
        assert "/workspace" not in bounds.folders


def test_skills_are_bound_to_be_read(tmp_path: Path) -> None:
    folder = SkillsFolder(lambda: {"one": {"one.py": b"x"}})
    try:
        plan = local.make_plan(settings(tmp_path, code_mode="on"), fake(tmp_path), skills=folder)
        arguments = plan.arguments([str(bind.source) for bind in plan.binds], {}, 6)
        place = arguments.index("/skills")
        assert arguments[place - 2 : place + 1] == ["--ro-bind", str(folder.path()), "/skills"]
    finally:
        folder.close()
    plan = local.make_plan(settings(tmp_path), fake(tmp_path))
    assert all(bind.target != "/skills" for bind in plan.binds)


def test_skills_are_made_only_in_code_mode(tmp_path: Path) -> None:
    asked: list[str] = []

    def give() -> dict[str, dict[str, bytes]]:
        asked.append("!")
        return {}

    for mode in ("off", "on"):
        worker = make_worker(settings(tmp_path, code_mode=mode, sandbox_warm=False), skills=give)
        assert worker is not None
        sandbox: Any = worker._factory()
        assert (sandbox._skills is not None) == (mode == "on")
        worker.close()
    assert not asked  # before a sandbox is started nothing is read


def test_limits_follow_the_settings(tmp_path: Path) -> None:
    found = local.limits(settings(tmp_path, sandbox_memory_mb=300, sandbox_processes=9, sandbox_file_mb=5))
    assert (found["DATA"], found["NPROC"], found["FSIZE"], found["CORE"]) == (
        (300 << 20) * 15 // 16,
        9,
        5 << 20,
        0,
    )


def test_own_environment_is_found() -> None:
    found = environment.find(None)
    assert found.executable.is_file()
    assert not found.executable.is_symlink()
    assert any((path / "IPython").is_dir() for path in found.packages)
    assert found.key == environment.find(None).key


def test_another_interpreter_is_asked(tmp_path: Path) -> None:
    found = environment.find(Path(sys.executable))
    assert found.packages == environment.find(None).packages
    assert found.executable == environment.find(None).executable


def test_an_interpreter_without_ipython_is_refused(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    with pytest.raises(SandboxUnavailable, match="-m pip install ipython"):
        environment.find(tmp_path / "bare" / "bin" / "python")


@pytest.mark.parametrize(("name", "word"), [("none", "cannot be run"), ("true", "does not answer")])
def test_what_is_no_interpreter_is_refused(tmp_path: Path, name: str, word: str) -> None:
    (tmp_path / "true").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "true").chmod(0o755)
    with pytest.raises(SandboxUnavailable, match=word):
        environment.find(tmp_path / name)


def test_make_worker(tmp_path: Path) -> None:
    assert make_worker(settings(tmp_path, sandbox="off")) is None
    for kind, safe in (("local", True), ("unsafe-local", False)):
        worker = make_worker(settings(tmp_path, sandbox=kind))
        assert worker is not None
        assert (worker.info.kind, worker.info.safe) == (kind, safe)
        worker.close()


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_are_refused_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(SandboxUnavailable, match="docker"):
        make_worker(settings(tmp_path))
    with pytest.raises(SandboxUnavailable, match="docker"):
        local.LocalSandbox(settings(tmp_path)).start()


def test_make_worker_imports_nothing_heavy() -> None:
    code = (
        "import sys; from sandbox_chat.sandbox import make_worker; from sandbox_chat.settings import Settings;"
        "make_worker(Settings()).close();"
        "heavy = {'IPython', 'numpy', 'matplotlib', 'pandas', 'ctypes'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_refused_namespaces_are_explained(tmp_path: Path) -> None:
    sandbox = local.LocalSandbox(settings(tmp_path))
    error = sandbox._explain("bwrap: setting up uid map: Permission denied")
    assert isinstance(error, SandboxUnavailable)
    assert "--sandbox off" in str(error)
    assert "uid map" in str(error)


def test_cache_is_stored_whole_and_only_bytecode_is_unpacked(tmp_path: Path) -> None:
    import io
    import tarfile

    prepare._store(tmp_path / "place", "fontlist-v1.json", b"{}")
    assert (tmp_path / "place" / "fontlist-v1.json").read_bytes() == b"{}"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in ("a/b.pyc", "../outside.pyc", "/abs.pyc", "a/c.py"):
            member = tarfile.TarInfo(name)
            member.size = 1
            tar.addfile(member, io.BytesIO(b"x"))
        link = tarfile.TarInfo("l.pyc")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    prepare._unpack(tmp_path / "place", buffer.getvalue())
    found = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert "place/bytecode/a/b.pyc" in found
    assert not any("outside" in name or name.endswith(".py") or "l.pyc" in name for name in found)
    assert not Path("/abs.pyc").exists()
    assert not os.path.lexists(tmp_path / "outside.pyc")


def test_what_a_killed_program_left_half_made_is_cleared(tmp_path: Path) -> None:
    old, new = tmp_path / ".new-old", tmp_path / ".new-new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "x.pyc").touch()
    file = tmp_path / ".new-file"
    file.touch()
    kept = tmp_path / "fontlist-v1.json"
    kept.touch()
    for path in (old, file, kept):
        os.utime(path, (time.time() - 7200,) * 2)
    prepare._clear_abandoned(tmp_path)
    assert set(tmp_path.iterdir()) == {new, kept}
