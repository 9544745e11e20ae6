"""Python that the user typed: run it, show what came of it, explain an error."""

from __future__ import annotations

import difflib
import re

from sandbox_chat.demo import code
from sandbox_chat.demo.steps import Plan, fence, one_line, run, say
from sandbox_chat.demo.talk import Outcome, Snippet, Talk

_ADVICE: dict[str, tuple[str, str]] = {
    "NameError": ("A name is used before anything was assigned to it.", "使用了尚未赋值的名字。"),
    "ZeroDivisionError": (
        "Something is divided by zero; check the divisor before dividing.",
        "除数为零；相除前请检查除数。",
    ),
    "ModuleNotFoundError": (
        "That package is not in the sandbox, and the sandbox has no network to fetch it. "
        "numpy, pandas and matplotlib are there.",
        "沙箱里没有这个包，也没有网络可以安装。numpy、pandas 和 matplotlib 可以直接使用。",
    ),
    "ImportError": (
        "The module is there, but not what was asked of it; check the spelling.",
        "模块存在，但没有要导入的内容，请检查拼写。",
    ),
    "SyntaxError": (
        "Python cannot read this line; look at the mark, and for an open bracket or quote before it.",
        "语法有误；请看标记处，以及之前未闭合的括号或引号。",
    ),
    "IndentationError": ("The lines of a block must begin in the same column.", "同一代码块的缩进必须一致。"),
    "KeyError": (
        "The dictionary (or table) has no such key; look at its keys, or use `.get`.",
        "字典（或表）里没有这个键；请查看它的键，或使用 `.get`。",
    ),
    "IndexError": (
        "The index is past the end; look at the length with `len`.",
        "下标越界；可用 `len` 查看长度。",
    ),
    "AttributeError": (
        "The object has no such attribute; `dir(obj)` lists those that it has.",
        "对象没有这个属性；`dir(obj)` 会列出已有的属性。",
    ),
    "TypeError": (
        "The types do not go together; convert one (`int(…)`, `str(…)`) or check the arguments.",
        "类型不匹配；请转换类型（`int(…)`、`str(…)`）或检查参数。",
    ),
    "ValueError": (
        "The type is right, but not the value; print it before this line.",
        "类型正确但取值不对；可在该行之前打印它。",
    ),
    "FileNotFoundError": (
        "There is no such file in the sandbox. It sees none of your files; `/tmp` is its folder.",
        "沙箱里没有这个文件。它看不到你的文件，工作目录是 `/tmp`。",
    ),
    "PermissionError": (
        "The sandbox may not do that; `/tmp` is the place to write.",
        "沙箱不允许这样做；请写到 `/tmp`。",
    ),
    "MemoryError": (
        "That is more memory than the sandbox has; work on smaller parts.",
        "超出了沙箱的内存；请分成小块处理。",
    ),
    "RecursionError": (
        "A function calls itself without end; check where it should stop.",
        "递归没有终止；请检查结束条件。",
    ),
    "EOFError": (
        "`input()` has nobody to ask in the sandbox; assign the value in the code.",
        "沙箱里无法用 `input()` 提问；请在代码里直接赋值。",
    ),
    "StdinNotImplementedError": (
        "`input()` has nobody to ask in the sandbox; assign the value in the code.",
        "沙箱里无法用 `input()` 提问；请在代码里直接赋值。",
    ),
    "AssertionError": ("An `assert` did not hold.", "断言不成立。"),
    "SystemExit": (
        "The code asked to exit; the shell lives on with its variables.",
        "代码请求退出；Python 环境和变量仍然保留。",
    ),
    "KeyboardInterrupt": (
        "The code was interrupted; the variables are still there.",
        "代码被中断；变量仍然保留。",
    ),
    "OSError": (
        "The sandbox has no network and sees none of your files, so what needs them fails.",
        "沙箱没有网络，也看不到你的文件。",
    ),
}
_NETWORK = re.compile(
    r"URLError|gaierror|ConnectionError|ConnectionRefused|Network is unreachable|Name or service"
)


_LIMIT_WORDS = re.compile(
    r"[\s,;(]*\b(?:with|in|and)\s+(?:a\s+)?time[ -]?(?:out|limit)\b[^\n]{0,30}$", re.IGNORECASE
)


def user_code(talk: Talk) -> Plan | None:
    """Run the Python that the prompt holds."""
    found = code.find(talk.prompt, talk.names)
    if not found and len(talk.prompt) <= len(talk.head):
        found = code.find(_LIMIT_WORDS.sub("", talk.prompt), talk.names)
    return _run_it(talk, found) if found else None


def other_language(talk: Talk) -> Plan | None:
    """A fence in another language than Python."""
    blocks = code.fenced(talk.prompt)
    if not blocks or any(code.is_python(language) for language, _ in blocks):
        return None
    name = one_line(blocks[0][0], 30)
    return say(
        talk.t(
            f"That block is marked as `{name}`, and the sandbox runs Python only. Fence it with ```` ```python ```` if it is Python.",
            f"这段代码标记为 `{name}`，而沙箱只能运行 Python。如果是 Python，请用 ```` ```python ```` 标记。",
        )
    )


def time_limit(talk: Talk) -> int | None:
    """The time limit in seconds that the prompt asks for, if any."""
    match = talk.says(
        r"\btime(?:\s|-)?(?:out|limit)\s*(?:of|to|=|:|is)?\s*(\d{1,4})|(\d{1,4})\s*s(?:econds?)? time(?:out| limit)|超时\D{0,4}(\d{1,4})"
    )
    if match is None:
        return None
    return max(1, min(talk.run_limit, int(next(group for group in match.groups() if group))))


def _run_it(talk: Talk, text: str) -> Plan:
    # A limit inside the code itself is the code's business.
    limit = time_limit(talk) if text.strip() != talk.prompt.strip() else None
    outcome = yield from run(talk, text, timeout=limit)
    return report(talk, text, outcome)


def report(talk: Talk, text: str, outcome: Outcome) -> str:
    """Put into words what came of the user's code."""
    parts: list[str] = []
    if outcome.stdout:
        parts += [talk.t("It printed:", "输出："), fence(outcome.stdout)]
    if not outcome.ok:
        parts.append(explain(talk, outcome))
        return "\n\n".join(parts)
    if outcome.value:
        if "\n" in outcome.value or len(outcome.value) > 120:
            parts += [talk.t("The value is", "结果是"), fence(outcome.value)]
        else:
            parts.append(
                talk.t(f"The value is `{one_line(outcome.value)}`.", f"结果是 `{one_line(outcome.value)}`。")
            )
    if outcome.images:
        parts.append(talk.t("The picture is above.", "图片见上方。"))
    if not parts:
        sets = [name for name in Snippet.of(text, True).sets if not name.startswith("_")][:6]
        names = ", ".join(f"`{name}`" for name in sets)
        parts.append(
            talk.t(f"Done: {names} can be used from now on.", f"完成：之后可以使用 {names}。")
            if names
            else talk.t("Done. It printed nothing and has no value.", "完成。没有输出，也没有返回值。")
        )
    return "\n\n".join(parts)


def explain(talk: Talk, outcome: Outcome) -> str:
    """Put an error of the user's code into words: the traceback's last line, what it means, what to do."""
    last = one_line(outcome.error, 400)
    if not outcome.error_name:  # the run was stopped, and the tool says why and what to do
        return talk.t(last, f"代码没有运行到底：{last}")
    advice = _ADVICE.get(outcome.error_name.rsplit(".", 1)[-1], ("", ""))
    if _NETWORK.search(outcome.text):
        advice = _ADVICE["OSError"]
    hint = talk.t(*advice)
    if (name := outcome.missing_name) and (near := difflib.get_close_matches(name, talk.names, 1, 0.75)):
        hint += talk.t(f" Did you mean `{near[0]}`?", f"是不是想写 `{near[0]}`？")
    return talk.t(
        f"The code failed: **`{last}`**\n\n{hint}".rstrip(),
        f"代码出错了：**`{last}`**\n\n{hint}".rstrip(),
    )
