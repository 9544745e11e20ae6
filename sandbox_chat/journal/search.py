"""Search over all sessions: by an index in a file beside them, or by reading them where there can be none.

The index is SQLite's full-text search (FTS5). It can always be made again: one that is missing, damaged or of another
version is. Whether a session must be read is told by its record's size and time; of one that only grew, what is new is
read. Several programs may search and index at once. A failed index is never a reason to stop: ``SessionSearch`` then
reads the sessions themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sandbox_chat.journal.index import records, summarise
from sandbox_chat.journal.search_query import Query, excerpt, parse
from sandbox_chat.journal.search_text import COLUMNS, SessionText
from sandbox_chat.journal.search_types import LIMIT, PLACES, Found, Match, Place, Stop, Told

if TYPE_CHECKING:
    from sandbox_chat.journal.search_index import Index

log = logging.getLogger(__name__)

NAME = "search.sqlite3"
"""The index, in the folder that holds the folder of the sessions."""

T = TypeVar("T")


def never() -> bool:
    """Go on to the end."""
    return False


class SessionSearch:
    """Searches the sessions in ``data_path``. Blocking; any thread. Never raises.

    ``problem`` says why there is no index, as the system puts it; it is empty when there is one.
    """

    def __init__(self, data_path: Path) -> None:
        self.root = data_path / "sessions"
        self.problem = ""
        self._path = data_path / NAME

    def update(self, *, stop: Stop = never, told: Told | None = None) -> bool:
        """Bring the index up to date. Returns false when there is none, or ``stop`` said to stop.

        ``told`` is called before each session that is read, with how many of how many have been.
        """
        found = records(self.root)
        if not found and not self._path.is_file():
            return True
        return self._try(lambda index: index.update(found, stop, told)) is True

    def find(self, text: str, *, limit: int = LIMIT, stop: Stop = never) -> Found:
        """Return the sessions that hold ``text``: all of its words in one turn, or in the title that the user gave.

        Searches what ``update`` has read; where that could not be done, reads the sessions now, until ``stop``.
        """
        query = parse(text)
        if not query:
            return Found()
        found = None
        if not self.problem and self._path.is_file():
            found = self._try(lambda index: index.find(query, limit))
        return found if found is not None else self._read(query, limit, stop)

    def forget(self, *session_ids: str) -> None:
        """Take sessions out of the index that are no more."""
        if self._path.is_file():
            self._try(lambda index: index.forget(session_ids))

    def _try(self, work: Callable[[Index], T]) -> T | None:
        """Let the index work, a new one if this is of no use. Returns ``None``, and notes why, when there can be none."""
        try:
            import sqlite3

            from sandbox_chat.journal.search_index import Index, OtherVersion, is_damage, remove
        except ImportError as error:  # a Python that was built without it
            self.problem = str(error)
            return None
        for again in (True, False):
            try:
                with closing(Index(self._path)) as index:
                    done = work(index)
            except (sqlite3.Error, OtherVersion, OSError) as error:
                self.problem = str(error) or type(error).__name__
                log.info("the index of the sessions failed: %s", type(error).__name__)
                if not again or not is_damage(error):
                    return None
                try:
                    remove(self._path)
                except OSError:
                    return None
            else:
                self.problem = ""
                return done
        return None

    # -- without an index --------------------------------------------------------------------------------

    def _read(self, query: Query, limit: int, stop: Stop) -> Found:
        matches: list[Match] = []
        for session_id, (path, _, _) in records(self.root).items():
            if stop():
                break
            if len(matches) >= limit:
                return Found(tuple(matches), more=True, indexed=False)
            if places := list(self._places(query, path, stop)):
                matches.append(Match(session_id, len(places), tuple(places[:PLACES])))
        return Found(tuple(matches), indexed=False)

    def _places(self, query: Query, path: Path, stop: Stop) -> Iterator[Place]:
        summary = summarise(path.parent)
        if summary is not None and summary.renamed and query.fits((summary.title,)):
            yield Place(0, "title", excerpt(query, (summary.title,))[1])
        try:
            for turn in SessionText(path).turns():
                if stop():
                    return
                if query.fits(turn.columns()):
                    number, part = excerpt(query, turn.columns())
                    yield Place(turn.number, COLUMNS[number], part)
        except OSError as error:
            log.info("a session cannot be searched: %s", error.strerror)
