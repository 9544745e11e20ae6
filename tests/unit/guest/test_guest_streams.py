"""The streams of the code, and which run a thread works for."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.guest.streams import Stream, ThreadCells, settle


class _Link:
    cell = 0
    last_cell = 0
    here = True

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any], blob: bytes = b"") -> None:
        self.sent.append(message)


@given(st.text(st.characters()) | st.text(st.characters(categories=["Cs"])))
def test_settled_text_can_be_encoded(text: str) -> None:
    settle(text).encode()


def test_settle_keeps_what_is_right() -> None:
    assert settle("a\ud83cb") == "a\ufffdb"
    assert settle("\ud83d\ude00") == "😀"
    assert settle("ü😀") == "ü😀"


def test_stream_writes_at_once() -> None:
    read, write = os.pipe()
    link = _Link()
    stream = Stream(write, "stdout", link, lambda: 0)
    print("a\ud83cb", file=stream)
    stream.buffer.write(b"\xff")
    stream.close()
    assert stream.write("ü") == 1
    assert os.read(read, 100) == "a\ufffdb\n".encode() + b"\xff" + "ü".encode()
    assert (stream.fileno(), stream.isatty(), stream.writable(), stream.encoding) == (
        write,
        False,
        True,
        "utf-8",
    )
    with pytest.raises(TypeError):
        stream.write(b"x")
    os.close(read)
    os.close(write)


def test_a_thread_of_an_ended_run_goes_another_way() -> None:
    link = _Link()
    link.cell = 2
    stream = Stream(2, "stderr", link, lambda: 1)
    stream.write("late")
    assert link.sent == [{"op": "late", "id": 1, "stream": "stderr", "text": "late"}]


def test_threads_and_pools_remember_their_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", threading.Thread.start)
    monkeypatch.setattr(ThreadPoolExecutor, "submit", ThreadPoolExecutor.submit)
    link = _Link()
    cells = ThreadCells(link)
    cells.install()
    seen: list[int] = []
    link.last_cell = 1
    thread = threading.Thread(target=lambda: seen.append(cells.current()))
    link.last_cell = 1
    thread.start()
    thread.join()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: seen.append(cells.current())).result()
        link.last_cell = 2
        pool.submit(lambda: seen.append(cells.current())).result()
    assert seen == [1, 1, 2]
    assert cells.current() == 0
    assert "run" not in thread.__dict__
