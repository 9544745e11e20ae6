"""What leaves the terminal: opening links and pictures with the system's programs, saving copies."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from textual.app import App

from sandbox_chat.text import clean_line
from sandbox_chat.ui.pictures.alternative import image_name
from sandbox_chat.words import tr

_UNSAFE = re.compile(r"[^\w-]+")


def opener() -> list[str] | None:
    """Return the command that opens a file or link on this desktop, ``None`` when there is none."""
    if sys.platform == "darwin":
        return ["open"]
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return None  # without a desktop, openers fall back to text browsers that would seize the terminal
    if shutil.which("xdg-open"):
        return ["xdg-open"]
    if shutil.which("gio"):
        return ["gio", "open"]
    return None


def spawn(command: list[str]) -> str:
    """Start a program detached from the terminal. Returns a sentence when that failed."""
    try:
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        return tr("outside.not_started", program=command[0], reason=error.strerror)
    return ""


def open_link(app: App[Any], href: str) -> None:
    """Open a web link in the browser; without one, copy it to the clipboard and say so."""
    shown = clean_line(href)
    try:
        scheme = urlsplit(href).scheme.lower()
    except ValueError:
        scheme = ""
    if scheme not in ("http", "https"):
        app.notify(tr("dialogs.no_link", link=shown), severity="warning", markup=False)
        return
    command = opener()
    if command is None:
        from sandbox_chat.ui.outside import copy_text  # which stands on this module

        copy_text(app, href)
        app.notify(tr("dialogs.link_copied", link=shown), markup=False)
    elif problem := spawn([*command, href]):
        app.notify(problem, severity="error", markup=False)


def save_copy(path: Path, folder: Path, name: str = "") -> str:
    """Copy a file into ``folder`` under a name that is free. Returns the sentence to show. Blocking.

    ``name`` is that name without its suffix. A file that the journal named by its digest is called a picture without one.
    """
    stem = _UNSAFE.sub("-", name) or (path.stem if image_name(str(path)) else "picture")
    number = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as source:
            while True:
                target = folder / f"{stem}{f'-{number}' if number else ''}{path.suffix}"
                number += 1
                with contextlib.suppress(FileExistsError), target.open("xb") as copy:
                    shutil.copyfileobj(source, copy)
                    return tr("outside.saved", path=clean_line(str(target), 500))
    except OSError as error:
        return tr("outside.not_saved", folder=clean_line(str(folder), 500), reason=error.strerror)
