"""What a program wrote to its terminal, read strictly: every sequence must be one that ours may write."""

from __future__ import annotations

import re

_CONCEALED = (
    "\x00-\x1f\x7f-\x9f\u00ad\u061c\u115f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ufdd0-\ufdef"
    "\ufffe\uffff\U000e0000-\U000e007f"
)
_HIDDEN = re.compile(f"[{_CONCEALED}]")

# What may stand in the output: sequences of Textual's frames and modes, of our pictures and of our clipboard.
_ALLOWED = re.compile(
    "|".join(
        (
            r"\x1b\[[0-9;]*m",  # colours and weights
            r"\x1b\[\d{1,3};\d{1,3}H",  # a place on the screen
            r"\x1b\[\d{1,3}C",  # behind a picture
            r"\x1b[78]",  # around a picture
            r"\x1b\[\?(?:25|1000|1002|1003|1004|1006|1015|1016|1049|2004|2026|2031|2048|7)[hl]",
            r"\x1b\[\?(?:2026|2048|2031)\$p",
            r"\x1b\[(?:\?996n|>4;[01]m|[<>=]\d{0,2}u|\?u|c|>q|>0q|1[46]t|[HJK]|2J|0?K)",
            r"\x1b\](?:1[01];\?|52;c;[A-Za-z0-9+/=]*|22;[a-z-]*)(?:\x07|\x1b\\)",
            r"\x1b\[2[23];2t",  # the window's title is put aside, and comes back
            rf"\x1b\](?:2|9|777;notify);[^{_CONCEALED}]*(?:\x07|\x1b\\)",  # title and notifications
            r"\x1b_Gi=\d+,[asq=,tdfv0-9]*;[A-Za-z0-9+/=]*\x1b\\",
            r"\x1b_Ga=[dTqtp],[A-Za-z0-9=,]*(?:;[A-Za-z0-9+/=]*)?\x1b\\",
            r"\x1bP0;1;0q[\x20-\x7e]*\x1b\\",
            r"\r\n|\r|\n",
        )
    )
)
_ACTS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def faults(written: bytes, *, hidden: bool = True) -> list[str]:
    """Return what is not allowed in a program's output, each with what stands around it; empty when all is well.

    ``hidden`` false: only what acts on a terminal or reorders text, not what hides in it.
    """
    try:
        text = written.decode("utf-8")
    except UnicodeDecodeError as error:
        return [f"not UTF-8: {error}"]
    found = []
    place = 0
    while (match := (_HIDDEN if hidden else _ACTS).search(text, place)) is not None:
        start = match.start()
        whole = _ALLOWED.match(text, start)
        if whole is None:
            found.append(repr(text[max(0, start - 20) : start + 40]))
            place = start + 1
        else:
            place = whole.end()
    return found
