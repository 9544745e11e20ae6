"""A small MCP server without any library, so that it starts at once: what the tests of the gateway start behind it.

Options: ``--tools JSON`` a list of tools in the place of its own; ``--prefix P`` before the names of its own tools;
``--hang`` answers nothing; ``--exit N`` ends at once; ``--refuse`` answers ``initialize`` with an error that tells
all of its variables; ``--banner``
writes a line of text first; ``--stay`` goes on when its input ends and when it is asked to end; ``--count FILE`` adds
a line to a file at each start; ``--child`` starts a process of its own in another session.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

NAMES = (
    "echo", "params", "environment", "crash", "slow", "picture", "fault", "refusal", "structured", "big", "say", "pid",
    "more",
)  # fmt: skip
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_writing = threading.Lock()
_cancelled: set[Any] = set()


def send(message: dict[str, Any]) -> None:
    """Write one message."""
    with _writing:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def text(value: str) -> dict[str, Any]:
    """A result of one text."""
    return {"content": [{"type": "text", "text": value}]}


class Refused(Exception):
    """An error of the protocol."""


def call(number: Any, params: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Do one call and return its result."""
    name = params["name"][len(prefix) :]
    given = params.get("arguments") or {}
    if name == "echo":
        return text(str(given.get("text", "")))
    if name == "params":
        return text(json.dumps(params))
    if name == "environment":
        return text(
            json.dumps({"environment": dict(os.environ), "arguments": sys.argv, "folder": str(Path.cwd())})
        )
    if name == "crash":
        os._exit(7)
    if name == "slow":
        token = (params.get("_meta") or {}).get("progressToken")
        for step in range(given.get("steps", 10)):
            if number in _cancelled:
                sys.stderr.write("slow was cancelled\n")
                sys.stderr.flush()
                break
            if token is not None:
                progress = {
                    "progressToken": token,
                    "progress": step,
                    "total": given.get("steps", 10),
                    "message": f"at {step}",
                }
                send({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
            time.sleep(given.get("pause", 0.1))
        return text("done")
    if name == "picture":
        return {
            "content": [
                {"type": "image", "data": PIXEL, "mimeType": "image/png", "annotations": {"priority": 0.5}},
                {"type": "resource", "resource": {"uri": "file:///x", "mimeType": "text/plain", "text": "x"}},
            ],
            "_meta": {"own": [1, None]},
        }
    if name == "fault":
        return {**text("that went wrong"), "isError": True}
    if name == "refusal":
        raise Refused
    if name == "structured":
        return {**text('{"a": [1, 2.5, null]}'), "structuredContent": {"a": [1, 2.5, None], "é": "ü"}}
    if name == "big":
        return text("x" * int(given["size"]))
    if name == "say":
        sys.stderr.write(str(given["text"]))
        sys.stderr.flush()
        return text("said")
    if name == "pid":
        return text(str(os.getpid()))
    if name == "more":
        EXTRA.append({"name": f"{prefix}extra", "inputSchema": {"type": "object"}})
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return text("more")
    raise Refused


EXTRA: list[Any] = []


def answer(message: dict[str, Any], options: argparse.Namespace) -> None:
    """Answer one request."""
    number, method, params = message["id"], message["method"], message.get("params") or {}
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
    if method == "initialize" and not options.refuse:
        reply["result"] = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "quick", "version": "1"},
        }
    elif method == "tools/list":
        own = [
            {"name": options.prefix + name, "description": name, "inputSchema": {"type": "object"}}
            for name in NAMES
        ]
        reply["result"] = {"tools": (own if options.tools is None else options.tools) + EXTRA}
    elif method == "tools/call":
        try:
            reply["result"] = call(number, params, options.prefix)
        except Refused:
            reply["error"] = {"code": -32011, "message": "no such luck", "data": {"why": "test"}}
        except KeyError as error:
            reply["error"] = {"code": -32602, "message": f"missing {error}"}
    elif method == "initialize":
        variables = ", ".join(f"{name}={value}" for name, value in sorted(os.environ.items()))
        reply["error"] = {"code": -32603, "message": f"refused \x1b[2J{variables}"}
    else:
        reply["error"] = {"code": -32601, "message": f"no {method}"}
    send(reply)


def main() -> None:
    """Serve on standard input and output."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=json.loads)
    parser.add_argument("--prefix", default="")
    parser.add_argument("--exit", type=int)
    parser.add_argument("--count")
    for flag in ("--hang", "--refuse", "--banner", "--stay", "--child"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    if options.count:
        with Path(options.count).open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
    if options.child:
        subprocess.Popen(["sleep", "600"], start_new_session=True)
    if options.banner:
        sys.stdout.buffer.write(b"Welcome \xff to this server\n[1, 2]\n\n")
        sys.stdout.flush()
    if options.exit is not None:
        sys.stderr.write("this server cannot run here\n")
        sys.exit(options.exit)
    if options.stay:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        if options.hang:
            continue
        message = json.loads(line)
        if message.get("method") == "notifications/cancelled":
            _cancelled.add(message["params"]["requestId"])
        elif "id" in message and "method" in message:
            if message["method"] == "tools/call" and message["params"]["name"].endswith("slow"):
                threading.Thread(target=answer, args=(message, options), daemon=True).start()
            else:
                answer(message, options)
    while options.stay:
        time.sleep(1)


if __name__ == "__main__":
    main()
