"""What the terminal can draw: asked before Textual runs, answered while Textual is imported."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

Mode = Literal["kitty", "sixel", "iterm", "sharp", "symbols", "half", "ascii", "off"]
"""How pictures are drawn: by a protocol of the terminal, or by characters.

``sharp`` has sextants, which few fonts have but some terminals draw themselves; ``symbols`` are quadrants and
eighths, which nearly every font has; ``half`` are half-cells, ``ascii`` shades of ASCII signs.
"""

KITTY_ID = 4177
"""Number of the picture in the question; the answer names it."""
MAX_REPLY = 65_536
"""Bytes read before Textual takes over, at most: a paste is not swallowed without end."""

# kitty's graphics (a question with one pixel), cell size, text area in pixels, name and version, ground, and last
# the question that every terminal answers: when its answer is there, no other will come.
QUERY = (
    f"\x1b_Gi={KITTY_ID},s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\".encode()
    + b"\x1b[16t\x1b[14t\x1b[>0q\x1b]11;?\x1b\\\x1b[c"
)

_KITTY = re.compile(rb"\x1b_G([^\x1b]*)\x1b\\")
_DA1 = re.compile(rb"\x1b\[\?([\d;]*)c")
_CELL = re.compile(rb"\x1b\[6;(\d+);(\d+)t")
_AREA = re.compile(rb"\x1b\[4;(\d+);(\d+)t")
_GROUND = re.compile(
    rb"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})[^\x07\x1b]*(?:\x07|\x1b\\)"
)
_VERSION = re.compile(rb"\x1bP>\|([^\x1b]*)\x1b\\")
_SIZE_RANGE = range(2, 200)
"""Plausible sizes of a cell in pixels."""


@dataclass(frozen=True, slots=True)
class TerminalInfo:
    """What is known of the terminal. ``cell`` is width and height of a cell in pixels, zeros if not known.

    ``ground`` is the colour of its background, red, green and blue from 0 to 255.
    """

    is_tty: bool = False
    answered: bool = False
    name: str = ""
    kitty: bool = False
    sixel: bool = False
    cell: tuple[int, int] = (0, 0)
    multiplexer: bool = False
    ground: tuple[int, int, int] | None = None


def read_replies(data: bytes, size: tuple[int, int] = (0, 0)) -> tuple[TerminalInfo, bytes]:
    """Return what the replies in ``data`` say, and the bytes that are no replies (keys typed meanwhile).

    ``size`` is the terminal's width and height in cells, for terminals that only tell their size in pixels.
    """
    name = ""
    kitty = sixel = answered = False
    cell = (0, 0)
    version = _VERSION.search(data)
    if version is not None:
        name = version.group(1).decode("ascii", "replace")[:100]
    graphics = _KITTY.search(data)
    if graphics is not None:
        kitty = graphics.group(1).endswith(b";OK") and f"i={KITTY_ID}".encode() in graphics.group(1)
    attributes = _DA1.search(data)
    if attributes is not None:
        answered = True
        sixel = b"4" in attributes.group(1).split(b";")
    exact = _CELL.search(data)
    area = _AREA.search(data)
    if exact is not None:
        cell = (int(exact.group(2)), int(exact.group(1)))
    elif area is not None and all(size):
        cell = (int(area.group(2)) // size[0], int(area.group(1)) // size[1])
    if cell[0] not in _SIZE_RANGE or cell[1] not in _SIZE_RANGE:
        cell = (0, 0)
    rest = data
    for pattern in (_KITTY, _VERSION, _DA1, _CELL, _AREA, _GROUND):
        rest = pattern.sub(b"", rest)
    return TerminalInfo(True, answered, name, kitty, sixel, cell, ground=_ground(data)), rest


def _ground(data: bytes) -> tuple[int, int, int] | None:
    found = _GROUND.search(data)
    if found is None:
        return None
    red, green, blue = (int(part, 16) * 255 // (16 ** len(part) - 1) for part in found.groups())
    return red, green, blue


def _multiplexed(environ: Mapping[str, str]) -> bool:
    term = environ.get("TERM", "")
    return bool(environ.get("TMUX") or environ.get("STY")) or term.startswith(("tmux", "screen"))


class Probe:
    """The question to the terminal. ``start`` writes it, ``finish`` reads the answer; neither ever raises.

    Between the two the terminal does not echo. Bytes that are not replies are in ``typed`` afterwards.
    """

    def __init__(
        self,
        *,
        input_fd: int | None = None,
        output_fd: int | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """``input_fd`` and ``output_fd`` default to the descriptors that Textual uses: stdin and stderr."""
        self._in = _fileno(sys.__stdin__) if input_fd is None else input_fd
        self._out = _fileno(sys.__stderr__) if output_fd is None else output_fd
        self._environ = os.environ if environ is None else environ
        self._saved: list[Any] | None = None
        self._since = 0.0
        self.typed = b""

    def start(self) -> None:
        """Ask, unless there is no terminal, a dumb one, or a multiplexer that would answer for itself."""
        self._since = time.monotonic()
        term = self._environ.get("TERM", "")
        if not self._is_tty() or term in ("", "dumb", "linux") or _multiplexed(self._environ):
            return
        try:
            import termios

            saved = termios.tcgetattr(self._in)
            quiet = list(saved)
            quiet[3] = int(quiet[3]) & ~(termios.ICANON | termios.ECHO)
            termios.tcsetattr(self._in, termios.TCSANOW, quiet)
            self._saved = saved
            os.write(self._out, QUERY)
        except (ImportError, OSError, ValueError, _termios_error()):
            self._restore()

    def finish(self, timeout: float) -> TerminalInfo:
        """Return what the terminal said within ``timeout`` seconds of ``start``, and set it back as it was."""
        multiplexer = _multiplexed(self._environ)
        if self._saved is None:
            return TerminalInfo(is_tty=self._is_tty(), multiplexer=multiplexer, cell=self._cell_from_size())
        data = b""
        try:
            data = self._read(timeout)
        except (OSError, ValueError):
            pass
        finally:
            self._restore()
        info, self.typed = read_replies(data, self._size())
        cell = info.cell if all(info.cell) else self._cell_from_size()
        return TerminalInfo(
            True, info.answered, info.name, info.kitty, info.sixel, cell, multiplexer, info.ground
        )

    def _read(self, timeout: float) -> bytes:
        import select

        data = b""
        while _DA1.search(data) is None and len(data) < MAX_REPLY:
            left = self._since + timeout - time.monotonic()
            # What has already come is read even when the time is up.
            ready, _, _ = select.select([self._in], [], [], max(left, 0))
            if not ready:
                break
            piece = os.read(self._in, 4096)
            if not piece:
                break
            data += piece
        return data

    def _restore(self) -> None:
        if self._saved is None:
            return
        saved, self._saved = self._saved, None
        try:
            import termios

            termios.tcsetattr(self._in, termios.TCSANOW, saved)
        except (ImportError, OSError, ValueError, _termios_error()):
            pass

    def _is_tty(self) -> bool:
        try:
            return self._in >= 0 and self._out >= 0 and os.isatty(self._in) and os.isatty(self._out)
        except (OSError, ValueError):
            return False

    def _size(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(self._out)
        except (OSError, ValueError):
            return (0, 0)
        return (size.columns, size.lines)

    def _cell_from_size(self) -> tuple[int, int]:
        return cell_of(self._out)


def cell_of(descriptor: int) -> tuple[int, int]:
    """Return the size of a cell by what the system knows of the terminal's size in pixels; zeros if it does not."""
    try:
        import fcntl
        import struct
        import termios

        packed = fcntl.ioctl(descriptor, termios.TIOCGWINSZ, b"\0" * 8)
        rows, columns, width, height = struct.unpack("HHHH", packed)
    except (ImportError, OSError, ValueError):
        return (0, 0)
    return cell_within((width, height), (columns, rows))


def cell_within(pixels: tuple[int, int], cells: tuple[int, int]) -> tuple[int, int]:
    """Return the size of a cell in an area of so many pixels and cells; zeros if that is not plausible."""
    if not all(cells):
        return (0, 0)
    cell = (pixels[0] // cells[0], pixels[1] // cells[1])
    return cell if cell[0] in _SIZE_RANGE and cell[1] in _SIZE_RANGE else (0, 0)


def screen_cell() -> tuple[int, int]:
    """Return the size of a cell of the terminal that Textual draws on, as it is now; zeros if it is not known."""
    return cell_of(_fileno(sys.__stderr__))


def _termios_error() -> type[Exception]:
    try:
        import termios
    except ImportError:
        return OSError
    return termios.error


def _fileno(stream: Any) -> int:
    try:
        return int(stream.fileno())
    except (AttributeError, OSError, ValueError):
        return -1


def has_placeholders(name: str) -> bool:
    """True for terminals whose kitty graphics know placeholder characters, by their name and version.

    kitty has them since 0.28. Others answer the question but would show unknown characters.
    """
    if name.lower().startswith("ghostty"):
        return True
    match = re.match(r"kitty\((\d+)\.(\d+)", name)
    return match is not None and (int(match.group(1)), int(match.group(2))) >= (0, 28)


def draws_sextants(name: str) -> bool:
    """True for terminals that draw sextants themselves, so that no font is needed for them."""
    return name.lower().startswith(("kitty", "foot", "wezterm", "ghostty", "contour"))


def choose(mode: str, info: TerminalInfo, *, ascii_only: bool = False) -> Mode:
    """Return how pictures are drawn: ``mode`` as the user said, or for ``auto`` the best that the terminal can.

    Without a terminal (tests, a web page) pictures are characters. Inside tmux or screen too, unless the user says
    otherwise, because these do not carry pictures through. Sixel and iTerm2's protocol need the size of a cell; kitty's
    is not used where the terminal said who it is and is known to lack the placeholders. ``ascii_only``: characters
    are ASCII signs.
    """
    if mode in ("off", "ascii", "half", "symbols", "sharp"):
        return cast("Mode", mode)
    characters: Mode = "symbols"
    if ascii_only:
        characters = "ascii"
    elif info.is_tty and not info.multiplexer and draws_sextants(info.name):
        characters = "sharp"
    if not info.is_tty:
        return characters
    if mode == "kitty" and (has_placeholders(info.name) or not info.name):
        return "kitty"
    if mode in ("sixel", "iterm") and all(info.cell):
        return cast("Mode", mode)
    if mode != "auto" or info.multiplexer or ascii_only:
        return characters
    if info.kitty and has_placeholders(info.name):
        return "kitty"
    if info.sixel and all(info.cell):
        return "sixel"
    return characters
