"""A tool call, folded to a few rows in the transcript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from sandbox_chat.events import FileContent, NestedFinished, NestedStarted
from sandbox_chat.nested import NestedCalls
from sandbox_chat.plain import arguments_json, error_line, tool_parts
from sandbox_chat.text import clean
from sandbox_chat.ui.arguments import PartialArguments
from sandbox_chat.ui.formats import tool_title
from sandbox_chat.words import tr

from .blocks import Block
from .card_answer import Part, parts_of
from .card_face import CardFace, output_runs
from .card_live import LiveText, Styles
from .card_nested import RESULT_ROWS
from .cells import MIN_WIDTH, Row

if TYPE_CHECKING:
    from textual.strip import Strip

    from sandbox_chat.events import Content, Stream

    from .scene import Scene

Status = Literal["writing", "running", "ok", "failed", "interrupted"]

LIVE_LIMIT = 24_000
"""Characters of live output kept; the whole comes with the result."""
LATE_LIMIT = 40_000
"""Characters of background output kept; it is bounded where it comes from."""
COPIED_ROWS = 100
"""Lines of the result of a call of its code that go into a pager."""
_LANGUAGES = {"py": "python", "md": "markdown", "js": "javascript"}


class ToolCard(Block):
    """A tool call: status, name, time, the first line of its code; everything when expanded."""

    kind = "tool"
    expandable = True

    def __init__(self, scene: Scene, tool_use_id: str, name: str) -> None:
        super().__init__(scene, f"tool-{tool_use_id}")
        self.tool_use_id = tool_use_id
        self.name = tool_title(name)
        self.server = tool_parts(name)[0]
        """The MCP server of its tool; empty for the program's own tools."""
        self.status: Status = "writing"
        self.started_at: datetime | None = None
        self.duration_ms = 0
        self.input: Mapping[str, Any] = {}
        self.content: tuple[Content, ...] = ()
        self.output_now = LiveText(LIVE_LIMIT)
        """Output until now; after the end only where it has colours."""
        self.late = LiveText(LATE_LIMIT)
        """Background output."""
        self.transfer = ""
        """How far a transfer has come."""
        self.nested = NestedCalls()
        """Calls of other servers' tools that its code made."""
        self.asked: dict[str, tuple[str, str]] = {}
        """Questions to the user and their answers, by id."""
        self._draft: PartialArguments | None = None
        self._chosen = False  # the user opened or closed it: no policy does that any more
        self._parts: tuple[int, list[Part]] = (-1, [])
        self._face = CardFace(self)

    # -- what happens ----------------------------------------------------------------------------------

    @property
    def pending(self) -> bool:
        """True while the code waits for its colours."""
        return self._face.code.pending

    def write(self, piece: str) -> None:
        """The model wrote a piece of the arguments."""
        if self._draft is None:
            self._draft = PartialArguments()
        self._draft.feed(piece)
        self.touch()

    def start(self, arguments: Mapping[str, Any], at: datetime) -> None:
        """The call runs, with its whole arguments."""
        self.input = arguments
        self._draft = None
        self.status = "running"
        self.started_at = at
        self.touch()

    def output(
        self, stream: Stream, text: str, *, late: bool = False, rewind: int = 0, styles: Styles = ()
    ) -> None:
        """A piece of output came, or of background output (``late``); ``rewind`` characters before it are withdrawn."""
        if late:
            self.late.add(stream, text, styles, rewind)
            self.touch()
        elif self.status == "running":
            self.output_now.add(stream, text, styles, rewind)
            self.touch()

    def call(self, event: NestedStarted | NestedFinished) -> None:
        """Its code calls a tool, or such a call ended."""
        if isinstance(event, NestedStarted):
            self.nested.start(event)
        else:
            self.nested.finish(event)
        self.touch()

    def progress(self, words: str) -> None:
        """How far a transfer of the call has come; empty when it is over."""
        self.transfer = words
        self.touch()

    def ask(self, approval_id: str, question: str) -> None:
        """The call waits for an answer of the user."""
        self.asked[approval_id] = (question, "")
        self.touch()

    def answer(self, approval_id: str, words: str) -> None:
        """The user answered."""
        question, _ = self.asked.get(approval_id, ("", ""))
        self.asked[approval_id] = (question, words)
        self.touch()

    def finish(self, status: Status, content: tuple[Content, ...], duration_ms: int) -> None:
        """The call ended. It opens if the setting says so, unless the user has opened or closed it."""
        self.status = status
        self.content = content
        self.duration_ms = duration_ms
        if content and (self.output_now.dropped or not self.output_now.styled):
            self.output_now = LiveText(LIVE_LIMIT)  # the answer says all of it
        self.transfer = ""
        self.nested.stop()
        opens = self.scene.expand == "always" or (self.scene.expand == "failed" and status == "failed")
        if opens and not self._chosen:
            self.expanded = True
        self.touch()

    def stop(self) -> None:
        """The turn ended before the call did."""
        if self.status in ("writing", "running"):
            self.status = "interrupted"
            self.nested.stop()
            self.touch()

    def expand(self) -> None:
        """Show everything."""
        self._chosen = True
        super().expand()

    def collapse(self) -> None:
        """Show only the summary."""
        self._chosen = True
        super().collapse()

    # -- what it says ----------------------------------------------------------------------------------

    @property
    def live(self) -> bool:
        """True while the call runs: its spinner and its time move."""
        return self.status == "running"

    @property
    def text(self) -> str:
        """The code and the answer."""
        parts = ["\n".join(self.nested.lines(results=RESULT_ROWS))]
        parts += [part.text for part in self.came() if part.name != "late"]
        if self.late:
            parts.append(f"{tr('cards.background')}\n{self.late.text()}")
        return "\n\n".join(part for part in (self.shown_code()[0], *parts) if part)

    @property
    def code(self) -> str:
        """What the call does as text: its code, or the file that it writes. Empty for other calls, and for other servers'."""
        return "" if self.server else self.shown_code()[0]

    @property
    def suffix(self) -> str:
        """Suffix of a file that holds the code."""
        return {"python": ".py", "markdown": ".md", "javascript": ".js"}.get(self.shown_code()[1], ".txt")

    @property
    def output_text(self) -> str:
        """All that came of the call as text, for a pager."""
        calls = ["\n".join(self.nested.lines(results=COPIED_ROWS))] if self.nested else []
        return "\n\n".join(
            calls
            + [
                f"{part.title}\n{part.text}" if part.title else part.text
                for part in self.came()
                if part.file is None and part.text
            ]
        )

    @property
    def path(self) -> str:
        """The first result that another program shows."""
        files = self.files
        return files[0].path if files else ""

    @property
    def again(self) -> str:
        """A prompt that asks to run the code once more."""
        return tr("transcript.again_code", code=self.code.rstrip("\n")) if self.code else ""

    @property
    def files(self) -> list[FileContent]:
        """Results that another program shows."""
        return [part for part in self.content if isinstance(part, FileContent)]

    @property
    def commands(self) -> tuple[str, ...]:
        """What can be done with it now."""
        found = ["copy"]
        if self.files:
            found += ["open", "save"]
        if self.status != "writing" and self.code:
            found += ["rerun", "edit"] if self.name == "run_code" else ["edit"]
        if self.content or self.output_now or self.late:
            found.append("page")
        return tuple(found)

    @property
    def parts(self) -> int:
        """The code, and each part of what came of it."""
        return 1 + len(self.came())

    def plain(self, part: int) -> str:
        """Return the code (0), or a part of what came of it."""
        if part == 0:
            self._face.update_code()
            return self._face.code.text
        answer = self.came()
        return answer[part - 1].text if part <= len(answer) else ""

    def source(self, part: int, begin: int, end: int) -> str:
        """Return what is copied of the code or of what came of it; see ``Block.source``."""
        plain = self.plain(part)
        return plain[begin:end] if part else self._face.code.source(begin, end)

    def separator(self, part: int) -> str:
        """Return an empty line."""
        del part
        return "\n\n"

    def error_line(self) -> str:
        """Return the line that says best why the call failed."""
        return error_line(self.content)

    def came(self) -> list[Part]:
        """Return the parts of what came of the call."""
        if self._parts[0] == self.revision:
            return self._parts[1]
        if self.content or not self.output_now:
            found = parts_of(self.content, self.output_now if self.output_now.styled else None)
        else:
            found = [_part("output", self.output_now)]
        if self.late:
            found.append(_part("late", self.late))
        self._parts = (self.revision, found)
        return found

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments, as far as they are known."""
        return self.input if self._draft is None else self._draft.texts

    def shown_code(self) -> tuple[str, str]:
        """Return what the call does as text, and the language to highlight it in; of another server's its arguments."""
        if self.server:
            return (clean(arguments_json(self.input)), "json") if self._draft is None else ("", "")
        given = self.arguments
        code = given.get("code")
        if isinstance(code, str):
            return code, "python"
        content = given.get("content")
        if isinstance(content, str):
            suffix = PurePosixPath(str(given.get("path", ""))).suffix.lstrip(".")
            return content, _LANGUAGES.get(suffix, suffix)
        return "", ""

    def elapsed_ms(self) -> int:
        """Return for how long it has been running."""
        if self.started_at is None:
            return 0
        return max(0, int((self.scene.now() - self.started_at).total_seconds() * 1000))

    # -- what is shown ---------------------------------------------------------------------------------

    def estimate(self, width: int) -> int:
        """Return a guess of the height."""
        return self.height(width) if self._face.drawn(width) else self._face.estimate(width)

    def forget(self) -> None:
        """Let go of all that can be made again."""
        super().forget()
        self._face = CardFace(self)
        self._parts = (-1, [])

    def height(self, width: int) -> int:
        """Return the number of rows at ``width``."""
        width = max(width, MIN_WIDTH)
        return self._above + len(self._face.lay_out(width)) if self.visible else 0

    def rows(self, width: int) -> Sequence[Strip]:
        """Return all rows at ``width`` cells."""
        return self.strips(width, 0, self.height(width))

    def prepare_end(self, width: int, count: int) -> None:
        """Make the last ``count`` rows exact: all heights are known before anything is drawn."""

    def strips(self, width: int, start: int, stop: int) -> Sequence[Strip]:
        """Return the rows from ``start`` to ``stop``; only those are wrapped and coloured."""
        width = max(width, MIN_WIDTH)
        above, stack = self._above, self._face.lay_out(width)
        blank = self.scene.palette.blank(width)
        return [
            blank if row < above else stack.strip(row - above)
            for row in range(start, min(stop, above + len(stack)))
        ]

    def row_source(self, width: int, row: int) -> tuple[int, Row] | None:
        """Return which part of the text a row shows, and its runs."""
        number = row - self._above
        stack = self._face.lay_out(max(width, MIN_WIDTH))
        if not 0 <= number < len(stack):
            return None
        line = stack.line(number)
        return (line.part, line.row) if line.part >= 0 else None

    @property
    def _above(self) -> int:
        """Empty rows above it."""
        return 0 if self.first else 1


def _part(name: str, live: LiveText) -> Part:
    runs = output_runs(live)
    return Part(name, text="".join(run.text for run in runs), runs=runs)
