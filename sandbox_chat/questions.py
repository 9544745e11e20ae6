"""Questions to the user in the language that is set: they are recorded in English, and a sentence of ours is known by its form."""

from __future__ import annotations

import dataclasses
import re
import string
from functools import lru_cache

from sandbox_chat.events import ApprovalAnswered, ApprovalRequested
from sandbox_chat.words import language, tr
from sandbox_chat.words.questions import EN

_KIND = "mcp_tool"
"""The one kind of question whose texts are in ``words/questions.py``."""


def shown(asked: ApprovalRequested) -> ApprovalRequested:
    """Return a question as it is shown: its own sentences in the language that is set, all else (arguments, what a server says) as it is.

    What is not known here, as in a journal of another version, stays as it is too.
    """
    if language() == "en" or asked.kind != _KIND:
        return asked
    lines = asked.detail.split("\n")
    if len(lines) > 1:  # in between is the server's
        lines[0] = _translated(lines[0], "mcp_tool_changed", "mcp_tool_unreadable")
        lines[-1] = _translated(lines[-1], "mcp_tool_here", "mcp_tool_there")
        lines[-2] = _translated(lines[-2], "mcp_tool_called")
    return dataclasses.replace(
        asked,
        question=_translated(asked.question, _KIND),
        detail="\n".join(lines),
        choices=tuple(
            dataclasses.replace(choice, label=_translated(choice.label, f"{_KIND}_{choice.name}"))
            for choice in asked.choices
        ),
    )


def answered(asked: ApprovalRequested, answer: ApprovalAnswered) -> str:
    """Return in a few words how a question was answered, and by whom if not by the user, in the language that is set."""
    if answer.by == "cancelled":
        return tr("questions.withdrawn")
    label = next((choice.label for choice in asked.choices if choice.name == answer.choice), answer.choice)
    return tr(f"questions.by_{answer.by}", label=label) if f"by_{answer.by}" in EN else label


def _translated(text: str, *names: str) -> str:
    """Return ``text`` in the language that is set if it has the form of one of these texts, else as it is."""
    for name in names:
        if name in EN and (found := _form(name).fullmatch(text)):
            return tr(f"questions.{name}", **found.groupdict())
    return text


@lru_cache(maxsize=64)
def _form(name: str) -> re.Pattern[str]:
    parts = string.Formatter().parse(EN[name])
    return re.compile(
        "".join(re.escape(said) + (f"(?P<{place}>.+)" if place else "") for said, place, _, _ in parts)
    )
