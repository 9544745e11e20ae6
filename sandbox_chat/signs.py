"""What may not reach a terminal as it is, and the signs that stand for it.

``clean`` is the core of all ways in (see ``text.py``). It keeps what a reader sees as it is and makes visible what
acts on a terminal, reorders text, hides in it, or piles up on it.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

MARKS = 6
"""Combining marks on one character at most. No living script needs more; heaps of them cover other rows."""
INVISIBLE = 32
"""Invisible characters of one run that are shown one by one; the rest is counted."""

# Colour and weight changes of a terminal (SGR). They only decorate.
_SGR = re.compile(r"(?:\x1b\[|\x9b)[0-9;:]*m")
_NEWLINES = re.compile("\r\n|[\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

_JOINERS = "\u200c\u200d"
# Marks that reorder text, invisible characters and operators, fillers, annotations, surrogates, noncharacters.
_LOW = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
)
# The same beyond the first plane: tags, selectors, format controls, and what stands for a piece of a picture in kitty.
_HIGH = (
    r"\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U0010eeee"
    + "".join(f"\\U{plane << 16 | 0xFFFE:08x}\\U{plane << 16 | 0xFFFF:08x}" for plane in range(1, 17))
)
# Sets with characters of higher planes are slow to search, so they are only used where such characters are.
_LOW_SUSPECT = re.compile(f"[{_LOW}]")
_HIGH_SUSPECT = re.compile(f"[{_HIGH}]")
_HIGH_SIGNS = re.compile("[\U00010000-\U0010ffff]+")
_LOW_RUN = re.compile(f"[{_LOW}]+")
_RUN = re.compile(f"[{_LOW}{_HIGH}]+")
_SELECTOR = re.compile("[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")

# Signs beyond Latin that are neither letters nor in the common blocks of punctuation, symbols and emoji: only
# where so many follow each other can there be too many marks.
_PERHAPS_HEAPED = re.compile(
    r"[^\w\s\x00-\u02ff\u2000-\u200b\u200e-\u20cf\u2100-\u2cee\u2e00-\u3029\u3030-\u3098\u309b-\ua66e\ud7a4-\ufb1d"
    rf"\ufd3e-\ufdff\ufe30-\uffff\U0001f000-\U000e00ff\U000e01f0-\U0010ffff]{{{MARKS + 1}}}"
)
_C0 = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}

_FLAG = "\U0001f3f4"
_FLAG_TAGS = frozenset(
    "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
"""The tags that make the flags of England, Scotland and Wales."""


def clean(text: str) -> str:
    """Return ``text`` with everything visible that could act on a terminal or deceive a reader.

    Newlines of all kinds become ``\\n``; tabs stay; colour sequences (SGR) vanish; other control characters become
    signs (``␛``, ``<9D>``), a lone carriage return too; bidi controls, invisible characters, tags, noncharacters
    and fillers become ``<U+202E>``; lone surrogates become U+FFFD. Joiners and selectors stay where they shape an
    emoji or a letter. Of more than ``MARKS`` combining marks the rest is counted: ``<+12>``.
    """
    if text.isascii():
        if _CONTROL.search(text) is None:
            return text
        return _LOW_RUN.sub(_shown, _settled(text))
    heaped = _PERHAPS_HEAPED.search(text) is not None
    high = _HIGH_SUSPECT.search("".join(_HIGH_SIGNS.findall(text))) is not None
    if not (heaped or high or _LOW_SUSPECT.search(text)):
        return text
    text = _settled(text)
    if heaped:
        text = _heaped().sub(_cut_heap, text)
    return (_RUN if high else _LOW_RUN).sub(_shown, text)


def suspect(sign: str) -> bool:
    """True when a character is made visible, somewhere at least."""
    return _LOW_SUSPECT.match(sign) is not None or _HIGH_SUSPECT.match(sign) is not None


def _settled(text: str) -> str:
    """Return ``text`` without colours and with one kind of newline."""
    return _NEWLINES.sub("\n", _SGR.sub("", text))


@cache
def _heaped() -> re.Pattern[str]:
    """What matches more marks on one character than may stand there; made when it is first needed."""
    marks = [code for code in range(0x300, 0x1E950) if unicodedata.category(chr(code)) in ("Mn", "Me")]
    ranges: list[list[int]] = []
    for code in marks:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    names = (
        "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges) + _JOINERS + "\U000e0100-\U000e01ef"
    )
    return re.compile(f"([{names}]{{{MARKS}}})([{names}]+)")


def _cut_heap(match: re.Match[str]) -> str:
    return f"{match[1]}<+{len(match[2])}>"


def _shown(match: re.Match[str]) -> str:
    """Return a run of suspects as it is to be read. What was written before decides about joiners and selectors."""
    text, run = match.string, match[0]
    if run.isascii():
        return run.translate(_C0)
    before = text[match.start() - 1] if match.start() else ""
    if before == _FLAG and run in _FLAG_TAGS:
        return run
    out: list[str] = []
    hidden = 0
    for place, sign in enumerate(run, match.start() + 1):
        if _belongs(sign, before, text[place : place + 1]):
            out.append(sign)
            before = sign
            continue
        shown = _sign(sign)
        before = shown[-1]
        if len(shown) < 6:
            out.append(shown)
            continue
        hidden += 1
        if hidden <= INVISIBLE:
            out.append(shown)
    if hidden > INVISIBLE:
        out.append(f"<+{hidden - INVISIBLE}>")
    return "".join(out)


def _sign(sign: str) -> str:
    code = ord(sign)
    if code in _C0:
        return _C0[code]
    if code < 0xA0:
        return f"<{code:02X}>"
    return "\ufffd" if 0xD800 <= code < 0xE000 else f"<U+{code:04X}>"


def _belongs(sign: str, before: str, after: str) -> bool:
    """True when a joiner or a selector shapes what it stands by, and so is part of what is seen."""
    if not before:
        return False
    code = ord(before)
    if sign == "\u200d" and after and _pictures(ord(after)) and (_pictures(code) or before == "\ufe0f"):
        return True
    if sign in _JOINERS:
        return _joining(code) and not suspect(before)
    if _SELECTOR.match(sign) is None:
        return False
    if sign in "\ufe0e\ufe0f":
        return before in "0123456789#*©®" or 0x203C <= code <= 0x3299 or 0x1F000 <= code < 0x1FB00
    if sign < "\u1810":
        return 0x1820 <= code <= 0x18AA
    ideograph = 0x3400 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF or 0x20000 <= code <= 0x3FFFD
    return ideograph or (sign < "\ufe0e" and (0x2200 <= code <= 0x22FF or 0xA840 <= code <= 0xA877))


def _pictures(code: int) -> bool:
    return 0x2190 <= code <= 0x2BFF or 0x1F000 <= code < 0x1FB00


def _joining(code: int) -> bool:
    """True for scripts whose letters take different shapes: Arabic, those of India, of South East Asia."""
    return 0x0600 <= code <= 0x1AFF or 0xA800 <= code <= 0xABFF or 0x11000 <= code <= 0x11FFF
