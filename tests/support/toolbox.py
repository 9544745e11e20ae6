"""The tools of the model over a sandbox in memory; what is told of the calls is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from support.agent import MemorySandbox

from sandbox_chat.events import FileContent, ImageContent, Stream
from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Settings
from sandbox_chat.tools.context import Question, ToolContext, ToolOutcome
from sandbox_chat.tools.news import News
from sandbox_chat.tools.schemas import tool_specs
from sandbox_chat.tools.server import call_tool


@dataclass
class Tools:
    """The tools over a sandbox in memory."""

    settings: Settings
    folder: Path
    sandbox: Any = field(default_factory=MemorySandbox)
    started: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    output: list[tuple[str, Stream, str]] = field(default_factory=list)
    late: list[tuple[str, Stream, str]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    progress: list[tuple[str, str, int, int, bool]] = field(default_factory=list)
    news: News = field(init=False)
    keep_output: bool = False
    finished: list[tuple[str, ToolOutcome, int]] = field(default_factory=list)
    pictures: list[bytes] = field(default_factory=list)
    files: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.news = News(lambda call_id, stream, piece: self.late.append((call_id, stream, piece.text)))

    @property
    def context(self) -> ToolContext:
        """A context that records here."""
        return ToolContext(
            worker=cast(SandboxWorker, self.sandbox),
            settings=self.settings,
            save_picture=self._save,
            save_file=self._save_file,
            started=self._started,
            output=lambda call_id, stream, piece, late: self.output.append((call_id, stream, piece.text)),
            finished=lambda *args: self.finished.append(args),
            news=self.news,
            ask=self._ask,
            progress=lambda *args: self.progress.append(args),
            output_dir=self.folder / "output" if self.keep_output else None,
        )

    def _started(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> None:
        self.started.append((call_id, name, dict(arguments)))

    async def _ask(self, question: Question) -> str:
        """Take the next of the prepared answers, or else the default."""
        self.questions.append(question)
        return self.answers.pop(0) if self.answers else question.default

    def _save(self, data: bytes, mime: str) -> ImageContent:
        self.pictures.append(data)
        return ImageContent(f"/pictures/{len(self.pictures)}", mime, 1, 1)

    def _save_file(self, data: bytes, mime: str, title: str) -> FileContent:
        self.files.append(data)
        return FileContent(f"/files/{len(self.files)}", mime, len(data), title)

    async def call(self, name: str, /, **arguments: Any) -> ToolOutcome:
        """Call a tool by its short name."""
        spec = next(spec for spec in tool_specs(self.settings) if spec.name == name)
        return await call_tool(self.context, spec, "id-1", arguments)
