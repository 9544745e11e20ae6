"""Texts about pictures."""

from __future__ import annotations

EN = {
    "preparing": "preparing the picture …",
    "zoom": "{key} zoom",
    "open": "{key} open",
    "save": "{key} save",
    "copy": "{key} copy the path",
    "zooming": "{larger}/{smaller} zoom",
    "turn": "{before}/{next} others",
    "back": "{key} back",
    "place": "{number}/{count}",
    "factor": "{factor}×",
    "alternative": "[picture: {facts}]",
    "off": "Pictures are switched off. The file is on the disk.",
    "no_pictures": "There is no picture yet.",
    "copied": "Copied: {path}",
}

ZH = {
    "preparing": "正在准备图片…",
    "zoom": "{key} 放大",
    "open": "{key} 打开",
    "save": "{key} 保存",
    "copy": "{key} 复制路径",
    "zooming": "{larger}/{smaller} 缩放",
    "turn": "{before}/{next} 切换",
    "back": "{key} 返回",
    "place": "{number}/{count}",
    "factor": "{factor}×",
    "alternative": "[图片：{facts}]",
    "off": "已关闭图片显示，文件仍保存在磁盘上。",
    "no_pictures": "还没有图片。",
    "copied": "已复制：{path}",
}
