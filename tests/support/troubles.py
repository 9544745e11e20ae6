"""What a user sees in each trouble: provoked with the real program and collected as it is shown.

The endpoint of the model is scripted, the cloud is the one on loopback; CLI, client, sandbox and interface are real.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.e2b_server import Cloud
from support.engines import Running, engine
from support.scripted import call, text

from sandbox_chat.engine import Engine
from sandbox_chat.events import ApprovalRequested, Notice, TextContent, ToolFinished
from sandbox_chat.sandbox import remote
from sandbox_chat.sandbox.base import SandboxUnavailable
from sandbox_chat.settings import Settings
from sandbox_chat.ui.transcript import Feed

ADVICE = "The sandbox itself failed, not your code."
"""The beginning of what the model is told with every failure of a sandbox."""
CODE = {"code": "1+1"}


@dataclass(frozen=True, slots=True)
class Told:
    """A trouble, what the user sees of it, and what the model is told (empty when it is told nothing)."""

    trouble: str
    user: str
    model: str = ""


def plain(words: str, folder: Path) -> str:
    """Return ``words`` without what differs from run to run: addresses, folders, ids, times."""
    words = words.replace(str(folder), "…")
    words = re.sub(r"http://127\.0\.0\.1:\d+", "https://cloud.example.com", words)
    words = words.replace("sandboxes.test", "cloud.example.com")
    words = re.sub(r"sessions/[0-9a-f-]{36}", "sessions/…", words)
    words = re.sub(r"toolu_\w+|call-\w+", "…", words)
    words = re.sub(r"(e2b) [\w-]{8,}, started [\d-]+ [\d:]+", r"\1 …, started 2026-01-02 03:04", words)
    words = re.sub(
        r"after \d+ s \(502\)", "after 30 s (502)", words
    )  # the gateway of the test is less patient
    return " ".join(words.split())


# -- reading ---------------------------------------------------------------------------------------------


def shown(e: Running) -> str:
    """What the card of the newest call shows of its failure in the transcript."""
    feed = Feed()
    for event in list(e.events):
        feed.apply(event)
    return next(reversed(feed.cards.values())).error_line()


def answer(e: Running) -> str:
    """The newest tool result as the model gets it, without its first section."""
    finished = e.of(ToolFinished)[-1]
    said = "\n".join(part.text for part in finished.content if isinstance(part, TextContent))
    return said.removeprefix("[success] False\n").removeprefix("[success] True\n")


def section(said: str, name: str) -> str:
    """One section of a tool's answer."""
    found = re.search(rf"^\[{name}\](.*?)(?=^\[\w+\]|\Z)", said, re.MULTILINE | re.DOTALL)
    return found.group(1).strip() if found else ""


def notes(said: str) -> str:
    """The notes of a tool's answer."""
    return " ".join(re.findall(r"^\[note\] (.*)$", said, re.MULTILINE))


def notices(e: Running, since: int = 0) -> str:
    """The notices since the event of that number."""
    return " ".join(event.text for event in e.events[since:] if isinstance(event, Notice))


def sandbox_failed(e: Running) -> tuple[str, str]:
    """What user and model get of a sandbox that failed."""
    said = answer(e)
    assert said.startswith("[tool_error] ") and ADVICE in said, said
    return shown(e), "the same, and: stop using the tools in this turn, tell the user"


def running(code: dict[str, Any]) -> Any:
    """A model that runs ``code`` for each prompt and then ends its turn."""
    return lambda request: text("Done.") if request.results else call("run_code", **code)


# -- the model -------------------------------------------------------------------------------------------


def of_the_model(folder: Path) -> list[Told]:
    """The model has no tool, or does not call it. What the endpoint refuses is in ``agent_troubles.py``."""
    replies: list[Any] = []
    out = []
    with engine(folder, function=lambda _request: replies[-1]) as e:
        for trouble, reply in (
            ("the model says that it has no tool", text("I don't have a tool to run code, sorry.")),
            ("the model writes its call as text", text('<tool_call>{"name": "run_code"}</tool_call>')),
        ):
            place = len(e.events)
            replies.append(reply)
            e.ask("go")
            out.append(Told(trouble, notices(e, place)))
        place = len(e.events)
        replies.append(text("The sum is 3. I ran no code for that."))
        e.ask("go")
        assert not notices(e, place), "an answer without code is no trouble"
    with engine(folder / "off", text("I cannot run code here."), sandbox="off") as e:
        e.ask("go")
        out.append(Told("the model says that it has no tool, with --sandbox off", notices(e)))
    return out


# -- the code --------------------------------------------------------------------------------------------


def of_the_code(folder: Path) -> list[Told]:
    """A call hangs, ends the shell, or floods."""
    code = dict(CODE)
    out = []
    with engine(folder, function=running(code), run_timeout=2) as e:
        code["code"] = "import time\ntime.sleep(60)"
        e.ask("go")
        out.append(Told("a tool call that hangs", shown(e), section(answer(e), "error")))
        code["code"] = "import os\nos._exit(1)"
        e.ask("go")
        out.append(Told("the code ends its shell", shown(e), section(answer(e), "error")))
        code["code"] = "print('0123456789' * 130_000)"
        e.ask("go")
        said = answer(e)
        cut = re.findall(r"\[… .*? …\]", said)
        own = "Write long output to a file under /tmp and read the part that you need."
        assert own in said
        user = re.search(r"The whole output .*", said)
        assert user is not None
        out.append(Told("a result without a bound", f"{cut[0]} {user.group()}", f"{cut[0]} {own}"))
        code["code"] = "raise SystemExit(3)"
        e.ask("go")
        out.append(Told("the code calls for the shell's end", shown(e), section(answer(e), "error")))
    return out


# -- the cloud -------------------------------------------------------------------------------------------


def of_creating(folder: Path) -> list[Told]:
    """The cloud makes no sandbox."""
    out = []
    with Cloud() as cloud, engine(folder, function=running(CODE), **cloud.settings()) as e:
        for status, what in (
            (401, "the key is wrong"),
            (403, "key, address and domain are of different regions"),
            (404, "the address is not that of a control API"),
            (405, "the server has neither the new nor the old API"),
            (429, "too many sandboxes or requests"),
            (500, "a fault of the cloud"),
        ):
            cloud.fail("create", status, times=None)
            e.ask("go")
            user, model = sandbox_failed(e)
            out.append(Told(f"creation answers {status}: {what}", user, model))
            cloud.heal()
        e.ask("go")
        assert answer(e) == "[result]\n2", "it works again as soon as the cloud does"
    with (
        Cloud() as cloud,
        engine(folder / "never", function=running(CODE), start_timeout=2.0, **cloud.settings()) as e,
    ):
        cloud.fail("create", hang=True, times=None)
        e.ask("go")
        user, model = sandbox_failed(e)
        out.append(Told("creation is never answered", user, model))
    with Cloud(prestart=0) as cloud:
        values = {**cloud.settings(), "e2b_api_url": "http://127.0.0.1:1"}
    with engine(folder / "refused", function=running(CODE), **values) as e:
        e.ask("go")
        user, model = sandbox_failed(e)
        out.append(Told("nothing answers at the cloud's address", user, model))
    try:
        Engine(Settings(demo=True, sandbox="e2b", data_dir=folder), lambda _event: None)
    except SandboxUnavailable as refused:
        out.append(Told("no key is set", str(refused)))
    return out


def of_a_sandbox_in_use(folder: Path) -> list[Told]:
    """A gateway cuts a long call; the sandbox vanishes."""
    out = []
    code = dict(CODE)
    with Cloud(gateway_limit=4.0) as cloud, engine(folder, function=running(code), **cloud.settings()) as e:
        e.ask("go")
        code["code"] = "import time\ntime.sleep(20)"
        e.ask("go")
        said = answer(e)
        out.append(
            Told(
                "502 when a call takes longer than the cloud's gateway allows (about 30 s)",
                shown(e),
                section(said, "error"),
            )
        )
    code["code"] = "x = 41"
    with Cloud() as cloud, engine(folder / "vanished", function=running(code), **cloud.settings()) as e:
        e.ask("go")
        place = len(e.events)
        [sandbox] = list(cloud.sandboxes)
        cloud.vanish(sandbox)
        code["code"] = "1+1"
        e.ask("go")
        out.append(Told("the cloud's sandbox is ended behind our back", notices(e, place), notes(answer(e))))
    return out


def of_what_is_left(folder: Path) -> list[Told]:
    """A crashed run left a sandbox."""
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    out = []
    with Cloud() as cloud:
        from e2b_code_interpreter import Sandbox

        marks = {**remote.marks("a-session-of-before", ""), "pid": gone.stdout.strip()}
        Sandbox.create(**cloud.client(), metadata=marks)
        with engine(folder, text("Hello."), **cloud.settings()) as e:
            e.until(lambda: e.of(Notice), "the notice")
            out.append(Told("a sandbox is left running (without a screen)", notices(e)))
        with engine(folder, text("Hello."), asks=True, **cloud.settings()) as e:
            [asked] = e.until(lambda: e.of(ApprovalRequested), "the question")
            choices = " · ".join(f"{choice.key} {choice.label}" for choice in asked.choices)
            assert len(cloud.sandboxes) == 1
            e.engine.answer(asked.approval_id, "end")
            e.until(lambda: e.of(Notice), "the notice")
            assert not cloud.sandboxes
            seen = f"{asked.question} {asked.detail} ({choices}) Then: {notices(e)}"
            out.append(Told("a sandbox is left running (in the terminal)", seen))
    return out


PRODUCERS: dict[str, Callable[[Path], list[Told]]] = {
    "model": of_the_model,
    "code": of_the_code,
    "creating": of_creating,
    "use": of_a_sandbox_in_use,
    "left": of_what_is_left,
}
"""All troubles, by theme, in the order of the documentation."""


def produce(theme: str, folder: Path) -> list[Told]:
    """Provoke the troubles of a theme and return what was told, made comparable."""
    return [
        Told(told.trouble, plain(told.user, folder), plain(told.model, folder))
        for told in PRODUCERS[theme](folder)
    ]
