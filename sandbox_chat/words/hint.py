"""The empty transcript, and the row that tells of more below."""

from __future__ import annotations

EN = {
    "demo_title": "This is the demo.",
    "demo_words": "Rules answer, no model does; the code that you see is really run, in a sandbox.",
    "model_title": "Ask for something that is worth computing.",
    "model_words": "Claude writes Python, runs it in a sandbox, and shows you what came of it.",
    "try": "Try",
    "keys": "{help} shows the keys, {commands} finds every command.",
    "example_sine": "Plot a damped sine and tell me its half-life.",
    "example_pi": "Estimate pi by random points and draw the error.",
    "example_primes": "Chart the gaps between the primes below 1,000.",
    "unseen.one": "↓ {count} new line · {key} goes there",
    "unseen.many": "↓ {count} new lines · {key} goes there",
}

ZH = {
    "demo_title": "这是演示。",
    "demo_words": "由规则作答，没有模型；你看到的代码确实在沙箱中运行。",
    "model_title": "提出值得计算的问题。",
    "model_words": "Claude 编写 Python，在沙箱中运行，并向你展示结果。",
    "try": "试试",
    "keys": "{help} 显示按键，{commands} 查找所有命令。",
    "example_sine": "画一条阻尼正弦曲线，并告诉我它的半衰期。",
    "example_pi": "用随机点估算圆周率，并画出误差。",
    "example_primes": "画出 1,000 以内素数的间隔。",
    "unseen.one": "↓ {count} 行新内容 · {key} 前往",
    "unseen.many": "↓ {count} 行新内容 · {key} 前往",
}
