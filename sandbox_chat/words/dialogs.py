"""Small questions over the chat: another model, a link."""

from __future__ import annotations

EN = {
    "model": "Model from the next turn on",
    "demo_model": "The demo has no model to choose.",
    "model_keys": "⏎ use it · esc keeps the model",
    "link": "This link leads to",
    "link_keys": "⏎ open · c copy · esc leave it",
    "no_link": "Only web links are opened, and this is not one: {link}",
    "link_copied": "Copied, as there is no browser here: {link}",
}

ZH = {
    "model": "从下一轮次起使用的模型",
    "demo_model": "演示模式没有可选的模型。",
    "model_keys": "⏎ 使用 · esc 保留当前模型",
    "link": "此链接指向",
    "link_keys": "⏎ 打开 · c 复制 · esc 不打开",
    "no_link": "只打开网页链接，而这不是网页链接：{link}",
    "link_copied": "此处没有浏览器，已复制：{link}",
}
