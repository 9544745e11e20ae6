"""Charts: a damped sine measured from its peaks, and any formula in x."""

from __future__ import annotations

import ast
import re

from sandbox_chat.demo.steps import Plan, gave_up, look, run
from sandbox_chat.demo.talk import Talk, parse

DAMPED_SINE = """\
import matplotlib.pyplot as plt
import numpy as np

tau, f = {tau}, {f}  # decay time in s, frequency in Hz
t = np.linspace(0, 4 * tau, 2000)
y = np.exp(-t / tau) * np.sin(2 * np.pi * f * t)

# Measure the envelope: the logarithms of the peaks lie on a straight line.
a = np.abs(y)
peak = np.flatnonzero((a[1:-1] > a[:-2]) & (a[1:-1] >= a[2:])) + 1
slope, offset = np.polyfit(t[peak], np.log(a[peak]), 1)
half_life = np.log(2) / -slope

fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
ax.plot(t, y, color="#2a6fdb", lw=2.5, label="y(t)")
for sign in (1, -1):
    ax.plot(t, sign * np.exp(offset + slope * t), "--", color="#e0702b", lw=1.8, label="envelope" if sign > 0 else None)
ax.axvline(half_life, color="#2f9e6e", lw=2, label=f"half-life {{half_life:.2f}} s")
ax.axhline(0, color="0.6", lw=1)
ax.set(title="Damped sine", xlabel="t in s", ylabel="y", xlim=(0, t[-1]))
ax.grid(alpha=0.25)
ax.legend(loc="upper right")
fig.savefig("/tmp/damped_sine.png", dpi=130)
plt.close(fig)

print(f"half-life: {{half_life:.2f}} s")
print(f"peaks used: {{len(peak)}}")
print(f"theory: {{tau * np.log(2):.2f}} s")
"""
DAMPED_PATH = "/tmp/damped_sine.png"  # noqa: S108 - a path inside the sandbox


def damped_sine(talk: Talk) -> Plan | None:
    """A damped oscillation and its half-life."""
    wanted = (
        r"\b(damp\w*|decay\w*)\b.{0,40}\b(sin\w*|oscillat\w*|wave|vibration|swing)|\b(sin\w*|oscillat\w*)\b.{0,40}\b(damp\w*|decay\w*)|"
        r"(衰减|阻尼).{0,8}(正弦|振动|振荡|曲线|波)|正弦.{0,6}衰减"
    )
    return draw_damped_sine(talk) if talk.says(wanted) else None


def draw_damped_sine(talk: Talk) -> Plan:
    """The plan of ``damped_sine``; ``tau`` and a frequency in Hz in the prompt are used."""
    tau = _number(talk, r"(?:tau|τ|decay time)\s*(?:of|=|is|:)?\s*", "", default=3.0, low=0.01, high=1000)
    f = _number(
        talk, r"(?:f|freq\w*|频率)\s*(?:of|=|is|:|为)?\s*", r"\s*hz", default=2.4 / tau, low=0.001, high=1000
    )
    f = min(f, 60 / tau)  # more swings than that cannot be told apart in the chart
    outcome = yield from run(
        talk,
        DAMPED_SINE.format(tau=f"{tau:g}", f=f"{f:.4g}"),
        talk.t(
            "I draw the curve, and measure the half-life from its peaks.",
            "我来画出曲线，并由峰值测出半衰期。",
        ),
    )
    if not outcome.ok:
        return gave_up(talk, outcome)
    remark = yield from look(talk, DAMPED_PATH, talk.t("Let me look at the chart.", "我看一下图表。"))
    values = outcome.values()
    half, theory, peaks = (values.get(name, "?") for name in ("half-life", "theory", "peaks used"))
    return (
        talk.t(
            f"The envelope halves every **{half}**. I measured that from {peaks} peaks of the curve; the theory, τ · ln 2, gives {theory}.\n\n"
            "`t` and `y` are still in the sandbox: ask *where does it cross zero*.",
            f"包络线每 **{half}** 减半（半衰期）。这是由曲线的 {peaks} 个峰值测得的；理论值 τ · ln 2 为 {theory}。\n\n"
            "`t` 和 `y` 仍在沙箱中，可以接着问：*它在哪里过零*。",
        )
        + remark
    )


def _number(talk: Talk, before: str, after: str, *, default: float, low: float, high: float) -> float:
    match = re.search(
        rf"\b{before}(\d+(?:\.\d+)?)" + (rf"|(\d+(?:\.\d+)?){after}" if after else ""),
        talk.head,
        re.IGNORECASE,
    )
    if match is None:
        return default
    return min(high, max(low, float(next(group for group in match.groups() if group))))


_KNOWN = [
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "exp",
    "log",
    "log2",
    "log10",
    "sqrt",
    "cbrt",
    "abs",
    "sinc",
    "sign",
    "floor",
    "ceil",
    "pi",
    "e",
]
_FORMULA = re.compile(
    r"(?:\b(?:plot|draw|graph|show)\b|画出?|绘制)\s*(?:me\s+|the\s+|a\s+|graph\s+|function\s+|of\s+|函数\s*)*(?:[yf]\s*(?:\(x\))?\s*=\s*)?"
    r"(?P<f>.+?)(?:\s*,?\s*(?:from|for x from|between|over|in|从|在)\s*(?P<low>[-+]?\d+(?:\.\d+)?)\s*(?:to|and|\.\.+|,|到|至|-)\s*(?P<high>[-+]?\d+(?:\.\d+)?))?\s*[.。!?]*\s*$",
    re.IGNORECASE | re.DOTALL,
)


def function_in(prompt: str) -> tuple[str, float, float] | None:
    """A formula in ``x`` that the prompt wants plotted, as code, with its range."""
    match = _FORMULA.search(prompt) if len(prompt) < 300 else None
    if match is None:
        return None
    text = match["f"].strip("` ").replace("^", "**").replace("×", "*").replace("·", "*").replace("π", "pi")
    text = re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)(x\b)", r"\1*\2", re.sub(r"\bln\b", "log", text))
    tree = parse(text)
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        return None
    allowed = (
        ast.Module, ast.Expr, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Call, ast.Name, ast.Load, ast.Constant,
    )  # fmt: skip
    nodes = list(ast.walk(tree))
    if not all(isinstance(node, allowed) for node in nodes):
        return None
    if any(isinstance(node, ast.Constant) and not isinstance(node.value, int | float) for node in nodes):
        return None
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    if "x" not in used or not used <= {"x", *_KNOWN}:
        return None
    if not any(isinstance(node, ast.BinOp | ast.Call | ast.UnaryOp) for node in nodes):
        return None  # "plot x" means the variable
    code = ast.unparse(_Numpy().visit(tree))
    low, high = float(match["low"] or -10), float(match["high"] or 10)
    return (code, min(low, high), max(low, high)) if low != high else (code, -10.0, 10.0)


class _Numpy(ast.NodeTransformer):
    """Puts ``np.`` before the names of functions and constants."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace a name."""
        if node.id == "x":
            return node
        return ast.Attribute(ast.Name("np", ast.Load()), node.id, ast.Load())


def formula(talk: Talk) -> Plan | None:
    """Plot a formula in x."""
    found = function_in(talk.prompt)
    return _formula(talk, *found) if found else None


def _formula(talk: Talk, expression: str, low: float, high: float) -> Plan:
    path = "/tmp/function.png"  # noqa: S108
    shown = expression.replace("np.", "")
    code = f"""\
import matplotlib.pyplot as plt
import numpy as np

x = np.linspace({low:g}, {high:g}, 1001)
with np.errstate(all="ignore"):
    y = {expression} + 0 * x
y = np.where(np.isfinite(y), y, np.nan)

fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
ax.plot(x, y, lw=2.5, color="#2a6fdb")
ax.axhline(0, color="0.6", lw=1)
ax.set(title={("y = " + shown)!r}, xlabel="x", ylabel="y")
ax.grid(alpha=0.25)
fig.savefig("{path}", dpi=130)
plt.close(fig)

print(f"lowest: {{np.nanmin(y):.4g}} at x = {{x[np.nanargmin(y)]:.4g}}")
print(f"highest: {{np.nanmax(y):.4g}} at x = {{x[np.nanargmax(y)]:.4g}}")
"""
    outcome = yield from run(
        talk,
        code,
        talk.t(f"I plot `{shown}` from {low:g} to {high:g}.", f"画出 `{shown}`，x 从 {low:g} 到 {high:g}。"),
    )
    if not outcome.ok:
        return gave_up(talk, outcome)
    remark = yield from look(talk, path)
    values = outcome.values()
    least, most = values.get("lowest", "?"), values.get("highest", "?")
    return (
        talk.t(
            f"In this range the lowest value is **{least}**, and the highest **{most}**. `x` and `y` hold the points.",
            f"在这个范围内，最小值 **{least}**，最大值 **{most}**。数据点在 `x` 和 `y` 中。",
        )
        + remark
    )
