"""What is made once for each Python and makes every later sandbox start quickly.

Two things: matplotlib's list of fonts, which it would build anew in every fresh home, and bytecode,
where an environment was installed without it. Both are made by code of this program in a sandbox of
its own, in the background, and are bound read-only into later sandboxes.
"""

from __future__ import annotations

import dataclasses
import io
import os
import shutil
import tarfile
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from sandbox_chat.sandbox.base import SandboxError
from sandbox_chat.sandbox.environment import PythonEnvironment
from sandbox_chat.settings import Settings

_TIMEOUT = 180.0
_MAX_FONTS = 16 << 20
_MAX_BYTECODE = 512 << 20
_ROOM_MB = 1024
_PROCESSES = 64
_NEW = ".new-"
_ABANDONED = 3600.0
"""Seconds after which something half made is a killed program's: making takes at most a few minutes."""
_FONTS = """
import os
os.nice(10)
try:
    import matplotlib.font_manager, matplotlib
    for _name in os.listdir(matplotlib.get_cachedir()):
        if _name.startswith("fontlist-"):
            print(os.path.join(matplotlib.get_cachedir(), _name))
except ImportError:
    pass
"""
_BYTECODE = """
import os, sys, tarfile
os.nice(10)
sys.dont_write_bytecode = False
sys.pycache_prefix = "/tmp/bytecode"
for _name in [n for n in sys.modules if n.split(".")[0] not in sys.builtin_module_names and n != "__main__"]:
    _file = getattr(sys.modules[_name], "__file__", None)
    if _file and _file.endswith(".py"):
        import py_compile
        try:
            py_compile.compile(_file, doraise=True)
        except Exception:
            pass
for _name in ("matplotlib.pyplot", "matplotlib_inline.backend_inline", "pandas", "PIL.PngImagePlugin", "PIL.Image"):
    try:
        __import__(_name)
    except ImportError:
        pass
with tarfile.open("/tmp/bytecode.tar", "w") as _tar:
    _tar.add("/tmp/bytecode", ".")
"""


@dataclass(frozen=True, slots=True)
class Cached:
    """What there is for a Python: files of font lists, and the folder of its bytecode."""

    fonts: tuple[Path, ...]
    bytecode: Path | None


def folder(settings: Settings, python: PythonEnvironment) -> Path:
    """Return where things made for ``python`` are kept."""
    return settings.cache_path / "sandbox" / python.key


def cached(settings: Settings, python: PythonEnvironment) -> Cached:
    """Return what was made for ``python`` up to now."""
    place = folder(settings, python)
    bytecode = place / "bytecode"
    try:
        fonts = tuple(sorted(place.glob("fontlist-*.json")))
        return Cached(fonts, bytecode if bytecode.is_dir() else None)
    except OSError:
        return Cached((), None)


class Preparer:
    """Makes what is missing, once, on a thread of its own. Failures only cost time later; nothing is said."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._sandbox: object = None
        self._closed = False

    def begin(self, python: PythonEnvironment) -> None:
        """Begin in the background if something is missing. Returns at once."""
        with self._lock:
            if self._closed or self._thread is not None:
                return
            have = cached(self._settings, python)
            if have.fonts and (have.bytecode is not None or python.has_bytecode):
                return
            self._thread = threading.Thread(
                target=self._make, args=(python, have), name="sandbox-prepare", daemon=True
            )
            self._thread.start()

    def wait(self, timeout: float) -> bool:
        """Wait until what was begun is done, at most ``timeout`` seconds; returns whether nothing is under way."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(timeout)
        return thread is None or not thread.is_alive()

    def close(self) -> None:
        """Stop. Any thread, any number of times."""
        from sandbox_chat.sandbox.local import LocalSandbox

        with self._lock:
            self._closed = True
            sandbox = self._sandbox
        if isinstance(sandbox, LocalSandbox):
            sandbox.close()

    def _make(self, python: PythonEnvironment, have: Cached) -> None:
        from sandbox_chat.sandbox.local import LocalSandbox

        sandbox = LocalSandbox(_roomy(self._settings))
        with self._lock:
            if self._closed:
                return
            self._sandbox = sandbox
        try:
            place = folder(self._settings, python)
            _clear_abandoned(place)
            sandbox.start()
            if not have.fonts:
                done = sandbox.run_code(_FONTS, timeout=_TIMEOUT)
                for line in done.stdout.splitlines()[:4]:
                    data = sandbox.read_file(line, max_bytes=_MAX_FONTS)
                    _store(place, Path(line).name, data)
            if have.bytecode is None and not python.has_bytecode:
                done = sandbox.run_code(_BYTECODE, timeout=_TIMEOUT)
                if done.ok:
                    _unpack(place, sandbox.read_file("/tmp/bytecode.tar", max_bytes=_MAX_BYTECODE))  # noqa: S108
        except (SandboxError, OSError, tarfile.TarError):
            return
        finally:
            sandbox.close()
            sandbox.release()


def _roomy(settings: Settings) -> Settings:
    """Return settings under which the caches can be made, however little the user gives to code."""
    return dataclasses.replace(
        settings,
        sandbox_memory_mb=max(settings.sandbox_memory_mb, _ROOM_MB),
        sandbox_disk_mb=max(settings.sandbox_disk_mb, _ROOM_MB),
        sandbox_file_mb=max(settings.sandbox_file_mb, _ROOM_MB),
        sandbox_processes=max(settings.sandbox_processes, _PROCESSES),
        sandbox_cpu_seconds=0,
        sandbox_workspace=None,
    )


def _clear_abandoned(place: Path) -> None:
    """Remove what killed programs left half made."""
    for path in place.glob(_NEW + "*"):
        try:
            if time.time() - path.lstat().st_mtime < _ABANDONED:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
        except OSError:
            continue


def _store(place: Path, name: str, data: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    place.mkdir(parents=True, exist_ok=True)
    fd, temporary = tempfile.mkstemp(dir=place, prefix=_NEW)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o644)  # the sandbox's user must be able to read it
        Path(temporary).replace(place / name)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _unpack(place: Path, data: bytes) -> None:
    """Unpack bytecode files, and nothing else, into ``place/bytecode``."""
    place.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=place, prefix=_NEW))
    try:
        temporary.chmod(0o755)
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for member in tar:
                if not member.isfile() or not member.name.endswith(".pyc"):
                    continue
                target = (temporary / member.name).resolve()
                content = tar.extractfile(member)
                if content is None or not target.is_relative_to(temporary.resolve()):
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())
        temporary.replace(place / "bytecode")
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
