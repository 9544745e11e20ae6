"""Names of the panes and their tabs."""

from __future__ import annotations

EN = {
    "chat": "Chat",
    "tools": "Tools",
    "cost": "Cost",
}

ZH = {
    "chat": "聊天",
    "tools": "工具",
    "cost": "费用",
}
