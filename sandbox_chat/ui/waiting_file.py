"""The prompts that wait on disk: should the program end before they were sent, they are offered again.

They are no part of the journal: that holds what happened, and is replayed; what waits has not happened, changes with
every edit, and may belong to a session that never had a turn and so leaves no journal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sandbox_chat.text import clean_line
from sandbox_chat.ui.drafts import plain_parts, read_parts
from sandbox_chat.ui.own_file import OwnFile
from sandbox_chat.ui.queue import Prompt
from sandbox_chat.words import tr

IDS = 64
"""Characters of the longest id that is read."""


@dataclass(frozen=True, slots=True)
class Left:
    """Prompts that waited in a session, in order. It is false when there are none."""

    session_id: str = ""
    prompts: tuple[Prompt, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.prompts)


class WaitingFile(OwnFile[Left]):
    """Keeps what waits in this run, and finds what waited in runs that are over."""

    thread_name = "waiting"

    def encode(self, value: Left) -> Any:
        """Return the prompts as JSON data."""
        prompts = [{"id": each.id, "parts": plain_parts(each.draft)} for each in value.prompts]
        return {"session": value.session_id, "prompts": prompts}

    def decode(self, raw: Any) -> Left:
        """Return the prompts of JSON data, cleaned."""
        prompts = []
        for each in raw["prompts"]:
            prompt = Prompt.of(read_parts(each["parts"]))
            if prompt.text:
                known = clean_line(str(each["id"]), IDS)
                prompts.append(Prompt(prompt.text, prompt.parts, True, known))
        return Left(clean_line(str(raw["session"]), IDS), tuple(prompts))

    def not_kept(self, folder: str, reason: str) -> str:
        """Return the sentence that says that what waits is not kept."""
        return tr("waiting.not_kept", folder=folder, reason=reason)

    def _nothing(self) -> Left:
        return Left()
