"""Tables and pages among the results of a run."""

from __future__ import annotations

import pandas as pd
import pytest
from support.pictures import picture
from support.toolbox import Tools

from sandbox_chat.events import FileContent, ImageContent, TableContent, TextContent
from sandbox_chat.sandbox.base import Execution, RichOutput
from sandbox_chat.settings import Settings
from sandbox_chat.tools import rich
from sandbox_chat.tools.rich import MOST, Scripts, page_title, rich_contents

FRAME = (
    '<table border="1" class="dataframe"><thead><tr><th></th><th>a</th></tr></thead>'
    "<tbody><tr><th>0</th><td>1</td></tr></tbody></table>"
)
EMPTY_POLARS = (
    "<div><style>\n.dataframe > thead > tr { text-align: right; }\n</style>\n<small>shape: (0, 0)</small>"
    '<table border="1" class="dataframe"><thead><tr></tr><tr></tr></thead><tbody></tbody></table></div>'
)
PLOT = '<div><div id="p" class="plotly-graph-div"></div><script>Plotly.newPlot("p", [])</script></div>'
LIBRARY = "<script>/* plotly.js v3.0.1 */ window.Plotly = {}</script>\n<style>x</style>"


class Saved:
    """Takes what is saved."""

    def __init__(self) -> None:
        self.data: list[bytes] = []

    def __call__(self, data: bytes, mime: str, title: str) -> FileContent:
        self.data.append(data)
        return FileContent(f"/f/{len(self.data)}", mime, len(data), title)


async def rich_of(*pages: str, settings: Settings | None = None, scripts: Scripts | None = None) -> tuple:
    saved = Saved()
    outputs = [RichOutput({"text/html": page}, is_result=page is pages[-1]) for page in pages]
    found, notes = await rich_contents(outputs, settings or Settings(), saved, scripts or Scripts())
    return found, notes, saved.data


async def test_a_data_frame_is_a_table_and_no_file() -> None:
    found, notes, saved = await rich_of(FRAME)
    assert found == [TableContent(("", "a"), (("0", "1"),), 1, 1, result=True)]
    assert (notes, saved) == ([], [])


async def test_a_plot_is_kept_with_the_scripts_that_draw_it() -> None:
    scripts = Scripts()
    logo = (
        '<style>.bk-notebook-logo {}</style><a class="bk-notebook-logo"></a><span>Loading BokehJS ...</span>'
    )
    library = "<script>root._bokeh_onload_callbacks = []</script>"
    place, draws = '<div id="e1" data-root-id="p1"></div>', '<script>embed({"p1": "e1"})</script>'
    other = "<script>embed({})</script>"
    found, _, saved = await rich_of(logo, library, place, draws, other, scripts=scripts)
    assert saved == [f"{library}\n{place}\n{draws}".encode()]
    assert [part.title for part in found] == ["bokeh plot"]
    _, _, saved = await rich_of(place, draws, scripts=scripts)  # in a later call
    assert saved == [f"{library}\n{place}\n{draws}".encode()]


@pytest.mark.parametrize("html", [pd.DataFrame()._repr_html_(), EMPTY_POLARS])
async def test_a_data_frame_without_anything_is_its_text(html: str) -> None:
    assert (await rich_of(html))[::2] == ([], [])


async def test_other_html_is_a_file() -> None:
    found, notes, saved = await rich_of("<h1>Report</h1>")
    assert found == [FileContent("/f/1", "text/html", 15, "HTML")]
    assert saved == [b"<h1>Report</h1>"]
    assert notes == []


async def test_a_styled_frame_is_both() -> None:
    found, _, _ = await rich_of('<style></style><table id="T_x"><tr><td>1</td></tr></table>')
    assert [type(part) for part in found] == [TableContent, FileContent]
    assert found[1].title == "styled table"


async def test_a_plot_gets_the_library_that_came_before_it() -> None:
    scripts = Scripts()
    found, _, saved = await rich_of(LIBRARY, PLOT, scripts=scripts)
    assert [part.title for part in found] == ["plotly figure"]
    assert saved == [f"{LIBRARY}\n{PLOT}".encode()]
    _, _, later = await rich_of(PLOT, scripts=scripts)  # in another call of the session
    assert later == saved
    whole = f'<script src="https://cdn.plot.ly/plotly-3.0.1.min.js"></script>{PLOT}'
    _, _, own = await rich_of(whole, scripts=scripts)
    assert own == [whole.encode()]


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<div id='vis'></div><script>vegaEmbed('#vis', {})</script>", "altair chart"),
        ("<div data-root-id='1'></div><script>Bokeh.embed()</script>", "bokeh plot"),
        ("<iframe srcdoc='leaflet'></iframe>", "folium map"),
        ("<html><head><title>My\x1b[2J report</title></head></html>", "My␛[2J report"),
        ("<title>[/bold] x</title>y", "[/bold] x"),
        ("<b>x</b>", "HTML"),
    ],
)
def test_titles(html: str, title: str) -> None:
    assert page_title(html) == title


async def test_limits_are_said() -> None:
    found, notes, _ = await rich_of("<b>" + "x" * 200 + "</b>", settings=Settings(html_limit=100))
    assert found == []
    assert "SANDBOX_CHAT_HTML_LIMIT" in notes[0]
    found, notes, _ = await rich_of("<b>x</b>", settings=Settings(html_limit=0))
    assert (found, notes) == ([], [])
    found, notes, _ = await rich_of(*[f"<b>{number}</b>" for number in range(MOST + 3)])
    assert len(found) == MOST
    assert notes == ["3 more tables and HTML results of this call are not shown."]


async def test_a_disk_that_takes_nothing_is_said() -> None:
    def refuse(data: bytes, mime: str, title: str) -> FileContent:
        raise OSError(28, "No space left on device")

    found, notes = await rich_contents([RichOutput({"text/html": "<b>x</b>"})], Settings(), refuse, Scripts())
    assert found == []
    assert notes == ["The HTML could not be kept on this computer (No space left on device)."]


@pytest.mark.parametrize(
    "part",
    [
        "<script>",
        "<!--",
        "<link ",
        "plotly-",
        "<script></script",
        "<title>",
        "Plotly",
        "<table ",
        "</",
        "<div ",
    ],
)
def test_hostile_html_ends(part: str) -> None:
    """What grows by the square of the length would take days here."""
    html = "<script " + part * (8_000_000 // len(part))
    rich._gather([(html, True)], Settings(), Saved(), Scripts())


async def test_a_call_shows_table_and_picture_and_the_model_gets_the_text(tools: Tools) -> None:
    outputs = (
        RichOutput({"text/plain": "   a\n0  1", "text/html": FRAME}),
        RichOutput(
            {"text/html": "<b>x</b>", "image/png": picture(8, 8), "text/plain": "plot"}, is_result=True
        ),
    )
    tools.sandbox.next = [Execution(outputs=outputs)]
    outcome = await tools.call("run_code", code="df")
    assert [type(part) for part in outcome.display] == [TextContent, ImageContent, TableContent, FileContent]
    assert "<table" not in outcome.text and "<b>" not in outcome.text
    assert "   a\n0  1" in outcome.text
    assert tools.files == [b"<b>x</b>"]
