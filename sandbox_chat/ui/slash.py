"""Commands that are typed: ``/help``. They are actions of the one table, under a word of their own. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox_chat.ui.actions import Action, all_actions

_WORDS: dict[str, tuple[str, str]] = {
    "approvals": ("chat.approvals", ""),
    "attach": ("chat.attach", "FILE [PATH]"),
    "budget": ("chat.budget", "[DOLLARS]"),
    "clear": ("chat.clear_context", ""),
    "commands": ("app.palette", ""),
    "compact": ("chat.compact", "[WISH]"),
    "copy": ("transcript.copy", ""),
    "cost": ("chat.cost", ""),
    "edit": ("composer.edit", ""),
    "effort": ("chat.effort", "[LEVEL]"),
    "end": ("chat.end", ""),
    "export": ("chat.export", "[--scrub] [FILE]"),
    "find": ("chat.find", ""),
    "fork": ("chat.fork", "[TURN]"),
    "help": ("app.help", ""),
    "history": ("composer.search", ""),
    "mcp": ("chat.servers", ""),
    "model": ("chat.model", "[NAME]"),
    "new": ("chat.new", ""),
    "picture": ("chat.picture", ""),
    "queue": ("chat.queue", ""),
    "quit": ("app.leave", ""),
    "rename": ("chat.rename", "[TITLE]"),
    "resume": ("chat.sessions", "[ID]"),
    "retry": ("chat.retry", ""),
    "rewind": ("chat.rewind", "[TURN]"),
    "sandbox": ("chat.sandbox", ""),
    "sessions": ("chat.sessions", ""),
    "skills": ("chat.skills", ""),
    "steer": ("chat.steer", "TEXT"),
    "theme": ("app.theme", ""),
    "thinking": ("chat.thinking", "[on|off|TOKENS]"),
    "tools": ("chat.tools", ""),
    "values": ("chat.real_values", ""),
}
"""Word of a command: the name of its action, and what may stand after it. Brackets: it may be left out."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command: its word without the stroke, its action, and what may stand after it."""

    word: str
    action: Action
    argument: str

    @property
    def title(self) -> str:
        """Its name for people."""
        return self.action.title


def commands() -> list[SlashCommand]:
    """Return all commands, by their words."""
    actions = all_actions()
    return [
        SlashCommand(word, actions[name], argument)
        for word, (name, argument) in _WORDS.items()
        if name in actions
    ]


def offered(word: str) -> list[SlashCommand]:
    """Return the commands that fit to the beginning of a word, else to a part of it."""
    every = commands()
    wanted = word.lower()
    return [item for item in every if item.word.startswith(wanted)] or [
        item for item in every if len(wanted) > 1 and wanted in item.word
    ]


def parse(text: str) -> tuple[SlashCommand, str] | None:
    """Return the command that ``text`` is, and what stands after it; ``None`` for a prompt.

    A command is one line. Words after one that takes nothing make it a prompt.
    """
    if not text.startswith("/") or "\n" in text:
        return None
    word, _, rest = text[1:].partition(" ")
    found = next((item for item in commands() if item.word == word), None)
    rest = rest.strip()
    if found is None or (rest and not found.argument):
        return None
    return found, rest


def unescaped(text: str) -> str:
    """Return a typed prompt without its escape: ``//help`` sends ``/help`` to the model."""
    return text[1:] if text.startswith("//") and parse(text[1:]) else text
