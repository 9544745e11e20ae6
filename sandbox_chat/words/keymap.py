"""What is said of the user's own keys in ``config.toml``."""

from __future__ import annotations

EN = {
    "no_action": "There is no action {name!r} to give keys to, so they were ignored.",
    "near": " Did you mean {name}?",
    "no_key": "The key {key!r} of {name} is not known and was ignored. Write it like ctrl+n, f5 or ?.",
    "twice": "The key {key} is given to {rival} and to {name}; only {rival} has it.",
    "hidden": "The key {key} now means {rival} and no longer {name}. Give {name} another one if you need it.",
}

ZH = {
    "no_action": "没有名为 {name!r} 的操作，为它设置的按键已忽略。",
    "near": "是否指 {name}？",
    "no_key": "{name} 的按键 {key!r} 无法识别，已忽略。请写成 ctrl+n、f5 或 ? 的形式。",
    "twice": "按键 {key} 同时分配给了 {rival} 和 {name}；只有 {rival} 使用它。",
    "hidden": "按键 {key} 现在表示 {rival}，不再表示 {name}。如有需要，请为 {name} 另设按键。",
}
