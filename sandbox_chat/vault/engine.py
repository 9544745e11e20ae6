"""What finds personal data in text: the small interface behind which one engine or another stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sandbox_chat.settings import ConfigError

if TYPE_CHECKING:
    from sandbox_chat.settings import Settings

NOT_INSTALLED = (
    "pii_engine: presidio is not installed. Install it with pip install 'sandbox-chat[pii]', or set pii_engine = builtin."
)


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A personal value at ``start`` to ``end`` of a text."""

    start: int
    end: int
    kind: str


class Engine(Protocol):
    """Finds personal data."""

    def find(self, text: str) -> Sequence[Span]:
        """Return the values in ``text`` in their order, none over another, none over the end of a line.

        Tokens of any vault are no values.
        """
        ...


def make_engine(settings: Settings) -> Engine:
    """Return the engine that the settings ask for. Raises ``ConfigError`` when it is not installed."""
    from sandbox_chat.vault.builtin import Builtin

    builtin = Builtin(settings)
    if settings.pii_engine == "builtin":
        return builtin
    try:
        from sandbox_chat.vault.presidio import Presidio

        return Presidio(builtin, settings)
    except ImportError:
        raise ConfigError(NOT_INSTALLED) from None


class Taken:
    """The places of a text that are spoken for, in the order in which they were found."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def blank(self, text: str) -> str:
        """Return ``text`` with NUL at what is taken, of the same length."""
        if not self.spans:
            return text
        parts, at = [], 0
        for span in sorted(self.spans):
            parts += [text[at : span.start], "\0" * (span.end - span.start)]
            at = span.end
        return "".join([*parts, text[at:]])
