"""A session as a Jupyter notebook that runs from its top to its end.

Its cells are the calls that ran code, with what came of them. Files that were written with a tool are written by
cells too. Calls of other servers' tools are told in words. What the notebook cannot bring along is named in its first cell.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from html import escape as escape_html
from typing import Any

from nbformat import v4
from nbformat.v4 import rwbase

from sandbox_chat.events import FileContent, ImageContent, TableContent
from sandbox_chat.journal.export import labels
from sandbox_chat.journal.export.cells import WORKSPACE, Plan, plan
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
    TurnEnd,
)
from sandbox_chat.journal.export.markdown import table as markdown_table
from sandbox_chat.journal.export.prose import code_span, escape, fence, quote, safe_markdown
from sandbox_chat.journal.export.work import PICTURES, Work, left_kind
from sandbox_chat.plain import arguments_json, attached_text, last_line, size_text
from sandbox_chat.text import bound
from sandbox_chat.words import tr, tr_count

Cell = Any
"""A cell of the library's."""
_NB: Any = v4
_RW: Any = rwbase

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
}
FOLDER = "/tmp"  # noqa: S108 - the folder in which code works in the sandbox
RESET = "%reset -f"
"""Forgets all names, as a new shell has none."""
PASSES = 2
"""How often the session is read: for a plan, and for the cells."""
TOLD = 20_000
"""Characters of one text of a call that is told in words."""


def write(work: Work) -> None:
    """Write the whole document, a cell at a time."""
    made = plan(work.items(count=False), include_failed=work.include_failed)
    work.left_out("failed_calls", made.failed - len(_kept(work, made)))
    cells = _Cells(work, made)
    out = work.target.out
    out.write('{\n "cells": [')
    for number, cell in enumerate(cells.all()):
        out.write(",\n" if number else "\n")
        out.write(_json(cell))
    tail = json.dumps(METADATA, indent=1, ensure_ascii=False, sort_keys=True).replace("\n", "\n ")
    out.write(f'\n ],\n "metadata": {tail},\n "nbformat": 4,\n "nbformat_minor": 5\n}}\n')


def _kept(work: Work, made: Plan) -> set[int]:
    return set(made.run) if work.include_failed else made.wanted


def _json(cell: Cell) -> str:
    """Return a cell as the library writes it into a file."""
    notebook = _RW.split_lines(_NB.new_notebook(cells=[cell]))
    text = json.dumps(notebook["cells"][0], indent=1, ensure_ascii=False, sort_keys=True)
    return "\n".join(f"  {line}" for line in text.split("\n"))


class _Cells:
    """Makes the cells. Their ids and numbers depend on the session alone."""

    def __init__(self, work: Work, made: Plan) -> None:
        self._work = work
        self._plan = made
        self._texts = 0
        self._runs = 0

    def all(self) -> Iterator[Cell]:
        """Yield all cells in their order."""
        yield self._text(_first(self._work, self._plan), "about")
        yield self._code(_set_up(self._plan), "set-up", [])
        for item in self._work.items():
            yield from self._cells(item)
        if missing := self._work.left_out_words(but="failed_calls"):
            lines = "\n".join(f"- {escape(line)}" for line in missing)
            yield self._text(f"---\n\n{escape(tr('export.left_out_title'))}\n\n{lines}", "left-out")

    def _text(self, source: str, name: str = "", attachments: dict[str, Any] | None = None) -> Cell:
        if not name:
            self._texts += 1
            name = f"text-{self._texts}"
        cell = _NB.new_markdown_cell(source, id=name)
        if attachments:
            cell["attachments"] = attachments
        return cell

    def _code(
        self, source: str, name: str, outputs: list[Any], *, ran: bool = False, tags: tuple[str, ...] = ()
    ) -> Cell:
        self._runs += ran
        for output in outputs:
            if output["output_type"] == "execute_result":
                output["execution_count"] = self._runs
        metadata = {"tags": list(tags)} if tags else {}
        return _NB.new_code_cell(
            source, id=name, outputs=outputs, execution_count=self._runs if ran else None, metadata=metadata
        )

    def _cells(self, item: Item) -> Iterator[Cell]:
        match item:
            case Call():
                yield from self._call(item)
            case Prompt():
                title = tr("export.steered" if item.steered else "export.turn", number=item.number)
                yield self._text(f"## {escape(title)}\n\n{quote(item.text)}")
            case Answer():
                cut = f"\n\n*{escape(tr('export.answer_cut'))}*" if item.cut else ""
                yield self._text(f"{safe_markdown(item.text)}{cut}")
            case Background():
                words = escape(tr("export.background", name=item.name, number=item.number))
                yield self._text(f"*{words}*\n\n{fence(item.text, 'text')}")
            case _:
                if words := _sentence(item):
                    yield self._text(f"*{escape(words)}*")

    # -- calls -----------------------------------------------------------------------------------------

    def _call(self, call: Call) -> Iterator[Cell]:
        if call.fresh and call.code:
            yield self._text(f"*{escape(tr('export.new_shell'))}*")
            yield self._code(RESET, f"reset-{call.number}", [])
        if call.code and call.nested:
            yield self._told(call)
            yield from self._shown(call)
        elif call.code and call.outcome == "ok":
            yield self._code(
                call.code.rstrip("\n"), f"call-{call.number}", list(self._outputs(call)), ran=True
            )
        elif call.code and call.number in _kept(self._work, self._plan):
            yield self._failed(call)
        elif call.name == "write_file" and call.outcome == "ok":
            yield from self._written(call)
        elif call.server:
            yield self._told(call)
            yield from self._shown(call)
        elif not call.code:
            yield from self._shown(call)

    def _failed(self, call: Call) -> Cell:
        """A call that failed: what ran of it runs, the rest is a comment."""
        lines = call.code.split("\n")
        run = self._plan.run.get(call.number, 0)
        reason = last_line(call.section("traceback")) or last_line(call.section("error"))
        how = tr(f"export.outcome_{call.outcome}")
        key = "export.cell_ended_why" if reason else "export.cell_ended"
        source = [f"# {tr(key, number=call.number, how=how, reason=reason)}"]
        if run:
            source += [f"# {tr('export.cell_ran')}", *lines[:run]]
        outputs: list[Any] = []
        if self._work.include_failed:
            source.append(f"# {tr('export.cell_not_run')}")
            source += [f"# {line}".rstrip() for line in "\n".join(lines[run:]).strip("\n").split("\n")]
            outputs = list(self._outputs(call))
        return self._code(
            "\n".join(source).rstrip("\n"),
            f"call-{call.number}",
            outputs,
            ran=bool(outputs),
            tags=("failed-call",),
        )

    def _written(self, call: Call) -> Iterator[Cell]:
        path, content = call.input.get("path"), call.input.get("content")
        if isinstance(path, str) and isinstance(content, str):
            yield self._code(_writing(path, content), f"call-{call.number}", [])

    def _told(self, call: Call) -> Cell:
        """A call of another server's tool in words: it does not run here, and what follows may stand on it."""
        title = escape(tr("export.call", number=call.number))
        told = [f"**{title}** {code_span(call.name)} · {escape(labels.outcome_words(call))}"]
        if call.nested:
            told += [f"*{escape(tr('export.notebook_nested'))}*", fence(bound(call.code, TOLD), "python")]
        elif given := arguments_json(call.input):
            told.append(fence(bound(given, TOLD), "json"))
        told += [f"*{escape(question)}*" for question in call.questions]
        for part in call.parts:
            if isinstance(part, Section) and part.text.strip():
                told.append(fence(bound(part.text, TOLD), "text"))
            elif isinstance(part, TableContent):
                told += [markdown_table(part), f"*{escape(labels.table_words(part))}*"]
            elif isinstance(part, FileContent):
                self._work.left_out(left_kind(part))
                told.append(f"*{escape(tr('export.not_here', what=labels.file_words(part)))}*")
        return self._text("\n\n".join(told))

    def _shown(self, call: Call) -> Iterator[Cell]:
        """The pictures that another tool has looked at; what else it did changes nothing and is left out."""
        for part in call.parts:
            if not isinstance(part, ImageContent):
                continue
            data = self._work.picture(part)
            if data is None:
                continue
            name = f"picture-{self._work.pictures}.{PICTURES[part.mime]}"
            given = call.input.get("path")
            words = code_span(given) if isinstance(given, str) else escape(call.name)
            shown = f"{words}\n\n![{escape(labels.picture_words(part))}](attachment:{name})"
            yield self._text(shown, attachments={name: {part.mime: _base64(data)}})

    def _outputs(self, call: Call) -> Iterator[Any]:
        """Yield what came of a call: streams, displays, the result, the error."""
        for stream in ("stdout", "stderr"):
            if text := call.section(stream):
                yield _NB.new_output("stream", name=stream, text=f"{text}\n")
        if call.output:
            yield _NB.new_output("stream", name="stdout", text=f"{call.output}\n")
        result = {"text/plain": call.section("result")} if call.section("result") else {}
        for part in call.parts:
            match part:
                case ImageContent() if (data := self._work.picture(part)) is not None:
                    words = f"<{labels.picture_words(part)}>"
                    yield _NB.new_output("display_data", {part.mime: _base64(data), "text/plain": words})
                case TableContent(result=True):
                    result = {"text/html": table_html(part), "text/plain": markdown_table(part), **result}
                case TableContent():
                    shown = {"text/html": table_html(part), "text/plain": labels.table_words(part)}
                    yield _NB.new_output("display_data", shown)
                case FileContent():
                    self._work.left_out(left_kind(part))
                    yield _NB.new_output("display_data", {"text/plain": f"<{labels.file_words(part)}>"})
                case Section(name="note"):
                    continue
        if result:
            yield _NB.new_output("execute_result", result)
        trace = call.section("traceback")
        if call.outcome != "ok" and (
            error := call.section("error") or last_line(trace) or call.section("tool_error")
        ):
            name, _, value = error.partition(": ")
            trace = trace or error
            yield _NB.new_output("error", ename=name.strip(), evalue=value, traceback=trace.split("\n"))


def _sentence(item: Item) -> str:
    """Return what the smaller items say; empty for those that a notebook does not hold."""
    match item:
        case Opened(again=True):
            return labels.opened_words(item)
        case Remark():
            return tr(f"export.level_{item.level}", text=item.text)
        case Attachment():
            return attached_text(item.event)
        case CutOff():
            return labels.cut_off_words(item)
        case TurnEnd():
            return labels.turn_problem(item)
        case _:
            return ""


def _first(work: Work, made: Plan) -> str:
    """Return the first cell: what the session is, and what is needed to run it."""
    lines = [f"# {escape(work.title)}", ""]
    lines += [f"- {escape(name)}: {escape(value)}" for name, value in labels.facts(work)]
    lines += ["", escape(tr("export.notebook"))]
    if made.packages:
        names = tr("export.comma").join(made.packages)
        lines += ["", escape(tr("export.notebook_packages", names=names))]
    files = [
        *(
            f"- {code_span(path)} ({size_text(size)}): {escape(tr('export.file_attached'))}"
            for path, size in made.attached.items()
        ),
        *(
            f"- {code_span(path)} ({size_text(size)}): {escape(tr('export.file_written'))}"
            for path, size in made.written.items()
        ),
        *(f"- {code_span(path)}: {escape(tr('export.file_downloaded'))}" for path in made.downloaded),
        *([f"- {code_span(WORKSPACE)}: {escape(tr('export.file_workspace'))}"] if made.workspace else ()),
    ]
    if files:
        lines += ["", escape(tr("export.notebook_files")), "", *files]
    if made.unset:
        names = tr("export.comma").join(code_span(name) for name in made.unset)
        lines += ["", f"{escape(tr('export.notebook_unset'))} {names}"]
    failed = made.failed - len(_kept(work, made))
    if failed:
        lines += ["", escape(tr_count("export.notebook_failed", failed))]
    return "\n".join(lines)


def _set_up(made: Plan) -> str:
    """Return the code that makes the folders what they were in the sandbox, and looks for the files."""
    lines = [
        f"# {tr('export.set_up')}",
        "import os",
        "",
        f'os.makedirs("{FOLDER}", exist_ok=True)',
        f'os.chdir("{FOLDER}")',
    ]
    wanted = [*made.attached, *([WORKSPACE] if made.workspace else ())]
    if wanted:
        lines += [
            "print(*[",
            f'    f"{tr("export.set_up_missing")} {{path}}"',
            "    for path in (",
            *(f"        {json.dumps(path, ensure_ascii=False)}," for path in wanted),
            "    )",
            "    if not os.path.exists(path)",
            f'] or ["{tr("export.set_up_there")}"], sep="\\n")',
        ]
    return "\n".join([*lines, "del os"])


def _writing(path: str, content: str) -> str:
    """Return code that writes a file as it was written with the tool, to the letter."""
    lines = content.splitlines(keepends=True)
    body = [f"    {line!r}" for line in lines] or ["    ''"]
    return "\n".join(
        [
            f"# write_file: {' '.join(path.split())}",
            "import pathlib",
            "",
            f"_file = pathlib.Path({path!r})",
            "_file.parent.mkdir(parents=True, exist_ok=True)",
            "_size = _file.write_text(",
            *body[:-1],
            f"{body[-1]},",
            "    encoding='utf-8',",
            ")",
        ]
    )


def table_html(part: TableContent) -> str:
    """Return a data frame as HTML with nothing in it but text."""
    head = "".join(f"<th>{escape_html(cell)}</th>" for cell in part.columns)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{escape_html(cell)}</td>" for cell in row) + "</tr>" for row in part.rows
    )
    return (
        f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n"
        f"<p>{escape_html(labels.table_words(part))}</p>"
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
