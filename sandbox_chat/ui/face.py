"""What the whole interface speaks, draws and is steered with: language, signs, keys. Set once, before the first frame."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox_chat import words
from sandbox_chat.settings import Settings
from sandbox_chat.ui import actions, glyphs, keymap


def take(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """Take language, signs and keys from the settings; what is set to ``auto`` from the environment.

    Returns the keys as Textual's keymap.
    """
    glyphs.use(glyphs.choose(settings.glyphs, environment))
    words.use(words.choose(settings.language, environment), glyphs.own)
    chosen, _ = keymap.read(settings.keys)
    actions.use_keys(chosen)
    return keymap.keymap(chosen)


def faults(settings: Settings) -> tuple[str, ...]:
    """Return a sentence for each thing that is wrong with the user's keys."""
    return tuple(keymap.read(settings.keys)[1])
