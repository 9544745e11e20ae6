"""A lasting trouble that the user is told of once, however often it is met."""

from __future__ import annotations

from collections.abc import Callable


class Trouble:
    """Holds the sentence in ``text``, empty when all is well, and calls ``tell`` with each new one."""

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self.text = ""
        self._tell = tell

    def met(self, text: str) -> None:
        """Note the trouble; the same sentence is told once."""
        known, self.text = self.text, text
        if text != known and self._tell is not None:
            self._tell(text)

    def over(self) -> None:
        """Note that it is gone."""
        self.text = ""
