"""Charts: a damped sine measured from its peaks, a few well-known pictures, and any formula in x."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from sandbox_chat.demo.steps import Plan, gave_up, look, one_line, run
from sandbox_chat.demo.talk import Outcome, Talk, parse

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


@dataclass(frozen=True)
class Recipe:
    """A picture that is drawn when ``pattern`` is in the prompt. ``path`` is empty if it is shown, not saved."""

    pattern: str
    code: str
    say: tuple[str, str]
    answer: Callable[[Talk, Outcome], str]
    path: str = ""


def _values_answer(english: str, chinese: str) -> Callable[[Talk, Outcome], str]:
    """An answer with ``{name}`` for each value that the code printed (spaces in names are underscores)."""

    def answer(talk: Talk, outcome: Outcome) -> str:
        values = {name.replace(" ", "_"): value for name, value in outcome.values().items()}
        return re.sub(
            r"\{(\w+)\}", lambda match: one_line(values.get(match[1], "?")), talk.t(english, chinese)
        )

    return answer


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        r"\bhistogram\b|\bbell curve\b|\b(normal|gaussian) distribution\b|直方图|正态分布|高斯分布",
        """\
import matplotlib.pyplot as plt
import numpy as np

data = np.random.default_rng(1).normal(loc=170, scale=8, size=5000)
mean, std = data.mean(), data.std()

fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
ax.hist(data, bins=50, density=True, color="#2a6fdb", alpha=0.75, label="5000 samples")
x = np.linspace(data.min(), data.max(), 300)
ax.plot(x, np.exp(-((x - mean) ** 2) / (2 * std**2)) / (std * np.sqrt(2 * np.pi)), color="#e0702b", lw=3, label="normal curve")
ax.set(title="Histogram of a normal sample", xlabel="value", ylabel="density")
ax.grid(alpha=0.25)
ax.legend()
fig.savefig("/tmp/histogram.png", dpi=130)
plt.close(fig)

print(f"mean: {mean:.2f}")
print(f"standard deviation: {std:.2f}")
print(f"within one deviation: {np.mean(np.abs(data - mean) < std):.1%}")
""",
        (
            "I draw 5,000 random values and compare them with the normal curve.",
            "我抽取 5000 个随机数，与正态曲线比较。",
        ),
        _values_answer(
            "The sample has a mean of **{mean}** and a standard deviation of **{standard_deviation}**; {within_one_deviation} of it lies "
            "within one deviation (the normal curve says 68.3 %). The values are in `data`.",
            "样本的平均值为 **{mean}**，标准差为 **{standard_deviation}**；{within_one_deviation} 落在一个标准差之内（正态分布为 68.3 %）。数据在 `data` 中。",
        ),
        "/tmp/histogram.png",  # noqa: S108
    ),
    Recipe(
        r"\bscatter\b|\bregression\b|\bfit (a|the) line\b|\btrend ?line\b|散点|回归|拟合",
        """\
import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(3)
x = np.sort(rng.uniform(0, 10, 80))
y = 1.7 * x + 4 + rng.normal(0, 2.2, x.size)

slope, offset = np.polyfit(x, y, 1)
residual = y - (slope * x + offset)
r2 = 1 - residual.var() / y.var()

fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
ax.scatter(x, y, s=45, color="#2a6fdb", alpha=0.8, label="measured")
ax.plot(x, slope * x + offset, color="#e0702b", lw=3, label=f"y = {slope:.2f} x + {offset:.2f}")
ax.set(title="Linear regression", xlabel="x", ylabel="y")
ax.grid(alpha=0.25)
ax.legend()
fig.savefig("/tmp/regression.png", dpi=130)
plt.close(fig)

print(f"slope: {slope:.3f}")
print(f"offset: {offset:.3f}")
print(f"R2: {r2:.3f}")
""",
        ("I make noisy points and fit a straight line.", "我生成带噪声的点，并拟合一条直线。"),
        _values_answer(
            "The line through the points is **y = {slope} · x + {offset}**, with R² = {R2}. The points were made with slope 1.7 and offset 4.",
            "拟合直线为 **y = {slope} · x + {offset}**，R² = {R2}。生成数据时用的斜率是 1.7，截距是 4。",
        ),
        "/tmp/regression.png",  # noqa: S108
    ),
    Recipe(
        r"\brandom walks?\b|\bbrownian\b|随机游走|布朗运动",
        """\
import matplotlib.pyplot as plt
import numpy as np

walks = np.random.default_rng(5).choice([-1, 1], size=(200, 1000)).cumsum(axis=1)
steps = np.arange(1, 1001)

fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
ax.plot(steps, walks[:25].T, lw=1, alpha=0.6)
for sign in (1, -1):
    ax.plot(steps, sign * np.sqrt(steps), color="black", lw=2.5, label="√n" if sign > 0 else None)
ax.set(title="25 random walks", xlabel="steps", ylabel="distance")
ax.grid(alpha=0.25)
ax.legend()
fig.savefig("/tmp/random_walk.png", dpi=130)
plt.close(fig)

print(f"spread: {walks[:, -1].std():.1f}")
print(f"root of n: {np.sqrt(1000):.1f}")
""",
        ("I let 200 walkers take 1,000 steps each.", "让 200 个随机游走者各走 1000 步。"),
        _values_answer(
            "After 1,000 steps the walkers are spread by **{spread}**; the square root of n is {root_of_n}.",
            "1000 步之后的离散程度为 **{spread}**，√n 为 {root_of_n}。",
        ),
        "/tmp/random_walk.png",  # noqa: S108
    ),
    Recipe(
        r"\bmandelbrot\b|\bfractals?\b|曼德博|曼德勃罗|分形",
        """\
import matplotlib.pyplot as plt
import numpy as np

x, y = np.meshgrid(np.linspace(-2.2, 0.8, 720), np.linspace(-1.2, 1.2, 480))
c, z = x + 1j * y, np.zeros(x.shape, dtype=complex)
count = np.zeros(x.shape, dtype=int)
for step in range(60):
    inside = np.abs(z) <= 2
    z[inside] = z[inside] ** 2 + c[inside]
    count[inside] += 1

fig, ax = plt.subplots(figsize=(9, 6), layout="constrained")
ax.imshow(np.log(count), extent=(-2.2, 0.8, -1.2, 1.2), origin="lower", cmap="magma")
ax.set(title="Mandelbrot set", xlabel="real", ylabel="imaginary")
fig.savefig("/tmp/mandelbrot.png", dpi=130)
plt.close(fig)

print(f"share: {np.mean(count == 60):.1%}")
""",
        ("I iterate z² + c for each point of a grid.", "对网格中的每个点迭代 z² + c。"),
        _values_answer(
            "The Mandelbrot set: **{share}** of the points in view stay bounded for 60 steps.",
            "曼德博集合：视野中有 **{share}** 的点在 60 步内保持有界。",
        ),
        "/tmp/mandelbrot.png",  # noqa: S108
    ),
    Recipe(
        r"\bsin\w*\s*(and|&|,|/|vs\.?)\s*cos\w*|\bsin(e|us)? (wave|curve)|\b(plot|draw|show)\b.{0,12}\bsine?\b(?!\s*\()|正弦|余弦",
        """\
import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 2 * np.pi, 400)

fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
ax.plot(x, np.sin(x), lw=3, color="#2a6fdb", label="sin x")
ax.plot(x, np.cos(x), lw=3, color="#e0702b", label="cos x")
ax.set(title="Sine and cosine", xlabel="x in rad", xlim=(0, 2 * np.pi))
ax.grid(alpha=0.25)
ax.legend()
plt.show()

print(f"meet: {', '.join(f'{v:.4f}' for v in (np.pi / 4, 5 * np.pi / 4) if abs(np.sin(v) - np.cos(v)) < 1e-12)}")
""",
        (
            "Both curves over one period; this chart is shown without being saved.",
            "画出一个周期内的两条曲线；这张图直接显示，不存文件。",
        ),
        _values_answer("Sine and cosine meet at **x = {meet}**.", "正弦与余弦相交于 **x = {meet}**。"),
    ),
)


def recipe(talk: Talk) -> Plan | None:
    """One of the well-known pictures."""
    if _function(talk.prompt):
        return None
    for item in RECIPES:
        if talk.says(item.pattern):
            return draw(talk, item)
    return None


def draw(talk: Talk, item: Recipe) -> Plan:
    """The plan of a recipe."""
    outcome = yield from run(talk, item.code, talk.t(*item.say))
    if not outcome.ok:
        return gave_up(talk, outcome)
    remark = (yield from look(talk, item.path)) if item.path else ""
    return item.answer(talk, outcome) + remark


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


def _function(prompt: str) -> tuple[str, float, float] | None:
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
    found = _function(talk.prompt)
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
