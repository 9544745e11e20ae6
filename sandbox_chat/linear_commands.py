"""The commands of the line-by-line chat: what may be typed in place of a prompt."""

from __future__ import annotations

import queue
import shlex
from collections.abc import Iterable

from sandbox_chat import events as ev
from sandbox_chat.allowed import about
from sandbox_chat.interrupts import Leave
from sandbox_chat.linear_controls import Controls
from sandbox_chat.narrator import Narrator, call_lines
from sandbox_chat.plain import cost_text
from sandbox_chat.prices import read_budget
from sandbox_chat.server_text import server_line, server_lines
from sandbox_chat.words import tr

ALONE = frozenset(
    {
        "/approvals",
        "/help",
        "/quit",
        "/exit",
        "/cost",
        "/budget",
        "/export",
        "/code",
        "/output",
        "/history",
        "/clear",
        "/compact",
        "/effort",
        "/fork",
        "/mcp",
        "/retry",
        "/rewind",
        "/thinking",
    }
)
"""Commands that are a line of their own."""
WITH_WORDS = frozenset(
    {
        "/approvals",
        "/attach",
        "/budget",
        "/compact",
        "/effort",
        "/export",
        "/fork",
        "/mcp",
        "/model",
        "/rewind",
        "/thinking",
    }
)
"""Commands after which something stands."""
ORDERS = ("restart", "on", "off")
"""What can be done with an MCP server."""


class Commands(Controls):
    """What a line does that begins with a stroke. The chat below reads the lines and tells the events."""

    events: queue.SimpleQueue[ev.Event | None]
    _narrator: Narrator

    def _command(self, text: str) -> bool:
        """Do what a line says that is a command, and no prompt; returns false for a prompt.

        Words after a command that takes nothing make it a prompt.
        """
        word, _, rest = text.strip().partition(" ")
        if not text.startswith("/") or "\n" in text or (rest.strip() and word not in WITH_WORDS):
            return False
        match word:
            case "/help":
                self._say_all(tr("linear.help").splitlines())
            case "/quit" | "/exit":
                raise Leave(0)
            case "/cost":
                self.lines.say(self._narrator.cost())
            case "/approvals":
                self._approvals(rest.strip())
            case "/export":
                self._export(rest)
            case "/budget":
                self._budget(rest.strip())
            case "/code" | "/output":
                calls = self._narrator.calls
                self._say_all(call_lines(calls[-1], word[1:]) if calls else [tr("linear.no_calls")])
            case "/history":
                self._history()
            case "/model":
                self._model(rest.strip())
            case "/mcp":
                self._servers(rest.strip())
            case "/attach":
                self._attach(rest)
            case "/effort":
                self._effort(rest.strip())
            case "/thinking":
                self._thinking(rest.strip())
            case "/clear":
                self._forget()
            case "/compact":
                self._compact(rest.strip())
            case "/retry":
                self._retry()
            case "/fork":
                self._fork(rest.strip())
            case "/rewind":
                self._rewind(rest.strip())
            case _:
                return False
        return True

    def _say_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.lines.say(line)

    def _history(self) -> None:
        if not any(isinstance(event, ev.TurnStarted) for event in self.past):
            self.lines.say(tr("linear.no_history"))
            return
        narrator = Narrator(self.lines.say)
        for event in self.past:
            if isinstance(event, ev.TurnStarted):
                self.lines.say("")
                self.lines.say(tr("linear.you", prompt=event.prompt))
            narrator.take(event)

    def _export(self, typed: str) -> None:
        from sandbox_chat.journal.export import ExportError
        from sandbox_chat.journal.export.asked import carry_out, read, said

        assert self.engine is not None
        settings = self.settings
        folder = settings.data_path / "sessions" / self.engine.session_id
        try:
            asked = read(typed)
            self.lines.say(tr("export.working"))
            self._say_all(
                said(
                    carry_out(
                        asked,
                        folder,
                        settings.downloads_path,
                        settings.secrets(),
                        largest=settings.export_limit,
                    )
                )
            )
        except ExportError as error:
            self.lines.say(tr("linear.error", text=error))

    def _approvals(self, number: str) -> None:
        """Tell what holds for the session, or take the answer with this number back."""
        assert self.engine is not None
        answers = list(self._narrator.allowed.answers.items())
        if number.isdecimal() and 1 <= int(number) <= len(answers):
            self.engine.forget_answer(answers[int(number) - 1][0])
            self.lines.say(tr("approvals.taken_back"))
            return
        for place, (_, (asked, label)) in enumerate(answers, 1):
            self.lines.say(tr("linear.approval", number=place, label=label, subject=about(asked)))
        self.lines.say(tr("linear.approval_how") if answers else tr("approvals.none"))

    def _servers(self, typed: str) -> None:
        """Tell of the MCP servers or of one, or do something with one."""
        assert self.engine is not None
        servers = self._narrator.servers
        order, _, name = typed.partition(" ")
        order, name = (order, name.strip()) if order in ORDERS and name.strip() else ("", typed)
        server = servers.get(name)
        if not servers:
            self._say_all([tr("servers.none"), tr("servers.none_how")])
        elif not typed:
            self._say_all([*(f"  {server_line(each)}" for each in servers.values()), tr("servers.how")])
        elif server is None:
            self.lines.say(tr("servers.unknown", name=name))
        elif not order:
            self._say_all(server_lines(server))
        elif order != "restart":
            self.engine.switch_server(name, order == "on")
            self.lines.say(tr(f"servers.switching_{order}", name=name))
        elif server.state == "off":
            self.lines.say(tr("servers.is_off", name=name))
        else:
            self.engine.restart_server(name)
            self.lines.say(tr("servers.restarting", name=name))

    def _budget(self, typed: str) -> None:
        assert self.engine is not None
        if not typed or self.settings.demo:
            told = [event.limit_usd for event in self.past if isinstance(event, ev.BudgetChanged)]
            limit = told[-1] if told else self.settings.budget_usd
            key = "budget.demo" if self.settings.demo else "budget.plain" if limit else "budget.plain_none"
            self.lines.say(tr(key, spent=self._narrator.cost(), limit=cost_text(limit)))
            return
        try:
            self.engine.set_budget(read_budget(typed))
        except ValueError:
            self.lines.say(tr("budget.wrong"))
            return
        for event in self._next():
            if isinstance(event, ev.Notice) and event.kind.startswith("budget"):
                return

    def _attach(self, rest: str) -> None:
        assert self.engine is not None
        try:
            given = shlex.split(rest)
        except ValueError:
            given = []
        if not 1 <= len(given) <= 2:
            self.lines.say(tr("linear.no_file"))
            return
        self.lines.say(tr("linear.attaching", name=given[0]))
        wanted = self.engine.attach(*given)
        for event in self._next():
            if isinstance(event, ev.Attached) and event.attach_id == wanted:
                return


def unescaped(text: str) -> str:
    """Return a prompt without its escape: ``//help`` sends ``/help``."""
    return text[1:] if text[1:].partition(" ")[0].strip() in ALONE | WITH_WORDS else text
