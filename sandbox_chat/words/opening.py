"""How a session is opened: one that is open elsewhere, and a long one whose older turns come later."""

from __future__ import annotations

EN = {
    "reading": "Earlier turns are being read …",
    "sums": "being read …",
    "unread": "Earlier turns cannot be read ({reason}). They are not lost: the session's record has them.",
    "in_use": "This session is open in another running Sandbox Chat",
    "in_use_why": "Only one of the two can go on with it.",
    "fork": "Go on with a copy",
    "fork_words": "of all up to its last whole turn",
    "look": "Look only",
    "look_words": "it can be read and searched, and nothing is sent",
    "cancel": "Quit",
    "cancel_words": "change nothing",
    "copying": "The session is being copied …",
    "looking": "looking only",
    "composer": "This session is only shown here: nothing can be sent.",
}

ZH = {
    "reading": "正在读取更早的轮次 …",
    "sums": "正在读取 …",
    "unread": "无法读取更早的轮次（{reason}）。内容没有丢失：会话记录中仍有保存。",
    "in_use": "此会话已在另一个正在运行的 Sandbox Chat 中打开",
    "in_use_why": "两者之中只有一个可以继续此会话。",
    "fork": "用副本继续",
    "fork_words": "内容到最后一个完整的轮次为止",
    "look": "仅查看",
    "look_words": "可以阅读和搜索，但不会发送任何内容",
    "cancel": "退出",
    "cancel_words": "不做任何更改",
    "copying": "正在复制会话 …",
    "looking": "仅查看",
    "composer": "此会话在这里仅供查看，无法发送内容。",
}
