"""Sessions as documents: Markdown, a page for the browser, a Jupyter notebook, JSON.

A document is written in one pass over the journal, an item at a time, so a long session needs little memory. It
stands under its name only when it is whole. What could not be put into it is counted and said.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from sandbox_chat.journal.errors import SessionError
from sandbox_chat.journal.export.scrub import Scrubber
from sandbox_chat.journal.export.target import ExportError, Target, TargetExists
from sandbox_chat.journal.export.work import LARGEST, Exported, ExportStopped, Work
from sandbox_chat.journal.index import summarise
from sandbox_chat.text import clean_line
from sandbox_chat.words import tr

__all__ = [
    "ENDINGS",
    "ExportError",
    "ExportStopped",
    "Exported",
    "Scrubber",
    "TargetExists",
    "export",
    "kind_of",
]

ENDINGS = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".ipynb": "notebook",
    ".json": "json",
}
"""The kind of a document by the ending of its file's name; each kind is a module of this package."""


def kind_of(path: Path) -> str:
    """Return the kind of document that a file's name asks for. Raises ``ExportError``."""
    kind = ENDINGS.get(path.suffix.lower())
    if kind is None:
        raise ExportError(tr("export.no_kind", name=clean_line(path.name)))
    return kind


def export(
    folder: Path,
    to: Path,
    *,
    kind: str = "",
    include_failed: bool = False,
    beside: bool = False,
    scrub: Scrubber | None = None,
    force: bool = False,
    largest: int = LARGEST,
    stop: Callable[[], bool] = lambda: False,
    told: Callable[[float], None] = lambda share: None,
) -> Exported:
    """Write the session in ``folder`` to the file ``to`` and return what was written and what was left out.

    ``kind`` is one of the values of ``ENDINGS``; empty: by the ending of ``to``. ``include_failed``: calls that
    failed become cells of a notebook too. ``beside``: pictures of a JSON document lie beside it, as those of
    Markdown always do. ``force``: a file of that name is replaced. ``largest``: bytes of a picture or file that is
    taken at most. ``stop`` is asked now and then, and ``told`` is called with the share of the work that is done, 0 to 1.

    Blocking. Raises ``TargetExists``, ``ExportError`` (its message is a sentence for the user), ``ExportStopped``.
    """
    kind = kind or kind_of(to)
    if beside and kind in ("html", "notebook"):
        raise ExportError(tr("export.no_beside"))
    try:
        summary = summarise(folder)
    except SessionError as error:
        raise ExportError(str(error)) from None
    if summary is None:
        raise ExportError(tr("export.nothing"))
    writer = importlib.import_module(f"{__name__}.{kind}")
    try:
        with Target.make(to, force=force) as target:
            work = Work(
                folder=folder,
                summary=summary,
                target=target,
                scrub=scrub or Scrubber.none(),
                include_failed=include_failed,
                beside=beside or kind == "markdown",
                largest=largest,
                stop=stop,
                told=told,
                passes=getattr(writer, "PASSES", 1),
            )
            writer.write(work)
            target.place()
    except OSError as error:
        reason = clean_line(error.strerror or type(error).__name__)
        raise ExportError(tr("export.not_written", path=clean_line(str(to), 500), reason=reason)) from None
    return work.done(kind)
