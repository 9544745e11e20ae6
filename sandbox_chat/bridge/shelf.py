"""The user's skills for code: listed, searched, read and imported; what code hands in becomes a draft and nothing more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from sandbox_chat.bridge import values
from sandbox_chat.events import Choice, Notice, Sink
from sandbox_chat.skills import SkillError, Store
from sandbox_chat.skills.skill import Draft, Look, Skill
from sandbox_chat.text import bound, clean
from sandbox_chat.tools.context import Ask, Question

log = logging.getLogger(__name__)

DRAFT = (
    "The agent handed in a draft of the skill {name}. It can be used once you have looked at it and promoted it: "
    "/skills in the chat's screen, or sandbox-chat skills diff {name}, then sandbox-chat skills promote {name}."
)
SAVED = "The draft of the skill {name} is kept. The user decides whether it is promoted; until then it cannot be imported."
JUDGED = 20_000
"""Characters of a difference with which a draft may be promoted by answering a question."""
DRAFTS = 20
"""Drafts that a session may hand in."""


class Shelf:
    """The skills of ``store`` for the code of a session; ``origin`` says which one in drafts.

    ``ask`` asks the user about a draft, beside the run that handed it in; without it a notice says how to look at it.
    ``hide`` replaces personal data in the question, which is recorded.
    """

    def __init__(
        self,
        store: Store,
        emit: Sink,
        *,
        origin: str,
        ask: Ask | None = None,
        hide: Callable[[str], str] = lambda text: text,
    ) -> None:
        self._store = store
        self._emit = emit
        self._origin = origin
        self._ask = ask
        self._hide = hide
        self._drafts = 0
        self._offers: dict[str, asyncio.Task[None]] = {}

    async def answer(self, request: Mapping[str, Any], call_id: str) -> dict[str, Any]:
        """Answer one of the requests ``skills``, ``skill``, ``skill_text`` and ``draft``."""
        try:
            match request["op"]:
                case "skills":
                    return await self._listed(request)
                case "skill":
                    return await asyncio.to_thread(self._source, str(request.get("name")))
                case "skill_text":
                    return await asyncio.to_thread(self._text, request)
                case _:
                    return await self._draft(request, call_id)
        except SkillError as problem:
            log.warning("code mode refused (%s): %s", call_id, values.short(str(problem)))
            return {"ok": False, "kind": "denied", "text": str(problem)}

    async def _listed(self, request: Mapping[str, Any]) -> dict[str, Any]:
        query = request.get("query")
        found = await asyncio.to_thread(
            lambda: self._store.search(str(query)) if query else self._store.skills()
        )
        ready = [skill for skill in found if skill.state == "ready"]
        return {"ok": True, "value": [_row(each) for each in ready]}

    def _source(self, name: str) -> dict[str, Any]:
        source = self._store.source(name)
        version = next((each.version for each in self._store.skills() if each.name == name), 0)
        return {"ok": True, "value": {"source": source, "version": version}}

    def _text(self, request: Mapping[str, Any]) -> dict[str, Any]:
        file = request.get("file")
        return {"ok": True, "value": self._store.text(str(request.get("name")), str(file) if file else "")}

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
        if self._ask is None:
            self._emit(Notice(level="info", text=DRAFT.format(name=draft.name)))
        else:
            if (before := self._offers.get(draft.name)) is not None:
                before.cancel()  # it is about what is no longer there
            self._offers[draft.name] = asyncio.ensure_future(self._offer(draft, self._ask))
        return {"ok": True, "value": SAVED.format(name=draft.name)}

    async def _offer(self, draft: Draft, ask: Ask) -> None:
        """Show a draft to the user, and do with it what they say."""
        try:
            seen = await asyncio.to_thread(self._store.look, draft.name, draft=True)
            question = await asyncio.to_thread(_question, seen, draft.description, self._hide)
            match await ask(question):
                case "promote":
                    skill = await asyncio.to_thread(self._store.promote, draft.name, expected=seen.digest)
                    words = f"The skill {skill.name} is promoted, version {skill.version}: code can import it now."
                case "discard":
                    await asyncio.to_thread(self._store.discard, draft.name)
                    words = f"The draft of the skill {draft.name} is deleted."
                case _:
                    words = DRAFT.format(name=draft.name)
            self._emit(Notice(level="info", text=words))
        except SkillError as problem:
            self._emit(Notice(level="warning", text=str(problem)))


def _question(seen: Look, description: str, hide: Callable[[str], str]) -> Question:
    told = [f"From {seen.origin}. {description}".strip(), *(f"Look at: {risk}" for risk in seen.risks)]
    choices = [
        Choice("discard", "d", "delete it"),
        Choice("keep", "k", "keep it as a draft"),
    ]  # Esc is the last one
    if len(seen.difference) <= JUDGED and not seen.cut:
        choices.insert(0, Choice("promote", "p", "promote it: code can import it from now on"))
    else:
        told.append(
            f"It is too long to be judged here: keep it, then /skills, or sandbox-chat skills diff {seen.name}"
        )
    return Question(
        kind="skill_draft",
        question=f"Promote the skill {seen.name}, which the agent handed in?",
        detail=hide(clean("\n".join([*told, "", bound(seen.difference, JUDGED)]))),
        choices=tuple(choices),
        default="keep",
    )


def _row(skill: Skill) -> dict[str, Any]:
    return {"name": skill.name, "about": skill.first_line, "importable": f"{skill.name}.py" in skill.files}
