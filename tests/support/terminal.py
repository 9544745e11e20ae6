"""A program at a pseudo-terminal: what it writes, what its screen shows, how it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyte

SWITCHED_OFF = (b"\x1b[?1049l", b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?2004l")
"""What a restored terminal was told: no alternate screen, no mouse, no bracketed paste."""


class Terminal:
    """A program in a terminal of ``columns`` × ``rows``. Its output is read all the time."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        columns: int = 100,
        rows: int = 30,
        drawn: bool = True,
    ) -> None:
        """``drawn`` false: what is written is only kept, which is much quicker; ``text`` stays empty."""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.mode_before = termios.tcgetattr(slave)
        self.raw = bytearray()
        self._drawn = drawn
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self.started = time.monotonic()
        self.first_byte: float | None = None
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={name: value for name, value in env.items() if name not in ("COLUMNS", "LINES")},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self._slave = slave
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._stop = False
        self._reader.start()

    def _read(self) -> None:
        while not self._stop:
            ready, _, _ = select.select([self.master], [], [], 0.05)
            if not ready:
                continue
            try:
                data = os.read(self.master, 65_536)
            except OSError:
                return
            if not data:
                return
            with self._lock:
                if self.first_byte is None:
                    self.first_byte = time.monotonic() - self.started
                self.raw += data
                if self._drawn:
                    self._stream.feed(data)

    def text(self) -> str:
        """What stands on the screen."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display)

    def written(self) -> bytes:
        """Everything that was written."""
        with self._lock:
            return bytes(self.raw)

    def type(self, keys: bytes | str) -> None:
        """Send keys."""
        os.write(self.master, keys.encode() if isinstance(keys, str) else keys)

    def wait(self, condition: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait until ``condition`` holds; the screen is in the message when it does not."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.text()
            time.sleep(0.02)

    def shows(self, words: str, seconds: float = 30.0) -> None:
        """Wait until ``words`` stand on the screen."""
        self.wait(lambda: words in self.text(), seconds)

    def ends(self, seconds: float = 30.0) -> int:
        """Wait for the program's end and the last of its output; returns the exit code."""
        code = self.process.wait(seconds)
        end, still = time.monotonic() + seconds, 0
        while still < 4 and time.monotonic() < end and not self._stop:
            before = len(self.written())
            time.sleep(0.05)
            more = len(self.written()) != before or select.select([self.master], [], [], 0)[0]
            still = 0 if more and self._reader.is_alive() else still + 1
        return code

    def mode(self) -> list[object]:
        """The terminal's mode now, to be compared with ``mode_before``."""
        return termios.tcgetattr(self._slave)

    def hang_up(self) -> None:
        """Close the terminal, as a window that is closed."""
        self._stop = True
        self._reader.join()
        os.close(self._slave)
        os.close(self.master)
        self._slave = self.master = -1

    def close(self) -> None:
        """End the program if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._stop = True
        self._reader.join()
        for handle in (self._slave, self.master):
            if handle >= 0:
                with contextlib.suppress(OSError):
                    os.close(handle)


@contextlib.contextmanager
def terminal(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    columns: int = 100,
    rows: int = 30,
    drawn: bool = True,
) -> Iterator[Terminal]:
    """Run a program at a pseudo-terminal."""
    opened = Terminal(command, env=env, columns=columns, rows=rows, drawn=drawn)
    try:
        yield opened
    finally:
        opened.close()
