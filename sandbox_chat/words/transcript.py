"""Texts about the transcript: finding, copying, what is done with an item."""

from __future__ import annotations

EN = {
    "find": "find",
    "find_none": "nothing found",
    "find_count": "{number} of {count}",
    "find_count_more": "{number} of more than {count}",
    "find_keys": "{next} next · {before} before · {back} back",
    "copied_one": "Copied 1 character.",
    "copied": "Copied {count} characters.",
    "again_code": "Run this again:\n\n```python\n{code}\n```",
    "composer_full": "The composer is not empty.",
    "edited": "The edited copy is in the composer.",
    "nothing_to_open": "There is no file to open here.",
    "thinking": "thinking",
    "thought": "thought",
    "loading": "reading it back …",
    "lost": "This part cannot be read back from the disk; the session's record has it.",
}

ZH = {
    "find": "查找",
    "find_none": "未找到",
    "find_count": "第 {number} 处，共 {count} 处",
    "find_count_more": "第 {number} 处，共超过 {count} 处",
    "find_keys": "{next} 下一处 · {before} 上一处 · {back} 返回",
    "copied_one": "已复制 1 个字符。",
    "copied": "已复制 {count} 个字符。",
    "again_code": "请再次运行：\n\n```python\n{code}\n```",
    "composer_full": "输入框不为空。",
    "edited": "编辑后的副本已放入输入框。",
    "nothing_to_open": "这里没有可打开的文件。",
    "thinking": "正在思考",
    "thought": "思考",
    "loading": "正在读回 …",
    "lost": "这部分无法从磁盘读回；会话记录中仍有保存。",
}
