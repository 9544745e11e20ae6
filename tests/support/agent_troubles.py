"""What a user sees of each failure of the model's endpoint and of the agent's program, provoked for real.

The endpoint is scripted, the rest is real: the engine, the SDK, its CLI, the interface's own bookkeeping of prompts.
Nothing here is said by hand: what becomes of the prompt and of the session is found out.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from support.engines import Running, engine
from support.relay import Relay
from support.scripted import ErrorReply, Reply, Text, call, error, rate_limited, reply, serve, text

from sandbox_chat.events import Notice, Retry, TextDelta, TurnFinished
from sandbox_chat.settings import Secret
from sandbox_chat.ui.controller import Chat, Prompt
from sandbox_chat.words.failures import EN

PROMPT = "How far is the moon?"
BACK, IN_PART = "back in the composer", "answered in part"
WORKS, ANEW = "works on", "works on after `--resume`"
HTML = (
    b"<!doctype html><html><head><title>Sign in to the network</title></head><body><p>Hello</p></body></html>"
)
WEB_PAGE = {"content-type": "text/html; charset=utf-8"}
STREAM = {"content-type": "text/event-stream"}


@dataclass(frozen=True, slots=True)
class Met:
    """A trouble and what was found: title and text as shown, where the prompt is, and how the session goes on."""

    trouble: str
    title: str
    text: str
    prompt: str
    session: str
    kind: str = ""
    retried: bool = False


def title_of(finished: TurnFinished) -> str:
    """The title of a failure as it is recorded."""
    values = {"status": "", "steps": "", **dict(finished.about)}
    return EN[f"title_{finished.kind}"].format(**values)


def met(trouble: str, e: Running, finished: TurnFinished, session: str, since: int = 0) -> Met:
    """Return what was met. ``since``: the number of events before the prompt was sent."""
    assert finished.is_error and finished.kind, finished
    title = title_of(finished)
    assert finished.error.startswith(f"{title}. "), finished.error
    given_back: list[str] = []

    def restored(prompt: Prompt) -> bool:
        given_back.append(prompt.text)
        return True

    chat = Chat(restored=restored)
    chat.apply(e.events[:since], past=since)
    chat.apply([event for event in e.events[since:] if event.seq <= finished.seq])
    assert given_back in ([PROMPT], []), given_back
    words = plain(finished.error.removeprefix(f"{title}. "))
    retried = any(isinstance(event, Retry) for event in e.events[since:])
    return Met(trouble, title, words, BACK if given_back else IN_PART, session, finished.kind, retried)


def plain(words: str) -> str:
    """Return ``words`` without what differs from machine to machine: addresses, systems."""
    words = re.sub(r"(https?)://(?:127\.0\.0\.1|localhost):\d+", r"\1://gateway.example.com", words)
    words = re.sub(r"127\.0\.0\.1:\d+", "gateway.example.com", words)
    words = re.sub(r"(no CLI for this system) \([^)]*\)", r"\1 (Linux x86_64)", words)
    words = re.sub(r"'[^']*/not-a-program'", "'…/claude'", words)
    return " ".join(words.split())


def goes_on(e: Running) -> str:
    """Return that the next prompt of the same session is answered; a test fails if it is not."""
    finished = e.ask("And the sun?")
    assert not finished.is_error, finished.error
    return WORKS


@contextlib.contextmanager
def quiet_engine(folder: Path, *steps: Any, **settings: Any) -> Iterator[Running]:
    """An engine without a sandbox, which these failures do not need."""
    with engine(folder, *steps, **{"sandbox": "off", **settings}) as e:
        yield e


# -- the endpoint refuses --------------------------------------------------------------------------------

REFUSALS: tuple[tuple[str, Any], ...] = (
    ("400: the model is not known", error(400, "The model scripted-model-1 is not supported.")),
    ("400: anything else", error(400, "thinking: unsupported parameter")),
    ("401", error(401, "invalid x-api-key")),
    ("402, or 400 with *credit balance too low*", error(400, "Your credit balance is too low to access the Anthropic API.")),
    ("403", error(403, "this key may not use the API")),
    ("404", error(404, "model: scripted-model-1")),
    ("413", error(413, "Request exceeds the maximum size")),
    ("400: the conversation is too long", error(400, "prompt is too long: 210000 tokens > 200000 maximum")),
    ("429 with *retry-after*", rate_limited(0.1, "slow down")),
    ("429 without *retry-after*", error(429, "slow down")),
    ("500", error(500, "out of memory")),
    ("502, a web page of a gateway", ErrorReply(502, body=HTML.replace(b"Sign in to the network", b"502 Bad Gateway"), headers=WEB_PAGE)),
    ("529", error(529, "Overloaded")),
)  # fmt: skip
"""What an endpoint refuses with, by what the documentation calls it."""


def of_refusals(folder: Path) -> list[Met]:
    """The endpoint answers with an HTTP status that is none of success."""
    answers: list[Any] = []
    out = []
    with quiet_engine(folder, function=lambda _request: answers[-1]) as e:
        for trouble, refusal in REFUSALS:
            place = len(e.events)
            answers.append(refusal)
            finished = e.ask(PROMPT)
            answers.append(text("About 8 light minutes."))
            out.append(met(trouble, e, finished, goes_on(e), place))
    return out


# -- the endpoint answers with what is no answer -----------------------------------------------------------

HALF = "The moon is far away, about as far as thirty Earths in a row."


def of_answers(folder: Path) -> list[Met]:
    """The endpoint is slow, or breaks off, or says something else."""
    answers: list[Any] = []
    out = []
    broken: tuple[tuple[str, Any], ...] = (
        ("the stream is cut, every time", text(HALF, cut_at=30, pace=0.005)),
        ("an error event in the stream, every time", text(HALF, error_at=30, pace=0.005)),
        ("the connection is closed before a byte, every time", text("x", drop=True)),
        ("a web page in place of JSON", ErrorReply(200, body=HTML, headers=WEB_PAGE)),
        ("an empty stream", ErrorReply(200, body=b"", headers=STREAM)),
    )
    with quiet_engine(folder, function=lambda _request: answers[-1]) as e:
        for trouble, answer in broken:
            place = len(e.events)
            answers.append(answer)
            finished = e.ask(PROMPT)
            answers.append(text("About 8 light minutes."))
            out.append(met(trouble, e, finished, goes_on(e), place))
    with quiet_engine(folder / "slow", function=lambda _request: answers[-1], request_timeout=1.0) as e:
        answers.append(text("late", first_stall=30))
        finished = e.ask(PROMPT)
        answers.append(text("About 8 light minutes."))
        out.append(met("no byte within the time limit (a minute, or what is set)", e, finished, goes_on(e)))
    code = call("run_code", before="Let me compute it.", code="1+1")
    with engine(folder / "part", code, error(529, "Overloaded"), text("Done.")) as e:
        finished = e.ask(PROMPT)
        out.append(met("529 after a part of the answer, or after a tool call", e, finished, goes_on(e)))
    return out


# -- the way to the endpoint -------------------------------------------------------------------------------


class _Door(socketserver.StreamRequestHandler):
    """A proxy that lets nobody through."""

    def handle(self) -> None:
        while self.rfile.readline().strip():
            pass
        self.wfile.write(
            b"HTTP/1.1 403 Forbidden by policy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )


@contextlib.contextmanager
def refusing_proxy() -> Iterator[str]:
    """The address of a proxy that lets nobody through."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Door) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


@contextlib.contextmanager
def unknown_certificate(folder: Path) -> Iterator[str]:
    """The address of a server with a certificate that nobody has signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(folder))
    listener = socket.create_server(("127.0.0.1", 0))

    def serve_all() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), context.wrap_socket(client, server_side=True) as secure:
                secure.recv(1)

    threading.Thread(target=serve_all, daemon=True).start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _certificate(folder: Path) -> Path:
    """Make a certificate that is signed by itself, with its key, in one file."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "gateway.example.com")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "server.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _elsewhere(trouble: str, folder: Path, **settings: Any) -> Met:
    """Meet a trouble that lies in the settings, then start again with good ones and the same session."""
    with quiet_engine(folder, **settings) as e:
        finished = e.ask(PROMPT)
        session = e.engine.session_id
        again = e.ask("Hello?")
        assert again.is_error and again.kind == finished.kind, "it is said again, and the program stays up"
        found = list(e.events)
    with quiet_engine(folder, text("About 8 light minutes."), resume=session) as resumed:
        resumed.engine.send("And the sun?")
        end = resumed.until(lambda: resumed.of(TurnFinished), "the end of the turn")[-1]
        assert not end.is_error, end.error
    first = Running(e.server, None)
    first.events = found
    return met(trouble, first, finished, ANEW)


def of_the_way(folder: Path) -> list[Met]:
    """The endpoint is not where it should be, or something lies between."""
    out = []
    port = _free_port()
    nowhere = {"anthropic_base_url": f"http://127.0.0.1:{port}"}
    with quiet_engine(folder / "refused", text("About 8 light minutes."), **nowhere) as e:
        finished = e.ask(PROMPT)
        relay = Relay(e.server.url, port)
        out.append(met("the connection is refused", e, finished, goes_on(e)))
        relay.close()
    unknown = "https://gateway.invalid"
    out.append(_elsewhere("the name is not found", folder / "name", anthropic_base_url=unknown))
    with unknown_certificate(folder) as url:
        out.append(_elsewhere("TLS: the certificate is not trusted", folder / "tls", anthropic_base_url=url))
    with serve(text("x")) as server:
        secure = server.url.replace("http:", "https:")
        out.append(_elsewhere("TLS: the server has none", folder / "notls", anthropic_base_url=secure))
    with refusing_proxy() as proxy, mock.patch.dict(os.environ, {"HTTPS_PROXY": proxy}):
        values = {"anthropic_base_url": "https://gateway.example.com"}
        out.append(_elsewhere("the proxy refuses", folder / "proxy", **values))
    none = {"anthropic_auth_token": Secret("")}
    out.append(_elsewhere("a gateway wants a token, none is set", folder / "none", **none))
    with serve(text("x"), token="another") as server:
        values = {"anthropic_base_url": server.url, "anthropic_auth_token": Secret("wrong-token")}
        out.append(_elsewhere("a gateway does not know the token", folder / "token", **values))
    home = folder / "home"
    home.mkdir()
    with mock.patch.dict(os.environ, {"HOME": str(home)}):
        os.environ.pop("CLAUDE_CODE_OAUTH_TOKEN", None)
        values = {"anthropic_base_url": "", "anthropic_auth_token": Secret(""), "claude_login": True}
        out.append(_elsewhere("the login of Claude Code is missing", folder / "login", **values))
    return out


# -- the agent's program -----------------------------------------------------------------------------------


def of_the_program(folder: Path) -> list[Met]:
    """The CLI is missing, killed, or says too much at once."""
    out = []
    broken = folder / "not-a-program"
    broken.write_text("")
    for trouble, found in (("the CLI is missing", None), ("the CLI cannot be started", broken)):
        place = mock.patch("sandbox_chat.agent.options.find_cli", lambda found=found: found)
        place.start()
        try:
            with quiet_engine(folder / trouble, text("About 8 light minutes.")) as e:
                finished = e.ask(PROMPT)
                assert finished.kind in [event.kind for event in e.of(Notice)], "it is said at the start too"
                place.stop()
                out.append(met(trouble, e, finished, goes_on(e)))
        finally:
            mock.patch.stopall()
    long = reply(Text("word " * 400), pace=0.02)
    with quiet_engine(folder / "killed", long, text("About 8 light minutes.")) as e:
        turn = e.engine.send(PROMPT)
        e.until(lambda: len(e.of(TextDelta)) > 5, "some of the answer")
        session = e.engine._session
        assert session is not None
        os.kill(session.cli_pid, signal.SIGKILL)
        finished = e.finished(turn)
        out.append(met("the CLI is killed in the middle of the answer", e, finished, goes_on(e)))
    with mock.patch("sandbox_chat.agent.options.MAX_BUFFER", 100_000):
        huge: Reply = text("x" * 300_000)
        with quiet_engine(folder / "line", huge, text("About 8 light minutes.")) as e:
            finished = e.ask(PROMPT)
            out.append(met("a line of the CLI is too long", e, finished, goes_on(e)))
    return out


PRODUCERS: dict[str, Callable[[Path], list[Met]]] = {
    "refusals": of_refusals,
    "answers": of_answers,
    "way": of_the_way,
    "program": of_the_program,
}
"""All failures, by theme, in the order of the documentation."""
