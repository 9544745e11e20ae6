"""The parts of ``mcp serve``: the token's file, the kept files, the address, the arguments."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from sandbox_chat import serve_face
from sandbox_chat.arguments import parse
from sandbox_chat.mcp.serve import stdio
from sandbox_chat.mcp.serve.files import Shelf
from sandbox_chat.mcp.serve.http import HttpServer, address_of, listen
from sandbox_chat.mcp.serve.token import load_token
from sandbox_chat.sandbox.base import Capabilities
from sandbox_chat.settings import ConfigError, Secret, Settings

# --- the token ------------------------------------------------------------------------------------------


def test_a_missing_token_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "made" / "token"
    token = load_token(path)
    assert len(token.reveal()) >= 32
    assert token.reveal() not in repr(token)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["token"]
    assert load_token(path).reveal() == token.reveal()


def write(path: Path, data: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("data", "mode", "words"),
    [
        (b"0123456789abcdef", 0o640, "chmod 600"),
        (b"0123456789abcdef", 0o604, "chmod 600"),
        (b"", 0o600, "holds no token"),
        (b"short", 0o600, "holds no token"),
        (b"two words 0123456789", 0o600, "holds no token"),
        (b"two\nlines-0123456789", 0o600, "holds no token"),
        (b"x" * 513, 0o600, "holds no token"),
        (b"\xff" * 20, 0o600, "holds no token"),
        ("schlüssel-0123456789".encode(), 0o600, "holds no token"),
        (b"\x00" * 20, 0o600, "holds no token"),
    ],
)
def test_what_is_no_token_is_refused(tmp_path: Path, data: bytes, mode: int, words: str) -> None:
    path = write(tmp_path / "token", data, mode)
    with pytest.raises(ConfigError, match=words) as caught:
        load_token(path)
    assert "0123456789" not in str(caught.value)
    assert path.read_bytes() == data


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(ConfigError, match="--token-file"):
            load_token(path)
    with pytest.raises(ConfigError, match="cannot be"):
        load_token(Path("/proc/none/token"))


def test_a_token_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "token", b"0123456789abcdef")
    own = os.geteuid()
    if own == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with pytest.raises(ConfigError, match="belongs to another user"):
        load_token(path)


def test_a_token_with_blanks_around_it(tmp_path: Path) -> None:
    path = write(tmp_path / "token", b"  0123456789abcdef \r\n")
    assert load_token(path).reveal() == "0123456789abcdef"


# --- kept files -----------------------------------------------------------------------------------------


def test_the_oldest_files_make_room(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "kept", 1000)
    paths = []
    for number in range(5):
        kept = shelf.save_file(bytes([number]) * 400, "text/html", "a page")
        paths.append(Path(kept.path))
        os.utime(kept.path, (number, number))
        assert paths[-1].stat().st_mode & 0o777 == 0o600
    shelf.trim()
    assert [path.exists() for path in paths] == [False, False, False, True, True]
    shelf.remove()
    shelf.trim()
    shelf.remove()
    assert not shelf.folder.exists()


def test_a_picture_that_cannot_be_kept_is_still_given(tmp_path: Path) -> None:
    shelf = Shelf(write(tmp_path / "file", b"") / "kept", 1000)
    assert shelf.save_picture(b"x", "image/png", 1, 2).path == ""
    with pytest.raises(OSError, match="Not a directory"):
        shelf.save_file(b"x", "text/html", "a page")


# --- addresses and arguments ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("8765", ("127.0.0.1", 8765)),
        (":8765", ("127.0.0.1", 8765)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:80", ("::1", 80)),
        ("0.0.0.0:65535", ("0.0.0.0", 65535)),
    ],
)
def test_an_address_is_read(where: str, found: tuple[str, int]) -> None:
    assert serve_face.read_address(where) == found


@pytest.mark.parametrize(
    "where",
    ["", "x", "-1", "65536", "1.5", "::1:80", "http://a:1", "a b:1", "a@b:1", "[::1]", "٣", "\x1b[2J:x"],
)
def test_what_is_no_address_is_refused(where: str) -> None:
    with pytest.raises(ConfigError, match=r"--http takes \[HOST:\]PORT") as caught:
        serve_face.read_address(where)
    assert "\x1b" not in str(caught.value)


def test_listening_tells_whether_others_reach_it() -> None:
    for host, local in (("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False)):
        listener, loopback = listen(host, 0)
        with listener:
            assert loopback == local
            assert address_of(listener).endswith(f":{listener.getsockname()[1]}/mcp")


def test_the_arguments() -> None:
    options = parse(["mcp", "serve", "--sandbox", "docker"])
    assert (options.action, options.http, options.token_file, options.sandbox) == (
        "serve",
        None,
        "",
        "docker",
    )
    options = parse(["--sandbox=e2b", "mcp", "serve", "--http", "1", "--token-file", "t"])
    assert (options.http, options.token_file, options.sandbox) == ("1", "t", "e2b")


# --- the wire -------------------------------------------------------------------------------------------


def read_lines(data: bytes, said: list[str]) -> list[bytes]:
    """What the reader makes of the bytes of a pipe."""
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    reader = stdio._Reader(reading, None, None, None, said.append)  # type: ignore[arg-type]
    try:
        return list(reader._lines())
    finally:
        os.close(reading)


def test_lines_are_cut_where_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    assert read_lines(b"one\n\n  \r\ntwo\r\nthree\nrest", said) == [b"one", b"two\r", b"three"]
    monkeypatch.setattr(stdio, "_PIECE", 3)
    assert read_lines(b"one two three\nfour\n\nfive\n", said) == [b"one two three", b"four", b"five"]
    assert said == []


def test_a_line_without_end_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(stdio, "LINE_LIMIT", 10)
    monkeypatch.setattr(stdio, "_PIECE", 4)
    assert read_lines(b"x" * 1000 + b"\n" + b"y" * 10 + b"\n" + b"z" * 11 + b"\nshort\n", said) == [
        b"y" * 10,
        b"short",
    ]
    assert said == [
        "A message of 1,000 bytes was thrown away: 10 is the limit.",
        "A message of 11 bytes was thrown away: 10 is the limit.",
    ]


async def test_sandboxes_that_are_asked_for_at_once_stay_within_the_limit() -> None:
    alive: list[object] = []
    made = most = 0

    class Box:
        """Stands for a session, whose end takes a while."""

        def __init__(self, name: str) -> None:
            nonlocal made, most
            self.busy, self.used = False, time.monotonic()
            alive.append(self)
            made, most = made + 1, max(most, len(alive))

        async def close(self) -> None:
            await asyncio.sleep(0.01)
            if self in alive:
                alive.remove(self)

    app = HttpServer(Settings(serve_sessions=2), Secret("x"), Box, Capabilities(), loopback=True)  # type: ignore[arg-type]
    await asyncio.gather(*(app._get("", True) for _ in range(2)))
    found = await asyncio.gather(*(app._get("own:me", True) for _ in range(6)))
    assert (made, len({id(session) for session, _ in found})) == (3, 1)
    await asyncio.gather(*(app._get("", True) for _ in range(8)))
    assert (most, made) == (2, 11)
    await app.close()
    assert alive == []
