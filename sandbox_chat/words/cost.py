"""The cost pane."""

from __future__ import annotations

EN = {
    "title": "Cost",
    "unknown": ", price not known",
    "unknown_turns.one": "{count} turn, price not known",
    "unknown_turns.many": "{count} turns, price not known",
    "demo": "no cost (demo)",
    "nothing": "nothing yet",
    "last_turn": "last turn",
    "this_turn": "this turn",
    "session": "session",
    "tokens": "tokens",
    "cache": "cache",
    "turns": "turns",
    "context": "context",
    "in": "in",
    "out": "out",
    "read": "read",
    "written": "written",
    "used": "{tokens} tokens used",
    "context_unknown": "not known yet",
    "of": " of {limit}",
}

ZH = {
    "title": "费用",
    "unknown": "，价格未知",
    "unknown_turns.one": "{count} 个轮次价格未知",
    "unknown_turns.many": "{count} 个轮次价格未知",
    "demo": "无费用（演示）",
    "nothing": "尚无",
    "last_turn": "上一轮次",
    "this_turn": "本轮次",
    "session": "会话",
    "tokens": "词元",
    "cache": "缓存",
    "turns": "轮次",
    "context": "上下文",
    "in": "读入",
    "out": "写出",
    "read": "读取",
    "written": "写入",
    "used": "已用 {tokens} 词元",
    "context_unknown": "尚不清楚",
    "of": " / {limit}",
}
