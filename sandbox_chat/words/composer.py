"""Texts of the composer and the lists above it."""

EN = {
    "placeholder": "Type a prompt",
    "search_placeholder": "Search the history",
    "pasted_lines": "pasted text #{number} · {lines} lines",
    "pasted_characters": "pasted text #{number} · {characters} characters",
    "too_long": "This text is too long to be edited here: {key} opens the prompt in your editor.",
    "tab_expands": "tab or a click writes the pasted text out here",
    "search_title": "history · {place} of {count} · ⏎ takes it · esc back to your prompt",
    "search_none": "history · no prompt holds these words · esc back to your prompt",
    "search_empty": "There is no prompt in the history yet.",
    "files_title": "files · ⏎ or tab attaches · esc closes the list",
    "files_more": "files · the first {count} of this folder · ⏎ or tab attaches · esc closes the list",
    "commands_title": "commands · ⏎ or tab takes it · esc closes the list",
    "draft_back": "The prompt that was not sent in the last run is back.",
    "no_session": "There is no session to attach it to.",
    "not_empty": "The composer is not empty.",
}

ZH = {
    "placeholder": "输入提示",
    "search_placeholder": "搜索历史记录",
    "pasted_lines": "粘贴的文本 #{number} · {lines} 行",
    "pasted_characters": "粘贴的文本 #{number} · {characters} 个字符",
    "too_long": "这段文本太长，无法在此处编辑：按 {key} 可在你的编辑器中打开提示。",
    "tab_expands": "按 tab 或单击可在此处展开粘贴的文本",
    "search_title": "历史记录 · 第 {place} 条，共 {count} 条 · ⏎ 取用 · esc 返回你的提示",
    "search_none": "历史记录 · 没有包含这些词的提示 · esc 返回你的提示",
    "search_empty": "历史记录中还没有提示。",
    "files_title": "文件 · ⏎ 或 tab 附加 · esc 关闭列表",
    "files_more": "文件 · 此文件夹的前 {count} 个 · ⏎ 或 tab 附加 · esc 关闭列表",
    "commands_title": "命令 · ⏎ 或 tab 选用 · esc 关闭列表",
    "draft_back": "上次运行中未发送的提示已恢复。",
    "no_session": "没有可以附加文件的会话。",
    "not_empty": "输入框不为空。",
}
