"""The screen that shows the keys."""

from __future__ import annotations

EN = {
    "title": "Keys",
    "end": "{close} closes · every action has a name in the commands, {commands}",
}

ZH = {
    "title": "按键",
    "end": "{close} 关闭 · 每个操作都能在命令（{commands}）中按名称找到",
}
