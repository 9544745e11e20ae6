"""Other programs: the editor and the pager in this terminal, the desktop's viewer, the system's clipboard.

While another program has the terminal the loop goes on and nothing is drawn; events gather and are shown afterwards.
Commands are argument lists; only what the user wrote into ``EDITOR`` and ``PAGER`` is split into words.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from sandbox_chat.plain import size_text
from sandbox_chat.text import clean_line, from_output
from sandbox_chat.ui.desktop import opener, spawn
from sandbox_chat.ui.folder import scratch_folder
from sandbox_chat.ui.private import away
from sandbox_chat.words import tr

EDITORS = ("nano", "vim", "vi", "emacs", "micro")
"""Tried in this order when ``VISUAL`` and ``EDITOR`` are not set."""
PAGERS = ("less", "more")
"""The same for ``PAGER``."""
EDITED_MOST = 4_000_000
"""Bytes that are taken back from the editor at most."""
PIECE = 1 << 20
"""Bytes of one line that are cleaned at once."""
CLIPBOARD_MOST = 1_000_000
"""Characters that are sent to the terminal's clipboard at most: terminals drop or choke on more."""
CLIPBOARD_SECONDS = 3.0
"""Seconds that a clipboard program is waited for."""


class Outside(Exception):
    """Another program could not do it; the message is a sentence for the user."""


async def open_in_editor(app: App[Any], text: str, suffix: str = ".txt") -> str | None:
    """Let the user edit a copy of ``text`` in ``VISUAL`` or ``EDITOR``. Returns the new text.

    ``None`` when it was left as it was or failed; the user has then been told why.
    """
    try:
        command = editor_command(os.environ)
        path = await asyncio.to_thread(_write, text, suffix)
    except Outside as problem:
        _say(app, str(problem))
        return None
    try:
        code = await _run(app, [*command, str(path)])
        if code:
            raise Outside(tr("outside.ended_badly", program=_name(command), code=code))
        edited = await asyncio.to_thread(_read, path)
    except Outside as problem:
        _say(app, str(problem))
        return None
    finally:
        await asyncio.to_thread(path.unlink, True)
    if not text.endswith("\n") and edited.endswith("\n"):
        edited = edited[:-1]  # editors end the last line
    return None if edited == text else edited


async def open_in_pager(app: App[Any], text: str) -> None:
    """Show ``text`` in ``PAGER``; what goes wrong is said."""
    await _page(app, partial(_write, text, ".txt"))


async def open_file_in_pager(app: App[Any], path: Path) -> None:
    """Show a file of a program's output in ``PAGER``, cleaned, whatever its size; what goes wrong is said."""
    await _page(app, partial(_cleaned, path))


async def _page(app: App[Any], make: Callable[[], Path]) -> None:
    """Show the file that ``make`` writes in a thread, and remove it."""
    try:
        command = pager_command(os.environ)
        copy = await asyncio.to_thread(make)
    except Outside as problem:
        _say(app, str(problem))
        return
    try:
        if code := await _run(app, [*command, str(copy)]):
            raise Outside(tr("outside.pager_ended", program=_name(command), code=code))
    except Outside as problem:
        _say(app, str(problem))
    finally:
        await asyncio.to_thread(copy.unlink, True)


def open_path(path: Path | str) -> str:
    """Open a file with the desktop's program for its kind. Returns a sentence when that is not possible."""
    target = Path(path).absolute()
    shown = clean_line(str(target), 500)
    if not target.exists():
        return tr("outside.gone", path=shown)
    command = opener()
    if command is None:
        return tr("outside.no_opener", path=shown)
    return spawn([*command, str(target)])


def copy_text(app: App[Any], text: str) -> None:
    """Put ``text`` on the clipboard: by the terminal, and by the system's program where there is one."""
    app.copy_to_clipboard(text[:CLIPBOARD_MOST])
    command = clipboard_command(os.environ)
    if command is not None:
        threading.Thread(target=_feed, args=(command, text), name="clipboard", daemon=True).start()


def save_text(text: str, folder: Path, name: str) -> str:
    """Write ``text`` as a new file in ``folder``, under a name that is free. Returns the sentence to show. Blocking."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stem, suffix = Path(name).stem, Path(name).suffix
        number = 0
        while True:
            target = folder / (f"{stem}-{number}{suffix}" if number else name)
            number += 1
            with contextlib.suppress(FileExistsError), target.open("x", encoding="utf-8") as file:
                file.write(text)
                return tr("outside.saved", path=clean_line(str(target), 500))
    except OSError as error:
        return tr("outside.not_saved", folder=clean_line(str(folder), 500), reason=error.strerror)


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """Return the editor's command. Raises ``Outside``."""
    return _command(environ, ("VISUAL", "EDITOR"), EDITORS, "outside.no_editor")


def pager_command(environ: Mapping[str, str]) -> list[str]:
    """Return the pager's command. Raises ``Outside``.

    ``cat`` stands for no pager: what it writes would be covered at once.
    """
    none = Path(environ.get("PAGER", "").strip()).name == "cat"
    return _command({} if none else environ, ("PAGER",), PAGERS, "outside.no_pager")


def clipboard_command(environ: Mapping[str, str]) -> list[str] | None:
    """Return the command that takes the clipboard's text on its input, ``None`` when there is none."""
    if sys.platform == "darwin":
        found = [["pbcopy"]]
    elif environ.get("WAYLAND_DISPLAY"):
        found = [["wl-copy"]]
    elif environ.get("DISPLAY"):
        found = [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
    else:
        found = []
    return next((command for command in found if shutil.which(command[0])), None)


def _command(
    environ: Mapping[str, str], names: Sequence[str], defaults: Sequence[str], nothing: str
) -> list[str]:
    for name in names:
        if value := environ.get(name, "").strip():
            try:
                words = shlex.split(value)
            except ValueError:
                words = []
            if not words:
                raise Outside(tr("outside.bad_command", name=name, value=clean_line(value)))
            if shutil.which(words[0]) is None:
                raise Outside(tr("outside.not_found", program=clean_line(words[0]), name=name))
            return words
    for program in defaults:
        if shutil.which(program):
            return [program]
    raise Outside(tr(nothing))


def _name(command: Sequence[str]) -> str:
    return clean_line(Path(command[0]).name)


def _write(text: str, suffix: str) -> Path:
    try:
        handle, name = tempfile.mkstemp(prefix="text-", suffix=suffix, dir=scratch_folder())
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        raise Outside(tr("outside.no_folder", reason=error.strerror)) from None
    return Path(name)


def _cleaned(path: Path) -> Path:
    """Write a copy of a file that holds nothing which acts on a terminal, a piece at a time."""
    try:
        handle, name = tempfile.mkstemp(prefix="output-", suffix=".txt", dir=scratch_folder())
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as copy, path.open("rb") as source:
            while piece := source.readline(PIECE):
                copy.write(from_output(piece.decode("utf-8", "replace")))
    except OSError as error:
        raise Outside(tr("outside.output_not_read", reason=error.strerror)) from None
    return Path(name)


def _read(path: Path) -> str:
    try:
        if not path.is_file() and path.exists():
            raise Outside(tr("outside.not_read", reason=os.strerror(errno.EINVAL)))  # a pipe would never end
        size = path.stat().st_size
        if size > EDITED_MOST:
            raise Outside(tr("outside.too_large", size=size_text(size)))
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Outside(tr("outside.not_read", reason=error.strerror)) from None


async def _run(app: App[Any], command: Sequence[str]) -> int:
    """Give the terminal to a program until it ends. Returns its code. Raises ``Outside``."""
    code, failure = 0, None
    try:
        with app.batch_update(), away(), app.suspend():
            # Nothing may leave this block as an exception: the terminal would not be taken back.
            try:
                code = await _wait(command)
            except BaseException as error:
                failure = error
    except SuspendNotSupported:
        raise Outside(tr("outside.no_terminal")) from None
    if isinstance(failure, OSError):
        reason = failure.strerror
        raise Outside(tr("outside.not_started", program=_name(command), reason=reason)) from None
    if failure is not None:
        raise failure
    return code


async def _wait(command: Sequence[str]) -> int:
    process = await asyncio.create_subprocess_exec(*command)
    try:
        return await process.wait()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        raise


def _feed(command: Sequence[str], text: str) -> None:
    """Give ``text`` to a clipboard program. Some stay to serve it, so none is kept waiting for."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            command,
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=CLIPBOARD_SECONDS,
            start_new_session=True,
            check=False,
        )


def _say(app: App[Any], problem: str) -> None:
    app.notify(problem, severity="warning", markup=False)
