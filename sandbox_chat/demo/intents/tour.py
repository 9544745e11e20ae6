"""The tour: several intents in one turn."""

from __future__ import annotations

from sandbox_chat.demo.intents import charts, files, numbers, tables, trouble
from sandbox_chat.demo.steps import Call, Plan
from sandbox_chat.demo.talk import Outcome, Talk


def tour(talk: Talk) -> Plan | None:
    """Show a little of everything."""
    if not talk.says(
        r"\btour\b|\bshow me (around|everything|what you can do|a demo)\b|^\W*demo\W*$|^\W*演示\W*$|导览|全部演示|都展示"
    ):
        return None
    return _tour(talk)


def _tour(talk: Talk) -> Plan:
    parts = (
        (talk.t("a calculation", "计算"), numbers.sum_range(talk, 1, 100)),
        (talk.t("a chart", "图表"), charts.draw_damped_sine(talk)),
        (talk.t("a data frame", "数据表"), tables.show_sales(talk)),
        (talk.t("a mistake, mended", "出错与修复"), trouble.fix_mistake(talk)),
        (talk.t("files", "文件"), files.write_and_read(talk)),
    )
    answers: list[str] = []
    before = ""
    for number, (title, plan) in enumerate(parts, 1):
        head = f"**{number}. {title}**\n\n"
        answer = yield from _told(plan, before + head)
        answers.append(answer)
        before = f"{answer}\n\n"
    return before + talk.t(
        "That was the tour. Now you: ask *where does it cross zero*, *describe df*, or type your own Python. `help` lists more.",
        "导览结束。接下来可以问：*它在哪里过零*、*describe df*，或者输入你自己的 Python 代码。输入“帮助”查看更多。",
    )


def _told(plan: Plan, first: str) -> Plan:
    """``plan`` with the words ``first`` before its first call."""
    try:
        call = next(plan)
        call = Call(call.tool, call.input, (first + call.say).rstrip())
        while True:
            outcome: Outcome = yield call
            call = plan.send(outcome)
    except StopIteration as stop:
        return str(stop.value)
