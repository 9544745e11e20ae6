"""What passes through the model: MCP tools that it calls itself, against code that calls them.

``python tests/benchmarks/code_mode.py``; exit code 1 when the bar is missed. The servers are real (those of the catalogue,
installed as for its check), the agent, its program and the sandbox too; only the model is a script, which writes what a
model would write. Counted are the requests that really went to it: each holds the instructions, the definitions of
all tools and the whole conversation again. Tokens are those of ``o200k_base``. What every request holds in every way, also without any server (the instructions and the sandbox's own
tools), is told apart: ``beyond`` is what the servers and code mode add to that. Three ways: the definitions of all servers of
the catalogue that start here, those of the servers that the task needs, and code mode, with its search for tools.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import bpe_openai
from support import catalogue_check
from support.catalogue_trials import TRIALS, Place, place
from support.engines import engine
from support.scripted import call, text, tool_results

from sandbox_chat.events import NestedFinished, ToolFinished
from sandbox_chat.mcp import catalog

ROWS = 1000
PIECE = 200
"""Rows that one answer of a tool can give the model, with the usual ``text_limit``; more would be cut."""
BAR = 0.02
PROMPT_BAR = 600
TOKENS = bpe_openai.get_encoding("o200k_base")
WAYS = ("direct, all", "direct, needed", "code mode")


@dataclass(frozen=True)
class Task:
    """``direct`` and ``code`` are the model's steps, ``check`` whether the work was really done."""

    name: str
    needs: Sequence[str]
    prompt: str
    direct: Sequence[Any]
    code: Sequence[Any]
    expects: str


@dataclass(frozen=True)
class Counted:
    """What went through the model: requests, calls of tools, bytes and tokens in and out."""

    requests: int
    calls: int
    bytes_in: int
    tokens_in: int
    tokens_out: int
    base: int = 0

    @property
    def tokens(self) -> int:
        """In and out."""
        return self.tokens_in + self.tokens_out

    @property
    def beyond(self) -> int:
        """The same without what every request holds."""
        return self.tokens - self.requests * self.base


def run_code(code: str) -> Any:
    """A step of the model."""
    return call("run_code", code=code)


def rows_of(database: Path) -> list[tuple[Any, ...]]:
    """The rows of the table."""
    with sqlite3.connect(database) as found:
        return found.execute(
            "select id, day, customer, product, quantity, amount from orders order by id"
        ).fetchall()


def make_database(path: Path) -> None:
    """A table of orders, always the same."""
    chance = random.Random(3)
    products = ("keyboard", "monitor", "cable", "laptop stand", "webcam", "dock")
    with sqlite3.connect(path) as made:
        made.execute(
            "create table orders (id integer primary key, day text, customer text, product text, quantity integer, amount real)"
        )
        for number in range(1, ROWS + 1):
            made.execute(
                "insert into orders values (?, ?, ?, ?, ?, ?)",
                (
                    number,
                    f"2026-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}",
                    f"customer {chance.randint(1, 200)}",
                    chance.choice(products),
                    chance.randint(1, 9),
                    chance.randint(500, 90000) / 100,
                ),
            )


def tasks(folder: Path, database: Path) -> list[Task]:
    """The tasks, with what a model would write for each."""
    rows = rows_of(database)
    csv = "id,day,customer,product,quantity,amount\n" + "".join(
        ",".join(map(str, row)) + "\n" for row in rows
    )
    select = "select id, day, customer, product, quantity, amount from orders order by id"
    out = str(folder / "orders.csv")
    top = "select customer, sum(amount) as total from orders group by customer order by total desc limit 5"
    best = "The five best customers are in the table above."
    moved = "All 1,000 rows are in orders.csv."
    convert = {"source_timezone": "Europe/Berlin", "time": "09:30", "target_timezone": "Asia/Shanghai"}
    return [
        Task(
            "convert one time",
            ["time"],
            "What is 9:30 in Berlin in Shanghai?",
            [call("mcp__time__convert_time", **convert), text("It is 15:30 or 16:30 in Shanghai.")],
            [
                run_code(
                    "for t in list_mcp_tools('convert time', detail='full')[:2]: print(t['name'], t['signature'])"
                ),
                run_code(
                    f"from tools.time import convert_time\nprint(convert_time({', '.join(map(repr, convert.values()))}))"
                ),
                text("It is 15:30 or 16:30 in Shanghai."),
            ],
            "Asia/Shanghai",
        ),
        Task(
            f"move {ROWS:,} rows to a file",
            ["sqlite", "filesystem"],
            "Put all orders of the database into orders.csv.",
            [
                call("mcp__sqlite__describe_table", table_name="orders"),
                *(
                    call("mcp__sqlite__read_query", query=f"{select} limit {PIECE} offset {at}")
                    for at in range(0, ROWS, PIECE)
                ),
                call("mcp__filesystem__write_file", path=out, content=csv),
                text(moved),
            ],
            [
                run_code(
                    "import tools\nfor t in tools.search('sql read query table') + tools.search('write file'): print(t)\n"
                    "print(call_mcp_tool('sqlite__describe_table', {'table_name': 'orders'}))"
                ),
                run_code(
                    "import ast, csv, io\nfrom tools.sqlite import read_query\nfrom tools.filesystem import write_file\n"
                    "rows = read_query('select * from orders order by id')\n"
                    "rows = ast.literal_eval(rows) if isinstance(rows, str) else rows\n"
                    "text = io.StringIO()\nout = csv.DictWriter(text, rows[0], lineterminator='\\n')\nout.writeheader()\nout.writerows(rows)\n"
                    f"write_file({out!r}, text.getvalue())\nprint(len(rows), 'rows')"
                ),
                text(moved),
            ],
            f"{ROWS} rows",
        ),
        Task(
            "SQL, best five",
            ["sqlite"],
            "Who are our five best customers?",
            [
                call("mcp__sqlite__list_tables"),
                call("mcp__sqlite__describe_table", table_name="orders"),
                call("mcp__sqlite__read_query", query=top),
                text(best),
            ],
            [
                run_code(
                    "import tools\nfor t in tools.search('sql query table'): print(t)\n"
                    "print(call_mcp_tool('sqlite__describe_table', {'table_name': 'orders'}))"
                ),
                run_code(f"from tools.sqlite import read_query\nprint(read_query({top!r}))"),
                text(best),
            ],
            "total",
        ),
    ]


def configuration(names: Sequence[str], there: Place, data: Path, database: Path, file: Path) -> list[str]:
    """Write the servers of ``names`` that can be started here into ``file``; returns their names."""
    servers: dict[str, Any] = {}
    for name, entry in catalog.load().items():
        trial = TRIALS[name]
        if name not in names or there.missing.get(trial.needs):
            continue
        properties = trial.properties(there)
        if name == "sqlite":
            properties = {"database": str(database)}
        config = entry.config(properties, {**os.environ, **trial.environ(there)}, data)
        servers[name] = {
            "command": config.command[0],
            "args": list(config.command[1:]),
            "env": {key: value.reveal() for key, value in config.env.items()},
        }
    file.write_text(json.dumps({"mcpServers": servers}))
    file.chmod(0o600)
    return list(servers)


def base_of(folder: Path, **settings: Any) -> int:
    """Return the tokens of a first request of one word without servers."""
    with engine(folder, text("Yes."), pii="off", **settings) as e:
        assert e.ask("Hello").subtype == "success"
        return len(TOKENS.encode(json.dumps(e.server.requests[0].body, ensure_ascii=False)))


def count(server: Any, output: Sequence[Any], calls: int, base: int) -> Counted:
    """Count what went to the model and what came from it."""
    bodies = [json.dumps(request.body, ensure_ascii=False) for request in server.requests]
    said = 0
    for reply in output:
        for block in reply.blocks:
            words = getattr(block, "text", None)
            words = (
                words if words is not None else json.dumps(getattr(block, "input", {}), ensure_ascii=False)
            )
            said += len(TOKENS.encode(words))
    return Counted(
        len(bodies),
        calls,
        sum(len(body.encode()) for body in bodies),
        sum(len(TOKENS.encode(body)) for body in bodies),
        said,
        base,
    )


def measure(
    task: Task, way: str, there: Place, data: Path, *, database: Path, base: int
) -> tuple[Counted, int]:
    """Do a task in a way; returns what was counted, and how many servers were on."""
    names = list(catalog.load()) if way != "direct, needed" else task.needs
    steps = task.code if way == "code mode" else task.direct
    written = there.folder / "orders.csv"
    written.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "servers.json"
        on = configuration(names, there, data, database, file)
        with engine(
            Path(folder),
            *steps,
            mcp_config=file,
            mcp_allow=tuple(f"{name}/*" for name in on),
            code_mode="on" if way == "code mode" else "off",
            code_mode_policy=("*=free",) if way == "code mode" else (),
            pii="off",
            mcp_start_timeout=120.0,
        ) as e:
            e.until(lambda: True)
            done = e.ask(task.prompt)
            assert done.subtype == "success", (task.name, way, done.error)
            results = [result.text for result in tool_results(e.server)]
            failed = [event for event in e.of(ToolFinished) if event.is_error]
            assert not failed, (task.name, way, results)
            assert task.expects in "\n".join(results) or written.exists(), (task.name, way, results)
            if "file" in task.name:
                assert len(written.read_text().splitlines()) == ROWS + 1
            calls = len(e.of(ToolFinished)) + len(e.of(NestedFinished))
            return count(e.server, steps, calls, base), len(on)


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("--check", action="store_true", help="the same; kept for symmetry with the others")
    options.parse_args()
    data = catalogue_check.cache()
    catalogue_check.run(["time", "sqlite", "filesystem"], data)  # installed, if they are not yet
    print(
        f"{'task':<26}{'way':<16}{'servers':>8}{'requests':>9}{'calls':>6}{'bytes in':>12}{'tokens in':>11}{'out':>8}{'all':>10}{'share':>8}{'beyond':>10}{'share':>8}"
    )
    with tempfile.TemporaryDirectory() as folder:
        base = base_of(Path(folder) / "off")
        added = base_of(Path(folder) / "on", code_mode="on") - base
    print(
        f"every request: {base:,} tokens; code mode adds {added:,}, however many servers are on (at most {PROMPT_BAR})"
    )
    missed = added > PROMPT_BAR
    with place(list(TRIALS)) as there:
        database = there.folder / "orders.db"
        make_database(database)
        for task in tasks(there.folder, database):
            found = {way: measure(task, way, there, data, database=database, base=base) for way in WAYS}
            whole = found[WAYS[0]][0]
            for way, (counted, servers) in found.items():
                print(
                    f"{task.name:<26}{way:<16}{servers:>8}{counted.requests:>9}{counted.calls:>6}{counted.bytes_in:>12,}"
                    f"{counted.tokens_in:>11,}{counted.tokens_out:>8,}{counted.tokens:>10,}{counted.tokens / whole.tokens:>8.2%}"
                    f"{counted.beyond:>10,}{counted.beyond / whole.beyond:>8.2%}"
                )
            if "file" in task.name:
                share = found["code mode"][0].tokens / whole.tokens
                missed |= share > BAR
                print(
                    f"    wanted: code mode at most {BAR:.0%} of direct with all servers; it is {share:.2%}"
                )
            needed, code = found["direct, needed"][0].tokens, found["code mode"][0].tokens
            if code > needed:
                print(f"    code mode loses against the servers needed alone: {code / needed:.2f}x")
    print("missed" if missed else "all ok")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
