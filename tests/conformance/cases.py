"""All cases of the conformance suite, in the order of the table."""

from __future__ import annotations

from conformance import cases_code, cases_files, cases_pictures, cases_stop
from conformance.registry import BACK_ENDS, CASES, GUESTS, TITLES, Case

__all__ = ["BACK_ENDS", "CASES", "GUESTS", "THEMES", "TITLES", "Case", "cells"]

THEMES = (
    "Start",
    "Results",
    "Output",
    "Errors",
    "Pictures",
    "Files",
    "Stopping",
    "Death",
    "Limits",
    "Closing",
)
_LOADED = (cases_code, cases_pictures, cases_files, cases_stop)
CASES.sort(key=lambda found: THEMES.index(found.theme))


def cells() -> list[tuple[str, Case]]:
    """Every back end with every case that has a meaning there."""
    return [(name, found) for name in BACK_ENDS for found in CASES if name not in found.not_there]
