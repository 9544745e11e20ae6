"""Small calculations whose answers are taken from what the sandbox printed."""

from __future__ import annotations

import re

from sandbox_chat.demo.steps import Plan, csv_rows, fence, gave_up, run, table
from sandbox_chat.demo.talk import Talk

SUM_LIMIT = 1_000_000_000
"""The longest sum that is really added up; it takes the sandbox a second or two."""

_NUMBER = r"(\d{1,3}(?:,\d{3})+|\d{1,15})"
_RANGE = re.compile(
    _NUMBER
    + r"\s*(?:up\s+to|to|through|till|until|\.{2,3}|…|–|—|-|~|到|至|加到|一直加到|\+\s*2\s*\+.*?\+)\s*"
    + _NUMBER,
    re.IGNORECASE,
)
_BETWEEN = re.compile(rf"\b(?:between|from)\s+{_NUMBER}\s+and\s+{_NUMBER}", re.IGNORECASE)


def _int(text: str) -> int:
    return int(text.replace(",", ""))


def _count(talk: Talk, default: int, limit: int) -> int:
    """The first number of the prompt, within limits."""
    match = re.search(_NUMBER, talk.head)
    return max(1, min(limit, _int(match[1]))) if match else default


def gauss(talk: Talk) -> Plan | None:
    """Sum a…b, added up and by Gauss's formula."""
    named = talk.says(r"\bgauss\b|\bgauss's\b|高斯")
    if talk.says(r"gaussian|高斯分布|normal distribution"):
        named = None
    adds = talk.says(
        r"\b(sum|total)\b|\badd(ing)? (up|together|all|the|numbers)\b|求和|的和|总和|加到|相加|累加"
    )
    bounds = _RANGE.search(talk.head) or _BETWEEN.search(talk.head)
    if not (adds and bounds) and not named:
        return None
    low, high = (_int(bounds[1]), _int(bounds[2])) if bounds else (1, _count(talk, 100, 10**12))
    return sum_range(talk, min(low, high), max(low, high))


def sum_range(talk: Talk, low: int, high: int) -> Plan:
    """The plan of ``gauss``."""
    count = high - low + 1
    if count > SUM_LIMIT:
        return talk.t(
            f"Those are {count} numbers, too many to add up here. Ask for a billion at most.",
            f"共有 {count} 个数，无法在这里逐个相加。请不要超过十亿个。",
        )
    if count <= 1_000_000:
        added = f"total = sum(range({low}, {high} + 1))\n"
    else:  # in blocks that numpy adds up quickly
        added = (
            "import numpy as np\n\ntotal, block = 0, 1_000_000\n"
            f"for start in range({low}, {high} + 1, block):\n"
            f"    total += int(np.arange(start, min(start + block, {high} + 1)).sum())\n"
        )
    code = (
        f"{added}formula = ({low} + {high}) * {count} // 2\n\n"
        'print(f"added up: {total}")\n'
        'print(f"Gauss: {formula}")\n'
        "total == formula"
    )
    outcome = yield from run(
        talk,
        code,
        talk.t(
            f"I add up the numbers from {low} to {high} and compare with Gauss's formula, (first + last) · count / 2.",
            f"我把 {low} 到 {high} 逐个相加，再与高斯公式（首项 + 末项）× 项数 ÷ 2 比较。",
        ),
    )
    if not outcome.ok:
        return gave_up(talk, outcome)
    values = outcome.values()
    total, formula = values.get("added up", "?"), values.get("Gauss", "?")
    if total == formula:
        return talk.t(
            f"The sum of {low} to {high} is **{total}**, and Gauss's formula ({low} + {high}) · {count} / 2 gives the same: **{formula}** ✓",
            f"{low} 到 {high} 的和是 **{total}**，高斯公式 ({low} + {high}) × {count} ÷ 2 的结果相同：**{formula}** ✓",
        )
    return talk.t(
        f"The two disagree: added up **{total}**, by the formula **{formula}**.",
        f"两者不一致：相加得 **{total}**，公式得 **{formula}**。",
    )


def primes(talk: Talk) -> Plan | None:
    """Primes below n, or the question whether n is one."""
    if not talk.says(r"\bprimes?\b|素数|质数"):
        return None
    single = talk.says(
        r"\bis\s+" + _NUMBER + r"\s+(?:a\s+)?prime|" + _NUMBER + r"\s*是.{0,6}(?:素数|质数)吗?"
    )
    return (
        _is_prime(talk, min(_int(single[1] or single[2]), 10**12))
        if single
        else _primes(talk, _count(talk, 100, 1_000_000))
    )


def _primes(talk: Talk, n: int) -> Plan:
    code = (
        "import numpy as np\n\n"
        f"n = {n}\n"
        "sieve = np.ones(n + 1, dtype=bool)\n"
        "sieve[:2] = False\n"
        "for p in range(2, int(n**0.5) + 1):\n"
        "    if sieve[p]:\n"
        "        sieve[p * p :: p] = False\n"
        "primes = np.flatnonzero(sieve)\n\n"
        'print(f"count: {len(primes)}")\n'
        'print("largest:", primes[-1] if len(primes) else "none")\n'
        'print("first ones:", " ".join(map(str, primes[:30])))'
    )
    outcome = yield from run(
        talk, code, talk.t(f"I sieve the numbers up to {n}.", f"我用筛法找出 {n} 以内的素数。")
    )
    if not outcome.ok:
        return gave_up(talk, outcome)
    values = outcome.values()
    count, largest, first = values.get("count", "?"), values.get("largest", "?"), values.get("first ones", "")
    return (
        talk.t(
            f"There are **{count}** primes up to {n}; the largest is **{largest}**. The first ones:",
            f"{n} 以内有 **{count}** 个素数，最大的是 **{largest}**。前几个：",
        )
        + "\n\n"
        + fence(first or "none")
    )


def _is_prime(talk: Talk, n: int) -> Plan:
    code = f"n = {n}\ndivisor = next((d for d in range(2, int(n**0.5) + 1) if n % d == 0), None)\nprint(f'divisor: {{divisor}}')\nn > 1 and divisor is None"
    outcome = yield from run(talk, code)
    if not outcome.ok:
        return gave_up(talk, outcome)
    if outcome.value == "True":
        return talk.t(
            f"Yes, **{n}** is prime: no number up to its root divides it.", f"是的，**{n}** 是素数。"
        )
    divisor = outcome.values().get("divisor", "?")
    return talk.t(
        f"No, **{n}** is not prime (divisor: {divisor}).", f"不，**{n}** 不是素数（因数：{divisor}）。"
    )


def fibonacci(talk: Talk) -> Plan | None:
    """The first Fibonacci numbers, and how their ratio nears the golden one."""
    return (
        _fibonacci(talk, max(3, _count(talk, 20, 90)))
        if talk.says(r"fibonacci|斐波那契|golden ratio|黄金比")
        else None
    )


def _fibonacci(talk: Talk, n: int) -> Plan:
    code = (
        f"fib = [0, 1]\nwhile len(fib) < {n}:\n    fib.append(fib[-1] + fib[-2])\n\n"
        'print(*fib)\nprint(f"ratio: {fib[-1] / fib[-2]:.10f}")\nprint(f"golden: {(1 + 5**0.5) / 2:.10f}")'
    )
    outcome = yield from run(talk, code)
    if not outcome.ok:
        return gave_up(talk, outcome)
    values = outcome.values()
    return (
        talk.t(f"The first {n} Fibonacci numbers:", f"前 {n} 个斐波那契数：")
        + "\n\n"
        + fence(outcome.stdout.splitlines()[0] if outcome.stdout else "")
        + talk.t(
            f"\n\nThe last ratio is {values.get('ratio', '?')}; the golden ratio is {values.get('golden', '?')}.",
            f"\n\n最后两项之比为 {values.get('ratio', '?')}，黄金比为 {values.get('golden', '?')}。",
        )
    )


def pi(talk: Talk) -> Plan | None:
    """Monte Carlo estimate of pi."""
    return (
        _pi(talk)
        if talk.says(
            r"monte[- ]?carlo|\b(estimate|approximate|compute|calculate)\b.{0,12}(\bpi\b|π)|圆周率|蒙特卡洛|蒙特卡罗"
        )
        else None
    )


def _pi(talk: Talk) -> Plan:
    code = (
        "import numpy as np\n\n"
        "rng = np.random.default_rng(7)\n"
        "for n in (1_000, 10_000, 100_000, 1_000_000):\n"
        "    points = rng.random((n, 2))\n"
        "    estimate = 4 * np.mean((points**2).sum(axis=1) < 1)\n"
        '    if n == 1_000:\n        print("points,estimate,error")\n'
        '    print(f"{n},{estimate:.5f},{estimate - np.pi:+.5f}")'
    )
    outcome = yield from run(
        talk,
        code,
        talk.t(
            "I throw random points at a square and count those inside the quarter circle.",
            "我向正方形内随机投点，统计落在四分之一圆内的比例。",
        ),
    )
    if not outcome.ok:
        return gave_up(talk, outcome)
    rows = csv_rows(outcome.stdout, "points,")
    best = rows[-1][1] if len(rows) > 1 else "?"
    return (
        talk.t(
            f"With a million points π comes out as **{best}**; a hundred times the points give one more digit:",
            f"一百万个点得到 π ≈ **{best}**；点数增加一百倍，精度大约提高一位：",
        )
        + "\n\n"
        + table(rows)
    )


def matrix(talk: Talk) -> Plan | None:
    """A linear system, solved and checked, with the eigenvalues of its matrix."""
    return (
        _matrix(talk)
        if talk.says(r"\bmatri(x|ces)\b|\blinear (system|equations?)\b|\beigen\w*|矩阵|线性方程|特征值")
        else None
    )


def _matrix(talk: Talk) -> Plan:
    code = (
        "import numpy as np\n\n"
        "A = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])\n"
        "b = np.array([1.0, 2.0, 3.0])\n"
        "solution = np.linalg.solve(A, b)\n\n"
        'print("solution:", np.round(solution, 4))\n'
        'print("residual:", f"{np.abs(A @ solution - b).max():.1e}")\n'
        'print("eigenvalues:", np.round(np.linalg.eigvalsh(A), 4))\n'
        'print("determinant:", round(np.linalg.det(A), 4))'
    )
    outcome = yield from run(
        talk, code, talk.t("I solve a 3 × 3 system and check it.", "我来解一个 3 × 3 的线性方程组并检验。")
    )
    if not outcome.ok:
        return gave_up(talk, outcome)
    values = outcome.values()
    return talk.t(
        f"The solution is **{values.get('solution', '?')}**, off by at most {values.get('residual', '?')}.\n\n"
        f"- eigenvalues: {values.get('eigenvalues', '?')}\n- determinant: {values.get('determinant', '?')}",
        f"解为 **{values.get('solution', '?')}**，最大误差 {values.get('residual', '?')}。\n\n"
        f"- 特征值：{values.get('eigenvalues', '?')}\n- 行列式：{values.get('determinant', '?')}",
    ) + talk.t(
        "\n\n`A`, `b` and `solution` stay for your own code.", "\n\n`A`、`b` 和 `solution` 可以继续使用。"
    )
