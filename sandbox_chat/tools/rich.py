"""What code shows beside text and pictures: data frames as tables, other HTML as files for the browser."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sandbox_chat.events import Content, FileContent, TableContent
from sandbox_chat.sandbox.base import RichOutput
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean_line
from sandbox_chat.tools.frames import read_frame

MOST = 20
"""Tables and files of one run at most."""
SaveFile = Callable[[bytes, str, str], FileContent]

_KINDS = (
    ("plotly figure", re.compile(r"plotly-graph-div|Plotly\.newPlot")),
    ("altair chart", re.compile(r"vega-embed|vegaEmbed")),
    ("bokeh plot", re.compile(r"Bokeh\.|bk-root|data-root-id")),
    ("folium map", re.compile(r"leaflet|folium")),
)
_STYLED = re.compile(r'<table id="T_')
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,300})</title>", re.I)
_TAG = re.compile(
    r"<(?:link|meta)\b[^>]{0,2000}>|</?(?:html|head|body|div|span|p|br|table|thead|tbody|tr|th)\s*/?>"
    r'|<table border="1" class="dataframe">|<tr style="text-align: right;">|<small>shape: \(0, 0\)</small>',
    re.I,
)
"""What shows nothing by itself; the frame of a data frame without rows and columns too."""
_BEGINS = re.compile(r"<(?:script|style)\b|<!--")
_BARE = 4000
"""Characters outside scripts and styles above which a page surely has something to see."""
_PLOTLY = "Plotly"
_PLOTLY_SOURCE = re.compile(r"plotly\.js v[\d.]+|cdn\.plot\.ly|plotly-[\w.-]{0,60}\.js")
_BOKEH_SOURCE = "_bokeh_onload_callbacks"
_BOKEH_LOADING = 'class="bk-notebook-logo"'
"""Stands in the sign that bokeh shows while its library is loaded."""
_ROOT = re.compile(r'data-root-id="([\w-]{1,80})"')
"""The place that a script of bokeh draws into."""
_ROOT_ROOM = 10_000
_KIND_ROOM = 300_000
"""Characters at the start and at the end of HTML that are searched for what made it."""


@dataclass
class Scripts:
    """The libraries that plots were shown with before: later ones come without, and need them in the browser."""

    plotly: str = field(default="", repr=False)
    bokeh: str = field(default="", repr=False)

    def whole(self, html: str) -> str:
        """Return ``html`` with the library that it needs before it."""
        ends = _ends(html)
        if self.plotly and _PLOTLY in ends and _PLOTLY_SOURCE.search(ends) is None:
            return f"{self.plotly}\n{html}"
        if self.bokeh and _ROOT.search(ends):
            return f"{self.bokeh}\n{html}"
        return html

    def learn(self, html: str) -> None:
        """Take a page that shows nothing, if it is a library."""
        if _PLOTLY_SOURCE.search(html):
            self.plotly = html
        elif _BOKEH_SOURCE in html:
            self.bokeh = html


async def rich_contents(
    outputs: Sequence[RichOutput], settings: Settings, save: SaveFile, scripts: Scripts
) -> tuple[list[Content], list[str]]:
    """Return the tables and files among the results of a run, and sentences for the user about what was left out."""
    pages = [(html, output.is_result) for output in outputs if (html := _html(output.data.get("text/html")))]
    if not pages:
        return [], []
    return await asyncio.to_thread(_gather, pages, settings, save, scripts)


def _html(value: str | bytes | None) -> str:
    return value if isinstance(value, str) and value.strip() else ""


def _gather(
    pages: Iterable[tuple[str, bool]], settings: Settings, save: SaveFile, scripts: Scripts
) -> tuple[list[Content], list[str]]:
    found: list[Content] = []
    notes: list[str] = []
    left_out = 0
    for html, is_result in _drawn(pages):
        if len(found) >= MOST:
            left_out += 1
            continue
        frame = read_frame(
            html, rows=settings.table_rows, columns=settings.table_columns, cell=settings.table_cell
        )
        if frame is not None:
            found.append(
                TableContent(frame.columns, frame.rows, frame.row_count, frame.column_count, is_result)
            )
            if not frame.styled:
                continue
        elif _invisible(html) or _BOKEH_LOADING in html:
            if len(html) <= settings.html_limit:
                scripts.learn(html)
            continue
        if problem := _keep(html, settings, save, scripts, found):
            notes.append(problem)
    if left_out:
        notes.append(f"{left_out} more tables and HTML results of this call are not shown.")
    return found, notes


def _drawn(pages: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Put scripts behind the page before them when they draw into it."""
    found: list[tuple[str, bool]] = []
    for html, is_result in pages:
        root = _ROOT.search(found[-1][0][:_ROOT_ROOM]) if found and html.startswith("<script>") else None
        if root is not None and root[1] in html:
            found[-1] = (f"{found[-1][0]}\n{html}", found[-1][1])
        else:
            found.append((html, is_result))
    return found


def _keep(html: str, settings: Settings, save: SaveFile, scripts: Scripts, found: list[Content]) -> str:
    """Save a page for the browser; return why that was not done."""
    if not settings.html_limit:
        return ""
    title = page_title(html)
    data = scripts.whole(html).encode("utf-8", "replace")
    if len(data) > settings.html_limit:
        return (
            f"The {title} was not kept: {len(data):,} bytes are more than the limit of {settings.html_limit:,} "
            "(SANDBOX_CHAT_HTML_LIMIT)."
        )
    try:
        found.append(save(data, "text/html", title))
    except OSError as error:
        return f"The {title} could not be kept on this computer ({clean_line(error.strerror or str(error))})."
    return ""


def page_title(html: str) -> str:
    """Return in a few words what HTML shows: what made it, or its own title."""
    ends = _ends(html)
    for words, sign in _KINDS:
        if sign.search(ends):
            return words
    if _STYLED.search(ends):
        return "styled table"
    own = _TITLE.search(ends)
    return (clean_line(own.group(1), 60) if own else "") or "HTML"


def _ends(html: str) -> str:
    return html if len(html) <= 2 * _KIND_ROOM else f"{html[:_KIND_ROOM]}\n{html[-_KIND_ROOM:]}"


def _invisible(html: str) -> bool:
    """Whether HTML holds nothing to see: scripts that prepare what comes later, styles."""
    low = html.lower()
    bare: list[str] = []
    at = size = 0
    while (start := _next(low, at)) >= 0 and size <= _BARE:
        bare.append(html[at:start])
        size += start - at
        end = "-->" if low.startswith("<!--", start) else f"</{low[start + 1 : start + 6]}"
        found = low.find(end, start)
        at = low.find(">", found) + 1 if found >= 0 else len(html)
        if not at:
            at = len(html)
    bare.append(html[at:])
    return len(text := "".join(bare)) <= _BARE and not _TAG.sub("", text).strip()


def _next(low: str, at: int) -> int:
    """Return where the next script, style or comment begins, -1 if none does."""
    match = _BEGINS.search(low, at)
    return match.start() if match is not None else -1
