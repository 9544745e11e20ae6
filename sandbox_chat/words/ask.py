"""The box in which the user is asked."""

from __future__ import annotations

EN = {
    "more_lines": "  … {count} more lines",
    "lines_above": "  … {count} lines above",
    "how": "{key} or a click, to answer",
    "more_questions.one": "{count} more question",
    "more_questions.many": "{count} more questions",
}

ZH = {
    "more_lines": "  … 还有 {count} 行",
    "lines_above": "  … 上方还有 {count} 行",
    "how": "按 {key} 或点击来回答",
    "more_questions.one": "还有 {count} 个问题",
    "more_questions.many": "还有 {count} 个问题",
}
