"""What the user can change of the agent while a session runs: the model, its effort, its thinking."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sandbox_chat.settings import Settings


@dataclass(frozen=True, slots=True)
class Controls:
    """The model's name, its effort and its thinking, as in the settings; empty: what the agent's program takes by itself."""

    model: str = ""
    effort: str = ""
    thinking: str = ""

    def changed(self, *, model: str | None, effort: str | None, thinking: str | None) -> Controls:
        """Return other controls; ``None`` leaves a value as it is."""
        given = {"model": model, "effort": effort, "thinking": thinking}
        return replace(self, **{name: value.strip() for name, value in given.items() if value is not None})

    @property
    def thinking_option(self) -> dict[str, Any] | None:
        """The SDK's form of ``thinking``, ``None`` when it is empty."""
        match self.thinking:
            case "":
                return None
            case "off":
                return {"type": "disabled"}
            case "on":
                return {"type": "adaptive"}
            case tokens:
                return {"type": "enabled", "budget_tokens": int(tokens)}


def first_controls(model: str, settings: Settings) -> Controls:
    """Return the controls that a session begins with."""
    return Controls(model, settings.effort, settings.thinking)
