"""An endpoint that does what the prompt says: answers well, or fails in the way that is named there.

    prompt(12, 1, shape="tool", fault="cut", place=20)   # "#12.1 shape=tool fault=cut place=20 …"

    with Endpoint(folder) as endpoint:      # a process of its own
        endpoint.url, endpoint.token
        endpoint.requests()                 # which prompt each request was about, from which process it came

A prompt is known by its tag: ``#12.1`` is the first sending of what the user wants in turn 12, ``#12.2`` the second, by
the user's word. So no tag may ever reach the model twice; ``sendings`` counts how often it did. The endpoint is a process
of its own, so that what it keeps does not count as memory of the program that is tested.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from sandbox_chat.demo.reply import ErrorReply, Faults, Reply, Text, Thinking, ToolUse, error_type
from sandbox_chat.demo.server import MessagesServer
from sandbox_chat.demo.wire import Request, Usage

SHAPES = ("text", "thinking", "tool", "two")
"""What a good answer is: text; thinking and text; a tool call, then text; two calls in one reply, then text."""
FAULTS = ("cut", "error", "drop", "empty", "429", "500", "529", "slow")
"""What goes wrong: the stream is cut, or ends with an error event; no byte; no event; refusals; a stall of ``STALL``."""
STALL = 1.0
"""Seconds that a slow reply stands still."""
RUN_CODE = "mcp__sandbox__run_code"
USAGE = Usage(input_tokens=20, output_tokens=5)
"""What each request is said to have used: little, so that the conversation is never made shorter."""
WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_TAG = re.compile(r"#(\d+\.\d+)((?: [a-z]+=[\w.]+)*)")


@dataclass(frozen=True, slots=True)
class Plan:
    """How a prompt is answered.

    ``at`` is the request of the turn that meets ``fault`` (0 the first, 1 that after the tool's result), ``times`` how
    many tries of it do. ``place``: characters that come before. ``pace``: seconds between two words. ``sleep``: seconds
    that the code of a call takes; ``retry``: the 429's ``retry-after`` in seconds.
    """

    shape: str = "text"
    fault: str = ""
    at: int = 0
    times: int = 1
    place: int = 0
    pace: float = 0.0
    sleep: float = 0.0
    retry: float = 0.0


def prompt(turn: int, sending: int, **plan: Any) -> str:
    """The prompt that asks for an answer by ``plan`` (fields of ``Plan``; those that are as usual are left out)."""
    given, usual = Plan(**plan), Plan()
    parts = [
        f"{item.name}={getattr(given, item.name)}"
        for item in fields(Plan)
        if getattr(given, item.name) != getattr(usual, item.name)
    ]
    return " ".join([f"#{turn}.{sending}", *parts])


def plan_of(words: str) -> Plan:
    """The plan in the words after a tag."""
    given = dict(part.split("=", 1) for part in words.split())
    kinds = {item.name: type(item.default) for item in fields(Plan)}
    return Plan(**{name: kinds[name](value) for name, value in given.items() if name in kinds})


def tags(text: str) -> list[str]:
    """The tags of prompts, and of answers to them, in ``text``: ``12.1`` for ``#12.1``."""
    return [match[1] for match in _TAG.finditer(text)]


def code(tag: str, sleep: float = 0.0) -> str:
    """The code that an answer to ``tag`` runs. It prints the turn's number."""
    lines = [f"x = {tag.partition('.')[0]}"]
    if sleep:
        lines.append(f"import time\nfor _ in range({round(sleep * 10)}):\n    time.sleep(0.1)")
    return "\n".join([*lines, "print(x)"])


def answer(tag: str) -> str:
    """The last text of the answer to ``tag``."""
    return f"Answer to #{tag}: {WORDS}."


class FaultyModel:
    """Answers each request by the plan in its newest prompt. ``log`` is a file that gets a line of JSON for each.

    ``peer`` is the process from which the request comes that is answered next, 0 when it is not known.
    """

    record = False

    def __init__(self, log: Path) -> None:
        self.peer = 0
        self._log = log.open("a", encoding="utf-8", buffering=1)
        self._tries: Counter[tuple[str, int, int]] = Counter()

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def reply(self, request: Request) -> Reply | ErrorReply:
        """Answer one request."""
        found: list[tuple[str, str, int]] = [
            (match[1], match[2], index)
            for index, message in enumerate(request.messages)
            if message.role == "user"
            for match in _TAG.finditer(message.text)
        ]
        if request.is_probe or not found:
            return Reply((Text("Hello."),), usage=USAGE)
        tag, words, index = found[-1]
        plan = plan_of(words)
        place = 1 if any(message.calls for message in request.messages[index + 1 :]) else 0
        self._tries[tag, place, self.peer] += 1
        tries = self._tries[tag, place, self.peer]
        fault = plan.fault if place == plan.at and tries <= plan.times else ""
        line = {
            "at": round(time.time(), 3),
            "tag": tag,
            "occurrences": sum(1 for other, _, _ in found if other == tag),
            "peer": self.peer,
            "request": place,
            "try": tries,
            "fault": fault,
            "stream": request.stream,
            "messages": len(request.messages),
        }
        self._log.write(json.dumps(line) + "\n")
        return failing(good(plan, tag, place), plan, fault)


def good(plan: Plan, tag: str, place: int) -> Reply:
    """The answer to ``tag`` when nothing goes wrong: to the turn's request number ``place``."""
    options: dict[str, Any] = {"usage": USAGE, "pace": plan.pace}
    if plan.shape == "thinking":
        return Reply((Thinking(f"Let me think: {WORDS}."), Text(answer(tag))), **options)
    if plan.shape == "text" or place:
        return Reply((Text(answer(tag)),), **options)
    calls = [ToolUse(RUN_CODE, {"code": code(tag, plan.sleep)})]
    if plan.shape == "two":
        calls.append(ToolUse(RUN_CODE, {"code": code(tag)}))
    return Reply((Text(f"Let me compute #{tag}."), *calls), **options)


def failing(reply: Reply, plan: Plan, fault: str) -> Reply | ErrorReply:
    """``reply`` with what goes wrong with it."""
    match fault:
        case "cut":
            faults = Faults(cut_at=plan.place)
        case "error":
            faults = Faults(error_at=plan.place)
        case "drop":
            faults = Faults(drop=True)
        case "slow":
            faults = Faults(stall_at=plan.place, stall=STALL)
        case "empty":
            return ErrorReply(200, headers={"content-type": "text/event-stream"}, body=b"")
        case "429" | "500" | "529":
            headers = {"retry-after": f"{plan.retry:g}"} if fault == "429" else {}
            return ErrorReply(int(fault), error_type(int(fault)), "by the plan", headers)
        case _:
            return reply
    return Reply(
        reply.blocks,
        usage=reply.usage,
        pace=reply.pace if fault != "slow" else reply.pace or 0.005,
        faults=faults,
    )


class FaultyServer(MessagesServer):
    """The endpoint that tells its model from which process a request comes."""

    def __init__(self, model: FaultyModel, token: str) -> None:
        super().__init__(model, token=token)
        self._model = model
        self._owners: dict[int, int] = {}

    async def _messages(self, http: Any, record: Any, raw: bytes) -> Any:
        # Nothing waits between this and the model's ``reply``.
        self._model.peer = self._owner(http.client.port) if http.client else 0
        return await super()._messages(http, record, raw)

    def _owner(self, port: int) -> int:
        pid = self._owners.get(port, 0)
        if pid and port in _ports(pid):
            return pid
        self._owners[port] = found = owner(port)
        return found


def owner(port: int) -> int:
    """The process that holds the connection from ``port`` of the loopback address, 0 when it is not found."""
    inode = _inodes().get(port, "")
    if not inode:
        return 0
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and inode in _sockets(process):
            return int(process.name)
    return 0


def _ports(pid: int) -> set[int]:
    held = _sockets(Path("/proc", str(pid)))
    return {port for port, inode in _inodes().items() if inode in held}


def _inodes() -> dict[int, str]:
    """Sockets of this machine by their own port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].partition(":")[2], 16): row[9] for row in rows if row[9] != "0"}


def _sockets(process: Path) -> set[str]:
    held: set[str] = set()
    with contextlib.suppress(OSError):
        for handle in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                name = str(handle.readlink())
                if name.startswith("socket:["):
                    held.add(name[8:-1])
    return held


@dataclass(slots=True)
class Sent:
    """How a tag reached the model: from which processes, and how often it stood in one history."""

    peers: set[int] = field(default_factory=set)
    occurrences: int = 0

    @property
    def times(self) -> int:
        """How often it was sent. A try of the same request, by the same process, is no second sending.

        A request whose connection was closed before it was found (process 0) tells nothing of that.
        """
        return self.occurrences + max(len(self.peers - {0}) - 1, 0)


def sendings(requests: Iterable[dict[str, Any]]) -> dict[str, Sent]:
    """How each tag reached the model, by the lines of the endpoint's log."""
    found: dict[str, Sent] = {}
    for line in requests:
        sent = found.setdefault(line["tag"], Sent())
        sent.peers.add(line["peer"])
        sent.occurrences = max(sent.occurrences, line["occurrences"])
    return found


class Endpoint:
    """A ``FaultyServer`` in a process of its own, whose log is ``folder/requests.jsonl``. It ends with this program."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.token = "soak-token"
        self.log = folder / "requests.jsonl"
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self.log), self.token],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        self.pid = self._process.pid

    def requests(self) -> list[dict[str, Any]]:
        """The lines of the log up to now."""
        text = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def seen(self, tag: str) -> bool:
        """True when a request about ``tag`` has come."""
        needle = f'"tag": "{tag}"'
        return self.log.exists() and needle in self.log.read_text(encoding="utf-8")[-4000:]

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def faulty(folder: Path, token: str = "soak-token") -> Iterator[MessagesServer]:
    """The same in this process, for small tests: ``folder/requests.jsonl`` is its log."""
    folder.mkdir(parents=True, exist_ok=True)
    model = FaultyModel(folder / "requests.jsonl")
    with FaultyServer(model, token) as server:
        yield server
    model.close()


def main(log: str, token: str) -> None:
    """Serve until the input ends; see the module's text."""
    logging.disable()  # of connections that break there are many
    with FaultyServer(FaultyModel(Path(log)), token) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    with contextlib.suppress(asyncio.CancelledError):
        main(*sys.argv[1:])
