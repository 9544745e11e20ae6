"""The words that all kinds of documents use for the same things."""

from __future__ import annotations

from datetime import UTC, datetime

from sandbox_chat.events import FileContent, ImageContent, TableContent
from sandbox_chat.journal.export.items import Call, CutOff, Opened, TurnEnd
from sandbox_chat.journal.export.work import Work
from sandbox_chat.plain import cost_text, duration_text, size_text
from sandbox_chat.words import tr, tr_count

LANGUAGES = {
    ".csv": "text", ".css": "css", ".html": "html", ".js": "javascript", ".json": "json", ".md": "markdown",
    ".py": "python", ".sh": "bash", ".sql": "sql", ".toml": "toml", ".ts": "typescript", ".xml": "xml",
    ".yaml": "yaml", ".yml": "yaml",
}  # fmt: skip
"""Languages of files that are written, by the ending of their name."""

TITLES = ("calls", "stdout", "stderr", "result", "error", "traceback", "tool_error", "note")
"""Names of the parts of an answer that have words of their own."""


def time_words(at: datetime) -> str:
    """Return a time: a document is read elsewhere, so it is UTC."""
    try:
        return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError):  # a damaged record may name a year that no clock knows
        return f"{at:%Y-%m-%d %H:%M}"


def facts(work: Work) -> list[tuple[str, str]]:
    """Return what a document says of its session at the top: names and values, scrubbed."""
    summary = work.summary
    first, last = time_words(summary.created), time_words(summary.updated)
    found = [
        (tr("export.session"), summary.id),
        (tr("export.date"), first if first == last else f"{first} – {last}"),
    ]
    if summary.demo:
        found.append((tr("export.model"), tr("export.demo")))
    elif summary.model:
        found.append((tr("export.model"), work.scrub(summary.model)))
    if summary.sandbox:
        found.append((tr("export.sandbox"), work.scrub(summary.sandbox)))
    found.append((tr("export.turns"), f"{summary.turns:,}"))
    if not summary.demo:
        found.append((tr("export.cost"), cost_text(summary.total_cost_usd)))
    return found


def opened_words(item: Opened) -> str:
    """Return a sentence about a session that was opened again."""
    return tr("export.opened_again", when=time_words(item.at))


def outcome_words(call: Call) -> str:
    """Return how a call ended, and how long it took."""
    how = tr(f"export.outcome_{call.outcome}")
    return how if call.outcome == "lost" else f"{how}, {duration_text(call.duration_ms)}"


def part_title(name: str) -> str:
    """Return the words over a part of an answer."""
    return tr(f"export.part_{name}") if name in TITLES else name


def turn_words(item: TurnEnd) -> str:
    """Return one line about a turn that ended: time, cost, tokens."""
    event = item.event
    read = event.usage.input + event.usage.cache_read + event.usage.cache_creation
    parts = [duration_text(event.duration_ms)]
    if not item.demo:
        parts.append(tr("export.turn_cost", cost=cost_text(event.cost_usd)))
    parts.append(tr("export.turn_tokens", read=f"{read:,}", written=f"{event.usage.output:,}"))
    return " · ".join(parts)


def turn_problem(item: TurnEnd) -> str:
    """Return a sentence about a turn that did not end well; empty for one that did."""
    event = item.event
    if event.interrupted:
        return tr("export.interrupted")
    if event.is_error or event.error:
        return event.error or tr("export.failed")
    return ""


def cut_off_words(item: CutOff) -> str:
    """Return a sentence about a turn without an end."""
    return tr("export.not_ended" if item.last else "export.cut_off")


def picture_words(part: ImageContent) -> str:
    """Return what stands for a picture where it is not seen."""
    return tr("export.picture", width=part.width, height=part.height)


def file_words(part: FileContent) -> str:
    """Return what a file is, and its size."""
    return f"{part.title}, {size_text(part.size)}"


def table_words(part: TableContent) -> str:
    """Return how large a data frame is, and how much of it is here when that is less."""
    size = tr("export.table", rows=f"{part.row_count:,}", columns=f"{part.column_count:,}")
    if len(part.rows) < part.row_count:
        size += tr("export.comma") + tr_count("export.table_shown", len(part.rows))
    return size
