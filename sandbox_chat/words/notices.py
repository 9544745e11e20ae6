"""What the transcript says of itself between the answers: ends, retries, answered questions."""

from __future__ import annotations

EN = {
    "cut_off": "The program ended before this turn did.",
    "interrupted": "Interrupted.",
    "stopped": "Stopped after {steps} steps, the limit of one answer. Say “go on” to continue.",
    "failed": "The turn failed ({kind}).",
    "again": "{reason}. Trying again (attempt {attempt}).",
    "again_in": "{reason}. Trying again in {seconds} s (attempt {attempt}).",
    "cleared": "The agent begins anew here: it remembers nothing of what stands above.",
    "compacted": "What the agent remembers was replaced by a summary{tokens}.",
    "compacted_by_itself": "The conversation had become long: its older part was replaced by a summary for the model{tokens}.",
    "compacted_tokens": " ({before} → {after} tokens)",
    "answered": "{question} → {answer}",
}

ZH = {
    "cut_off": "程序在本轮次结束前就已退出。",
    "interrupted": "已中断。",
    "stopped": "已执行 {steps} 步，达到一次回答的上限，因此停止。说“继续”即可接着进行。",
    "failed": "本轮次失败（{kind}）。",
    "again": "{reason}。正在重试（第 {attempt} 次）。",
    "again_in": "{reason}。将在 {seconds} 秒后重试（第 {attempt} 次）。",
    "cleared": "智能体从这里重新开始：它不记得以上内容。",
    "compacted": "智能体的记忆已替换为摘要{tokens}。",
    "compacted_by_itself": "对话已经很长：较早的部分已替换为给模型的摘要{tokens}。",
    "compacted_tokens": "（{before} → {after} 词元）",
    "answered": "{question} → {answer}",
}
