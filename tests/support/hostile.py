"""Text that tries to act on a terminal, to deceive its reader, to be taken for markup, or to break a layout."""

from __future__ import annotations

from typing import NamedTuple


class Hostile(NamedTuple):
    """A string, and what a terminal must not get of it: sequences that stand in no output of ours."""

    name: str
    text: str
    acts: tuple[str, ...] = ()


def _acting(name: str, sequence: str) -> Hostile:
    return Hostile(name, f"a{sequence}z", (sequence,))


_FLAG_TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "ignore all")

HOSTILE: tuple[Hostile, ...] = (
    # Sequences of a terminal, whole, in every form.
    _acting("clear screen", "\x1b[3J"),
    _acting("go elsewhere", "\x1b[77;77H"),
    _acting("colour", "\x1b[38;5;77;48;5;78m"),
    _acting("other screen", "\x1b[?1047h"),
    _acting("mouse", "\x1b[?1005h"),
    _acting("scroll region", "\x1b[7;9r"),
    _acting("report", "\x1b[21t"),
    _acting("device status", "\x1b[?77n"),
    _acting("soft reset", "\x1b[!p"),
    _acting("insert lines", "\x1b[77L"),
    _acting("repeat", "\x1b[7777b"),
    _acting("title", "\x1b]0;hostile title\x07"),
    _acting("title with ST", "\x1b]2;hostile title\x1b\\"),
    _acting("clipboard", "\x1b]52;c;aG9zdGlsZQ==\x07"),
    _acting("clipboard with ST", "\x1b]52;p;aG9zdGlsZQ==\x1b\\"),
    _acting("link", "\x1b]8;;http://hostile.example\x1b\\"),
    _acting("colours of the terminal", "\x1b]4;1;rgb:ff/00/00\x07"),
    _acting("notification", "\x1b]9;hostile\x07"),
    _acting("file of iTerm2", "\x1b]1337;File=name=aG9zdGlsZQ==:AAAA\x07"),
    _acting("working folder", "\x1b]7;file://hostile/\x07"),
    _acting("device control", "\x1bP+q686f7374696c65\x1b\\"),
    _acting("sixel", "\x1bP7;7;7q#0;2;0;0;0~\x1b\\"),
    _acting("kitty picture", "\x1b_Ga=T,i=7777;aG9zdGlsZQ==\x1b\\"),
    _acting("privacy message", "\x1b^hostile\x1b\\"),
    _acting("start of string", "\x1bXhostile\x1b\\"),
    _acting("full reset", "\x1bc"),
    _acting("character set", "\x1b(0"),
    _acting("single shift", "\x1bNq"),
    _acting("keypad", "\x1b#8"),
    # Eight-bit forms, single bytes, unfinished ones.
    _acting("8-bit CSI", "\x9b77;77H"),
    _acting("8-bit OSC", "\x9d0;hostile\x9c"),
    _acting("8-bit DCS", "\x90q#0~\x9c"),
    _acting("8-bit APC", "\x9fGa=T;AAAA\x9c"),
    _acting("8-bit index", "\x84\x8d\x88"),
    Hostile("unfinished CSI", "a\x1b[77;", ("\x1b[77;",)),
    Hostile("unfinished OSC", "a\x1b]0;hostile", ("\x1b]0;hostile",)),
    Hostile("unfinished DCS", "a\x1bPhostile", ("\x1bPhostile",)),
    Hostile("lone escape", "a\x1b"),
    _acting("nested escape", "\x1b\x1b[77G"),
    _acting("colour inside a sequence", "\x1b[\x1b[0m77J"),
    _acting("NUL", "\0"),
    _acting("bell", "\x07"),
    Hostile("backspaces", "password\x08\x08\x08\x08secret", ("\x08\x08",)),
    _acting("shift out", "\x0e\x0f"),
    _acting("vertical tab, form feed", "\x0b\x0c"),
    _acting("enquiry", "\x05"),
    _acting("delete", "\x7f"),
    Hostile("carriage return", "harmless\rrm -rf /", ("\rrm -rf",)),
    Hostile("progress", "10%\r20%\r100%", ("\r20%",)),
    _acting("next line", "\x85"),
    # What reorders or hides.
    _acting("right-to-left override", "\u202egnp.exe\u202c"),
    _acting("isolate", "\u2067 x \u2069"),
    _acting("embedding", "\u202b\u202d"),
    _acting("marks of direction", "\u200e\u200f\u061c"),
    _acting("separators", "\u2028\u2029"),
    _acting("zero width", "\u200b\u2060\ufeff"),
    _acting("joiners without anything to join", "\u200d\u200c\u200d"),
    _acting("invisible operators", "\u2061\u2062\u2063\u2064"),
    _acting("soft hyphen", "\u00ad"),
    _acting("fillers", "\u3164\u115f\uffa0"),
    _acting("tags", _FLAG_TAGS),
    _acting("a flag that is none", "\U0001f3f4" + _FLAG_TAGS + "\U000e007f"),
    _acting("annotation", "\ufff9base\ufffanote\ufffb"),
    _acting("noncharacters", "\ufdd0\uffff\U0001fffe"),
    _acting("selectors in bulk", "\ufe01\ufe02\U000e0101\U000e0102"),
    _acting("heap of marks", "Z" + "\u0301\u0316" * 40),
    _acting("Thai heap", "ก" + "็" * 40),
    _acting("piece of a kitty picture", "\U0010eeee\u0305\u0305"),
    _acting("lone surrogate", "\ud83c"),
    # What would be markup, or break a layout.
    *(
        Hostile(f"markup {text}", text)
        for text in (
            "[/",
            "[/]",
            "[bold]x",
            "-x-][/dim]",
            "[@click=app.quit]x[/]",
            '[@click="screen.answer(7)"]x[/]',
            "[link=\x1b]8;;u\x07]x[/]",
            "$error 10%",
            "[red]a[/red]\\[b]",
            "[[]]",
            "[$warning on $error]",
            "{x} {0} %s",
            "&#x1b;[2J &#x202e; &lt;",
            "<script>alert(1)</script>",
            "\\x1b[2J \\u202e",
            ":smile: **b** `c",
            "||||",
            "```",
            "\t\t\ttabs\t.",
        )
    ),
    Hostile("wide", "世界" * 40),
    Hostile("emoji", "👩‍👩‍👧‍👦🏳️‍🌈👍🏽" * 5),
    Hostile("long", "x" * 500),
    Hostile("empty", ""),
    Hostile("spaces", "   \u00a0\u3000  "),
)

TEXTS = tuple(each.text for each in HOSTILE)
ACTS = tuple(act for each in HOSTILE for act in each.acts)
