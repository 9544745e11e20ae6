"""A session as one page for the browser: no script, nothing loaded, pictures within it, tool calls to unfold."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from html import escape
from pathlib import PurePosixPath

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
from sandbox_chat.journal.export.page_prose import answer, code
from sandbox_chat.journal.export.page_style import style_sheet
from sandbox_chat.journal.export.work import Work, data_uri, left_kind
from sandbox_chat.plain import attached_text
from sandbox_chat.text import clean_line
from sandbox_chat.words import language, tr

_HEAD = """\
<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
"""
_POLICY = (
    "default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
)
_SUMMARY = 120
"""Characters of a call's first line that stand on its closed fold."""


def write(work: Work) -> None:
    """Write the whole document."""
    out = work.target.out
    style = style_sheet()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    tag = {"zh": "zh-Hans"}.get(language(), language())
    policy = escape(_POLICY.format(digest=digest), quote=False)
    out.write(_HEAD.format(language=tag, policy=policy, title=escape(work.title), style=style))
    out.write("<dl>\n")
    for name, value in labels.facts(work):
        out.write(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>\n")
    out.write("</dl>\n")
    for item in work.items():
        out.writelines(_blocks(work, item))
    if missing := work.left_out_words():
        out.write(f"<footer>\n<p>{escape(tr('export.left_out_title'))}</p>\n<ul>\n")
        out.writelines(f"<li>{escape(line)}</li>\n" for line in missing)
        out.write("</ul>\n</footer>\n")
    out.write("</main>\n</body>\n</html>\n")


def _blocks(work: Work, item: Item) -> Iterator[str]:
    match item:
        case Opened(again=True):
            yield _words(labels.opened_words(item), "remark")
        case Prompt():
            title = tr("export.steered" if item.steered else "export.turn", number=item.number)
            yield f'<h2>{escape(title)}</h2>\n<div class="prompt">{escape(item.text)}</div>\n'
        case Thinking():
            yield (
                f'<details class="thinking"><summary>{escape(tr("export.thinking"))}</summary>'
                f"<div>{escape(item.text)}</div></details>\n"
            )
        case Answer():
            yield f'<div class="answer">\n{answer(item.text)}</div>\n'
            if item.cut:
                yield _words(tr("export.answer_cut"), "remark warning")
        case Call():
            yield from _call(work, item)
        case Background():
            yield _words(tr("export.background", name=item.name, number=item.number), "remark")
            yield code(item.text)
        case Remark():
            yield _words(tr(f"export.level_{item.level}", text=item.text), f"remark {item.level}")
        case Attachment():
            yield _words(attached_text(item.event), "remark error" if item.event.error else "remark")
        case CutOff():
            yield _words(labels.cut_off_words(item), "remark warning")
        case TurnEnd():
            if problem := labels.turn_problem(item):
                yield _words(problem, "remark warning" if item.event.interrupted else "remark error")
            yield _words(labels.turn_words(item), "turn-end")
        case _:
            return


def _words(text: str, kind: str) -> str:
    return f'<p class="{kind}">{escape(text)}</p>\n'


def _call(work: Work, call: Call) -> Iterator[str]:
    """Yield a call's fold, and below it what is to be seen without opening it: pictures and tables."""
    title = tr("export.call", number=call.number)
    opened = " open" if call.outcome == "failed" else ""
    yield (
        f'<details class="call {call.outcome}"{opened}><summary>{escape(title)} <code>{escape(call.name)}</code> '
        f'<span class="how">{escape(labels.outcome_words(call))}</span> <span class="first">{escape(_first_line(call))}</span></summary>\n<div>\n'
    )
    yield from _arguments(call)
    for question in call.questions:
        yield _words(question, "remark")
    if call.output:
        yield code(call.output)
    seen: list[str] = []
    for part in call.parts:
        match part:
            case Section(name="note"):
                yield _words(part.text, "remark")
            case Section():
                if part.name:
                    yield f"<h3>{escape(labels.part_title(part.name))}</h3>\n"
                if part.text.strip():
                    yield code(part.text, "pytb" if part.name == "traceback" else "")
            case TableContent():
                seen.append(_table(part))
            case ImageContent():
                seen.append(_picture(work, part))
            case FileContent():
                work.left_out(left_kind(part))
                seen.append(_words(tr("export.not_here", what=labels.file_words(part)), "remark"))
    yield "</div>\n</details>\n"
    yield from seen


def _first_line(call: Call) -> str:
    given = call.code or next((v for v in call.input.values() if isinstance(v, str) and v.strip()), "")
    return clean_line(next((line for line in given.splitlines() if line.strip()), ""), _SUMMARY)


def _arguments(call: Call) -> Iterator[str]:
    """Yield what a call was given: code and the content of files as it is, the rest as JSON."""
    rest = dict(call.input)
    if call.code:
        yield code(str(rest.pop("code")), "python")
    elif isinstance(rest.get("content"), str) and isinstance(rest.get("path"), str):
        path, content = str(rest.pop("path")), str(rest.pop("content"))
        yield f"<h3><code>{escape(path)}</code></h3>\n"
        yield code(content, labels.LANGUAGES.get(PurePosixPath(path).suffix.lower(), ""))
    if rest:
        yield code(json.dumps(rest, ensure_ascii=False, indent=1, default=str), "json")


def _picture(work: Work, part: ImageContent) -> str:
    words = labels.picture_words(part)
    data = work.picture(part)
    if data is None:
        return _words(tr("export.not_here", what=words), "remark")
    return (
        f'<figure><img src="{data_uri(data, part.mime)}" alt="{escape(words)}" width="{part.width:d}" '
        f'height="{part.height:d}" loading="lazy"></figure>\n'
    )


def _table(part: TableContent) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in part.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in part.rows
    )
    return (
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n'
        f"{_words(labels.table_words(part), 'remark')}"
    )
