"""The rows above the composer: prompts that wait, files on their way."""

from __future__ import annotations

EN = {
    "attaching": "⋯ attaching {name}: {progress} · {key} stops it",
    "early": "⋯ goes out when connected: {prompt}",
    "waiting": "⋯ waiting: {prompt}",
    "more": "⋯ and {count} more",
    "held": "held {why}: {send} sends them, {back} takes the newest back",
    "none": "No prompt waits.",
    "soon": "They go on when this turn ends.",
    "interruption": "after the interruption",
    "failure": "after the failure",
}

ZH = {
    "attaching": "⋯ 正在附加 {name}：{progress} · {key} 停止",
    "early": "⋯ 连接后发出：{prompt}",
    "waiting": "⋯ 等待中：{prompt}",
    "more": "⋯ 另有 {count} 条",
    "held": "{why}暂缓：{send} 发送，{back} 取回最新一条",
    "none": "没有等待的提示。",
    "soon": "本轮次结束后它们会继续。",
    "interruption": "中断后",
    "failure": "失败后",
}
