"""Highlighted code that may grow: each line lexed once while it comes, wrapped only where it is seen."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import lru_cache, partial
from itertools import accumulate

from sandbox_chat.text import clean
from sandbox_chat.ui.transcript.cells import MIN_WIDTH, TAB, Row, Run, expand_tabs, width_of, wrap_code
from sandbox_chat.ui.transcript.lazy import Lazy
from sandbox_chat.ui.work_thread import WorkThread

from .highlight import MAX_HIGHLIGHT, MAX_PART, THREAD_SECONDS, Lexing, Line, highlight, plain_line

AT_ONCE = 1_500
"""Characters of closed code that are lexed on the spot; more is lexed in a thread."""

HEAD = 1000
"""Characters of the first line that are lexed for a folded call: wider is no screen."""

PREFIX = Run(" ", ("block",))
"""The margin at the left of code."""

MARK = "code-mark"
"""The style of lines that are marked."""

_LONG_LINE = 1_000
"""Characters of a line from which on each of its rows is made alone."""

_AROUND = 20
"""Lines before those that are seen from which a long piece of closed code is lexed at first."""


@lru_cache(maxsize=1)
def _thread() -> WorkThread:
    return WorkThread("highlight")


def _with_tabs(raw: str, shown: str, begin: int, end: int) -> str:
    """Return what of a line of code is shown between two offsets of ``shown``, which is ``raw`` without tabs."""
    if "\t" not in raw:
        return shown[max(begin, 0) : max(end, 0)]
    out: list[str] = []
    place = column = 0  # in ``shown``; cells in it
    for number, piece in enumerate(raw.split("\t")):
        if number:
            step = len(TAB) - column % len(TAB)
            if max(begin, place) < min(end, place + step):
                out.append("\t")
            place += step
            column += step
        out.append(piece[max(begin - place, 0) : max(end - place, 0)])
        place += len(piece)
        column += width_of(piece)
    return "".join(out)


class CodeRows:
    """Code that may still grow, its highlighting and its rows.

    While it grows each line is lexed once, when it is complete; the line that is being written is plain. ``closed``
    code is lexed as a whole, because a token may reach over lines: short code when its rows are wanted, long code in
    a thread; until that is done its lines keep the colours that they have. ``marked`` holds the numbers of lines,
    from 1, that are shown as failing.
    """

    def __init__(self, language: str = "", ready: Callable[[], None] | None = None) -> None:
        """``ready`` is called, from a thread, when long code has got its final colours."""
        self.language = language
        self.marked: frozenset[int] = frozenset()
        self._ready = ready
        self._raw = ""
        self._raw_done = 0  # characters of complete lines in it
        self._closed = False
        self._texts: list[str] = [""]  # all lines, the one being written last
        self._starts: list[int] = [0]  # where each line begins in the plain text
        self._lines: list[Line | None] = []  # complete lines that have colours; None: not yet
        self._lexing: Lexing | None = None
        self._due = False  # the whole is still to be lexed
        self._job: Future[list[Line]] | None = None
        self._changed = 0  # first line that changed since ``take_changed``

    @property
    def text(self) -> str:
        """The code, as shown."""
        return "\n".join(self._texts)

    def source(self, begin: int, end: int) -> str:
        """Return the code from ``begin`` to ``end`` of ``text`` with the tabs that it was written with.

        A tab belongs to the stretch when any of the cells that show it does.
        """
        if "\t" not in self._raw:
            return self.text[begin:end]
        out: list[str] = []
        place = 0
        for raw, shown in zip(clean(self._raw).split("\n"), self._texts, strict=False):
            if place > end:
                break
            if place + len(shown) >= begin:
                out.append(_with_tabs(raw, shown, begin - place, end - place))
            place += len(shown) + 1
        return "\n".join(out)

    @property
    def line_count(self) -> int:
        """Number of lines."""
        return len(self._texts)

    @property
    def pending(self) -> bool:
        """The final colours are still being made in a thread."""
        return self._job is not None

    def settle(self) -> None:
        """Wait for the final colours."""
        self._lex()
        if self._job is not None:
            self._job.result()
            self._lex()

    def take_changed(self) -> int:
        """Return the first line that changed since the last call of this."""
        self._lex()
        changed = self._changed
        self._changed = len(self._texts)
        return changed

    # -- the text --------------------------------------------------------------------------------------

    def update(self, code: str, *, closed: bool = True) -> None:
        """Take the whole code as it is now. When it goes on from the last one, only what was added costs."""
        if code == self._raw and closed == self._closed:
            return
        if not code.startswith(self._raw) or (self._closed and not closed):
            self._restart()
        self._raw = code
        before = len(self._texts) - 1
        fresh = expand_tabs(clean(code[self._raw_done :])).split("\n")
        self._texts[before:] = fresh
        start = self._starts[before]
        self._starts[before:] = list(accumulate((len(line) + 1 for line in fresh[:-1]), initial=start))
        self._raw_done = code.rfind("\n") + 1
        self._changed = min(self._changed, before)
        if closed:
            while len(self._texts) > 1 and not self._texts[-1]:
                self._texts.pop()
                self._starts.pop()
        self._closed = closed
        if closed:
            self._due = True
            self._job = None
            self._lines = [*self._lines[: len(self._texts)], *[None] * (len(self._texts) - len(self._lines))]
        elif len(fresh) > 1:
            if self._lexing is None:
                self._lexing = Lexing(self.language)
            self._lines.extend(self._lexing.add(fresh[:-1]))

    def _restart(self) -> None:
        self._raw, self._raw_done = "", 0
        self._texts, self._starts, self._lines = [""], [0], []
        self._lexing = None
        self._due, self._job = False, None
        self._changed = 0

    # -- colours ---------------------------------------------------------------------------------------

    def _lex(self) -> None:
        """Give closed code its final colours, if that is still to be done."""
        if self._job is not None and self._job.done():
            lines, self._job = self._job.result(), None
            self._adopt(lines)
        if not self._due:
            return
        self._due = False
        size = self._starts[-1] + len(self._texts[-1])
        if size <= AT_ONCE or not self.language:
            self._adopt(highlight(self.text, self.language))
            return
        job = _thread().submit(partial(highlight, self.text, self.language, THREAD_SECONDS))
        self._job = job
        if self._ready is not None:
            ready = self._ready
            job.add_done_callback(lambda _: ready())

    def _adopt(self, lines: list[Line]) -> None:
        for index, (old, new) in enumerate(zip(self._lines, lines, strict=False)):
            if old != new:
                self._changed = min(self._changed, index)
                break
        self._lines = list(lines)

    def line(self, index: int) -> Line:
        """Return the runs of a line, from 0; their ``at`` counts in the line."""
        if index >= len(self._lines):
            return plain_line(self._texts[index])
        found = self._lines[index]
        if found is None:
            # Long code of which the colours are not there yet: those of the lines around are near enough.
            low, high = max(index - _AROUND, 0), min(index + _AROUND * 2, len(self._texts))
            part = "\n".join(self._texts[low:high])
            near = self._starts[index] < MAX_HIGHLIGHT and len(part) <= MAX_PART
            lines = highlight(part, self.language if near else "")
            for at in range(index, high):
                if self._lines[at] is None:
                    self._lines[at] = lines[at - low]
            found = self._lines[index]
            assert found is not None
        return found

    # -- rows ------------------------------------------------------------------------------------------

    def rows(self, width: int) -> Sequence[Row]:
        """Return all rows of at most ``width`` cells, without margin; each is made when it is taken."""
        self._lex()
        layout = CodeLayout(self, width)
        layout.update(0)
        return layout

    def tail(self, width: int, count: int) -> list[Row]:
        """Return the last ``count`` rows that hold something, of at most ``width`` cells, without margin."""
        self._lex()
        found: list[Row] = []
        for index in range(len(self._texts) - 1, -1, -1):
            found = [*(row for row in self.line_rows(index, width) if row), *found]
            if len(found) >= count:
                break
        return found[-count:] if count > 0 else []

    def head(self) -> list[Run]:
        """Return the first line that holds something."""
        line = next((line for line in self._texts if line.strip()), "")
        return list(highlight(line[:HEAD], self.language)[0])

    def is_long(self, index: int) -> bool:
        """Tell whether the rows of a line may be made one by one, by ``row_of_long``."""
        text = self._texts[index]
        return len(text) > _LONG_LINE and text.isascii()

    def row_of_long(self, index: int, width: int, row: int) -> list[Run]:
        """Return one row of a long line, which takes one cell a character."""
        start = row * width
        stop = min(start + width, len(self._texts[index]))
        mark = (MARK,) if index + 1 in self.marked else ()
        line = self.line(index)
        out: list[Run] = []
        at = max(bisect_right(line, start, key=lambda run: run.at) - 1, 0)
        while at < len(line) and line[at].at < stop:
            text, names, _, begin = line[at]
            low = max(start - begin, 0)
            out.append(Run(text[low : stop - begin], (*names, *mark), "", self._starts[index] + begin + low))
            at += 1
        if mark and stop - start < width:
            out.append(Run(" " * (width - stop + start), mark))
        return out

    def line_rows(self, index: int, width: int) -> list[list[Run]]:
        """Return the rows of one line, from 0."""
        start = self._starts[index]
        marked = (index + 1) in self.marked
        rows = wrap_code(
            [
                Run(text, (*names, MARK) if marked else names, "", start + at)
                for text, names, _, at in self.line(index)
            ],
            width,
        )
        if marked:
            for row in rows:
                used = sum(width_of(run.text) for run in row)
                if used < width:
                    row.append(Run(" " * (width - used), (MARK,)))
        return rows

    def row_counts(self, width: int, first: int) -> list[int]:
        """Return how many rows each line has, from line ``first`` on."""
        width = max(width, MIN_WIDTH)
        if not self._closed and len(self._texts) > 1 and not self._texts[-1]:
            return [*self._counts(self._texts[first:-1], width), 0]  # a line that has not begun
        return self._counts(self._texts[first:], width)

    @staticmethod
    def _counts(texts: list[str], width: int) -> list[int]:
        counts = []
        for text in texts:
            size = len(text)
            if size * 2 <= width or (size <= width and text.isascii()):
                counts.append(1)
            elif text.isascii():
                counts.append(-(-size // width))
            else:
                counts.append(1 if width_of(text) <= width else len(wrap_code([Run(text)], width)))
        return counts


class CodeLayout(Lazy[Row]):
    """The rows of code at one width, wrapped line by line as they are taken."""

    def __init__(self, code: CodeRows, width: int, *, block: bool = False) -> None:
        """``block``: with a margin, on the ground of code."""
        self.width = width
        self._code = code
        self._block = block
        self._ends: list[int] = []  # number of rows up to the end of each line
        self._cached: dict[int, list[Row]] = {}

    def update(self, changed: int) -> int:
        """Lay out anew from line ``changed`` on. Returns the number of rows before it."""
        changed = min(changed, len(self._ends), self._code.line_count)  # lines may be gone
        del self._ends[changed:]
        stable = self._ends[-1] if self._ends else 0
        counts = self._code.row_counts(self._room, changed)
        self._ends.extend(accumulate(counts[1:], initial=stable + counts[0]) if counts else ())
        for line in [line for line in self._cached if line >= changed]:
            del self._cached[line]
        return stable

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _item(self, index: int) -> Row:
        line = bisect_right(self._ends, index)
        if self._code.is_long(line):
            first = self._ends[line - 1] if line else 0
            return self._dressed(self._code.row_of_long(line, self._room, index - first))
        rows = self._cached.get(line)
        if rows is None:
            if len(self._cached) > 400:
                self._cached.clear()
            rows = self._cached[line] = self._rows(line)
        return rows[index - (self._ends[line - 1] if line else 0)]

    @property
    def _room(self) -> int:
        return max(self.width - 2 if self._block else self.width, MIN_WIDTH)

    def _rows(self, line: int) -> list[Row]:
        return [self._dressed(row) for row in self._code.line_rows(line, self._room)]

    def _dressed(self, row: list[Run]) -> Row:
        if not self._block:
            return row
        runs = [Run(text, ("block", *names), "", at) for text, names, _, at in row]
        return [PREFIX, *runs] if self.width > 2 else runs
