"""What the desktop is told when the user looks elsewhere, and the title of the terminal's window."""

from __future__ import annotations

EN = {
    "window": "sandbox-chat",
    "window_titled": "sandbox-chat · {title}",
    "marked": "* {window}",
    "done": "the turn has ended",
    "failed": "the turn has failed",
    "asks": "you are asked",
    "text": "{what}: {title}",
}

ZH = {
    "window": "sandbox-chat",
    "window_titled": "sandbox-chat · {title}",
    "marked": "* {window}",
    "done": "本轮次已结束",
    "failed": "本轮次失败",
    "asks": "需要你的答复",
    "text": "{what}：{title}",
}
