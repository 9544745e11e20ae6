"""The screen that shows what the tokens of personal data stand for."""

from __future__ import annotations

EN = {
    "title": "Real values",
    "about": "Only you see them, and only here: the model, the record and documents have the tokens.",
    "all": "All of this session",
    "more": "… {count} earlier ones …",
    "none": "No personal data was found in this session until now.",
    "not_hidden": "Nothing is hidden in this session: personal data is replaced by tokens in code mode, or with pii = on.",
    "key_close": "close",
    "key_copy": "copy",
}

ZH = {
    "title": "真实值",
    "about": "只有你能在这里看到：模型、会话记录和导出的文档中只有标记。",
    "all": "本会话的全部标记",
    "more": "… 更早的 {count} 个 …",
    "none": "到目前为止，本会话中没有发现个人信息。",
    "not_hidden": "本会话没有隐藏内容：在代码模式下，或设置 pii = on 时，个人信息才会替换为标记。",
    "key_close": "关闭",
    "key_copy": "复制",
}
