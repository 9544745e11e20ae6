"""What the transcript says of itself between the answers: ends, retries, answered questions."""

from __future__ import annotations

EN = {
    "cut_off": "The program ended before this turn did.",
    "interrupted": "Interrupted.",
    "stopped": "Stopped after {steps} steps, the limit of one answer. Say “go on” to continue.",
    "failed": "The turn failed ({kind}).",
    "again": "{reason}. Trying again (attempt {attempt}).",
    "again_in": "{reason}. Trying again in {seconds} s (attempt {attempt}).",
    "answered": "{question} → {answer}",
}

ZH = {
    "cut_off": "程序在本轮次结束前就已退出。",
    "interrupted": "已中断。",
    "stopped": "已执行 {steps} 步，达到一次回答的上限，因此停止。说“继续”即可接着进行。",
    "failed": "本轮次失败（{kind}）。",
    "again": "{reason}。正在重试（第 {attempt} 次）。",
    "again_in": "{reason}。将在 {seconds} 秒后重试（第 {attempt} 次）。",
    "answered": "{question} → {answer}",
}
