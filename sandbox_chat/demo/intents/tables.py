"""A data frame: a small sales table, grouped, as a table and as a chart."""

from __future__ import annotations

from sandbox_chat.demo.steps import Plan, csv_rows, gave_up, look, run, table
from sandbox_chat.demo.talk import Talk

PATH = "/tmp/sales.png"  # noqa: S108 - a path inside the sandbox
SALES = f"""\
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(11)
df = pd.DataFrame({{
    "month": np.repeat(pd.date_range("2025-01-01", periods=12, freq="MS"), 4),
    "region": ["North", "East", "South", "West"] * 12,
    "units": rng.integers(80, 220, 48),
    "price": rng.uniform(9, 14, 48).round(2),
}})
df["revenue"] = (df.units * df.price).round(2)

by_region = df.groupby("region").agg(units=("units", "sum"), revenue=("revenue", "sum"))
by_region["share"] = (100 * by_region.revenue / by_region.revenue.sum()).round(1)
by_region = by_region.sort_values("revenue", ascending=False)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
left.bar(by_region.index, by_region.revenue, color="#2a6fdb")
left.set(title="Revenue by region")
monthly = df.groupby("month").revenue.sum()
right.plot(monthly.index.month, monthly, "o-", lw=2.5, color="#e0702b")
right.set(title="Revenue by month", xlabel="month of 2025", ylim=(0, None))
for ax in (left, right):
    ax.grid(axis="y", alpha=0.25)
fig.savefig("{PATH}", dpi=130)
plt.close(fig)

print(df.head(4).to_string(index=False))
print(f"\\nrows: {{len(df)}}\\n")
print(by_region.astype({{"units": int, "revenue": int}}).to_csv().strip())
"""


def sales(talk: Talk) -> Plan | None:
    """A pandas data frame, grouped."""
    wanted = (
        r"\bdata ?frames?\b|\bpandas\b|\bsales\b|\bgroup ?by\b|\bbar ?(chart|graph|plot)\b|\b(sample|example) (data|table)\b|"
        r"数据表|数据框|销售|分组|柱状图|条形图|表格"
    )
    return show_sales(talk) if talk.says(wanted) else None


def show_sales(talk: Talk) -> Plan:
    """The plan of ``sales``."""
    outcome = yield from run(
        talk,
        SALES,
        talk.t(
            "I make a small table of made-up sales, and group it by region.",
            "我生成一个虚构的小型销售表，并按地区分组。",
        ),
    )
    if not outcome.ok:
        return gave_up(talk, outcome)
    remark = yield from look(talk, PATH)
    rows = csv_rows(outcome.stdout, "region,")
    best = rows[1] if len(rows) > 1 else ["?", "?", "?", "?"]
    count = outcome.values().get("rows", "?")
    if talk.chinese and rows:
        rows[0] = ["地区", "数量", "收入", "占比 %"]
    elif rows:
        rows[0] = ["region", "units", "revenue", "share %"]
    return (
        talk.t(
            f"Of {count} rows of made-up sales, **{best[0]}** has the highest revenue (**{best[3]} %**):",
            f"在 {count} 行虚构的销售数据中，**{best[0]}** 的收入最高（**{best[3]} %**）：",
        )
        + "\n\n"
        + table(rows)
        + talk.t(
            "\n\n`df` and `by_region` are still there: try *describe df*, or `df.nlargest(5, 'revenue')`.",
            "\n\n`df` 和 `by_region` 仍在沙箱中：试试 *describe df*，或 `df.nlargest(5, 'revenue')`。",
        )
        + remark
    )
