"""A paste is text, whatever is in it and however it is cut."""

from __future__ import annotations

import pytest
from textual import events
from textual._xterm_parser import XTermParser

from sandbox_chat.ui.pasting import PasteShield
from sandbox_chat.ui.private import shield_pastes

PASTES = (
    "a\x1b[77;77Hb\rc",
    "\x1b\x11",
    "\x1b]0;t\x07\r",
    "one\x1b[31m\rtwo\x1b[0m\r",
    "\x1b[200~x\x1b[20",
    "\x1b",
)


@pytest.mark.parametrize("size", [1, 2, 5, 6, 7, 100])
@pytest.mark.parametrize("pasted", PASTES)
def test_escape_characters_of_a_paste_are_signs_and_others_stay(pasted: str, size: int) -> None:
    sent = f"\x1b[A{'k'}\x1b[200~{pasted}\x1b[201~\x1b[B\x1b"
    shield = PasteShield()
    read = "".join(shield.feed(sent[place : place + size]) for place in range(0, len(sent), size))
    shown = pasted.replace("\x1b", "\u241b")
    assert read == f"\x1b[Ak\x1b[200~{shown}\x1b[201~\x1b[B\x1b"


@pytest.mark.parametrize("size", [1, 4, 100])
@pytest.mark.parametrize("pasted", PASTES)
def test_a_paste_is_one_event_and_no_keys(pasted: str, size: int) -> None:
    shield_pastes()
    shield_pastes()
    parser = XTermParser()
    sent = f"\x1b[200~{pasted}\x1b[201~k"
    found = [
        event for place in range(0, len(sent), size) for event in parser.feed(sent[place : place + size])
    ]
    assert [type(event) for event in found] == [events.Paste, events.Key]
    assert isinstance(found[0], events.Paste)
    assert found[0].text == pasted.replace("\x1b", "\u241b")
