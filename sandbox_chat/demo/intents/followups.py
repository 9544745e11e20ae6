"""Questions about what earlier code has left in the sandbox."""

from __future__ import annotations

import ast
import re

from sandbox_chat.demo.steps import Plan, fence, gave_up, look, one_line, run, say
from sandbox_chat.demo.talk import Talk, parse

_NAME = r"`?([A-Za-z_]\w*)`?"
_NO_NAMES = {
    "it",
    "this",
    "that",
    "them",
    "the",
    "a",
    "an",
    "me",
    "all",
    "everything",
    "of",
    "is",
    "are",
    "there",
    "out",
    "from",
}


def _known(talk: Talk, name: str) -> bool:
    return name in talk.names


def zero_crossings(talk: Talk) -> Plan | None:
    """Where the last plotted curve crosses zero."""
    if not talk.says(
        r"\bcross(es|ings?)?\b.{0,12}\bzero|\bzero[- ]?cross|\bzeros\b|\broots?\b.{0,12}(curve|it|function)|过零|零点|与.{0,3}轴.{0,4}交"
    ):
        return None
    plotted = _plotted(talk)
    if plotted is None:
        return say(
            talk.t(
                "There is no curve yet. Ask me to *plot a damped sine* first.",
                "还没有曲线。请先让我“画一个衰减正弦”。",
            )
        )
    return _zero_crossings(talk, *plotted)


def _plotted(talk: Talk) -> tuple[str, str, str] | None:
    """The names of the last two arrays that were plotted against each other, and code that must run first.

    That code is empty as long as nothing has set the names to something else since.
    """
    for index in range(len(talk.snippets) - 1, -1, -1):
        snippet = talk.snippets[index]
        tree = parse(snippet.code) if snippet.ok else None
        for node in ast.walk(tree) if tree is not None else ():
            match node:
                case ast.Call(func=ast.Attribute(attr="plot"), args=[ast.Name(id=x), ast.Name(id=y), *_]):
                    if _known(talk, x) and _known(talk, y):
                        later = {name for item in talk.snippets[index + 1 :] for name in item.sets}
                        stale = {x, y} & later and {x, y} <= set(snippet.sets)
                        return x, y, f"{snippet.code}\n\n" if stale else ""
    return ("t", "y", "") if _known(talk, "t") and _known(talk, "y") else None


def _zero_crossings(talk: Talk, x: str, y: str, first: str) -> Plan:
    code = f"""\
import numpy as np

_i = np.flatnonzero(np.sign({y}[:-1]) * np.sign({y}[1:]) < 0)
crossings = {x}[_i] - {y}[_i] * ({x}[_i + 1] - {x}[_i]) / ({y}[_i + 1] - {y}[_i])

print(f"count: {{len(crossings)}}")
print("at:", ", ".join(f"{{value:.3f}}" for value in crossings[:12]))
print(f"spacing: {{np.diff(crossings).mean() if len(crossings) > 1 else float('nan'):.3f}}")
"""
    outcome = yield from run(
        talk,
        first + code,
        talk.t(
            f"I take `{x}` and `{y}` from before, look for changes of sign, and interpolate.",
            f"我使用之前的 `{x}` 和 `{y}`，查找符号变化并插值。",
        ),
    )
    if not outcome.ok:
        return gave_up(talk, outcome)
    values = outcome.values()
    if values.get("count") == "0":
        return talk.t(f"`{y}` does not cross zero.", f"`{y}` 不过零。")
    return talk.t(
        f"It crosses zero **{values.get('count', '?')} times** after its start, every {values.get('spacing', '?')} on average. The first ones are at\n\n"
        f"{fence(x + ' = ' + values.get('at', '?'))}",
        f"起点之后共过零 **{values.get('count', '?')} 次**，平均间隔 {values.get('spacing', '?')}。前几个位于\n\n{fence(x + ' = ' + values.get('at', '?'))}",
    )


VARIABLES = """\
import types

for _name, _value in list(globals().items()):
    _kind = type(_value)
    if _name.startswith("_") or _name in ("In", "Out", "types") or callable(_value):
        continue
    if isinstance(_value, types.ModuleType) or _kind.__module__.startswith(("matplotlib", "IPython")):
        continue
    print(f"{_name:<16} {_kind.__name__:<12} {getattr(_value, 'shape', '') or ''}".rstrip())
"""


def variables(talk: Talk) -> Plan | None:
    """Which variables there are."""
    wanted = r"\b(which|what|list|show)\b.{0,20}\bvariables?\b|\bwhat do you remember\b|(哪些|列出|显示|查看).{0,6}变量|记得什么"
    return _variables(talk) if talk.says(wanted) else None


def _variables(talk: Talk) -> Plan:
    outcome = yield from run(talk, VARIABLES)
    if not outcome.ok:
        return gave_up(talk, outcome)
    if not outcome.stdout.strip():
        return talk.t("The sandbox holds no variables yet.", "沙箱里还没有变量。")
    return talk.t("The sandbox remembers:", "沙箱中的变量：") + "\n\n" + fence(outcome.stdout)


def inspect(talk: Talk) -> Plan | None:
    """What is in a variable."""
    match = talk.says(
        rf"^\W*(?:what(?:'s| is| was)(?: (?:in|the value of))?|show(?: me)?|print|display|value of|tell me)\s+(?:the )?(?:variable )?{_NAME}(?: now)?\W*$"
    ) or talk.says(rf"{_NAME}\s*(?:是多少|是什么|里有什么|的值|等于多少)|(?:显示|打印|查看)\s*{_NAME}")
    if match is None:
        return None
    name = next((group for group in match.groups() if group), "")
    if not _known(talk, name):
        if name.lower() in _NO_NAMES or len(name) > 2:
            return None
        return say(
            talk.t(
                f"No code in this chat has set `{name}` yet. Type for example `{name} = 41` first.",
                f"本次会话中还没有给 `{name}` 赋值。可以先输入 `{name} = 41`。",
            )
        )
    return _inspect(talk, name)


def _inspect(talk: Talk, name: str) -> Plan:
    outcome = yield from run(talk, name)
    if not outcome.ok:
        return gave_up(talk, outcome)
    value = outcome.value
    if "\n" in value or len(value) > 120:
        return talk.t(f"`{name}` holds", f"`{name}` 的内容：") + "\n\n" + fence(value)
    return talk.t(f"`{name}` is `{one_line(value)}`.", f"`{name}` 是 `{one_line(value)}`。")


def describe(talk: Talk) -> Plan | None:
    """Statistics of a variable: all of them, or the one that is asked for."""
    match = talk.says(
        rf"\b(describe|summari[sz]e|statistics of|stats of|mean of|average of|max(?:imum)? of|min(?:imum)? of|length of|size of)\s+(?:the )?{_NAME}"
    ) or talk.says(rf"(描述|统计|平均值?|最大值?|最小值?)\s*{_NAME}")
    if match is None:
        return None
    name = match[2]
    if not _known(talk, name):
        if name.lower() not in _NO_NAMES:
            return None
        name = talk.names[0] if talk.names else ""
        if not name:
            return None
    word = match[1].lower()
    row = next((row for start, row in _ROWS.items() if word.startswith(start)), "")
    return _describe(talk, name, row)


_ROWS = {"mean": "mean", "average": "mean", "max": "max", "min": "min", "length": "count", "size": "count"}
_CHINESE = {"mean": "平均值", "max": "最大值", "min": "最小值", "count": "个数"}
_ROWS |= {"平均": "mean", "最大": "max", "最小": "min"}


def _describe(talk: Talk, name: str, row: str) -> Plan:
    code = f"import pandas as pd\n\n({name} if hasattr({name}, 'describe') else pd.Series({name})).describe()"
    outcome = yield from run(talk, code)
    if not outcome.ok:
        return gave_up(talk, outcome)
    text = outcome.value or outcome.stdout
    numbers = re.findall(rf"^{row}[ \t]+(\S+)$", text, re.MULTILINE) if row else []
    if len(numbers) == 1:
        return talk.t(
            f"The {row} of `{name}` is **{numbers[0]}**.", f"`{name}` 的{_CHINESE[row]}是 **{numbers[0]}**。"
        )
    return talk.t(f"`{name}` in numbers:", f"`{name}` 的统计：") + "\n\n" + fence(text)


def plot_names(talk: Talk) -> Plan | None:
    """Plot variables that are named."""
    match = talk.says(
        rf"\b(?:plot|draw|graph)\s+(?:the )?{_NAME}(?:\s+(?:against|over|versus|vs\.?)\s+{_NAME})?\W*$"
    ) or talk.says(rf"画出?\s*{_NAME}(?:\s*(?:对|关于)\s*{_NAME})?\W*$")
    if match is None or not _known(talk, match[1]):
        return None
    against = match[2] if match[2] and _known(talk, match[2]) else ""
    return _plot(talk, [match[1]], against)


def plot_it(talk: Talk) -> Plan | None:
    """Plot "it": the newest variable that can be plotted."""
    if not talk.says(r"\b(plot|draw|graph|chart)\b.{0,10}\b(it|this|that|them)\b|把?它?画出来|画一下|画出来"):
        return None
    names = [name for name in talk.names if not name.startswith("_")][:12]
    if not names:
        return say(
            talk.t(
                "There is nothing to plot yet. Try `y = [1, 4, 9, 16]` first.",
                "还没有可以画的数据。可以先输入 `y = [1, 4, 9, 16]`。",
            )
        )
    return _plot(talk, names, "")


def _plot(talk: Talk, names: list[str], against: str) -> Plan:
    path = "/tmp/plot.png"  # noqa: S108
    if len(names) == 1:
        pick = f"_name, _values = {names[0]!r}, {names[0]}\n"
    else:
        pick = (
            f"for _name in {names!r}:\n"
            "    _values = globals().get(_name)\n"
            "    if isinstance(_values, (list, tuple, np.ndarray, pd.Series, pd.DataFrame)) and np.size(_values) > 2:\n"
            "        try:\n"
            "            np.asarray(_values if np.ndim(_values) == 1 else _values.select_dtypes('number'), dtype=float)\n"
            "            break\n"
            "        except (TypeError, ValueError, AttributeError):\n"
            "            pass\n"
            "else:\n"
            "    raise LookupError('nothing among the variables can be plotted')\n"
        )
    x = f"np.asarray({against}), np.asarray(_values)" if against else "np.asarray(_values)"
    code = f"""\
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

{pick}
fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
if isinstance(_values, (pd.DataFrame, pd.Series)):
    _values.plot(ax=ax, lw=2.5)
else:
    ax.plot({x}, lw=2.5, color="#2a6fdb")
ax.set(title=_name{f", xlabel={against!r}" if against else ""})
ax.grid(alpha=0.25)
fig.savefig("{path}", dpi=130)
plt.close(fig)
print(f"plotted: {{_name}}")
"""
    outcome = yield from run(talk, code)
    if outcome.error_name == "LookupError" and (earlier := talk.recall(*names[:6])):
        words = talk.t(
            "Those variables are not there any more. I run the earlier code first, then plot again.",
            "这些变量已经不在了。我先重新运行之前的代码，再画图。",
        )
        outcome = yield from run(talk, f"{earlier}\n\n{code}", words)
    if not outcome.ok:
        return gave_up(talk, outcome)
    remark = yield from look(talk, path)
    name = outcome.values().get("plotted", names[0])
    return talk.t(f"That is `{one_line(name)}`.", f"这就是 `{one_line(name)}`。") + remark
