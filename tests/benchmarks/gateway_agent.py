"""The same call to the same MCP server by the agent: to a server behind the gateway in the sandbox, and without the gateway.

    python tests/benchmarks/gateway_agent.py [--calls N] [--kinds local,docker] [--check]

The real program of the agent, the real sandbox, a scripted model on loopback. The two ways are taken in turns within the same
turns of one chat. Without the gateway the server is one on this computer, behind a pipe, which the agent reaches as all such
servers. The time of a call is that from the model's order to call the tool until its result reaches the model. ``--check``:
exit code 1 when the ratio is above the target.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [path for path in [str(Path(__file__).resolve().parents[1])] if path not in sys.path]

from support.engines import engine  # noqa: E402 - needs the path
from support.scripted import Answer, Request, call, text  # noqa: E402 - needs the path

from sandbox_chat.events import ServerChanged, ToolFinished  # noqa: E402 - needs the path
from sandbox_chat.values import Servers  # noqa: E402 - needs the path

LIMIT = 1.5
WARM = 10
"""Calls of each way that are not counted."""
PAIRS = 10
"""Calls of each way in one turn."""
SCRIPT = """
import json, sys
for line in sys.stdin:
    word = json.loads(line)
    if "id" not in word:
        continue
    answer = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    if word["method"] == "initialize":
        answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}}
    elif word["method"] == "tools/call":
        answer = {"content": [{"type": "text", "text": "echo " + str(word["params"]["arguments"]["n"])}]}
    elif word["method"] != "tools/list":
        answer = {}
    print(json.dumps({"jsonrpc": "2.0", "id": word["id"], "result": answer}), flush=True)
"""
WAYS = {"without": "mcp__direct__echo", "gateway": "mcp__gateway__echo"}


class Model:
    """A model that calls both ways in turns, and notes how long each takes."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {way: [] for way in WAYS}
        self._plan: list[str] = []
        self._ordered: tuple[str, float] | None = None
        self._number = 0

    def __call__(self, request: Request) -> Answer:
        """Answer a request: the next call, or the end of the turn."""
        if self._ordered is not None:
            way, at = self._ordered
            self.times[way].append(time.perf_counter() - at)
            self._ordered = None
        else:
            self._plan = [way for _ in range(PAIRS) for way in WAYS]
        if not self._plan:
            return text("Done.")
        way = self._plan.pop(0)
        self._number += 1
        answer = call(WAYS[way], n=self._number)
        self._ordered = (way, time.perf_counter())
        return answer


def measure(kind: str, calls: int, **options: Any) -> dict[str, list[float]]:
    """Return the seconds of so many calls of each way in one chat with a sandbox of this kind."""
    model = Model()
    quoted = SCRIPT.replace("'", "'\\''")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        servers = folder / "servers.json"
        servers.write_text(
            json.dumps({"mcpServers": {"direct": {"command": sys.executable, "args": ["-c", SCRIPT]}}})
        )
        with engine(
            folder,
            function=model,
            sandbox=kind,
            mcp_config=servers,
            mcp_allow=("direct/*",),
            sandbox_mcp=Servers({"echo": {"runCmd": f"exec python3 -c '{quoted}'"}}),
            max_turns=2 * PAIRS + 5,
            **options,
        ) as e:
            for server in ("direct", "gateway"):
                e.until(
                    lambda server=server: [
                        each for each in e.of(ServerChanged) if each.name == server and each.tools
                    ],
                    f"the tools of {server}",
                )
            while len(model.times["gateway"]) < WARM + calls:
                finished = e.ask("Call both.")
                assert not finished.is_error, finished.error
            failed = [each.content for each in e.of(ToolFinished) if each.is_error]
            assert not failed, failed[:1]
    return {way: times[WARM : WARM + calls] for way, times in model.times.items()}


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--kinds", default="local", help="kinds of sandboxes, with commas")
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    print(f"{'median ms, as the agent calls':32}{'without':>9}{'gateway':>9}{'ratio':>8}")
    missed = False
    for kind in chosen.kinds.split(","):
        image = os.environ.get("SANDBOX_CHAT_TEST_DOCKER_IMAGE", "")
        options = {"docker_image": image} if kind == "docker" and image else {}
        times = measure(kind, chosen.calls, **options)
        without, through = (statistics.median(times[way]) * 1000 for way in WAYS)
        ratio = through / without
        missed = missed or ratio > LIMIT
        verdict = "ok" if ratio <= LIMIT else "MISSED"
        print(
            f"{kind:32}{without:9.2f}{through:9.2f}{ratio:7.2f}×  ≤ {LIMIT}× {verdict}   (n={chosen.calls})"
        )
    return 1 if chosen.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
