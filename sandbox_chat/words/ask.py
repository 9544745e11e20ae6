"""The box in which the user is asked."""

from __future__ import annotations

EN = {
    "more_lines": "  … {count} more lines",
    "how": "{key} or a click, to answer",
}

ZH = {
    "more_lines": "  … 还有 {count} 行",
    "how": "按 {key} 或点击来回答",
}
