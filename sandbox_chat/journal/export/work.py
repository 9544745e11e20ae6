"""What all kinds of documents share while one is written: the session, its pictures, and what had to be left out."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sandbox_chat.events import Event, FileContent, ImageContent, TurnStarted
from sandbox_chat.journal.export.items import Item
from sandbox_chat.journal.export.scrub import HOME, HOST, SECRET, USER, Scrubber
from sandbox_chat.journal.export.story import Story
from sandbox_chat.journal.export.target import Target
from sandbox_chat.journal.files import read_end, read_events, read_some
from sandbox_chat.journal.index import TITLE_LIMIT, SessionSummary
from sandbox_chat.journal.lines import Damage
from sandbox_chat.text import clean_line
from sandbox_chat.words import tr, tr_count

PICTURES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
"""Kinds of pictures that a document shows, and the endings of their files. None of them can act."""
TEXT = "text/plain"
LARGEST = 64_000_000
"""Bytes of the largest picture or file that goes into a document, where nothing else is said."""
LOOKS = 500
"""Events between two questions whether to stop."""


class ExportStopped(Exception):
    """The export was no longer wanted. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the document, the files beside it, and what is in it.

    ``left_out`` are sentences about what is not in it, ``notes`` about what a reader should look at; ``scrubbed`` says
    how often each mark stands for something that was taken out.
    """

    path: Path
    kind: str
    files: tuple[Path, ...]
    turns: int
    calls: int
    pictures: int
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    scrubbed: Mapping[str, int]


@dataclass
class Work:
    """A document that is being written. What is left out is counted by the name of its sentence."""

    folder: Path
    summary: SessionSummary
    target: Target
    scrub: Scrubber
    include_failed: bool = False
    beside: bool = False
    largest: int = LARGEST
    stop: Callable[[], bool] = lambda: False
    told: Callable[[float], None] = lambda share: None
    passes: int = 1
    """How often the events are read for this kind of document."""
    turns: int = 0
    calls: int = 0
    pictures: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    last_seq: int = 0
    """Events after this one are not read: a session that goes on while it is exported is told up to one place."""
    _reads: int = 0

    @cached_property
    def title(self) -> str:
        """The session's title, scrubbed; a word where it has none."""
        return title_of(self.folder, self.summary, self.scrub) or tr("export.untitled")

    @cached_property
    def _end(self) -> int:
        """Number of the last event, or nearly so; 1 where it is not known."""
        try:
            return max(1, read_end(self.folder)[0])
        except OSError:
            return 1

    def items(self, *, count: bool = True) -> Iterator[Item]:
        """Read the session from the beginning as items. ``count``: note damage and what there is."""
        story = Story(self.scrub)
        counts = dict(self.scrub.counts)
        yield from story.items(self.events(count=count, brief=True))
        if count:
            self.turns, self.calls = story.turns, story.calls
        else:
            self.scrub.counts = counts

    def events(self, *, count: bool = True, brief: bool = False) -> Iterator[Event]:
        """Read the session's events from the beginning. Raises ``ExportStopped`` when nobody wants them any more.

        ``brief``: without pieces whose whole follows.
        """
        damage = Damage()
        last = 0
        self._reads += 1
        for number, event in enumerate(read_events(self.folder, damage, brief=brief)):
            if self.last_seq and event.seq > self.last_seq:
                break
            if not number % LOOKS and self.stop():
                raise ExportStopped
            self.told(min(1.0, (self._reads - 1 + min(1.0, event.seq / self._end)) / self.passes))
            last = max(last, event.seq)
            yield event
        self.last_seq = self.last_seq or last
        if count:
            self.left_out("damaged", damage.skipped)

    def left_out(self, what: str, count: int = 1) -> None:
        """Note that something is not in the document."""
        if count:
            self.missing[what] = self.missing.get(what, 0) + count

    def picture(self, part: ImageContent) -> bytes | None:
        """Return the bytes of a picture; ``None``, and noted, when it cannot be shown."""
        if part.mime not in PICTURES:
            self.left_out("picture_kind")
            return None
        data = self.read(part.path)
        if data is not None:
            self.pictures += 1
        return data

    def kept_text(self, part: FileContent) -> bytes | None:
        """Return a text that was kept whole in a file, scrubbed; ``None``, and noted, for what is no text or is gone."""
        if part.mime != TEXT:
            self.left_out(left_kind(part))
            return None
        data = self.read(part.path)
        if data is not None and self.scrub.active:
            return self.scrub(data.decode("utf-8", "replace")).encode("utf-8", "replace")
        return data

    def read(self, path: str) -> bytes | None:
        """Return what is in a file of the session; ``None``, and noted, when it is gone or too large."""
        place = Path(path)
        try:
            if not place.is_file():
                self.left_out("file_missing")
                return None
            if place.stat().st_size > self.largest:
                self.left_out("file_large")
                return None
            return place.read_bytes()
        except (OSError, ValueError):
            self.left_out("file_missing")
            return None

    def left_out_words(self, *, but: str = "") -> tuple[str, ...]:
        """Return a sentence for each kind of thing that is not in the document, ``but`` one."""
        return tuple(
            tr_count(f"export.left.{what}", count) for what, count in self.missing.items() if what != but
        )

    def done(self, kind: str) -> Exported:
        """Return what was written."""
        notes = []
        if self.scrub.active:
            notes.append(_scrubbed_words(self.scrub.counts))
            if self.pictures:
                notes.append(tr_count("export.pictures_not_scrubbed", self.pictures))
        return Exported(
            path=self.target.path,
            kind=kind,
            files=tuple(self.target.files),
            turns=self.turns,
            calls=self.calls,
            pictures=self.pictures,
            left_out=self.left_out_words(),
            notes=tuple(notes),
            scrubbed=dict(self.scrub.counts),
        )


def _scrubbed_words(counts: Mapping[str, int]) -> str:
    """Return a sentence about what was taken out."""
    names = {SECRET: "secrets", HOME: "homes", USER: "users", HOST: "hosts"}
    what = [tr_count(f"export.scrubbed_{names[mark]}", count) for mark, count in counts.items()]
    return (
        tr("export.scrubbed", what=tr("export.comma").join(what)) if what else tr("export.scrubbed_nothing")
    )


def title_of(folder: Path, summary: SessionSummary, scrub: Scrubber) -> str:
    """Return the title of a session, scrubbed; empty where it has none.

    One that comes from the first prompt is cut, and what was cut through would not be known for what it is: it is
    made anew from the whole prompt.
    """
    title = summary.title
    if scrub.active and not summary.renamed:
        with contextlib.suppress(OSError):
            first = next(read_some(folder, (TurnStarted,)), None)
            title = first.prompt if isinstance(first, TurnStarted) else title
    return clean_line(scrub(title), TITLE_LIMIT)


def data_uri(data: bytes, mime: str) -> str:
    """Return a picture as an address that holds it."""
    return f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}"


def left_kind(part: FileContent) -> str:
    """Return what a file is that is not in a document, by the name of its sentence."""
    return {"text/html": "page", TEXT: "file"}.get(part.mime, "binary")
