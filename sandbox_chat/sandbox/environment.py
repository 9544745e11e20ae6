"""The Python that the local sandbox offers: where its interpreter and packages lie on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import site
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox_chat.sandbox.base import SandboxUnavailable

_ASK_TIMEOUT = 30.0
_ASK = """
import json, site, sys
print(json.dumps({
    "executable": getattr(sys, "_base_executable", None) or sys.executable,
    "prefix": sys.base_prefix,
    "packages": site.getsitepackages(),
    "tag": sys.implementation.cache_tag,
    "version": list(sys.version_info[:3]),
}))
"""
NEEDED = ("IPython", "matplotlib_inline", "traitlets")
"""Packages without which the guest cannot run."""
OLDEST = (3, 11)


@dataclass(frozen=True, slots=True)
class PythonEnvironment:
    """An interpreter and its packages. All paths are absolute and exist."""

    executable: Path
    """The real interpreter behind any virtual environment, without symbolic links."""
    prefix: Path
    """Where its standard library lies."""
    packages: tuple[Path, ...]
    """Folders of installed packages, the first wins."""
    tag: str
    """Ending of its bytecode files, such as ``cpython-311``."""
    version: tuple[int, int, int]

    @property
    def key(self) -> str:
        """A short name that changes when the interpreter or its packages change: for what is cached of them."""
        facts = [str(self.executable), str(self.version)]
        for path in self.packages:
            facts.append(f"{path}:{path.stat().st_mtime_ns}")
        return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]

    @property
    def has_bytecode(self) -> bool:
        """True when the packages were compiled at installation, so that imports are quick."""
        name = f"__pycache__/interactiveshell.{self.tag}.pyc"
        return any((path / "IPython" / "core" / name).exists() for path in self.packages)


def find(python: Path | None) -> PythonEnvironment:
    """Return the environment of the interpreter ``python``, or of the running one.

    Raises ``SandboxUnavailable`` when there is none or when it lacks what the guest needs.
    """
    facts = _own() if python is None else _ask(python)
    name = sys.executable if python is None else str(python)
    version = tuple(int(part) for part in facts["version"])
    if version < OLDEST:
        raise SandboxUnavailable(
            f"{name} is Python {version[0]}.{version[1]}, and the sandbox needs 3.11 or newer. "
            "Name another one with SANDBOX_PYTHON."
        )
    executable = Path(os.path.realpath(facts["executable"]))
    prefix = Path(facts["prefix"])
    packages = tuple(dict.fromkeys(Path(p).resolve() for p in facts["packages"] if Path(p).is_dir()))
    if not executable.is_file() or not prefix.is_dir():
        raise SandboxUnavailable(f"The Python interpreter behind {name} cannot be found at {executable}.")
    missing = [pkg for pkg in NEEDED if not any((path / pkg).is_dir() for path in packages)]
    if missing:
        raise SandboxUnavailable(
            f"The Python {name} lacks {', '.join(missing)}, which the sandbox's shell needs. Install into it: "
            f"{name} -m pip install ipython matplotlib-inline numpy pandas matplotlib"
        )
    return PythonEnvironment(
        executable, prefix, packages, str(facts["tag"]), (version[0], version[1], version[2])
    )


def _own() -> dict[str, Any]:
    packages = list(site.getsitepackages())
    if site.ENABLE_USER_SITE:
        packages.append(site.getusersitepackages())
    return {
        "executable": getattr(sys, "_base_executable", None) or sys.executable,
        "prefix": sys.base_prefix,
        "packages": packages,
        "tag": sys.implementation.cache_tag,
        "version": sys.version_info[:3],
    }


def _ask(python: Path) -> dict[str, Any]:
    how = "Set SANDBOX_PYTHON to an interpreter, or leave it empty."
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASK_TIMEOUT,
            check=True,
            env={"PATH": os.defpath},
        )
        facts = json.loads(done.stdout)
    except OSError as error:
        raise SandboxUnavailable(f"The Python {python} cannot be run: {error.strerror}. {how}") from None
    except (subprocess.SubprocessError, ValueError):
        raise SandboxUnavailable(f"{python} does not answer as a Python interpreter does. {how}") from None
    assert isinstance(facts, dict)
    return facts
