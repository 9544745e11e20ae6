"""Attacks on code mode: by code in the sandbox, by a server, by what both may read. All fail, and all are in the log."""

from __future__ import annotations

import ast
import asyncio
import base64
import dataclasses
import json
import logging
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conformance.backends import wait_warm
from support.coding import Coding, coding
from support.mcp_host import Hosted, way

from sandbox_chat.bridge.private import Private
from sandbox_chat.bridge.shelf import Shelf
from sandbox_chat.events import NestedFinished, NestedStarted, ServerChanged
from sandbox_chat.mcp.base import ServerConfig
from sandbox_chat.settings import Settings
from sandbox_chat.skills import Given, Store
from sandbox_chat.vault import Vault

MAIL = "ann.lee@example.com"
PREPARE = """
import json, socket, struct, sys
def raw(data, path=None):
    finder = next(each for each in sys.meta_path if type(each).__name__ == "Finder")
    ask = finder.host.ask
    path = path or ask.args[0]
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(20)
        sock.connect(path)
        try:
            sock.sendall(data)
        except OSError:
            pass
        try:
            head = sock.recv(4)
            if len(head) < 4:
                return "closed"
            data = b""
            (length,) = struct.unpack("!I", head)
            while len(data) < length:
                data += sock.recv(1 << 16)
            return json.loads(data)
        except OSError as error:
            return type(error).__name__
def frame(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack("!I", len(data)) + data
def token():
    finder = next(each for each in sys.meta_path if type(each).__name__ == "Finder")
    return finder.host.ask.args[1]()
"""


def refusals(caplog: pytest.LogCaptureFixture) -> str:
    """What was logged."""
    return "\n".join(record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)


async def test_a_token_of_another_session(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with coding(tmp_path / "a", way("good")) as a, coding(tmp_path / "b", way("good")) as b:
        stolen = (await a.said(PREPARE + "print(token())")).strip()
        said = await b.said(
            PREPARE
            + f"print(raw(frame({{'token': {stolen!r}, 'op': 'call', 'name': 'bad__echo', 'arguments': {{}}}})))"
        )
        assert "'kind': 'denied'" in said
        assert b.of(NestedStarted) == []
        assert "a wrong token" in refusals(caplog)
        assert stolen not in refusals(caplog)


@pytest.mark.parametrize(
    "token", ["None", "''", "1", "[]", "token()[:-1]", "token() + 'x'", "'\\ud800'", "'é' * 5"]
)
async def test_forged_tokens(token: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with coding(tmp_path, way("good")) as c:
        said = await c.said(
            PREPARE + f"print(raw(frame({{'token': {token}, 'op': 'list', 'detail': 'names'}})))"
        )
        assert "'kind': 'denied'" in said
        assert "a wrong token" in refusals(caplog)


@pytest.mark.parametrize(
    "data",
    [
        "b'GET / HTTP/1.1\\r\\n\\r\\n'",
        "frame(b'not json')",
        "frame(b'[1,2]')",
        "frame(b'[' * 100000)",
        "frame(b'\\xff\\xfe')",
        "frame({'token': token()})",
        "frame({'token': token(), 'op': 'nothing'})",
        "frame({'token': token(), 'op': ['call']})",
        "frame({'token': token(), 'op': 'call', 'name': ['x'], 'arguments': {}})",
        "frame({'token': token(), 'op': 'call', 'name': 'bad__echo', 'arguments': [1]})",
        "frame({'token': token(), 'op': 'call', 'name': 'bad__echo', 'arguments': {}, 'timeout': 'long'})",
        "frame({'token': token(), 'op': 'call', 'name': 'bad__echo', 'arguments': {}, 'timeout': -1})",
        "frame({'token': token(), 'op': 'skill', 'name': '../../etc/passwd'})",
        "frame({'token': token(), 'op': 'list', 'detail': {'a': 1}})",
        "struct.pack('!I', 0)",
    ],
)
async def test_forged_frames(data: str, tmp_path: Path) -> None:
    async with coding(tmp_path, way("good")) as c:
        said = await c.said(PREPARE + f"print(raw({data}))\nprint(len(list_mcp_tools()))")
        first, second = said.splitlines()
        assert "'ok': False" in first or first == "closed", first
        assert int(second) > 3
        assert c.of(NestedStarted) == []


async def test_a_frame_of_100_mb(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with coding(tmp_path, way("good")) as c:
        start = time.monotonic()
        said = await c.said(
            PREPARE
            + "print(raw(struct.pack('!I', 100_000_000) + b'x' * 100_000_000))\nprint(raw(struct.pack('!I', 0xFFFFFFFF)))\n"
            "print(call_mcp_tool('bad__echo', {'text': 'after'}))"
        )
        lines = said.splitlines()
        assert "'kind': 'limit'" in lines[0] or lines[0] in (
            "closed",
            "ConnectionResetError",
            "BrokenPipeError",
        )
        assert "'kind': 'limit'" in lines[1]
        assert "'text': 'after'" in lines[2]
        assert time.monotonic() - start < 60
        assert "a request of 100,000,000 bytes" in refusals(caplog)


async def test_too_long_arguments(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with coding(tmp_path, way("good")) as c:
        said = await c.said("""
import tools
try:
    call_mcp_tool("bad__echo", {"text": "x" * 9_000_000})
except tools.ToolError as error:
    print(type(error).__name__)
print("goes on", len(list_mcp_tools()) > 0)
""")
        assert said.splitlines()[0] in ("ToolLimitError", "ToolStoppedError")
        assert said.splitlines()[1] == "goes on True"
        assert "longer than" in refusals(caplog)


async def test_many_connections_that_say_nothing(tmp_path: Path) -> None:
    """They hold up neither the host nor, once they are closed, the code."""
    async with coding(tmp_path, way("good")) as c:
        said = await c.said(
            PREPARE
            + """
finder = next(each for each in sys.meta_path if type(each).__name__ == "Finder")
held = []
for _ in range(500):
    sock = socket.socket(socket.AF_UNIX)
    sock.setblocking(False)
    try:
        sock.connect(finder.host.ask.args[0])
    except OSError:
        sock.close()
        break
    held.append(sock)
print(len(held) > 50)
for sock in held:
    sock.close()
import time, tools
for _ in range(100):  # until the host has seen it
    try:
        print(len(list_mcp_tools()) > 0)
        break
    except tools.ToolStoppedError:
        time.sleep(0.1)
"""
        )
        assert said.split() == ["True", "True"]


async def test_a_tool_that_is_not_allowed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The host decides: what it does not ask about and does not allow is not called, by whatever name."""
    async with coding(tmp_path, way("good"), policy=()) as c:
        said = await c.said("""
import tools
for name in ("bad__echo", "mcp__bad__echo", "bad.echo", "bad/echo", "sandbox__run_code", "mcp__sandbox__run_code", "gateway__x"):
    try:
        print(name, call_mcp_tool(name, {"text": "x"}))
    except tools.ToolError as error:
        print(name, type(error).__name__)
""")
        lines = said.splitlines()
        assert [line.split()[1] for line in lines] == ["ToolDeniedError"] * 4 + ["ToolNotFoundError"] * 3
        assert len(c.host.questions) == 4
        assert "did not allow" in refusals(caplog)


async def test_calls_after_the_run_has_ended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with coding(tmp_path, way("good")) as c:
        await c.said(
            PREPARE
            + """
import subprocess, threading, time
def later():
    time.sleep(1.5)
    try:
        call_mcp_tool("bad__echo", {"text": "late"})
        open("/tmp/late", "w").write("called")
    except Exception as error:
        open("/tmp/late", "w").write(f"{type(error).__name__} {error}")
threading.Thread(target=later).start()
code = "import time; time.sleep(1.5)\\n" + "import json,socket,struct\\n" + f'''
sock = socket.socket(socket.AF_UNIX); sock.connect({next(each for each in sys.meta_path if type(each).__name__ == "Finder").host.ask.args[0]!r})
data = json.dumps({{"token": {token()!r}, "op": "call", "name": "bad__echo", "arguments": {{}}}}).encode()
sock.sendall(struct.pack("!I", len(data)) + data)
open("/tmp/child", "wb").write(sock.recv(4) + sock.recv(1 << 16))
'''
subprocess.Popen([sys.executable, "-c", code])
"""
        )
        await asyncio.sleep(3)
        assert c.of(NestedStarted) == []
        said = await c.said(
            "print(open('/tmp/late').read()); print(open('/tmp/child', 'rb').read()[4:].decode())"
        )
        assert "ToolStoppedError No run of code may make calls now" in said
        assert "called" not in said.split()
        assert '"kind":"stopped"' in said
        assert refusals(caplog).count("a call outside of a run") == 2


async def test_an_approval_is_for_one_call(tmp_path: Path) -> None:
    """The same request once more, to the byte, is asked about once more."""
    async with coding(tmp_path, way("good"), policy=(), answers=("once",)) as c:
        said = await c.said(
            PREPARE
            + """
data = frame({"token": token(), "op": "call", "name": "bad__echo", "arguments": {"text": "x"}})
print(raw(data)["ok"], raw(data)["ok"], raw(data)["ok"])
"""
        )
        assert said.split() == ["True", "False", "False"]
        assert len(c.host.questions) == 3


async def test_arguments_changed_while_the_user_reads(tmp_path: Path) -> None:
    """What was asked about is what is sent: nothing that the sandbox holds is read again."""
    async with coding(tmp_path, way("good"), policy=(), answers=("once",)) as c:
        said = await c.said("given = {'text': 'harmless'}\nprint(call_mcp_tool('bad__echo', given))")
        assert "harmless" in c.host.questions[0].detail
        assert "harmless" in said


async def test_a_description_poisoned_after_approval(tmp_path: Path) -> None:
    async with coding(tmp_path, way("rug_pull"), policy=(), answers=("session", "no")) as c:
        ask = """
import tools
try:
    print(call_mcp_tool("bad__echo", {"text": "x"}))
except tools.ToolError as error:
    print(type(error).__name__)
"""
        assert "'text': 'x'" in await c.said(ask)
        await c.until(lambda: "something else" in str(c.of(ServerChanged)[-1].tools))
        assert await c.said(ask) == "ToolDeniedError\n"


async def test_calls_without_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with coding(tmp_path, way("good"), code_mode_calls=50) as c:
        said = await c.said("""
import tools
made = 0
try:
    while True:
        call_mcp_tool("bad__echo")
        made += 1
except tools.ToolLimitError:
    print(made)
""")
        assert said.strip() == "50"
        assert "One run may make 50 calls" in refusals(caplog)


# --- personal data ------------------------------------------------------------------------------------------


def mailer(folder: Path) -> ServerConfig:
    """A server of the user's that sends mail: it writes what it got into a file, and gives it back in many ways."""
    script = folder / "mailer.py"
    script.write_text(
        """
import base64, json, sys
for line in sys.stdin:
    word = json.loads(line)
    if "id" not in word:
        continue
    method, answer = word["method"], {}
    if method == "initialize":
        answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "m", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"to": {"type": "string"}, "text": {"type": "string"}, "how": {"type": "string"}}}
        answer = {"tools": [{"name": "send", "description": "Sends mail.", "inputSchema": schema}]}
    elif method == "tools/call":
        given = word["params"]["arguments"]
        open(sys.argv[1], "a").write(json.dumps(given) + "\\n")
        to = given.get("to", "")
        ways = {"plain": to, "base64": base64.b64encode(b"xy" + to.encode()).decode(), "hex": to.encode().hex(),
                "reversed": to[::-1], "split": " ".join(to), "error": to}
        how = given.get("how", "")
        answer = {"content": [{"type": "text", "text": "sent " + ways.get(how, "")}], "isError": how == "error"}
    print(json.dumps({"jsonrpc": "2.0", "id": word["id"], "result": answer}), flush=True)
"""
    )
    return ServerConfig(name="mail", command=(sys.executable, str(script), str(folder / "sent")))


def hidden(settings: Settings, host: Hosted) -> dict[str, Any]:
    """Code mode with a vault."""
    private = Private(Vault(settings), settings)
    host.servers.private = private
    return {"private": private}


def vault_of(c: Coding) -> Vault:
    """The vault of the session."""
    return c.bridge._private._vault  # type: ignore[union-attr]  # the tests look into it


async def test_a_token_becomes_the_value_only_where_it_may(tmp_path: Path) -> None:
    async with coding(
        tmp_path, mailer(tmp_path), way("good"), pii="on", pii_reveal=("mail/send/to",), more=hidden
    ) as c:
        token = vault_of(c).hide(MAIL)
        await c.said(
            f"call_mcp_tool('mail__send', {{'to': {token!r}, 'text': {token!r}}})\n"
            f"call_mcp_tool('bad__echo', {{'text': {token!r}}})"
        )
        sent = json.loads((tmp_path / "sent").read_text())
        assert sent == {"to": MAIL, "text": token}
        assert MAIL not in repr(c.host.events)


@pytest.mark.parametrize("how", ["plain", "base64", "hex", "reversed", "split", "error"])
async def test_what_was_put_back_does_not_come_back(
    how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with coding(tmp_path, mailer(tmp_path), pii="on", pii_reveal=("mail/send/to",), more=hidden) as c:
        token = vault_of(c).hide(MAIL)
        said = await c.said(f"""
import tools
try:
    print(call_mcp_tool('mail__send', {{'to': {token!r}, 'how': {how!r}}}))
except tools.ToolError as error:
    print(error)
""")
        assert token in said
        for form in (
            MAIL,
            MAIL[::-1],
            MAIL.encode().hex(),
            base64.b64encode(b"xy" + MAIL.encode()).decode(),
            " ".join(MAIL),
        ):
            assert form not in said
        assert MAIL not in refusals(caplog)
        if how not in ("plain", "error"):
            assert "personal data came back from a tool: EMAIL" in refusals(caplog)


@pytest.mark.parametrize(
    "package", ["@modelcontextprotocol/server-filesystem", "mcp-server-sqlite", "mcp-server-git"]
)
async def test_no_oracle_through_servers_that_can_be_read_back(
    package: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What code could read again stays a token, whatever the user has set by mistake."""
    config = mailer(tmp_path)
    config = ServerConfig(name="mail", command=(*config.command, package))
    async with coding(tmp_path, config, pii="on", pii_reveal=("mail/send/to",), more=hidden) as c:
        token = vault_of(c).hide(MAIL)
        await c.said(f"call_mcp_tool('mail__send', {{'to': {token!r}}})")
        assert json.loads((tmp_path / "sent").read_text()) == {"to": token}
        assert "code could read it from there" in refusals(caplog)


async def test_tokens_cannot_be_guessed_or_forged(tmp_path: Path) -> None:
    async with coding(tmp_path, mailer(tmp_path), pii="on", pii_reveal=("mail/send/to",), more=hidden) as c:
        vault_of(c).hide(MAIL)
        forged = "<EMAIL:aaaaaaaaaa>"
        await c.said(f"call_mcp_tool('mail__send', {{'to': {forged!r}}})")
        assert json.loads((tmp_path / "sent").read_text()) == {"to": forged}


async def test_results_reach_the_sandbox_without_personal_data(tmp_path: Path) -> None:
    async with coding(tmp_path, way("good"), pii="on", more=hidden) as c:
        said = await c.said(
            "made = call_mcp_tool('bad__echo', {'text': 'ann' + '.lee@' + 'example.com'})\n"
            "print(made['text'].startswith('<EMAIL:'), '@' in made['text'])"
        )
        assert said.split() == ["True", "False"]
        (event,) = c.of(NestedStarted)
        assert MAIL not in repr(event.input)
        assert MAIL not in repr(c.of(NestedFinished)[0].content)


async def test_a_request_begun_in_one_run_is_not_finished_in_the_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with coding(tmp_path, way("good")) as c:
        await c.said(
            PREPARE
            + """
half = socket.socket(socket.AF_UNIX)
half.connect(next(each for each in sys.meta_path if type(each).__name__ == "Finder").host.ask.args[0])
whole = frame({"token": token(), "op": "call", "name": "bad__echo", "arguments": {"text": "late"}})
half.sendall(whole[:20])
import time
time.sleep(0.3)
"""
        )
        said = await c.said(
            """
half.settimeout(10)
try:
    half.sendall(whole[20:])
    print(half.recv(100))
except OSError as error:
    print(type(error).__name__)
"""
        )
        assert said.strip() in ("b''", "BrokenPipeError", "ConnectionResetError"), said
        assert c.of(NestedStarted) == []


async def test_who_does_not_read_holds_nothing_up(tmp_path: Path) -> None:
    async with coding(tmp_path, way("good")) as c:
        await c.said(
            PREPARE
            + """
held = []
for _ in range(40):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(next(each for each in sys.meta_path if type(each).__name__ == "Finder").host.ask.args[0])
    sock.sendall(frame({"token": token(), "op": "call", "name": "bad__echo", "arguments": {"text": "x" * 400_000}}))
    held.append(sock)
import time
time.sleep(1)
"""
        )
        await c.until(lambda: not c.bridge._open)
        assert (await c.said("print(len(list_mcp_tools()) > 0)")).strip() == "True"


async def test_looking_for_tools_does_not_stop_the_clock(tmp_path: Path) -> None:
    code = """
import threading
def look():
    while True:
        try:
            list_mcp_tools("x " * 100_000)
            call_mcp_tool("no__such", {})
        except Exception:
            pass
for _ in range(3):
    threading.Thread(target=look, daemon=True).start()
while True:
    pass
"""
    async with coding(tmp_path, way("good")) as c:
        before = time.monotonic()
        done = await c.run(code, timeout=3)
        assert done.stopped == "timeout", done
        assert time.monotonic() - before < 30
        assert c.of(NestedStarted) == []


async def test_a_schema_error_is_logged_without_personal_data(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with coding(tmp_path, way("good"), pii="on", more=hidden) as c:
        said = await c.said(
            """
try:
    call_mcp_tool("bad__echo", {"text": ["ann" + ".lee@" + "example.com"]})
except Exception as error:
    print(type(error).__name__, "@" in str(error))
"""
        )
        assert said.split() == ["ToolArgumentError", "False"]
        assert MAIL not in refusals(caplog)


async def test_what_a_server_says_of_its_tools_is_hidden_too(tmp_path: Path) -> None:
    async with coding(tmp_path, way("good"), pii="on", more=hidden) as c:
        servers = c.host.servers
        tools = await servers.definitions()
        told = [dataclasses.replace(tool, description=f"Ask {MAIL} about it.") for tool in tools]

        async def definitions() -> list[Any]:
            return told

        servers.definitions = definitions  # type: ignore[method-assign]
        said = await c.said("print(list_mcp_tools(detail='full'), get_mcp_tool_details('bad__echo'))")
        assert MAIL not in said
        assert "<EMAIL:" in said


def shelved(folder: Path) -> tuple[Store, dict[str, Any]]:
    """A folder of skills, and what lets code use it."""
    store = Store(folder / "skills")
    return store, {"more": lambda _settings, host: {"shelf": Shelf(store, host.events.append, origin="here")}}


USE = """
try:
    from skills import double
    print("loaded", double.double(2))
except ImportError as error:
    print("refused", error)
try:
    print(__import__("tools").read_skill("double"))
except Exception as error:
    print(type(error).__name__, error)
"""


async def test_a_draft_used_before_promotion(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store, more = shelved(tmp_path)
    async with coding(tmp_path, way("good"), **more) as c:
        said = await c.said(
            "save_skill('double', 'def double(x):\\n    return 2 * x\\n', 'Doubles a number.')\n" + USE
        )
        assert said.count("is a draft: the user has not promoted it") == 2, said
        assert "loaded" not in said
        assert "is a draft" in refusals(caplog)
        store.promote("double", expected=store.draft("double").digest)
        assert "loaded 4" in await c.said(USE)


async def test_a_skill_changed_after_promotion(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store, more = shelved(tmp_path)
    draft = store.save_draft("double", "def double(x):\n    return 2 * x\n", "Doubles.", origin="")
    store.promote("double", expected=draft.digest)
    (store.folder / "double" / "double.py").write_text("def double(x):\n    return 'owned'\n")
    async with coding(tmp_path, way("good"), **more) as c:
        said = await c.said(USE)
        assert said.count("was changed after the user had promoted it") == 2, said
        assert "loaded" not in said
        assert "owned" not in said
        assert "is not as it was promoted" in refusals(caplog)


@pytest.mark.parametrize(
    "name", ["../double", "/etc/passwd", ".drafts/double", "double/../../x", "a\\0b", "Double"]
)
async def test_names_that_lead_elsewhere(name: str, tmp_path: Path) -> None:
    store, more = shelved(tmp_path)
    store.save_draft("double", "SECRET = 1\n", "Doubles.", origin="")
    async with coding(tmp_path, way("good"), **more) as c:
        code = f"""
import tools
for call in (lambda: tools.read_skill({name!r}), lambda: tools.read_skill("double", {name!r}), lambda: __import__("skills." + {name!r})):
    try:
        print("got", call())
    except BaseException as error:
        print(type(error).__name__)
"""
        said = await c.said(code)
        assert "got" not in said
        assert len(said.split()) == 3


READ = """
import os
found = {}
for top, folders, names in os.walk("/skills", followlinks=True):
    for name in names:
        found[os.path.join(top, name)] = open(os.path.join(top, name)).read()
print(found)
"""


@pytest.mark.parametrize("warm", [False, True])
async def test_what_is_not_promoted_is_no_file_either(warm: bool, tmp_path: Path) -> None:
    """Drafts, changed skills, and skills that hold links are not in ``/skills``, whenever they become so."""
    store = Store(tmp_path / "skills")
    outside = tmp_path / "private"
    outside.mkdir()
    (outside / "key").write_text("THE-KEY")
    for name in ("good", "bent", "linked", "folder_linked", "hard"):
        store.promote(name, expected=store.save_draft(name, f"{name} = 1\n", "Does it.", origin="").digest)
    store.save_draft("mere_draft", "DRAFT = 1\n", "A draft.", origin="")
    (store.folder / "bent" / "bent.py").write_text("OWNED = 1\n")
    (store.folder / "linked" / "linked.py").unlink()
    (store.folder / "linked" / "linked.py").symlink_to(outside / "key")
    (store.folder / "folder_linked" / "more").symlink_to(outside)
    (store.folder / "hard" / "more.txt").hardlink_to(outside / "key")
    (store.folder / "elsewhere").symlink_to(outside)
    async with coding(tmp_path, skills=Given(store), sandbox_warm=warm) as c:
        if warm:
            wait_warm(c.worker)
        said = await c.said(READ)
        assert sorted(ast.literal_eval(said)) == ["/skills/good/SKILL.md", "/skills/good/good.py"]
        (store.folder / "good" / "good.py").write_text("OWNED = 1\n")
        assert await c.said(READ) == "{}\n"
        (store.folder / "good" / "good.py").unlink()
        (store.folder / "good" / "good.py").symlink_to(outside / "key")
        assert await c.said(READ) == "{}\n"
        store.promote("mere_draft", expected=store.draft("mere_draft").digest)
        assert "DRAFT = 1" in await c.said(READ)


CHANGE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
worked = []
def attempt(name, act):
    try:
        if act() not in (-1, False):
            worked.append(name)
    except OSError:
        pass
attempt("write", lambda: open("/skills/good/good.py", "w").write("x"))
attempt("through /proc", lambda: open("/proc/self/root/skills/good/good.py", "w").write("x"))
attempt("make", lambda: open("/skills/made", "w").write("x"))
attempt("folder", lambda: os.mkdir("/skills/made"))
attempt("remove", lambda: os.remove("/skills/good/good.py"))
attempt("move", lambda: os.rename("/skills/good", "/skills/better"))
attempt("mode", lambda: os.chmod("/skills/good/good.py", 0o666))
attempt("link", lambda: os.link("/skills/good/good.py", "/tmp/linked"))
attempt("times", lambda: os.utime("/skills/good/good.py"))
attempt("remount", lambda: libc.mount(b"none", b"/skills", None, 32 | 4096, None))
attempt("cover", lambda: libc.mount(b"tmpfs", b"/skills", b"tmpfs", 0, None))
attempt("unmount", lambda: libc.umount2(b"/skills", 2))
attempt("up", lambda: os.path.exists("/skills/../skills/.in-use") or os.path.exists("/skills/..in-use"))
print(worked)
"""


@pytest.mark.parametrize("warm", [False, True])
async def test_skills_cannot_be_changed_from_inside(warm: bool, tmp_path: Path) -> None:
    store = Store(tmp_path / "skills")
    store.promote("good", expected=store.save_draft("good", "GOOD = 1\n", "Does it.", origin="").digest)
    async with coding(tmp_path, skills=Given(store), sandbox_warm=warm) as c:
        if warm:
            wait_warm(c.worker)
        assert await c.said(CHANGE) == "[]\n"
        assert "GOOD = 1" in await c.said(READ)
    assert (store.folder / "good" / "good.py").read_text() == "GOOD = 1\n"


def test_this_program_opens_no_port() -> None:
    """The way to the host is a socket in a file inside the sandbox and a pair of sockets here."""
    source = (Path(__file__).parent.parent.parent / "sandbox_chat" / "bridge").glob("*.py")
    assert not any(
        "create_server" in file.read_text() or "start_server" in file.read_text() for file in source
    )
    assert struct.calcsize("!I") == 4
    assert socket.AF_UNIX
