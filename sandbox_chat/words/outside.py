"""Texts about other programs: the editor, the pager, the desktop, the clipboard."""

from __future__ import annotations

EN = {
    "no_editor": "There is no editor: set EDITOR to the command of yours.",
    "no_pager": "There is no pager: set PAGER to the command of yours.",
    "bad_command": "{name} cannot be read as a command: {value}",
    "not_found": "{program} was not found. Set {name} to a program that is installed.",
    "not_started": "{program} could not be started ({reason}).",
    "ended_badly": "{program} ended with code {code}; nothing was taken from it.",
    "pager_ended": "{program} ended with code {code}; it may not have shown the text.",
    "no_terminal": "Another program cannot have this terminal.",
    "no_folder": "No temporary file could be written ({reason}).",
    "not_read": "What was edited could not be read ({reason}).",
    "output_not_read": "The output could not be read ({reason}).",
    "too_large": "What was edited is too large ({size}).",
    "no_opener": "There is no desktop to open it on. It is at {path}",
    "gone": "It is not there any more: {path}",
    "saved": "Saved as {path}",
    "not_saved": "It could not be saved in {folder} ({reason}).",
}

ZH = {
    "no_editor": "没有编辑器：请将 EDITOR 设为你的编辑器命令。",
    "no_pager": "没有分页程序：请将 PAGER 设为你的分页命令。",
    "bad_command": "{name} 不是可以解析的命令：{value}",
    "not_found": "找不到 {program}。请将 {name} 设为已安装的程序。",
    "not_started": "无法启动 {program}（{reason}）。",
    "ended_badly": "{program} 以代码 {code} 退出，其内容未被采用。",
    "pager_ended": "{program} 以代码 {code} 退出，可能未显示文本。",
    "no_terminal": "其他程序无法使用此终端。",
    "no_folder": "无法写入临时文件（{reason}）。",
    "not_read": "无法读取编辑后的内容（{reason}）。",
    "output_not_read": "无法读取输出（{reason}）。",
    "too_large": "编辑后的内容过大（{size}）。",
    "no_opener": "没有可用于打开它的桌面。文件位于 {path}",
    "gone": "文件已不存在：{path}",
    "saved": "已保存为 {path}",
    "not_saved": "无法保存到 {folder}（{reason}）。",
}
