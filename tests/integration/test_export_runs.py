"""Notebooks exported from real sessions run from top to bottom and give the same numbers."""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from support.engines import engine
from support.program import run
from support.scripted import call, text

from sandbox_chat.events import ToolFinished, TurnStarted
from sandbox_chat.journal.export import export
from sandbox_chat.sandbox.local import find_bubblewrap

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the folder /tmp of the notebook is one of its own"),
]

FAILING = """\
import numpy as np
rng = np.random.default_rng(7)
prices = {"tea": 3.5, "cake": rng.normal()}
wanted = ["tea", "cake", "milk"]
total = sum(prices[name] for name in wanted)
"""
REPAIRED = """\
total = sum(prices.get(name, 0) for name in wanted)
print(f"{total:.12f}")
rng.normal()
"""
PLOT = """\
import matplotlib.pyplot as plt
plt.plot([prices.get(name, 0) for name in wanted])
plt.title("prices")
plt.show()
print(open("data/points.csv").read())
"""
FRAME = """\
import pandas as pd
pd.DataFrame({"name": wanted, "price": [prices.get(name) for name in wanted]})
"""
LOST = "import os\nos._exit(1)"
AFTER = "'prices' in globals(), 1 / 3"


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook with nbconvert, where /tmp is an empty folder, and return it with its new outputs."""
    inside = folder / "tmp"
    inside.mkdir(exist_ok=True)
    shutil.copy(path, inside / "given.ipynb")
    done = subprocess.run(
        [
            str(find_bubblewrap()), "--dev-bind", "/", "/", "--bind", str(inside), "/tmp",
            "--bind", sys.prefix, sys.prefix, "--chdir", "/tmp",
            "--die-with-parent", "--", sys.executable, "-m", "jupyter", "nbconvert", "--to", "notebook", "--execute",
            "--output", "ran.ipynb", "/tmp/given.ipynb",
        ],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    notebook = nbformat.read(inside / "ran.ipynb", as_version=4)
    nbformat.validate(notebook)
    return notebook


def told(cell: Any) -> list[tuple[str, str]]:
    """What a cell says, in any order: streams, results and errors; of a picture only that there is one."""
    found = []
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stdout":
            found.append(("stdout", output.text.rstrip("\n")))
        elif output.output_type == "execute_result":
            found.append(("result", output.data["text/plain"]))
        elif output.output_type == "error":
            found.append(("error", output.ename))
        elif "image/png" in output.get("data", {}):
            assert base64.b64decode(output.data["image/png"]).startswith(b"\x89PNG")
            found.append(("picture", ""))
    return sorted(found)


def compare(path: Path, folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Run an exported notebook; fail when a cell says something else than in the session. Returns what they say."""
    given = nbformat.read(path, as_version=4)
    nbformat.validate(given)
    ran = executed(path, folder)
    said = {}
    for before, after in zip(given.cells, ran.cells, strict=True):
        assert (before.id, before.source) == (after.id, after.source)
        if (
            before.cell_type == "code"
            and before.id.startswith("call-")
            and "failed-call" not in before.metadata.get("tags", ())
        ):
            assert told(before) == told(after), before.source
            said[before.id] = told(before)
    return said


def the_session(home: Path) -> Path:
    (session,) = home.glob("**/sessions/*/")
    return session


@pytest.mark.parametrize("include_failed", [False, True])
def test_the_demos_tour_gives_the_same_numbers(tmp_path: Path, include_failed: bool) -> None:
    """It has a plot and a repaired error."""
    home = tmp_path / "home"
    ended = run("run", "--demo", "show me a tour", home=home)
    assert ended.code == 0, ended.stderr
    to = tmp_path / "tour.ipynb"
    options = ["--include-failed"] if include_failed else []
    ended = run("export", "--to", str(to), *options, home=home)
    assert ended.code == 0, ended.stderr
    said = compare(to, tmp_path)
    everything = "\n".join(words for outputs in said.values() for _, words in outputs)
    for number in ("5050", "half-life: 2.08 s", "21.42", "words: 23"):
        assert number in everything


@pytest.mark.parametrize("include_failed", [False, True])
def test_what_a_failed_call_had_set_is_there(tmp_path: Path, include_failed: bool) -> None:
    steps = [
        call("run_code", code=FAILING),
        call("run_code", code=REPAIRED),
        call("write_file", path="data/points.csv", content="a,b\n1,2.5"),
        call("run_code", code=PLOT),
        call("run_code", code=FRAME),
        call("run_code", code=LOST),
        call("run_code", code=AFTER),
        text("done"),
    ]
    with engine(tmp_path, *steps) as running:
        running.ask("go on until it works")
        ended = running.of(ToolFinished)
    assert [event.is_error for event in ended] == [True, False, False, False, False, True, False]
    assert running.of(TurnStarted)
    to = tmp_path / "a.ipynb"
    export(the_session(tmp_path / "data"), to, include_failed=include_failed)
    said = compare(to, tmp_path)
    assert [kind for kind, _ in said["call-2"]] == ["result", "stdout"]
    assert {kind for kind, _ in said["call-4"]} == {"stdout", "picture"}
    assert "NaN" in said["call-5"][0][1]
    assert said["call-7"] == [("result", "(False, 0.3333333333333333)")]
