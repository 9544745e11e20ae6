"""What the application itself says."""

from __future__ import annotations

EN = {
    "search_commands": "Search for commands…",
    "once_more": "{key} once more quits",
    "no_color": "NO_COLOR is set: there are no colours to change.",
    "sandbox-dark": "Colours: dark",
    "sandbox-light": "Colours: light",
    "sandbox-contrast": "Colours: high contrast",
    "sandbox-terminal": "Colours: the terminal's own",
    "saved": "Session saved: sandbox-chat --resume {session}",
}

ZH = {
    "search_commands": "搜索命令…",
    "once_more": "再按一次 {key} 即退出",
    "no_color": "已设置 NO_COLOR：没有可更换的颜色。",
    "sandbox-dark": "配色：深色",
    "sandbox-light": "配色：浅色",
    "sandbox-contrast": "配色：高对比度",
    "sandbox-terminal": "配色：终端自身的颜色",
    "saved": "会话已保存：sandbox-chat --resume {session}",
}
