"""An export as it is asked for in a chat: what is typed after ``/export``, where the document goes, what is said of it."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from sandbox_chat.journal.export import Exported, ExportError, Scrubber, export, kind_of
from sandbox_chat.journal.export.work import LARGEST, title_of
from sandbox_chat.journal.index import summarise
from sandbox_chat.plain import duration_text
from sandbox_chat.text import clean_line
from sandbox_chat.words import tr, tr_count

DEFAULT_ENDING = ".html"
NAME_LENGTH = 60
"""Characters of a title that name a file."""
MOST = 1000
"""Files of the same name that a folder may hold."""
_UNSAFE = re.compile(r"[^\w-]+")
_OPTIONS = {
    "--scrub": "scrub",
    "--include-failed": "include_failed",
    "--force": "force",
    "--pictures-beside": "beside",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What is wanted. ``to`` is ``None`` where no file was named."""

    to: Path | None = None
    scrub: bool = False
    include_failed: bool = False
    force: bool = False
    beside: bool = False


def read(words: str) -> Asked:
    """Read what stands after ``/export``. Raises ``ExportError`` with a sentence that says how it is written."""
    try:
        given = shlex.split(words)
    except ValueError:
        raise ExportError(tr("export.no_quote", usage=tr("export.usage"))) from None
    options: dict[str, bool] = {}
    files: list[str] = []
    for word in given:
        if word in _OPTIONS:
            options[_OPTIONS[word]] = True
        elif word.startswith("--") or not word:
            raise ExportError(tr("export.usage"))
        else:
            files.append(word)
    if len(files) > 1:
        raise ExportError(tr("export.usage"))
    if not files:
        return Asked(None, **options)
    try:
        to = Path(files[0]).expanduser().absolute()
        kind_of(to)
    except (RuntimeError, ValueError):
        raise ExportError(tr("export.usage")) from None
    except OSError:  # the working folder is gone
        raise ExportError(tr("export.no_folder", path=".")) from None
    return Asked(to, **options)


class Progress:
    """How far an export has come: ``told`` by the thread that writes, in ``words`` for any other."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._share = 0.0

    def told(self, share: float) -> None:
        """Note the share of the work that is done, 0 to 1."""
        self._share = share

    def words(self) -> str:
        """Return the share and the time since the beginning in words."""
        seconds = time.monotonic() - self._began
        spent = f"{seconds:.0f} s" if seconds < 59.5 else duration_text(seconds * 1000)
        return tr("export.working_for", percent=f"{100 * self._share:.0f} %", seconds=spent)


def carry_out(
    asked: Asked,
    session: Path,
    downloads: Path,
    secrets: Iterable[str],
    *,
    largest: int = LARGEST,
    stop: Callable[[], bool] = lambda: False,
    told: Callable[[float], None] = lambda share: None,
) -> Exported:
    """Export the session in the folder ``session``; without a file's name into ``downloads``. Blocking.

    ``secrets`` are the credentials of the settings, ``largest`` the bytes of a picture or file at most. Raises as ``export`` does.
    """
    scrub = Scrubber.of_here(secrets) if asked.scrub else Scrubber.none()
    to = asked.to or _free(session, downloads, scrub)
    scrub.counts.clear()
    return export(
        session,
        to,
        include_failed=asked.include_failed,
        beside=asked.beside,
        scrub=scrub,
        force=asked.force,
        largest=largest,
        stop=stop,
        told=told,
    )


def _free(session: Path, folder: Path, scrub: Scrubber) -> Path:
    """Return a name in ``folder`` that is free, made from the session's title."""
    summary = summarise(session)
    if summary is None:
        raise ExportError(tr("export.nothing"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = clean_line(error.strerror or type(error).__name__)
        raise ExportError(
            tr("export.not_written", path=clean_line(str(folder), 500), reason=reason)
        ) from None
    stem = _UNSAFE.sub("-", title_of(session, summary, scrub))[:NAME_LENGTH].strip("-_") or "session"
    for number in range(1, MOST):
        path = folder / f"{stem}{f'-{number}' if number > 1 else ''}{DEFAULT_ENDING}"
        if not path.exists() and not path.is_symlink():
            return path
    raise ExportError(tr("export.exists", path=clean_line(str(folder / stem), 500)))


def said(done: Exported) -> list[str]:
    """Return what is said of a document that was written: where it is, what it lacks, what to look at."""
    path = clean_line(str(done.path), 1000)
    if done.files:
        folder = clean_line(str(done.files[0].parent), 1000)
        first = tr_count("export.wrote_beside", len(done.files), path=path, folder=folder)
    else:
        first = tr("export.wrote", path=path)
    return [first, *done.left_out, *done.notes]
