"""A made-up session with all that a document must cope with, and ways to export it."""

from __future__ import annotations

import base64
import dataclasses
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sandbox_chat import events as ev
from sandbox_chat.journal import Journal

ID = "0f8b9a52-1111-4000-8000-000000000001"
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
RUN = "mcp__sandbox__run_code"
TRACEBACK = """\
---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
Cell In[2], line 4
      1 prices = {"tea": 3.5}
      2 wanted = ["tea", "cake"]
----> 4 total = sum(prices[name] for name in wanted)
      5 print(total)

KeyError: 'cake'"""
FAILING = """\
prices = {"tea": 3.5}
wanted = ["tea", "cake"]

total = sum(prices[name] for name in wanted)
print(total)
"""
REPAIRED = """\
total = sum(prices.get(name, 0) for name in wanted)
total
"""
ANSWER = """\
The curve **halves** every `2.08 s`, see [the page](https://example.org/a?b=c&d).

| name | value |
|:---|---:|
| tau | 3 |

```python
print("1 < 2")
```
"""
HOSTILE_PROMPT = (
    "<script>alert(1)</script> [x](javascript:alert(2)) ![y](http://evil.example/t.png)\n# no *title*"
)
HOSTILE_ANSWER = """\
<img src=x onerror=alert(3)> and <b onclick="alert(4)">bold</b> and <!-- a comment

![tracker](https://evil.example/t.png) [bad](javascript:alert(5)) [local](file:///etc/passwd) [up](../../x)
[ref]: javascript:alert(6)

```html
</code></pre><script>alert(7)</script>
"""


def finished(turn: str, **changes: Any) -> ev.TurnFinished:
    """The end of a turn."""
    values: dict[str, Any] = {
        "turn_id": turn, "subtype": "success", "is_error": False, "interrupted": False, "num_turns": 2,
        "duration_ms": 3140, "cost_usd": 0.0123, "total_cost_usd": 0.0409, "usage": ev.Usage(3000, 412, 100, 0),
        **changes,
    }  # fmt: skip
    return ev.TurnFinished(**values)


def called(
    number: int, code: str, *parts: ev.Content, failed: bool = False, **changes: Any
) -> list[ev.Event]:
    """A call of run_code and its end."""
    call_id = f"toolu_{number}"
    values: dict[str, Any] = {"is_error": failed, "content": parts, "duration_ms": 420, **changes}
    return [
        ev.ToolInputDelta(tool_use_id=call_id, name=RUN, text=""),
        ev.ToolInputDelta(tool_use_id=call_id, name=RUN, text='{"code":'),
        ev.ToolStarted(tool_use_id=call_id, name=RUN, input={"code": code}),
        ev.ToolFinished(tool_use_id=call_id, **values),
    ]


def picture(journal: Journal) -> ev.ImageContent:
    """A picture in the session's folder."""
    return journal.save_picture(PNG, "image/png", 640, 480)


def table() -> ev.TableContent:
    """A data frame of which two rows are kept."""
    rows = (("0", "<b>tea</b>", "3.5"), ("1", "a|b", "-"))
    return ev.TableContent(("", "name", "price"), rows, 1000, 2, result=True)


def past(journal: Journal) -> list[ev.Event]:
    """All events of the session."""
    stdout = ev.TextContent("[success] True\n[stdout]\nhalf-life 2.08 s")
    result = ev.TextContent(
        "[success] True\n[result]\n   name  price\n0   tea    3.5\n[note] Two rows are enough."
    )
    error = ev.TextContent(f"[success] False\n[error]\nKeyError: 'cake'\n[traceback]\n{TRACEBACK}")
    page = journal.save_file(b"<script>plot()</script>", "text/html", "plotly figure")
    whole = journal.save_file(b"a long output\n" * 3, "text/plain", "whole output")
    return [
        ev.SessionStarted(session_id=ID, model="claude-x", sandbox="local", demo=False),
        ev.Status(component="agent", state="ready"),
        ev.Attached(attach_id="a1", name="d.csv", path="/tmp/attached/d.csv", size=1234, kind="CSV"),
        ev.TurnStarted(turn_id="t1", prompt="Plot a damped sine\nand tell me its half-life."),
        ev.ThinkingDelta(text="The envelope "),
        ev.ThinkingDelta(text="is an exponential."),
        ev.TextDelta(text="I'll plot"),
        ev.TextDelta(text=" it."),
        ev.Text(text="I'll plot it."),
        *called(1, "import numpy as np\nprint('half-life 2.08 s')\n", stdout, picture(journal), page, whole),
        ev.ToolOutput(tool_use_id="toolu_1", stream="stdout", text="a thread goes on\n", late=True),
        ev.Text(text=ANSWER),
        finished("t1"),
        ev.TurnStarted(turn_id="t2", prompt="What does tea and cake cost?"),
        ev.TextDelta(text="this is withdrawn"),
        ev.Retry(reason="the endpoint is overloaded", attempt=1, delay_ms=500),
        ev.Text(text="I add the prices."),
        *called(2, FAILING, error, failed=True),
        *called(3, REPAIRED, ev.TextContent("[success] True\n[result]\n3.5")),
        *called(4, "import pandas as pd\npd.DataFrame({'name': ['tea'], 'price': [total]})", result, table()),
        ev.ToolStarted(
            tool_use_id="w1",
            name="mcp__sandbox__write_file",
            input={"path": "/tmp/notes.md", "content": "# tea\ncosts 3.5"},
        ),
        ev.ToolFinished(
            tool_use_id="w1", is_error=False, content=(ev.TextContent("Wrote 16 bytes."),), duration_ms=3
        ),
        ev.ApprovalRequested(
            approval_id="q1", kind="overwrite", question="Replace notes.md?", detail="/home/x/notes.md",
            choices=(ev.Choice("no", "n", "do not save"),), default="no",
        ),
        ev.ApprovalAnswered(approval_id="q1", choice="no", by="user"),
        ev.Notice(level="warning", text="The session cannot be saved. Make room."),
        ev.Text(text="Together **3.5**."),
        finished("t2"),
        ev.TurnStarted(turn_id="t3", prompt=HOSTILE_PROMPT),
        ev.Text(text=HOSTILE_ANSWER),
        ev.ToolStarted(tool_use_id="toolu_5", name=RUN, input={"code": "import time\ntime.sleep(30)"}),
        ev.ToolOutput(tool_use_id="toolu_5", stream="stdout", text="10%"),
        ev.ToolOutput(tool_use_id="toolu_5", stream="stdout", text="20%", rewind=3),
        ev.ToolFinished(
            tool_use_id="toolu_5", is_error=True, interrupted=True, duration_ms=2000,
            content=(ev.TextContent("The call was stopped before it ended."),),
        ),
        ev.TextDelta(text="Half an ans"),
        finished("t3", is_error=True, interrupted=True, subtype="error_during_execution"),
        ev.SessionFinished(),
    ]  # fmt: skip


def write_session(root: Path, events: Any = past) -> Path:
    """Write the session under ``root`` and return its folder. ``events`` makes them, given the journal."""
    shutil.rmtree(root / ID, ignore_errors=True)
    journal = Journal.create(root, ID)
    made: list[ev.Event] = events(journal)
    for number, event in enumerate(made, 1):
        journal.append(dataclasses.replace(event, seq=number, at=NOON + timedelta(seconds=number)))
    journal.close()
    assert journal.problem == ""
    (journal.folder / "meta.json").unlink()  # its time is that of the disk
    return journal.folder
