"""The title line."""

from __future__ import annotations

EN = {
    "demo": "demo, no model",
    "unsafe": "UNSAFE: code runs on this machine",
    "no_sandbox": "no sandbox",
    "sandbox": "{kind} sandbox",
    "default_model": "default model",
    "sandbox_none": "not started",
    "sandbox_starting": "starting",
    "sandbox_ready": "ready",
    "sandbox_busy": "running",
    "sandbox_lost": "lost",
    "sandbox_closed": "closed",
}

ZH = {
    "demo": "演示，没有模型",
    "unsafe": "不安全：代码在本机运行",
    "no_sandbox": "没有沙箱",
    "sandbox": "{kind} 沙箱",
    "default_model": "默认模型",
    "sandbox_none": "未启动",
    "sandbox_starting": "正在启动",
    "sandbox_ready": "就绪",
    "sandbox_busy": "运行中",
    "sandbox_lost": "已失去",
    "sandbox_closed": "已关闭",
}
