"""Keeps a paste from being read as keys."""

from __future__ import annotations

BEGIN, END = "\x1b[200~", "\x1b[201~"
"""What a terminal puts around a paste."""
SIGN = "\u241b"


class PasteShield:
    """What a terminal sends, in pieces cut anywhere, in which the escape characters of pastes become signs."""

    def __init__(self) -> None:
        self._inside = False
        self._before = ""
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what can be read now; what may be the beginning of a paste's end is held back until more comes."""
        text, self._held = self._held + text, ""
        out: list[str] = []
        while text:
            if self._inside:
                pasted, end, text = text.partition(END)
                if not end:
                    sizes = range(min(len(END) - 1, len(pasted)), 0, -1)
                    size = next((size for size in sizes if END.startswith(pasted[-size:])), 0)
                    pasted, self._held = pasted[: len(pasted) - size], pasted[len(pasted) - size :]
                out += (pasted.replace("\x1b", SIGN), end)
                self._inside = not end
                continue
            place = (self._before + text).find(BEGIN)
            read = place + len(BEGIN) - len(self._before) if place >= 0 else len(text)
            self._inside = place >= 0
            self._before = "" if self._inside else (self._before + text)[1 - len(BEGIN) :]
            out.append(text[:read])
            text = text[read:]
        return "".join(out)
