"""Small questions over the chat: a link."""

from __future__ import annotations

EN = {
    "link": "This link leads to",
    "link_keys": "⏎ open · c copy · esc leave it",
    "no_link": "Only web links are opened, and this is not one: {link}",
    "link_copied": "Copied, as there is no browser here: {link}",
}

ZH = {
    "link": "此链接指向",
    "link_keys": "⏎ 打开 · c 复制 · esc 不打开",
    "no_link": "只打开网页链接，而这不是网页链接：{link}",
    "link_copied": "此处没有浏览器，已复制：{link}",
}
