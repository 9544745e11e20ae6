"""Every way by which personal data could reach the model or the record, with the real agent: what goes out is searched for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.engines import Running, engine
from support.mcp_host import config_file, way
from support.scripted import call, text, tool_results

from sandbox_chat.events import Attached
from sandbox_chat.settings import ConfigError

VALUE = "ann.lee@example.org"
PARTS = "'ann.lee' + '@' + 'example.org'"
"""The value as code can make it without the model's having said it."""

WAYS: dict[str, list[Any]] = {
    "output": [call("run_code", code=f"print({PARTS})")],
    "error output": [call("run_code", code=f"import sys; print({PARTS}, file=sys.stderr)")],
    "a result": [call("run_code", code=f"[{PARTS}]")],
    "a table": [call("run_code", code=f"import pandas as pd; pd.DataFrame({{'who': [{PARTS}], {PARTS}: [1]}})")],
    "an exception": [call("run_code", code=f"raise ValueError({PARTS})")],
    "a name of a file": [
        call("run_code", code=f"open('/tmp/' + {PARTS} + '.txt', 'w').close()"),
        call("list_files", path="/tmp"),
    ],
    "a file": [
        call("run_code", code=f"open('/tmp/a.txt', 'w').write('to ' + {PARTS})"),
        call("read_file", path="/tmp/a.txt"),
    ],
    "a file that is no text": [
        call("run_code", code=f"open('/tmp/' + {PARTS}, 'wb').write(b'\\x00' * 100); import os; os.rename('/tmp/' + {PARTS}, '/tmp/x.bin')"),
        call("read_file", path="/tmp/x.bin"),
    ],
    "output in pieces": [
        call("run_code", code=f"import sys, time\nfor sign in {PARTS}:\n    sys.stdout.write(sign); sys.stdout.flush(); time.sleep(0.02)")
    ],
    "late output": [
        call("run_code", code=f"import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.3), print({PARTS}))).start()"),
        call("run_code", code="import time; time.sleep(1)"),
        call("run_code", code="1"),
    ],
    "long output": [call("run_code", code=f"for n in range(20_000): print(n, {PARTS})")],
    "base64": [call("run_code", code=f"import base64; print({PARTS}); print(base64.b64encode(({PARTS}).encode()).decode())")],
    "a tool of a server": [call("mcp__bad__echo", text="ann.lee&#64;example.org".replace("&#64;", "@"))],
    "a call by code": [call("run_code", code=f"print(call_mcp_tool('bad__echo', {{'text': {PARTS}}}))")],
    "an error of a call by code": [call("run_code", code=f"call_mcp_tool('bad__echo', {{'text': 1, {PARTS}: 2}})")],
}  # fmt: skip


def sent(running: Running) -> str:
    """All that the model got but what it said itself."""
    told = []
    for request in running.server.requests:
        for message in request.body["messages"]:
            if message["role"] != "assistant":
                told.append(message)
    return json.dumps(told, ensure_ascii=False)


@pytest.mark.parametrize("way_out", list(WAYS))
def test_a_way_to_the_model(way_out: str, tmp_path: Path) -> None:
    with engine(
        tmp_path,
        *WAYS[way_out],
        text("Done."),
        mcp_config=config_file(tmp_path, way("good")),
        mcp_allow=("bad/*",),
        code_mode="both",
        code_mode_policy=("*=free",),
    ) as e:
        assert e.ask("go").subtype == "success"
        assert VALUE not in sent(e)
        assert VALUE[::-1] not in sent(e)
        values = e.engine.real_values()
        if way_out not in ("a file that is no text",):
            assert values is not None
            assert VALUE in values.values(), tool_results(e.server)
            assert "<EMAIL:" in sent(e)
    if way_out == "a tool of a server":
        return  # the model wrote the value itself
    folder = tmp_path / "data" / "sessions" / e.engine.session_id
    for path in folder.rglob("*"):
        if path.is_file():
            assert VALUE.encode() not in path.read_bytes(), path


def test_what_is_attached_is_told_without_it(tmp_path: Path) -> None:
    own = tmp_path / "list.csv"
    own.write_text(f"who\n{VALUE}\n")
    with engine(
        tmp_path,
        text("Here."),
        call("read_file", path="/tmp/attached/list.csv"),
        text("Done."),
        pii="on",
    ) as e:
        e.ask("hello")
        e.engine.attach(str(own))
        e.until(lambda: e.of(Attached))
        assert e.ask("read it").subtype == "success"
        assert VALUE not in sent(e)
        assert "<EMAIL:" in tool_results(e.server)[-1].text


def test_tools_that_do_not_pass_through_the_program_are_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match="SANDBOX_CHAT_LOCAL_TOOLS"),
        engine(tmp_path, pii="on", sandbox="off", local_tools=("Read",)),
    ):
        pass
