"""First program in a container: makes the guest's modules importable from memory, then starts the relay.

The image holds nothing of ours. The host sends these files over standard input, so they always are of its own
version, and no file in the container need be readable or stay unchanged for them.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

PACKAGE = "sandbox_guest"


class Memory(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds and loads the modules of one package in a mapping of module name to source."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return how to load ``fullname``, or ``None`` when it is not of the package."""
        if self._key(fullname) is None:
            return None
        origin = f"<{fullname}>"
        return importlib.util.spec_from_loader(
            fullname, self, origin=origin, is_package=self.is_package(fullname)
        )

    def is_package(self, fullname: str) -> bool:
        """True for the package itself."""
        return fullname == PACKAGE

    def get_source(self, fullname: str) -> str | None:
        """Return the source of a module, also for tracebacks."""
        key = self._key(fullname)
        return None if key is None else self._files[key]

    def _key(self, fullname: str) -> str | None:
        if fullname == PACKAGE:
            return "__init__"
        package, _, name = fullname.rpartition(".")
        return name if package == PACKAGE and name in self._files else None


def start(box: Mapping[str, Any]) -> None:
    """Start the relay. ``box`` holds ``files``, module name to source, and ``config``. Does not return."""
    sys.meta_path.insert(0, Memory(box["files"]))
    relay = importlib.import_module(PACKAGE + ".relay")
    relay.main(box["config"])
