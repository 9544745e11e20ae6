"""The demo model: a small rule-based agent that answers Messages requests without any model.

It knows some dozen intents (see ``intents``), uses the sandbox's tools for real, takes its numbers from
their results, and says what it is when it does not know better. It sends no thinking blocks: a later
request to the real service with this history would be refused for their signatures.
"""

from __future__ import annotations

from sandbox_chat.demo.intents import INTENTS
from sandbox_chat.demo.intents.basics import fallback
from sandbox_chat.demo.reply import Reply, Text, ToolUse
from sandbox_chat.demo.steps import Plan
from sandbox_chat.demo.talk import Talk
from sandbox_chat.demo.wire import Request

PACE = 0.025
"""Seconds between two words of an answer: quick to read along, slow enough to see it stream."""
MAX_CALLS = 15
"""Tool calls in one turn; no plan needs more."""


class DemoModel:
    """A ``Responder`` made of rules. ``pace`` is the time in seconds between two words, 0 for none."""

    record = False

    def __init__(self, *, pace: float = PACE) -> None:
        self.pace = pace

    def reply(self, request: Request) -> Reply:
        """Answer one request. Never raises: whatever comes, there is an answer."""
        if request.is_probe:
            return Reply((Text("Hi"),))
        try:
            blocks: tuple[Text | ToolUse, ...] = self._blocks(Talk(request))
        except Exception as error:
            blocks = (
                Text(
                    f"Something in this chat is too much for the demo model's rules ({type(error).__name__}). "
                    "Please ask in another way, or type `help` to see what I can show."
                ),
            )
        return Reply(blocks, pace=self.pace)

    def _blocks(self, talk: Talk) -> tuple[Text | ToolUse, ...]:
        plan = self._plan(talk)
        try:
            call = next(plan)
            for number, outcome in enumerate(talk.outcomes, 1):
                if outcome.broken:
                    return (Text(_broken(talk, outcome.broken)),)
                if number >= MAX_CALLS:
                    return (
                        Text(
                            talk.t(
                                "That took more tool calls than I allow myself, so I stop here.",
                                "调用工具的次数太多了，我就此停止。",
                            )
                        ),
                    )
                call = plan.send(outcome)
        except StopIteration as stop:
            return (Text(str(stop.value).strip() or "…"),)
        name = talk.request.tool(call.tool)
        if not name:
            return (Text(_no_tool(talk, call.tool)),)
        use = ToolUse(name, call.input)
        return (Text(call.say), use) if call.say else (use,)

    def _plan(self, talk: Talk) -> Plan:
        for intent in INTENTS:
            plan = intent(talk)
            if plan is not None:
                return plan
        return fallback(talk)


def _broken(talk: Talk, reason: str) -> str:
    if "doesn't want to" in reason:
        return talk.t("The call was stopped, so I stop here.", "调用被中断，我就此停止。")
    return talk.t(
        f"The sandbox could not do its work: {reason}\n\nTrying again would not help, so I stop here. "
        "`sandbox-chat doctor` says what is missing on this machine.",
        f"沙箱无法工作：{reason}\n\n再试也没有用，我就此停止。运行 `sandbox-chat doctor` 可以查看缺少什么。",
    )


def _no_tool(talk: Talk, tool: str) -> str:
    if not talk.request.tools:
        return talk.t(
            "This chat has no sandbox, so I cannot run anything: it was started with the sandbox switched off. "
            "Start it without `--sandbox off` and ask again.",
            "本次会话没有沙箱，我无法运行代码：启动时关闭了沙箱。去掉 `--sandbox off` 重新启动后再问我。",
        )
    return talk.t(
        f"I would need the tool `{tool}` for that, and this chat does not offer it. So I stop here.",
        f"这需要工具 `{tool}`，但本次会话没有提供，我就此停止。",
    )
