"""Well-known pictures: a histogram, a regression, random walks, the Mandelbrot set, sine and cosine."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sandbox_chat.demo.intents.charts import function_in
from sandbox_chat.demo.steps import Plan, gave_up, look, one_line, run
from sandbox_chat.demo.talk import Outcome, Talk


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
    if function_in(talk.prompt):
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
