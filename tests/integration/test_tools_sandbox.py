"""The tools over the real local sandbox, alone and called by the real CLI."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.agent import chat
from support.scripted import call, text, tool_results
from support.toolbox import Tools

from sandbox_chat.events import FileContent, ImageContent, TableContent, TextContent, ToolFinished, ToolOutput
from sandbox_chat.sandbox import make_worker
from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Settings
from sandbox_chat.tools.context import ImageBlock

PLOT = """
import matplotlib.pyplot as plt
plt.plot([1, 2, 3])
"""


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[SandboxWorker]:
    """A worker of the local sandbox; closed at the end."""
    made = make_worker(Settings(data_dir=tmp_path / "data"))
    assert made is not None
    yield made
    await asyncio.to_thread(made.close)


@pytest.fixture
def tools(tmp_path: Path, worker: SandboxWorker) -> Tools:
    """The tools over that worker."""
    return Tools(Settings(downloads_dir=tmp_path / "downloads"), tmp_path, sandbox=worker)


async def test_variables_persist_and_failures_are_told(tools: Tools) -> None:
    assert not (await tools.call("run_code", code="x = 41")).is_error
    failed = await tools.call("run_code", code="def f():\n    return 1/0\nf()")
    assert failed.is_error
    assert "[error]\nZeroDivisionError: division by zero" in failed.text
    assert "[traceback]" in failed.text and "\x1b" not in failed.text
    assert (await tools.call("run_code", code="x + 1")).text == "[success] True\n[result]\n42"


async def test_a_timeout_keeps_the_variables(tools: Tools) -> None:
    await tools.call("run_code", code="x = 41")
    start = time.monotonic()
    late = await tools.call("run_code", code="import time\nprint('on it')\ntime.sleep(30)", timeout=2)
    assert 1.8 < time.monotonic() - start < 8
    assert late.is_error
    assert "[stdout]\non it" in late.text
    assert "stopped after 2 s" in late.text and "variables are kept" in late.text
    assert "42" in (await tools.call("run_code", code="x + 1")).text


async def test_a_shell_that_died_is_told_and_the_next_call_says_what_is_gone(tools: Tools) -> None:
    await tools.call("run_code", code="x = 41")
    died = await tools.call("run_code", code="import os\nos._exit(1)")
    assert died.is_error
    assert "variables and imports are lost" in died.text
    after = await tools.call("run_code", code="x")
    assert "NameError" in after.text
    assert "earlier calls are gone" in after.text


async def test_a_plot_is_seen_without_savefig(tools: Tools) -> None:
    outcome = await tools.call("run_code", code=PLOT)
    assert any(isinstance(block, ImageBlock) for block in outcome.model)
    assert tools.pictures and tools.pictures[0].startswith(b"\x89PNG")


async def test_savefig_and_read_image_and_download(tools: Tools, tmp_path: Path) -> None:
    saved = await tools.call("run_code", code=PLOT + "plt.savefig('/tmp/p.png')\nplt.close('all')")
    assert not saved.is_error
    seen = await tools.call("read_image", path="/tmp/p.png")
    assert isinstance(seen.model[1], ImageBlock)
    assert (await tools.call("read_file", path="/tmp/p.png")).is_error
    listed = await tools.call("list_files", path="/tmp")
    assert "p.png" in listed.text
    await tools.call("download_file", path="p.png")
    assert (tmp_path / "downloads" / "p.png").read_bytes().startswith(b"\x89PNG")


async def test_no_credential_is_in_the_sandbox(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("E2B_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, "canary-value-4711")
    code = (
        "import glob, os\nfound = str(dict(os.environ))\n"
        "for path in glob.glob('/proc/*/environ') + glob.glob('/proc/*/cmdline'):\n"
        "    try:\n        found += open(path, 'rb').read().decode('latin-1')\n"
        "    except OSError:\n        pass\n"
        "'canary' + '-value' in found"
    )
    assert (await tools.call("run_code", code=code)).text == "[success] True\n[result]\nFalse"


async def test_files_go_both_ways(tools: Tools) -> None:
    await tools.call("write_file", path="data/a.txt", content="grüß\n")
    outcome = await tools.call("run_code", code="print(open('/tmp/data/a.txt').read())")
    assert "grüß" in outcome.text
    missing = await tools.call("read_file", path="/tmp/none")
    assert missing.is_error and missing.text.startswith("[error]")


async def test_output_comes_while_the_code_runs(tools: Tools) -> None:
    code = "import time\nprint('first', flush=True)\ntime.sleep(3)\nprint('last')"
    task = asyncio.ensure_future(tools.call("run_code", code=code))
    async with asyncio.timeout(20):
        while not tools.output:
            await asyncio.sleep(0.02)
    assert not task.done()
    assert tools.output[0][2] == "first\n"
    await task


async def test_a_cancelled_run_leaves_the_sandbox_idle_with_its_variables(tools: Tools) -> None:
    await tools.call("run_code", code="x = 41")
    task = asyncio.ensure_future(
        tools.call("run_code", code="import time\nprint(1, flush=True)\ntime.sleep(30)")
    )
    async with asyncio.timeout(20):
        while not tools.output:
            await asyncio.sleep(0.02)
    start = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - start < 4
    assert tools.finished[-1][1].interrupted
    assert "42" in (await tools.call("run_code", code="x + 1")).text


async def test_a_data_frame_and_a_page(tools: Tools) -> None:
    code = (
        "import pandas as pd\nfrom IPython.display import display, HTML\ndisplay(HTML('<h1>Report</h1>'))\n"
        "pd.DataFrame({'a': range(100), 'b': ['<x>'] * 100})"
    )
    outcome = await tools.call("run_code", code=code)
    text, page, table = outcome.display
    assert isinstance(text, TextContent)
    assert isinstance(page, FileContent)
    assert tools.files == [b"<h1>Report</h1>"]
    assert isinstance(table, TableContent)
    assert table.result
    assert table.columns == ("", "a", "b")
    assert table.rows[0] == ("0", "0", "<x>")
    assert (table.row_count, table.column_count) == (100, 2)
    assert "<h1>" not in outcome.text
    assert "[result]" in outcome.text


@pytest.mark.slow
async def test_a_chat_with_the_sandbox(tmp_path: Path, worker: SandboxWorker) -> None:
    steps = (
        call("run_code", code="x = sum(range(101))\nprint(x)"),
        text("It is 5050."),
        call("run_code", code=PLOT),
        text("There it is."),
        call("run_code", code="import time\nprint('on it', flush=True)\ntime.sleep(30)"),
        call("run_code", code="x + 1"),
        text("Still here."),
    )
    async with chat(*steps, tmp=tmp_path, worker=worker) as c:
        await c.ask("sum")
        assert "5050" in tool_results(c.server)[0].text
        await c.ask("plot")
        picture = c.of(ToolFinished)[-1].content[-1]
        assert isinstance(picture, ImageContent)
        seen = len(c.of(ToolOutput))
        turn = await c.send("wait")
        await c.until(lambda: len(c.of(ToolOutput)) > seen)
        start = time.monotonic()
        await c.session.interrupt()
        finished = await c.finished(turn)
        assert finished.interrupted
        assert time.monotonic() - start < 4
        await c.ask("and x?")
        assert "5051" in tool_results(c.server)[0].text
