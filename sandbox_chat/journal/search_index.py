"""The index of all sessions' texts in one SQLite file: how it is made, kept up to date, and asked.

A row of ``texts`` is a turn; its number is the session's number and the turn's, so that nothing but the index is read
to know where something was found. A session's row in ``sessions`` says how far its record was read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox_chat.journal.search_query import Query, apart, excerpt, together
from sandbox_chat.journal.search_text import COLUMNS, SessionText, TurnText
from sandbox_chat.journal.search_types import PLACES, Found, Match, Place, Stop, Told

VERSION = 2
"""Of the tables and of what is put into them. A file of another version is made anew: in one of version 1 stays what is deleted."""
APPLICATION = 0x53434653
BUSY = 3.0
"""Seconds that another program's writing is waited for."""
BATCH = 2_000_000
"""Characters that are written in one go: others may search and write between two."""
TAIL = 4096
"""Bytes before the end of what was read of a record that tell whether it only grew since."""
MATCHES = 500_000
"""Turns found that are looked at."""

_TURN_BITS = 24
_TURN_MASK = (1 << _TURN_BITS) - 1
_SCHEMA = (
    "CREATE TABLE sessions(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, size INTEGER NOT NULL,"
    " time INTEGER NOT NULL, offset INTEGER NOT NULL, turns INTEGER NOT NULL, end INTEGER NOT NULL,"
    " tail BLOB NOT NULL, title TEXT NOT NULL)",
    f"CREATE VIRTUAL TABLE texts USING fts5({', '.join(COLUMNS)},"
    " tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2', columnsize = 0)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
_DAMAGE = frozenset(
    (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_MISMATCH)
)  # fmt: skip


class OtherVersion(Exception):
    """The file was made by another version of the program."""


def is_damage(error: Exception) -> bool:
    """True when the file is of no use as it is; false when there can be no index here now."""
    if isinstance(error, OtherVersion):
        return True
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, sqlite3.DatabaseError) and code is not None and code & 0xFF in _DAMAGE


def remove(path: Path) -> None:
    """Remove the index at ``path``. Programs that have it open go on with what they have. Raises ``OSError``."""
    for name in (f"{path.name}-wal", f"{path.name}-shm", f"{path.name}-journal", path.name):
        path.with_name(name).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Read:
    """How far a record was read: its last turn begins at ``offset`` after ``turns`` others; all up to ``end``."""

    number: int
    size: int
    time: int
    offset: int
    turns: int
    end: int
    tail: bytes
    title: str

    @property
    def place(self) -> tuple[int, int, int]:
        return self.offset, self.turns, self.end


class Index:
    """An open index. Raises ``sqlite3.Error``, ``OSError`` or ``OtherVersion`` wherever it fails."""

    def __init__(self, path: Path) -> None:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))  # SQLite's own mode is wider
        self._db = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def _prepare(self) -> None:
        if self._version() != (APPLICATION, VERSION):
            self._db.execute("PRAGMA journal_mode = WAL")
            with self._writing():
                if self._version() == (0, 0):
                    for statement in _SCHEMA:
                        self._db.execute(statement)
                elif self._version() != (APPLICATION, VERSION):
                    raise OtherVersion
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA secure_delete = ON")

    def _version(self) -> tuple[int, int]:
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        return application, version

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One change, whole or not at all, while no other program makes one."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # -- keeping up to date ------------------------------------------------------------------------------

    def update(self, records: dict[str, tuple[Path, int, int]], stop: Stop, told: Told | None) -> bool:
        """Read what is new in ``records`` (path, size, time) and forget what is not there. False if stopped."""
        known = dict(self._all_read())
        self.forget([session_id for session_id in known if session_id not in records])
        due = [
            (session_id, record)
            for session_id, record in records.items()
            if session_id not in known or (known[session_id].size, known[session_id].time) != record[1:]
        ]
        for done, (session_id, record) in enumerate(due):
            if stop():
                return False
            if told is not None:
                told(done, len(due))
            try:
                self._take(session_id, record, known.get(session_id), stop)
            except OSError:
                continue  # it is gone, or may not be read
        return not stop()

    def _all_read(self) -> Iterator[tuple[str, _Read]]:
        rows = self._db.execute(
            "SELECT id, number, size, time, offset, turns, end, tail, title FROM sessions"
        ).fetchall()
        for session_id, *values in rows:
            yield session_id, _Read(*values)

    def _take(self, session_id: str, record: tuple[Path, int, int], before: _Read | None, stop: Stop) -> None:
        """Read a record from where it was read to, or from the start if it did not only grow."""
        path, size, time = record
        grown = before is not None and size >= before.end and _tail(path, before.end) == before.tail
        read = _Read(0, -1, time, 0, 0, 0, b"", "")
        if before is not None and grown:
            read = before
        text = SessionText(path, offset=read.offset, turns=read.turns)
        state, first = before, read.turns + 1
        turns: list[TurnText] = []
        volume = 0
        last = (read.offset, read.turns)
        for turn in text.turns():
            turns.append(turn)
            volume += turn.size
            last = (turn.offset, turn.number - 1)
            if volume >= BATCH:
                part = _Read(0, -1, time, *last, turn.offset, _tail(path, turn.offset), read.title)
                state = self._write(session_id, state, part, first, turns)
                if state is None or stop():
                    return
                first, turns, volume = turn.number + 1, [], 0
        title = read.title if text.title is None else text.title
        whole = _Read(0, size, time, *last, text.end, _tail(path, text.end), title)
        self._write(session_id, state, whole, first, turns)

    def _write(
        self, session_id: str, before: _Read | None, after: _Read, first: int, turns: Sequence[TurnText]
    ) -> _Read | None:
        """Put the turns from ``first`` on in the place of those that are there.

        Returns what is known of the session now; ``None``, and nothing is done, if another program was quicker.
        """
        with self._writing():
            now = next(self._read_of(session_id), None)
            if (now and now.place) != (before and before.place):
                return None
            number = now.number if now else self._new_number(session_id)
            base = number << _TURN_BITS
            self._delete(base + first, base + _TURN_MASK)
            self._insert((base + turn.number, *turn.columns()) for turn in turns if turn.number <= _TURN_MASK)
            self._delete(base, base)
            if after.title:
                self._insert([(base, after.title, "", "", "")])
            self._db.execute(
                "UPDATE sessions SET size = ?, time = ?, offset = ?, turns = ?, end = ?, tail = ?, title = ?"
                " WHERE number = ?",
                (after.size, after.time, *after.place, after.tail, after.title, number),
            )
        return _Read(number, after.size, after.time, *after.place, after.tail, after.title)

    def _read_of(self, session_id: str) -> Iterator[_Read]:
        rows = self._db.execute(
            "SELECT number, size, time, offset, turns, end, tail, title FROM sessions WHERE id = ?",
            (session_id,),
        )
        for row in rows.fetchall():
            yield _Read(*row)

    def _new_number(self, session_id: str) -> int:
        inserted = self._db.execute(
            "INSERT INTO sessions(id, size, time, offset, turns, end, tail, title)"
            " VALUES(?, -1, 0, 0, 0, 0, x'', '')",
            (session_id,),
        )
        return int(inserted.lastrowid or 0)

    def _delete(self, first: int, last: int) -> None:
        self._db.execute("DELETE FROM texts WHERE rowid BETWEEN ? AND ?", (first, last))

    def _insert(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._db.executemany(
            f"INSERT INTO texts(rowid, {', '.join(COLUMNS)}) VALUES(?, ?, ?, ?, ?)",
            ((rowid, *map(apart, texts)) for rowid, *texts in rows),
        )

    def forget(self, session_ids: Iterable[str]) -> None:
        """Take sessions out, so that nothing of them can be read in the file either.

        Blocks for some seconds where there is much text of other sessions, so take out many at once.
        """
        with self._writing():
            found = [(name, read.number) for name in session_ids for read in self._read_of(name)]
            for session_id, number in found:
                base = number << _TURN_BITS
                self._delete(base, base + _TURN_MASK)
                self._db.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
            if found:  # the words of what is deleted stay until what holds them is written anew
                self._db.execute("INSERT INTO texts(texts) VALUES('optimize')")
        if found:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    # -- asking ------------------------------------------------------------------------------------------

    def find(self, query: Query, limit: int) -> Found:
        """Return the sessions with turns that fit, the one used last first."""
        found = self._matching(query.match) if query.match else None
        ids: dict[int, str] = {}
        turns: dict[int, list[int]] = {}
        order = self._db.execute("SELECT number, id FROM sessions ORDER BY time DESC, id DESC").fetchall()
        for number, session_id in order:
            if found is not None and number not in found:
                continue
            rows = found[number] if found is not None else []
            if query.literals:
                if len(turns) > limit:
                    break  # each further session would have to be read
                rows = self._with_signs(number, query.literals, rows if found is not None else None)
            if rows:
                ids[number], turns[number] = session_id, rows
        shown = list(ids)[:limit]
        texts = self._texts([rowid for number in shown for rowid in turns[number][:PLACES]])
        matches = []
        for number in shown:
            places = [_place(query, row, texts[row]) for row in turns[number][:PLACES] if row in texts]
            if places:
                matches.append(Match(ids[number], len(turns[number]), tuple(places)))
        return Found(tuple(matches), more=len(ids) > limit)

    def _matching(self, match: str) -> dict[int, list[int]]:
        """Return the rows that the index finds, by session."""
        found: dict[int, list[int]] = {}
        rows = self._db.execute(f"SELECT rowid FROM texts WHERE texts MATCH ? LIMIT {MATCHES}", (match,))  # noqa: S608 - our number
        for (rowid,) in rows:
            found.setdefault(rowid >> _TURN_BITS, []).append(rowid)
        return found

    def _with_signs(self, number: int, signs: Sequence[str], among: Sequence[int] | None) -> list[int]:
        """Return the rows of a session that hold signs, which the index does not know; ``among`` some, or all."""
        one = "(" + " OR ".join(f"instr({column}, ?)" for column in COLUMNS) + ")"
        conditions = " AND ".join(one for _ in signs)
        base = number << _TURN_BITS
        values = [base, base + _TURN_MASK, *(sign for sign in signs for _ in COLUMNS)]
        rows = self._db.execute(
            f"SELECT rowid FROM texts WHERE rowid BETWEEN ? AND ? AND {conditions}",  # noqa: S608 - names of ours and question marks
            values,
        )
        return [rowid for (rowid,) in rows if among is None or rowid in among]

    def _texts(self, rowids: Sequence[int]) -> dict[int, tuple[str, ...]]:
        out: dict[int, tuple[str, ...]] = {}
        statement = f"SELECT {', '.join(COLUMNS)} FROM texts WHERE rowid = ?"  # noqa: S608 - names of ours
        for rowid in rowids:
            for row in self._db.execute(statement, (rowid,)):
                out[rowid] = tuple(together(str(text)) for text in row)
        return out


def _place(query: Query, rowid: int, texts: Sequence[str]) -> Place:
    turn = rowid & _TURN_MASK
    number, part = excerpt(query, texts)
    return Place(turn, COLUMNS[number] if turn else "title", part)


def _tail(path: Path, end: int) -> bytes:
    """Return a digest of what stands before the byte ``end`` of a record."""
    start = max(0, end - TAIL)
    with path.open("rb") as file:
        file.seek(start)
        return hashlib.blake2b(file.read(end - start), digest_size=16).digest()
