"""Answers in which a model says that it cannot run code are told from all others."""

from __future__ import annotations

import time

import pytest

from sandbox_chat.agent.untooled import notice, says_no_tool


@pytest.mark.parametrize(
    "text",
    [
        "I don't have a tool to run code, but here is how you would do it.",
        "I do not have access to a code execution tool in this conversation.",
        "Unfortunately I cannot run code here.",
        "I can't execute Python code, so I computed it by hand.",
        "I'm unable to run code in this environment.",
        "I am not able to execute code directly.",
        "I have no sandbox here.",
        "I don't currently have the ability to run Python code.",
        "我没有可以运行代码的工具。",
        "我目前无法运行代码。",
        "I have no\n\n  sandbox",
        "我没有可用的工具。",
        "我没有任何工具，所以只能手算。",
        "我没有执行 Python 代码的工具",
        "我没有访问沙箱的权限。",
        "我目前没有可用的沙箱，无法计算。",
        "我没有代码执行能力。",
        "我无法直接执行 Python 代码。",
    ],
)
def test_plain_words(text: str) -> None:
    assert says_no_tool(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The sum is 5050.",
        "I don't have a file named data.csv; where is it?",
        "I cannot run the marathon.",
        "You cannot run code on a server without Python.",
        "If you don't have a tool for that, use pliers.",
        "I don't have enough data to say.",
        "The error means that Windows cannot execute this script.",
        "```python\n# I cannot run code\n```",
        "I don't have a tool called a hammer.",
        "我没有找到文件。",
        "我没有使用任何工具，因为这个问题很简单。",
        "我没有在沙箱里安装别的东西。",
        "我没有访问沙箱。",
        "我没有沙箱里的那个文件。",
        "我没有关闭沙箱，它还在运行。",
        "我没有任何工具调用失败的记录。",
        "我不能运行没有测试过的代码。",
        "我无法执行：\n\n1. 代码太长。",
    ],
)
def test_other_answers(text: str) -> None:
    assert not says_no_tool(text)
    assert notice(text, offered=True, listed=True) == ""


@pytest.mark.parametrize(
    "text",
    [
        "I have no" + "\n" * 40_000 + "x",
        "I do not have " + " \t" * 20_000,
        "I have no " * 20_000,
        "I have no" + " python" * 20_000,
        "I have no" + "\n```" * 20_001,
        "我没有" + " " * 40_000 + "任何" * 20_000,
    ],
    ids=["lines", "tabs", "openings", "words", "fences", "chinese"],
)
def test_no_answer_takes_long_to_be_read(text: str) -> None:
    began = time.process_time()
    assert not says_no_tool(text)
    assert time.process_time() - began < 1.0


def test_the_words_fit_the_cause() -> None:
    said = "I cannot run code."
    assert "gateway leaves the tools out" in notice(said, offered=True, listed=True)
    assert "never asked for" in notice(said, offered=True, listed=False)
    assert "--sandbox local" in notice(said, offered=False, listed=False)
    written = '<tool_call>{"name": "mcp__sandbox__run_code", "arguments": {"code": "1+1"}}</tool_call>'
    assert "wrote a tool call as plain text" in notice(written, offered=True, listed=True)
