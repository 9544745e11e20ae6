"""What is typed to attach a file: ``/attach FILE [PATH]``. Pure."""

from __future__ import annotations

import shlex

WORD = "/attach"
USAGE = "Use: /attach FILE, or /attach FILE PATH-IN-THE-SANDBOX; put quotes around names with spaces."


class AttachUsage(Exception):
    """The words after /attach cannot be understood. The message says how they are written."""


def parse(text: str) -> tuple[str, str] | None:
    """Return the file and the path in the sandbox (empty if none was given); ``None`` for what is a prompt.

    Only one line that begins with ``/attach`` and a space is ours: all else goes to the model to the letter.
    Raises ``AttachUsage``.
    """
    word, space, rest = text.partition(" ")
    if word != WORD or "\n" in text or not (space or text == WORD):
        return None
    try:
        given = shlex.split(rest)
    except ValueError:
        raise AttachUsage(f"A quote or a backslash is left open. {USAGE}") from None
    if not 1 <= len(given) <= 2 or not given[0]:
        raise AttachUsage(USAGE)
    return given[0], given[1] if len(given) == 2 else ""
