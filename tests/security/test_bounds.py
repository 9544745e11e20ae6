"""Text that comes back from the sandbox: harmless to a terminal, and never more than its limit."""

from __future__ import annotations

import asyncio
import functools
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from security.acting import ACTING, ESCAPES
from support.pictures import picture
from support.toolbox import Tools

from sandbox_chat.sandbox.base import (
    CodeError,
    Execution,
    FileEntry,
    RichOutput,
    SandboxError,
    SandboxFileError,
)
from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Settings
from sandbox_chat.tools.files import listing
from sandbox_chat.tools.run_code import sections

HARD_LIMIT = 45_000
"""Characters that no answer to the model may pass, whatever the settings."""


async def test_escape_sequences_come_back_as_signs(real: Tools, worker: SandboxWorker) -> None:
    code = f"""
import sys
E = {ESCAPES!r}
print(E); print(E, file=sys.stderr)
class X(Exception): pass
X.__name__ = E
class R:
    def __repr__(self): return E
from IPython.display import display
display(R())
if want == "error": raise X(E)
R()
"""
    for want in ("result", "error"):
        outcome = await real.call("run_code", code=f"want = {want!r}\n{code}")
        assert not ACTING.search(outcome.text), outcome.text
        shown = "".join(text for _, _, text in real.output)
        assert "\u241b" in shown and not ACTING.search(shown.replace("\r", ""))
    await worker.write_file("/tmp/esc.txt", (ESCAPES.replace("\0", "") + "plain text\n" * 50).encode())
    assert not ACTING.search((await real.call("read_file", path="/tmp/esc.txt")).text)
    missing = await real.call("read_file", path="/tmp/" + ESCAPES.replace("\0", ""))
    assert missing.is_error and not ACTING.search(missing.text)


text = st.text(max_size=400)
long_text = st.builds(
    lambda part, count: part * count, st.text(min_size=1, max_size=40), st.integers(0, 4000)
)
any_text = text | long_text
executions = st.builds(
    Execution,
    stdout=any_text,
    stderr=any_text,
    outputs=st.lists(
        st.builds(
            RichOutput,
            st.dictionaries(
                st.sampled_from(["text/plain", "text/html", "image/svg+xml"]), any_text, max_size=3
            ),
            st.booleans(),
        ),
        max_size=4,
    ).map(tuple),
    error=st.none() | st.builds(CodeError, any_text, any_text, any_text),
    stopped=st.sampled_from(["", "timeout", "interrupted", "died"]),
    fresh=st.booleans(),
    notes=st.lists(any_text, max_size=40).map(tuple),
)


@given(executions, st.integers(1000, HARD_LIMIT), st.lists(text, max_size=24))
@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
def test_an_answer_never_passes_its_limit(execution: Execution, limit: int, notes: list[str]) -> None:
    answer = sections(execution, timeout=25, limit=limit, notes=notes)
    assert len(answer) <= limit <= HARD_LIMIT
    assert answer.startswith("[success] ")


@given(
    text,
    st.lists(
        st.builds(FileEntry, any_text.map(lambda name: "/" + name), st.booleans(), st.integers(0, 2**62)),
        max_size=30,
    ),
)
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
def test_a_listing_is_harmless(path: str, entries: list[FileEntry]) -> None:
    assert not ACTING.search(listing(path, entries))


LONG = [
    ("run_code", {"code": "big"}),
    ("read_file", {"path": "/tmp/long.txt"}),
    ("read_file", {"path": "/tmp/controls.txt"}),
    ("read_file", {"path": "/tmp/" + "n" * 100_000}),
    ("write_file", {"path": "/tmp/" + "n" * 100_000, "content": "x"}),
    ("list_files", {"path": "/tmp/" + "n" * 100_000}),
    ("read_image", {"path": "/tmp/large.png"}),
    ("read_image", {"path": "/tmp/" + "n" * 100_000}),
    ("download_file", {"path": "/tmp/" + "n" * 100_000}),
    ("download_file", {"path": "/tmp/long.txt", "name": "n" * 100_000}),
    ("no_such", {}),
    ("run_code", {"code": 5, "x" * 100_000: 1}),
]


@functools.cache
def large() -> bytes:
    """A picture file of 27 MB."""
    return picture(3000, 3000, noise=True)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1000, 20_000, HARD_LIMIT])
async def test_every_tool_keeps_to_the_limit_whatever_it_answers(tmp_path: Path, limit: int) -> None:
    tools = Tools(Settings(downloads_dir=tmp_path / "d", text_limit=limit), tmp_path)
    data = large()
    assert len(data) > 26_000_000
    tools.sandbox.files |= {
        "/tmp/long.txt": b"line of text\n" * 80_000,
        "/tmp/controls.txt": b"a\x1b\x1b" * 3_000_000,
        "/tmp/large.png": data,
    }
    for name, arguments in LONG:
        three = tuple(RichOutput({"image/png": data}) for _ in range(3))
        error = CodeError("E" * 1_000_000, "v" * 1_000_000, "t" * 1_000_000)
        notes = ("n" * 100_000,) * 50
        tools.sandbox.next = [
            Execution(
                stdout="x" * 1_000_000, stderr="\x1b" * 1_000_000, outputs=three, error=error, notes=notes
            )
        ]
        if name == "no_such":
            continue
        outcome = await tools.call(name, **arguments)
        assert len(outcome.text) <= limit, (name, len(outcome.text))
        pictures = [block for block in outcome.model if type(block).__name__ == "ImageBlock"]
        assert len(pictures) <= tools.settings.images_per_call
        assert all(len(block.data) <= tools.settings.image_limit for block in pictures)  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", [SandboxError, SandboxFileError, OSError, RuntimeError, RecursionError])
@pytest.mark.parametrize("limit", [1000, HARD_LIMIT])
async def test_every_failure_keeps_to_the_limit(tmp_path: Path, kind: type[Exception], limit: int) -> None:
    tools = Tools(Settings(downloads_dir=tmp_path / "d", text_limit=limit), tmp_path)
    tools.sandbox.fail = kind(("\x1b[2J" + "x" * 50) * 20_000)
    for name, arguments in (
        ("run_code", {"code": "1"}), ("write_file", {"path": "x", "content": "y"}), ("read_file", {"path": "x"}),
        ("read_image", {"path": "x"}), ("list_files", {}), ("download_file", {"path": "x"}),
    ):  # fmt: skip
        outcome = await tools.call(name, **arguments)
        assert outcome.is_error
        assert len(outcome.text) <= limit
        assert not ACTING.search(outcome.text)


def test_no_setting_allows_more() -> None:
    from sandbox_chat.settings import ConfigError, load

    with pytest.raises(ConfigError):
        load({"text_limit": HARD_LIMIT + 1}, environ={})


async def test_the_loop_is_not_held_by_what_comes_back(tools: Tools) -> None:
    """Ten million characters that must be made harmless do not stop everything else for long."""
    tools.sandbox.files["/tmp/x"] = b"ab\x1b[2J" * 1_600_000
    tools.sandbox.next = []
    longest = await _longest_stop(tools, "read_file", path="/tmp/x")
    tools.sandbox.next = [
        Execution(outputs=(RichOutput({"text/plain": "\x1b]52;c;aGk=\x07" * 1_000_000}, is_result=True),))
    ]
    longest = max(longest, await _longest_stop(tools, "run_code", code="x"))
    assert longest < 2.0


async def _longest_stop(tools: Tools, name: str, **arguments: Any) -> float:
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            longest = max(longest, time.monotonic() - before)

    task = asyncio.ensure_future(tick())
    await tools.call(name, **arguments)
    task.cancel()
    return longest
