"""Live output: coalesced, cleaned, bounded, progress lines settled."""

from __future__ import annotations

import asyncio
import threading

from sandbox_chat.ansi import Piece
from sandbox_chat.events import Stream
from sandbox_chat.tools.live import REWRITE_SECONDS, STOPPED, LiveOutput


class Live:
    """A live output, what it emitted, and what a reader of that has."""

    def __init__(self, limit: int = 1000) -> None:
        self.seen: list[tuple[Stream, Piece]] = []
        self.shown: dict[Stream, str] = {"stdout": "", "stderr": ""}
        self.threads: set[int] = set()
        self.live = LiveOutput(asyncio.get_running_loop(), self._emit, limit=limit)

    def _emit(self, stream: Stream, piece: Piece) -> None:
        self.threads.add(threading.get_ident())
        self.seen.append((stream, piece))
        text = self.shown[stream]
        assert piece.rewind <= len(text)
        self.shown[stream] = text[: len(text) - piece.rewind] + piece.text

    def text(self, stream: Stream = "stdout") -> str:
        return self.shown[stream]


async def test_pieces_of_another_thread_come_together_on_the_loop() -> None:
    live = Live()

    def produce() -> None:
        for number in range(200):
            live.live.feed("stdout", f"{number}\n")

    await asyncio.to_thread(produce)
    await asyncio.sleep(0.3)
    assert live.text() == "".join(f"{number}\n" for number in range(200))
    assert len(live.seen) < 20
    assert live.threads == {threading.get_ident()}


async def test_the_order_of_the_streams_is_kept() -> None:
    live = Live()
    live.live.feed("stdout", "a\n")
    live.live.feed("stderr", "b\n")
    live.live.feed("stdout", "c\n")
    live.live.close()
    assert live.seen == [("stdout", Piece("a\n")), ("stderr", Piece("b\n")), ("stdout", Piece("c\n"))]


async def test_an_unfinished_line_is_shown() -> None:
    live = Live()
    live.live.feed("stdout", "working")
    await asyncio.sleep(0.3)
    assert live.text() == "working"
    live.live.close()
    assert live.text() == "working"


async def test_a_progress_line_moves_and_is_shown_once() -> None:  # case T5
    live = Live()
    for piece in ("\r10%", "\r", "20%\r1", "00%", "\ndone\n"):
        live.live.feed("stdout", piece)
        await asyncio.sleep(0.07)
        assert live.text().count("%") <= 1
    live.live.close()
    assert live.text() == "100%\ndone\n"


async def test_a_progress_line_goes_on_while_it_is_written() -> None:
    live = Live()
    live.live.feed("stderr", "10%")
    await asyncio.sleep(0.15)
    assert live.text("stderr") == "10%"
    live.live.feed("stderr", "\r\x1b[32m20%")
    await asyncio.sleep(REWRITE_SECONDS + 0.15)
    assert live.text("stderr") == "20%"
    assert live.seen[-1][1] == Piece("20%", 3, ((0, 3, "green"),))
    live.live.close()


async def test_what_moves_quickly_is_shown_now_and_then_and_its_end_always() -> None:
    live = Live(limit=100_000)
    for number in range(40):
        live.live.feed("stdout", f"\r{number}%")
        await asyncio.sleep(0.01)
        live.live.flush()
    live.live.close()
    assert live.text() == "39%"
    assert len(live.seen) < 15


async def test_rewriting_for_hours_is_shown_less_and_less_often() -> None:
    live = Live(limit=10)
    live.live.feed("stdout", "12345")
    live.live.flush()
    for number in range(30):
        live.live.feed("stdout", f"\r{number:05}")
        live.live.flush()
        live.live._rewrite_at = 0 if number < 20 else live.live._rewrite_at  # time passes
    assert live.live._rewrite_at > asyncio.get_running_loop().time() + 20
    live.live.close()
    assert live.text() == "00029"


async def test_windows_line_ends_in_two_pieces() -> None:
    live = Live()
    live.live.feed("stdout", "a\r")
    await asyncio.sleep(0.2)
    live.live.feed("stdout", "\nb\r\n")
    live.live.close()
    assert live.text() == "a\nb\n"


async def test_escape_sequences_in_two_pieces() -> None:
    live = Live()
    live.live.feed("stdout", "\x1b[3")
    await asyncio.sleep(0.2)
    live.live.feed("stdout", "1mred\x1b[0m \x1b[2Jx")
    live.live.close()
    assert live.text() == "red ␛[2Jx"
    assert [piece.styles for _, piece in live.seen if piece.styles] == [((0, 3, "red"),)]


async def test_the_amount_is_bounded_and_that_is_said() -> None:
    live = Live(limit=100)
    for _ in range(1000):
        live.live.feed("stdout", "x" * 10 + "\n")
    live.live.close()
    assert live.text().count(STOPPED) == 1
    assert len(live.text()) <= 100 + len(STOPPED)
    assert live.text().endswith(STOPPED)


async def test_what_is_dropped_is_said_also_when_cleaning_shrinks_it() -> None:
    live = Live(limit=100)
    live.live.feed("stdout", "\x1b[31m" * 30)
    live.live.feed("stdout", "lost")
    live.live.close()
    assert live.text() == STOPPED


async def test_nothing_comes_after_the_end() -> None:
    live = Live()
    live.live.close()
    live.live.feed("stdout", "late")
    await asyncio.sleep(0.2)
    assert live.seen == []
