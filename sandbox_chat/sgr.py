"""Colours and weights of terminals: words for them, read from and written as SGR sequences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

Styles = tuple[tuple[int, int, str], ...]
"""Where styles stand: first character, the one after the last, and words such as ``bold red on-#102030``."""

State = tuple[str, str, int]
"""Colour, ground, and the weights as bits in the order of ``WEIGHTS``."""
PLAIN: State = ("", "", 0)
COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
NAMES = (*COLOURS, *(f"bright-{name}" for name in COLOURS))
"""The sixteen colours of terminals. Their values are the theme's."""
WEIGHTS = ("bold", "dim", "italic", "underline", "reverse", "strike")

_WORD = re.compile(rf"(?:{'|'.join(WEIGHTS)})|(?:on-)?(?:(?:bright-)?(?:{'|'.join(COLOURS)})|#[0-9a-f]{{6}})")


def valid_styles(styles: Sequence[tuple[int, int, str]], size: int) -> bool:
    """True when styles are in order, inside a text of ``size`` characters, and of words that are known."""
    place = 0
    for start, end, named in styles:
        if not place <= start < end <= size or not all(_WORD.fullmatch(word) for word in named.split(" ")):
            return False
        place = end
    return True


def to_terminal(text: str, styles: Styles) -> str:
    """Return clean text with its styles as sequences for a terminal. Words that are not known are left out."""
    out: list[str] = []
    place = 0
    for start, end, named in styles:
        codes = ";".join(code for word in named.split(" ") if (code := _code(word)))
        out.append(text[place:start])
        # A line at a time: what stands before the lines of a text must not take their style.
        out.append(
            "\n".join(
                f"\x1b[{codes}m{line}\x1b[0m" if line and codes else line
                for line in text[start:end].split("\n")
            )
        )
        place = end
    out.append(text[place:])
    return "".join(out)


def _code(word: str) -> str:
    if _WORD.fullmatch(word) is None:
        return ""
    if word in WEIGHTS:
        return str((1, 2, 3, 4, 7, 9)[WEIGHTS.index(word)])
    ground = 10 if word.startswith("on-") else 0
    name = word.removeprefix("on-")
    if name.startswith("#"):
        return f"{38 + ground};2;{int(name[1:3], 16)};{int(name[3:5], 16)};{int(name[5:], 16)}"
    index = NAMES.index(name)
    return str((30 + index if index < 8 else 82 + index) + ground)


@lru_cache(maxsize=1024)
def words(colour: str, ground: str, weights: int) -> str:
    """Return a state in words; empty for plain text."""
    found = [name for bit, name in enumerate(WEIGHTS) if weights >> bit & 1]
    return " ".join([*found, *([colour] if colour else ()), *([f"on-{ground}"] if ground else ())])


@lru_cache(maxsize=1024)
def after(state: State, given: str) -> State:
    """Return the colour, the ground and the weights after an SGR sequence with the parameters ``given``."""
    colour, ground, weights = state
    # ``38:2::1:2:3`` is one parameter with parts, ``38;2;1;2;3`` the older way of writing it.
    numbers = [[int(part[:5]) if part else -1 for part in each.split(":")] for each in given.split(";")]
    while numbers:
        code, *parts = numbers.pop(0)
        code = max(code, 0)
        if code == 0:
            colour, ground, weights = "", "", 0
        elif code in _ON:
            weights |= _ON[code] if code != 4 or parts != [0] else 0
            weights &= ~8 if code == 4 and parts == [0] else ~0
        elif code in _OFF:
            weights &= ~_OFF[code]
        elif 30 <= code <= 37 or 90 <= code <= 97:
            colour = NAMES[code - 30 if code < 90 else code - 82]
        elif 40 <= code <= 47 or 100 <= code <= 107:
            ground = NAMES[code - 40 if code < 100 else code - 92]
        elif code == 39:
            colour = ""
        elif code == 49:
            ground = ""
        elif code in (38, 48, 58):
            if not parts:
                count = {2: 4, 5: 2}.get(numbers[0][0], 1) if numbers else 0
                parts = [each[0] for each in numbers[:count]]
                del numbers[:count]
            elif len(parts) == 5:  # with the number of a colour space
                del parts[1]
            found = _extended(parts)
            if found and code == 38:
                colour = found
            elif found and code == 48:
                ground = found
    return colour, ground, weights


_ON = {1: 1, 2: 2, 3: 4, 4: 8, 21: 8, 7: 16, 9: 32}
_OFF = {22: 3, 23: 4, 24: 8, 27: 16, 29: 32}


def _extended(parts: Sequence[int]) -> str:
    """Return the colour of ``5;n`` or ``2;r;g;b``; empty for others."""
    if len(parts) == 4 and parts[0] == 2 and all(-1 <= part < 256 for part in parts[1:]):
        return "#" + "".join(f"{max(part, 0):02x}" for part in parts[1:])
    if len(parts) != 2 or parts[0] != 5 or not 0 <= parts[1] < 256:
        return ""
    number = parts[1]
    if number < 16:
        return NAMES[number]
    if number >= 232:
        return f"#{8 + 10 * (number - 232):02x}" + f"{8 + 10 * (number - 232):02x}" * 2
    cube = [0 if level == 0 else 55 + 40 * level for level in divmod(number - 16, 36)[:1]]
    rest = (number - 16) % 36
    cube += [0 if level == 0 else 55 + 40 * level for level in divmod(rest, 6)]
    return "#" + "".join(f"{level:02x}" for level in cube)
