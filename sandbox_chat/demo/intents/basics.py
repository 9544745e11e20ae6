"""Small talk: what the demo model is, what it can show, and the answer when nothing else fits."""

from __future__ import annotations

from sandbox_chat.demo.steps import Plan, one_line, say
from sandbox_chat.demo.talk import Talk

_WHAT_EN = (
    "I am the **demo model**: a small program of rules inside Sandbox Chat. No language model is behind me, "
    "nothing leaves this machine, and nothing costs anything. What is real: the tools, the sandbox, and the results."
)
_WHAT_ZH = "我是**演示模型**：Sandbox Chat 内置的一个小型规则程序，背后没有语言模型，不联网，也不产生费用。但工具、沙箱和运行结果都是真实的。"

_HELP_EN = """\
Things to try:

| say | and see |
|---|---|
| `plot a damped sine and tell me its half-life` | code, a chart, a number measured from it |
| `where does it cross zero` | a second turn that uses the variables of the first |
| `sum 1 to 100 and check it with Gauss's formula` | a short calculation |
| `show me a data frame` | pandas: a sales table, grouped, as a chart |
| `make a mistake and fix it` | an error, its traceback, the mended code |
| `run a slow job` | live output; press Esc to stop it |
| `write a file and read it back` | files in the sandbox |
| `download the chart` | a file comes out of the sandbox |
| `histogram`, `regression`, `random walk`, `mandelbrot`, `plot sin(x)/x from -20 to 20` | more charts |
| `primes below 100`, `fibonacci`, `estimate pi`, `solve a linear system` | more numbers |
| `x = 41`, then `x + 1` | your own Python, also fenced and of many lines |
| `what is in x`, `describe df`, `plot y`, `which variables are there` | what the sandbox remembers |
| `what time is it in Tokyo and Berlin`, `list the tools` | in code mode: code that calls MCP tools |
| `tour` | several of these in one go |
"""
_HELP_ZH = """\
可以试试：

| 输入 | 效果 |
|---|---|
| `画一个衰减正弦并告诉我半衰期` | 代码、图表和测得的数值 |
| `它在哪里过零` | 第二轮对话使用第一轮的变量 |
| `求 1 到 100 的和，并用高斯公式验证` | 一个小计算 |
| `做一个数据表` | pandas：销售表、分组、图表 |
| `故意出错并修复` | 错误、回溯和修正后的代码 |
| `运行一个慢任务` | 实时输出，按 Esc 中断 |
| `写一个文件再读回来` | 沙箱中的文件 |
| `下载图表` | 把文件从沙箱取出来 |
| `直方图`、`回归`、`随机游走`、`画 sin(x)/x` | 更多图表 |
| `100 以内的素数`、`斐波那契`、`估算圆周率`、`解线性方程组` | 更多数值 |
| `x = 41`，然后 `x + 1` | 你自己的 Python 代码 |
| `x 里有什么`、`画出 y`、`有哪些变量` | 沙箱记住的内容 |
| `东京和柏林现在几点`、`列出工具` | 代码模式下由代码调用 MCP 工具 |
| `演示` | 一次看完几项 |
"""


def hello(talk: Talk) -> Plan | None:
    """A greeting and nothing else."""
    if not talk.says(r"^\W*(hi|hello|hey|good (morning|day|evening)|hallo|你好|您好|嗨)(\s+\w+)?\W*$"):
        return None
    return say(
        talk.t(
            f"Hello! {_WHAT_EN}\n\nTry `plot a damped sine and tell me its half-life`, or type `help` for the whole list.",
            f"你好！{_WHAT_ZH}\n\n试试“画一个衰减正弦并告诉我半衰期”，或者输入“帮助”查看全部。",
        )
    )


def thanks(talk: Talk) -> Plan | None:
    """A word of thanks."""
    if not talk.says(r"^\W*(thanks?|thank you|thx|great|nice|cool|well done|谢谢|多谢|很好|不错)\b.{0,30}$"):
        return None
    return say(
        talk.t("You are welcome. Type `help` for more to try.", "不客气。输入“帮助”可以看到更多例子。")
    )


def who(talk: Talk) -> Plan | None:
    """Questions about what answers here."""
    asked = (
        r"\b(who|what) are you\b|\bare you (claude|gpt|an? \w+|real)|\bwhich model\b|\bwhat model\b|\byour name\b|"
        r"你是谁|你是什么|你是.*吗|什么模型|哪个模型"
    )
    if not talk.says(asked):
        return None
    return say(
        talk.t(
            f"{_WHAT_EN}\n\nFor a chat with a real model, set a key (`ANTHROPIC_API_KEY`) or a gateway in `.env` and start again. "
            "Type `help` to see what I can show until then.",
            f"{_WHAT_ZH}\n\n想与真正的模型对话，请在 `.env` 中设置密钥（`ANTHROPIC_API_KEY`）或网关后重新启动。在此之前，输入“帮助”看看我能演示什么。",
        )
    )


def help_(talk: Talk) -> Plan | None:
    """A wish for help."""
    if not talk.says(
        r"\bhelp\b|^\W*\?+\W*$|what (else )?can (you|i) (do|show|try|ask|say)|\bexamples?\b|what do you (know|do)|"
        r"帮助|你能做什么|你会什么|能做些什么|怎么用|有什么例子"
    ):
        return None
    return say(talk.t(f"{_WHAT_EN}\n\n{_HELP_EN}", f"{_WHAT_ZH}\n\n{_HELP_ZH}"))


def summary(talk: Talk) -> Plan | None:
    """The agent's program asks for a summary of the chat, to make room in the context."""
    if not talk.says(
        r"^\W*(CRITICAL|IMPORTANT)?.{0,400}your task is to create a detailed summary of (the|this) conversation"
    ):
        return None
    prompts = [f"{number}. {one_line(turn.prompt)}" for number, turn in enumerate(talk.turns[:-1], 1)]
    codes = [snippet.code for snippet in talk.snippets if snippet.ok][-5:]
    code = "\n\n".join(codes)[-4000:]
    asked = "\n".join(prompts) or "Nothing yet."
    return say(
        f"<summary>\nThe user asked, in this order:\n{asked}\n\nCode that ran last in the sandbox:\n\n{code or 'none'}\n</summary>"
    )


def fallback(talk: Talk) -> Plan:
    """The answer when no other intent knows the prompt."""
    if not talk.prompt:
        return say(f"{_WHAT_EN}\n\n{_HELP_EN}")
    return say(
        talk.t(
            "I cannot answer that: I am the **demo model**, a small program of rules, and this is not among the things I know. "
            "I can run Python that you type, and show a few things:\n\n"
            "- `plot a damped sine and tell me its half-life`\n"
            "- `show me a data frame`\n"
            "- `make a mistake and fix it`\n"
            "- `x = 41`, then `x + 1`\n\n"
            "`help` lists the rest. With a key or a gateway in `.env`, a real model answers here.",
            "这个问题我答不了：我是**演示模型**，只是一个小型规则程序。我可以运行你输入的 Python 代码，也能演示：\n\n"
            "- `画一个衰减正弦并告诉我半衰期`\n"
            "- `做一个数据表`\n"
            "- `故意出错并修复`\n"
            "- `x = 41`，然后 `x + 1`\n\n"
            "输入“帮助”查看全部。在 `.env` 中设置密钥或网关后，这里会由真正的模型回答。",
        )
    )
