"""The budget of a session: the small screen that asks for it, and prompts that wait for it."""

from __future__ import annotations

EN = {
    "title": "Budget of this session",
    "spent": "It has cost {spent}; there is no limit.",
    "spent_of": "It has cost {spent} of {limit}, {percent} %.",
    "unknown": "What is not known (n/a) does not count.",
    "label": "Dollars that it may cost in all (0: no limit)",
    "waits.one": "{count} prompt waits for it.",
    "waits.many": "{count} prompts wait for it.",
    "keys": "⏎ set it · esc leaves it as it is",
    "wrong": "Write dollars: a number from 0 to 1,000,000.",
    "low": "It has cost {spent} already: nothing is sent with that budget.",
    "demo": "The demo costs nothing, so it needs no budget.",
    "no_session": "The session has not begun yet.",
    "held": "because the budget is used up",
    "plain": "The session has cost {spent}; its budget is {limit}. /budget DOLLARS changes it.",
    "plain_none": "The session has cost {spent} and has no budget. /budget DOLLARS sets one.",
    "row": "budget",
}

ZH = {
    "title": "本会话的预算",
    "spent": "已花费 {spent}；没有上限。",
    "spent_of": "已花费 {spent}，上限 {limit}，{percent} %。",
    "unknown": "未知的费用（n/a）不计入。",
    "label": "总共可花费的美元（0：无上限）",
    "waits.one": "{count} 个提示在等待。",
    "waits.many": "{count} 个提示在等待。",
    "keys": "⏎ 设定 · esc 保持不变",
    "wrong": "请填写美元数：0 到 1,000,000 之间的数字。",
    "low": "已花费 {spent}：以此预算不会发送任何提示。",
    "demo": "演示不产生费用，不需要预算。",
    "no_session": "会话尚未开始。",
    "held": "因预算已用完",
    "plain": "会话已花费 {spent}；预算为 {limit}。“/budget 美元数”可更改。",
    "plain_none": "会话已花费 {spent}，没有预算。“/budget 美元数”可设定。",
    "row": "预算",
}
