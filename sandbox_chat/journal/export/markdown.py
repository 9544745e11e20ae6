"""A session as Markdown, with its pictures in a folder beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import quote as quoted

from sandbox_chat.events import FileContent, ImageContent, TableContent
from sandbox_chat.journal.export import labels
from sandbox_chat.journal.export.items import (
    Answer,
    Attachment,
    Background,
    Call,
    CutOff,
    Item,
    Opened,
    Prompt,
    Remark,
    Section,
    Thinking,
    TurnEnd,
)
from sandbox_chat.journal.export.prose import code_span, escape, fence, quote, safe_markdown
from sandbox_chat.journal.export.work import PICTURES, Work
from sandbox_chat.plain import attached_text
from sandbox_chat.words import tr


def write(work: Work) -> None:
    """Write the whole document."""
    out = work.target.out
    out.write(f"# {escape(work.title)}\n\n")
    for name, value in labels.facts(work):
        out.write(f"- {escape(name)}: {escape(value)}\n")
    for item in work.items():
        for block in _blocks(work, item):
            out.write(f"\n{block}\n")
    if missing := work.left_out_words():
        out.write(f"\n---\n\n{escape(tr('export.left_out_title'))}\n\n")
        out.writelines(f"- {escape(line)}\n" for line in missing)


def _blocks(work: Work, item: Item) -> Iterator[str]:
    match item:
        case Opened(again=True):
            yield "---"
            yield f"*{escape(labels.opened_words(item))}*"
        case Prompt():
            title = tr("export.steered" if item.steered else "export.turn", number=item.number)
            yield f"{'###' if item.steered else '##'} {escape(title)}"
            yield quote(item.text)
        case Thinking():
            yield f"*{escape(tr('export.thinking'))}*"
            yield quote(item.text)
        case Answer():
            yield safe_markdown(item.text)
            if item.cut:
                yield f"*{escape(tr('export.answer_cut'))}*"
        case Call():
            yield from _call(work, item)
        case Background():
            yield f"*{escape(tr('export.background', name=item.name, number=item.number))}*"
            yield fence(item.text, "text")
        case Remark():
            yield f"*{escape(tr(f'export.level_{item.level}', text=item.text))}*"
        case Attachment():
            yield f"*{escape(attached_text(item.event))}*"
        case CutOff():
            yield f"*{escape(labels.cut_off_words(item))}*"
        case TurnEnd():
            if problem := labels.turn_problem(item):
                yield f"**{escape(problem)}**"
            yield f"*{escape(labels.turn_words(item))}*"
        case _:
            return


def _call(work: Work, call: Call) -> Iterator[str]:
    title = tr("export.call", number=call.number)
    yield f"**{escape(title)}** {code_span(call.name)} · {escape(labels.outcome_words(call))}"
    yield from _arguments(call)
    for question in call.questions:
        yield f"*{escape(question)}*"
    if call.output:
        yield fence(call.output, "text")
    for part in call.parts:
        match part:
            case Section(name="note"):
                yield f"*{escape(' '.join(part.text.split()))}*"
            case Section():
                if part.name:
                    yield f"{escape(labels.part_title(part.name))}:"
                if part.text.strip():
                    yield fence(part.text, "text")
            case TableContent():
                yield table(part)
                yield f"*{escape(labels.table_words(part))}*"
            case ImageContent():
                yield _picture(work, part)
            case FileContent():
                yield _file(work, part)


def _arguments(call: Call) -> Iterator[str]:
    """Yield what a call was given: code and the content of files as it is, the rest as JSON."""
    rest = dict(call.input)
    if call.code:
        yield fence(str(rest.pop("code")), "python")
    elif isinstance(rest.get("content"), str) and isinstance(rest.get("path"), str):
        path, content = str(rest.pop("path")), str(rest.pop("content"))
        yield code_span(path)
        yield fence(content, labels.LANGUAGES.get(PurePosixPath(path).suffix.lower(), "text"))
    if rest:
        yield fence(json.dumps(rest, ensure_ascii=False, indent=1, default=str), "json")


def _picture(work: Work, part: ImageContent) -> str:
    words = labels.picture_words(part)
    data = work.picture(part)
    if data is None:
        return f"*{escape(tr('export.not_here', what=words))}*"
    place = quoted(work.target.add(data, PICTURES[part.mime]))
    return f"![{escape(words)}]({place})"


def _file(work: Work, part: FileContent) -> str:
    words = labels.file_words(part)
    data = work.kept_text(part)
    if data is None:
        return f"*{escape(tr('export.not_here', what=words))}*"
    place = quoted(work.target.add(data, "txt"))
    return f"[{escape(words)}]({place})"


def table(part: TableContent) -> str:
    """Return a data frame as a table of Markdown."""
    width = max([len(part.columns), *(len(row) for row in part.rows)], default=0)
    if not width:
        return ""
    lines = [_row(part.columns, width), "|" + " --- |" * width]
    lines += [_row(row, width) for row in part.rows]
    return "\n".join(lines)


def _row(cells: tuple[str, ...], width: int) -> str:
    shown = [escape(" ".join(cell.split())) for cell in (*cells, *[""] * (width - len(cells)))]
    return f"| {' | '.join(shown)} |"
