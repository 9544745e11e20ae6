"""Skills: code that worked once and was kept, used only as the user has promoted it."""

from __future__ import annotations

from sandbox_chat.skills.given import Given
from sandbox_chat.skills.skill import Draft, Skill, SkillError
from sandbox_chat.skills.store import Store

__all__ = ["Draft", "Given", "Skill", "SkillError", "Store"]
