"""Log, token file and processes of the gateway."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox_chat.gateway.errors import StartError
from sandbox_chat.gateway.log import Lines, Log, tail
from sandbox_chat.gateway.processes import below, end_below
from sandbox_chat.gateway.token_file import check_token, make_folder, remove_token, write_token
from sandbox_chat.gateway.whole_file import write_whole


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """A log of at most 3 KB that knows two secrets."""
    log = Log(
        tmp_path / "log", ["secret-value", "two\nlines-of-one", "short", "secret-value-longer"], limit=3000
    )
    yield log
    log.close()


def test_lines_come_whole_and_clean(tmp_path: Path, log: Log) -> None:
    lines = Lines(log, "a b")
    for part in (b"one \x1b[1;31mred\x1b[0m", b" line\r\ntwo\x00\x07\x9b\n", b"\xff\xe2\x82", b"\xac\tend"):
        lines.feed(part)
    lines.end()
    lines.end()
    assert (tmp_path / "log").read_text("utf-8") == "[a b] one red line\n[a b] two�\n[a b] �€\tend\n"
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600


def test_secrets_are_blotted_out(tmp_path: Path, log: Log) -> None:
    lines = Lines(log, "s")
    for byte in b"x secret-value-longer secret-value lines-of-one short\n":
        lines.feed(bytes([byte]))
    log.say("secret-value")
    assert (tmp_path / "log").read_text() == "[s] x *** *** *** short\n[gateway] ***\n"


def test_a_line_without_end_is_cut_and_the_rest_skipped(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", ["secret-value"])
    lines = Lines(log, "s")
    lines.feed(b"y" * 65_530)
    lines.feed(b"secret-value" * 10_000)
    for _ in range(50):
        lines.feed(b"z" * 100_000)
    lines.feed(b"\nnext\n")
    log.close()
    text = (tmp_path / "log").read_text()
    assert len(text) < 9000
    assert text.endswith("[s] next\n")
    assert "secret" not in text
    assert "z" not in text


def test_the_size_is_bounded(tmp_path: Path, log: Log) -> None:
    for number in range(1000):
        log.line("n", f"{number} {'x' * 40}")
    assert (tmp_path / "log").stat().st_size <= 3000
    assert (tmp_path / "log.1").stat().st_size <= 3000
    assert "999 x" in (tmp_path / "log").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"log", "log.1"}


def test_what_is_no_plain_file_is_not_moved(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    log = Log(pipe, limit=100)
    for _ in range(20):
        log.say("x" * 50)
    log.close()
    assert len(os.read(reading, 10_000)) == 20 * len("[gateway] \n" + "x" * 50)
    os.close(reading)
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]
    with pytest.raises(OSError, match="No such device"):  # nobody reads it
        Log(pipe)


def test_a_giant_line_costs_no_more_than_its_begin(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", ["secret-value"])
    times = []
    for size in (1 << 18, 1 << 24):
        begin = time.process_time()
        log.line("s", "y" * size)
        times.append(time.process_time() - begin)
    log.close()
    assert times[1] < 20 * times[0] + 0.05
    assert f"… ({(1 << 24) - 8192:,} more characters)" in (tmp_path / "log").read_text()


def test_tail(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("before\n" + "".join(f"line {number}\n" for number in range(1000)))
    ending = tail(path, 7, 100)
    assert ending.startswith("line ")
    assert ending.endswith("line 999")
    assert len(ending) <= 100
    assert tail(path, 7, 1 << 20).startswith("line 0\n")
    assert tail(path, 1 << 20, 100) == ending
    assert tail(tmp_path / "none", 0) == ""


def test_a_token_file_is_private_and_replaced_at_once(tmp_path: Path) -> None:
    path = tmp_path / "run" / ".token"
    make_folder(path.parent)
    make_folder(path.parent)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    old = os.umask(0)
    try:
        write_token(path, "one")
        write_token(path, "two")
    finally:
        os.umask(old)
    assert path.read_text() == "two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [item.name for item in path.parent.iterdir()] == [".token"]
    remove_token(path, "another")
    assert path.exists()
    remove_token(path, "two")
    remove_token(path, "two")
    assert not path.exists()


def test_a_file_is_written_whole_private_and_through_no_link(tmp_path: Path) -> None:
    path, target = tmp_path / "file", tmp_path / "target"
    target.write_bytes(b"mine")
    path.symlink_to(target)
    old = os.umask(0)
    try:
        write_whole(path, b"\0one")
    finally:
        os.umask(old)
    assert path.read_bytes() == b"\0one" and not path.is_symlink() and target.read_bytes() == b"mine"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    together = [threading.Thread(target=write_whole, args=(path, bytes([n]) * 5000)) for n in range(8)]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    found = path.read_bytes()
    assert len(found) == 5000 and len(set(found)) == 1  # of one of them, whole
    assert sorted(item.name for item in tmp_path.iterdir()) == ["file", "target"]


def test_a_token_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / ".token").mkdir()
    with pytest.raises(IsADirectoryError):
        write_token(tmp_path / ".token", "x")
    assert [item.name for item in tmp_path.iterdir()] == [".token"]
    link, target = tmp_path / "link", tmp_path / "target"
    target.write_text("mine")
    link.symlink_to(target)
    write_token(link, "x")
    assert target.read_text() == "mine"
    assert not link.is_symlink()


@pytest.mark.parametrize("token", ["", " ", "a b", "ü", "a\n", "\x7f", "x" * 5000])
def test_tokens_that_are_none(token: str) -> None:
    with pytest.raises(StartError, match="token"):
        check_token(token)


def test_processes_below_are_found_and_ended() -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(['sh', '-c', 'sleep 600 & setsid sleep 600 & wait'], start_new_session=True)\n"
        "print(flush=True); time.sleep(600)"
    )
    top = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert top.stdout is not None
    with top.stdout:
        top.stdout.readline()
        deadline = time.monotonic() + 10
        while len(below(top.pid)) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        end_below(top.pid, 5)
        assert below(top.pid) == []
        assert top.poll() is None
        top.kill()
        top.wait()
