"""Pastes of a terminal without brackets: they come as keys, quicker than anyone types."""

from __future__ import annotations

import time
from typing import Any

from textual import events
from textual.timer import Timer

from sandbox_chat.ui.widgets.kept_area import KeptArea

BURST_GAP = 0.01
"""Seconds between two keys below which they were not typed by a person: a paste without brackets."""

SEND_DELAY = 0.015
"""Seconds that Enter waits for more keys of such a paste before it sends; nobody notices them."""

QUICK_SEND_DELAY = 0.25
"""The same for an Enter that came as quickly as such keys do: a busy machine may deliver the rest later."""

FEW_KEYS = 3
"""So many keys must have come so quickly before."""

BURST_KEYS = 64
"""Keys of such a paste that are shown one by one; those after them come into the draft together."""

LONG_BURST_GAP = 0.05
"""Seconds between two keys that end such a paste once it is long: a busy machine delivers it in pieces."""

PASTE_REST = 0.4
"""Seconds after a long one in which Enter is a newline of what may still come of it."""

BURST_END = 0.06
"""Seconds without a key after which such a paste is at its end."""


class KeyPasteArea(KeptArea):
    """A draft that tells an Enter in the midst of such keys, which is a newline, from the wish to send."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._key_time = 0.0
        self._in_paste = False
        self._enter_time: float | None = None
        self._send_delay = SEND_DELAY
        self._send_timer: Timer | None = None
        self._pasted_at = float("-inf")  # when the last key of a long paste came
        self._burst = 0
        self._burst_start = (0, 0)
        self._held: list[str] = []
        self._held_timer: Timer | None = None

    def send(self) -> None:
        """Send the draft; the composer does."""
        raise NotImplementedError

    @property
    def together(self) -> bool:
        """True when keys that were kept back are to come into the draft together."""
        return True

    def time_key(self, event: events.Key, character: str) -> tuple[float, bool]:
        """Note when a key came. Returns the seconds since the one before, and whether nobody types as quickly.

        Ends the wait of an Enter: it sends now, or was a newline of a paste that goes on.
        """
        gap = event.time - self._key_time
        quick = gap < (BURST_GAP if self._burst < BURST_KEYS else LONG_BURST_GAP)
        self._key_time = event.time
        if self._held and not (quick and character):
            self.release()
        if self._enter_time is not None:
            if quick or (character and gap < self._send_delay):
                self._in_paste = True
                self._enter_time = None
                self.put("\n")
            else:
                self._send_waited()
        if not quick:
            self._in_paste = False
            self._burst = 0
        return gap, quick

    def paste_key(self, character: str, *, quick: bool) -> bool:
        """Take a key that is an Enter or may be of a paste; returns false when it is an ordinary character."""
        rest = self._key_time - self._pasted_at < PASTE_REST or (quick and self._burst >= BURST_KEYS)
        if character == "\r" and not (quick and self._in_paste) and not rest:
            self.release()
            self.send_soon(QUICK_SEND_DELAY if quick and self._burst >= FEW_KEYS else SEND_DELAY)
            return True
        newline = character in "\r\n"
        if newline and rest:
            self._pasted_at = self._key_time
        if self._hold("\n" if newline else character, quick=quick):
            return True
        if newline:
            self.put("\n")
            self._in_paste = self._in_paste or quick
        return newline

    def _hold(self, character: str, *, quick: bool) -> bool:
        """Keep a key of a long paste back, to come into the draft together with those after it."""
        if self._burst == 0:
            self._burst_start = min(self.selection)
        self._burst += 1
        if not quick or self._burst <= BURST_KEYS or not self.together:
            return False
        self._held.append(character)
        if self._held_timer is None:
            self._held_timer = self.set_timer(BURST_END, self._release_late)
        return True

    def _release_late(self) -> None:
        self._held_timer = None
        if not self._held:
            return
        if time.monotonic() - self._key_time < BURST_END:
            self._held_timer = self.set_timer(BURST_END, self._release_late)
        else:
            self.release()

    def release(self) -> None:
        """Put the keys that were kept back into the draft; with those before them they may be one long paste."""
        held, self._held = "".join(self._held), []
        if not held:
            return
        self._pasted_at = self._key_time
        self._burst = 0
        start, end = self._burst_start, self.cursor_location
        shown = self.get_text_range(start, end) if start <= end else ""
        if len(shown) == BURST_KEYS and self._too_long(shown + held):
            self.move_cursor(start)
            self.move_cursor(end, select=True)
            held = shown + held
        self.insert_text(held)

    def send_soon(self, delay: float = SEND_DELAY) -> None:
        """Send the draft in ``delay`` seconds, unless more keys follow: then the Enter was a newline of a paste."""
        if self._send_timer is not None:
            self._send_timer.stop()  # of an Enter that was a newline: it would cut this one's wait short
        self._enter_time, self._send_delay = self._key_time, delay
        self._send_timer = self.set_timer(delay, self._send_waited)

    def send_now(self) -> None:
        """Send the draft at once."""
        self._enter_time = self._key_time
        self._send_waited()

    def _send_waited(self) -> None:
        if self._enter_time is None:
            return
        self._enter_time = None
        self.release()
        self.send()
