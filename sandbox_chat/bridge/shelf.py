"""The user's skills for code: listed, searched, read and imported; what code hands in becomes a draft and nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from sandbox_chat.events import Notice, Sink
from sandbox_chat.skills import SkillError, Store

DRAFT = (
    "The agent handed in a draft of the skill {name}. It can be used once you have looked at it and promoted it: "
    "sandbox-chat skills diff {name}, then sandbox-chat skills promote {name}."
)
SAVED = "The draft of the skill {name} is kept. The user decides whether it is promoted; until then it cannot be imported."
DRAFTS = 20
"""Drafts that a session may hand in."""


class Shelf:
    """The skills of ``store`` for the code of a session; ``origin`` says which one in drafts."""

    def __init__(self, store: Store, emit: Sink, *, origin: str) -> None:
        self._store = store
        self._emit = emit
        self._origin = origin
        self._drafts = 0

    async def answer(self, request: Mapping[str, Any], call_id: str) -> dict[str, Any]:
        """Answer one of the requests ``skills``, ``skill`` and ``draft``."""
        try:
            match request["op"]:
                case "skills":
                    return await self._listed(request)
                case "skill":
                    return await asyncio.to_thread(self._source, str(request.get("name")))
                case _:
                    return await self._draft(request, call_id)
        except SkillError as problem:
            return {"ok": False, "kind": "denied", "text": str(problem)}

    async def _listed(self, request: Mapping[str, Any]) -> dict[str, Any]:
        query = request.get("query")
        found = await asyncio.to_thread(
            lambda: self._store.search(str(query)) if query else self._store.skills()
        )
        ready = [skill for skill in found if skill.state == "ready"]
        return {"ok": True, "value": [{"name": each.name, "about": each.first_line} for each in ready]}

    def _source(self, name: str) -> dict[str, Any]:
        source = self._store.source(name)
        version = next((each.version for each in self._store.skills() if each.name == name), 0)
        return {"ok": True, "value": {"source": source, "version": version}}

    async def _draft(self, request: Mapping[str, Any], call_id: str) -> dict[str, Any]:
        name, code, description = (request.get(key) for key in ("name", "code", "description"))
        if not isinstance(name, str) or not isinstance(code, str) or not isinstance(description, str):
            return {
                "ok": False,
                "kind": "arguments",
                "text": "save_skill(name, code, description) takes three texts.",
            }
        if self._drafts >= DRAFTS:
            return {
                "ok": False,
                "kind": "limit",
                "text": f"A session may hand in {DRAFTS} drafts, and this one has.",
            }
        origin = f"{self._origin} {call_id}".strip()
        draft = await asyncio.to_thread(self._store.save_draft, name, code, description, origin=origin)
        self._drafts += 1
        self._emit(Notice(level="info", text=DRAFT.format(name=draft.name)))
        return {"ok": True, "value": SAVED.format(name=draft.name)}
