"""``/budget`` in the line-by-line chat."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from support.screen import START, turn_finished

from sandbox_chat import events as ev
from sandbox_chat.linear import Chat, Lines
from sandbox_chat.settings import Settings


class Taking:
    """An engine that takes a budget and says so, as the real one does."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self.budgets: list[float] = []

    def set_budget(self, limit: float) -> None:
        self.budgets.append(limit)
        self.chat.events.put(ev.BudgetChanged(at=START, limit_usd=limit))
        self.chat.events.put(ev.Notice(at=START, level="info", text="It is set.", kind="budget_set"))


def chat_of(tmp_path: Path, **settings: Any) -> tuple[Chat, Taking, io.StringIO]:
    out = io.StringIO()
    chat = Chat(Settings(data_dir=tmp_path, **settings), Lines(io.StringIO(), out))
    engine = Taking(chat)
    chat.engine = engine  # type: ignore[assignment] # what the command needs of one
    return chat, engine, out


def said(out: io.StringIO) -> str:
    text = out.getvalue()
    out.seek(0)
    out.truncate()
    return text


def test_it_is_told_and_changed(tmp_path: Path) -> None:
    chat, engine, out = chat_of(tmp_path)
    chat._narrator.count(turn_finished("t", cost_usd=0.25))
    assert chat._command("/budget")
    assert said(out) == "The session has cost $0.2500 and has no budget. /budget DOLLARS sets one.\n"
    assert chat._command("/budget $2")
    assert engine.budgets == [2.0]
    assert "It is set." in said(out)
    assert chat._command("/budget")
    assert "its budget is $2.00" in said(out)
    assert chat._command("/budget a lot")
    assert "Write dollars" in said(out)
    assert engine.budgets == [2.0]


def test_the_setting_is_told_and_the_demo_has_none(tmp_path: Path) -> None:
    chat, _, out = chat_of(tmp_path, budget_usd=1.5)
    assert chat._command("/budget")
    assert "its budget is $1.50" in said(out)
    chat, engine, out = chat_of(tmp_path, demo=True)
    assert chat._command("/budget 3")
    assert said(out) == "The demo costs nothing, so it needs no budget.\n"
    assert engine.budgets == []
