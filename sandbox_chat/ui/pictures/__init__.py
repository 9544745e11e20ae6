"""Pictures in the terminal: what it can draw, and drawing it.

Importing the names of ``terminal`` costs nothing; the rest comes when it is first used, so that the
terminal can be asked before Textual is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .terminal import Mode, Probe, TerminalInfo, choose

if TYPE_CHECKING:
    from .load import PictureError
    from .pager import PicturePager
    from .paint import PicturePaint
    from .painter import Painter
    from .view import PictureView

__all__ = [
    "Mode",
    "Painter",
    "PictureError",
    "PicturePager",
    "PicturePaint",
    "PictureView",
    "Probe",
    "TerminalInfo",
    "choose",
]

_LATER = {
    "Painter": "painter",
    "PictureError": "load",
    "PicturePager": "pager",
    "PicturePaint": "paint",
    "PictureView": "view",
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{module}"), name)
