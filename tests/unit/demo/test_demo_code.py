"""Which prompts are Python, and which only look like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.demo import code
from sandbox_chat.demo.code import find


@pytest.mark.parametrize(
    "prompt",
    [
        "x = 3; print(x*2)",
        "1+1",
        "(1 + 2) * 3",
        "2**100",
        "import os; os._exit(1)",
        "while True: print('A'*10000)",
        "def f(x):\n    return x + 1\n\nf(2)",
        "[n * n for n in range(5)]",
        "df.describe()",
        "len('abc')",
        "print('你好')",
        "x + 1",
        "from time import sleep",
        "%timeit 1+1",
        "!ls /tmp",
        "input('name? ')",
        "raise SystemExit(3)",
        "counter: int = 3",
        "sys.exit(3)",
    ],
)
def test_python_as_it_stands(prompt: str) -> None:
    assert find(prompt) == prompt


@pytest.mark.parametrize(
    "prompt",
    [
        "hello",
        "help",
        "half-life",
        "sum-up",
        "note: this",
        "continue",
        "pass",
        "return home",
        "global warming",
        "not working",
        "yes or no",
        "hello, world",
        "thanks (really)",
        '"quoted"',
        "42",
        "x",
        "plot a damped sine and tell me its half-life",
        "sum 1 to 100 and check it with Gauss's formula",
        "what is in x",
        "run a slow job",
        "画一个衰减正弦",
        "",
        "   ",
        "```",
        "what is love?",
        "calculate the mean",
    ],
)
def test_sentences(prompt: str) -> None:
    assert find(prompt) == ""


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("```python\nx = 1\nx\n```", "x = 1\nx"),
        ("Please run this:\n```\nx = 1\n```\nthanks", "x = 1"),
        ("```py\na = 1\n```\nand\n```\nb = 2\n```", "a = 1\n\nb = 2"),
        ("```python\nx = 1\n", "x = 1"),
        ("run ```1 + 1```", "1 + 1"),
        ("~~~python\nx\n~~~", "x"),
        ("run `x + 1` please", "x + 1"),
        ("run: foo(bar)", "foo(bar)"),
        ("execute print(3)", "print(3)"),
        ("what is 2^10?", "2**10"),
        ("what's 17 × 23?", "17 * 23"),
        ("calculate sum(range(10))", "sum(range(10))"),
        ("计算 2**10", "2**10"),
        ("运行 print(1)", "print(1)"),
        (">>> a = 1\n>>> a + 1\n2", "a = 1\na + 1"),
        (">>> for i in (1, 2):\n...     print(i)\n...\n1\n2", "for i in (1, 2):\n    print(i)\n"),
    ],
)
def test_python_inside(prompt: str, found: str) -> None:
    assert find(prompt) == found


def test_names_from_before_decide() -> None:
    assert find("total") == ""
    assert find("total", ["total"]) == "total"
    assert find("total - tax", ["total"]) == ""
    assert find("total - tax", ["total", "tax"]) == "total - tax"
    assert find("scale(total)", ["total"]) == "scale(total)"


def test_other_languages() -> None:
    assert find("```bash\nls\n```") == ""
    assert code.fenced("```bash\nls\n```") == [("bash", "ls")]


def test_long_prompts_are_not_parsed() -> None:
    assert find("1+" * code.PROMPT_LIMIT + "1") == ""
    assert find("```\n" + "x = 1\n" * 10_000 + "```") != ""


@given(st.text(max_size=300) | st.text(alphabet="`~ \n>.xp=1(ython", max_size=120))
def test_never_raises(prompt: str) -> None:
    assert isinstance(find(prompt, ["x"]), str)
    code.fenced(prompt)
