"""What leaves the terminal: opening links and pictures with the system's programs, saving copies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from textual.app import App

from sandbox_chat.text import clean_line


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


def _spawn(command: list[str]) -> str:
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
        return f"{command[0]} could not be started ({error.strerror})."
    return ""


def open_link(app: App[Any], href: str) -> None:
    """Open a web link in the browser; without one, copy it to the clipboard and say so."""
    shown = clean_line(href)
    try:
        scheme = urlsplit(href).scheme.lower()
    except ValueError:
        scheme = ""
    if scheme not in ("http", "https"):
        app.notify(
            f"Only web links are opened, and this is not one: {shown}", severity="warning", markup=False
        )
        return
    command = opener()
    if command is None:
        app.copy_to_clipboard(href)
        app.notify(f"Copied, as there is no browser here: {shown}", markup=False)
    elif problem := _spawn([*command, href]):
        app.notify(problem, severity="error", markup=False)


def open_picture(app: App[Any], path: Path) -> None:
    """Open a picture in the system's viewer; without one, say where it is."""
    command = opener()
    if command is None:
        app.notify(f"There is no viewer here. The picture is at {clean_line(str(path), 500)}", markup=False)
    elif problem := _spawn([*command, str(path)]):
        app.notify(problem, severity="error", markup=False)


def save_copy(path: Path, folder: Path) -> str:
    """Copy a file into ``folder`` under a name that is free. Returns the sentence to show. Blocking."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / path.name
        number = 1
        while target.exists():
            target = folder / f"{path.stem}-{number}{path.suffix}"
            number += 1
        shutil.copyfile(path, target)
    except OSError as error:
        return f"The picture could not be saved in {folder} ({error.strerror})."
    return f"Saved as {target}"
