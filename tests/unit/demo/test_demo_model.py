"""The rule agent: each intent, with its code really run, and odd situations."""

from __future__ import annotations

import builtins
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.demo_chat import Answered, Chat, PlainPython

from sandbox_chat.demo.intents import INTENTS
from sandbox_chat.demo.intents.basics import fallback
from sandbox_chat.demo.model import MAX_CALLS, DemoModel
from sandbox_chat.demo.reply import Reply, Text
from sandbox_chat.demo.steps import MAX_TRIES, csv_rows, fence, table
from sandbox_chat.demo.talk import Talk
from sandbox_chat.demo.wire import Message, Request, WireError, parse_request


@pytest.fixture
def chat(tmp_path: Path) -> Chat:
    return Chat(PlainPython(tmp_path))


def tools_of(answered: Answered) -> list[str]:
    return [call.name.removeprefix("mcp__sandbox__") for call in answered.calls]


def test_damped_sine_and_its_variables_in_the_next_turn(chat: Chat) -> None:
    answered = chat.ask("plot a damped sine and tell me its half-life")
    assert tools_of(answered) == ["run_code", "read_image"]
    assert "**2.08 s**" in answered.text
    assert "half-life: 2.08 s" in answered.results[0]["content"][0]["text"]
    second = chat.ask("where does it cross zero?")
    assert tools_of(second) == ["run_code"]
    assert "linspace" not in second.codes[0]
    assert "19 times" in second.text


def test_curve_whose_names_were_used_again(chat: Chat) -> None:
    chat.ask("plot a damped sine")
    chat.ask("y = 3")
    assert "19 times" in chat.ask("where does it cross zero?").text


def test_no_curve_to_cross_zero(chat: Chat) -> None:
    answered = chat.ask("where does it cross zero?")
    assert answered.calls == []
    assert "no curve yet" in answered.text


def test_damped_sine_takes_numbers_from_the_prompt(chat: Chat) -> None:
    answered = chat.ask("draw a damped oscillation with tau = 2 and 1.5 Hz")
    assert "tau, f = 2, 1.5" in answered.codes[0]
    assert "**1.39 s**" in answered.text


def test_gauss(chat: Chat) -> None:
    answered = chat.ask("sum 1 to 100 and check it with Gauss's formula")
    assert tools_of(answered) == ["run_code"]
    assert "5050" in answered.results[0]["content"][0]["text"]
    assert "**5050**" in answered.text


@pytest.mark.parametrize(
    ("prompt", "total"),
    [
        ("add up the numbers from 5 to 10", "45"),
        ("What is the sum of all numbers between 1 and 1,000?", "500500"),
        ("求 1 到 100 的和，并用高斯公式验证", "5050"),
        ("从1加到10", "55"),
        ("gauss", "5050"),
        ("sum 1..3000000", "4500001500000"),
        ("sum 10 to 1", "55"),
    ],
)
def test_sums(chat: Chat, prompt: str, total: str) -> None:
    answered = chat.ask(prompt)
    assert f"**{total}**" in answered.text
    assert "✓" in answered.text


def test_sum_that_is_too_long_is_refused(chat: Chat) -> None:
    answered = chat.ask("sum 1 to 1,000,000,000,000")
    assert answered.calls == []
    assert "too many" in answered.text


def test_mistake_is_mended_from_the_traceback(chat: Chat) -> None:
    answered = chat.ask("make a mistake and fix it")
    assert tools_of(answered) == ["run_code", "run_code"]
    assert answered.results[0]["is_error"]
    assert not answered.results[1]["is_error"]
    assert "KeyError: 'Sun'" in answered.said[1]
    assert "21.42" in answered.text


@pytest.mark.parametrize(
    ("prompt", "tools", "answer"),
    [
        ("show me a data frame", ["run_code", "read_image"], r"\| South \|.*\n"),
        ("histogram please", ["run_code", "read_image"], r"mean of \*\*1\d\d"),
        ("plot sin and cos", ["run_code"], r"0\.7854"),
        ("scatter plot with regression", ["run_code", "read_image"], r"y = 1\.\d+ · x"),
        ("a random walk", ["run_code", "read_image"], r"spread by \*\*\d+"),
        ("draw the mandelbrot set", ["run_code", "read_image"], r"\*\*\d+\.\d%\*\*"),
        ("plot sin(x)/x from -20 to 20", ["run_code", "read_image"], r"highest \*\*0\.99"),
        ("plot x^2 - 3x", ["run_code", "read_image"], r"-2\.25 at x = 1\.5"),
        ("primes below 100", ["run_code"], r"\*\*25\*\* primes"),
        ("is 91 prime?", ["run_code"], r"not prime \(divisor: 7\)"),
        ("first 10 fibonacci numbers", ["run_code"], r"0 1 1 2 3 5 8 13 21 34"),
        ("estimate pi with monte carlo", ["run_code"], r"\*\*3\.14"),
        ("solve a linear system", ["run_code"], r"0\.2222"),
        (
            "write a file and read it back",
            ["write_file", "run_code", "read_file", "list_files"],
            r"\*\*4 lines\*\*",
        ),
        ("list the files", ["list_files"], r"`/tmp`"),
        ("download something", ["write_file", "download_file"], r"notes\.txt"),
        ("sleep 0 with a timeout of 2 seconds", ["run_code"], r"slept 0 s"),
        ("画一个衰减正弦并告诉我半衰期", ["run_code", "read_image"], r"2\.08 s"),
        ("做一个数据表", ["run_code", "read_image"], r"地区"),
        ("画直方图", ["run_code", "read_image"], r"平均值"),
        ("故意出错并修复", ["run_code", "run_code"], r"已修复"),
        ("写一个文件再读回来", ["write_file", "run_code", "read_file", "list_files"], r"4 行"),
        ("100 以内的素数", ["run_code"], r"\*\*25\*\*"),
        ("画 sin(x)/x", ["run_code", "read_image"], r"最大值"),
        ("计算 2**10", ["run_code"], r"1024"),
    ],
)
def test_intents(chat: Chat, prompt: str, tools: list[str], answer: str) -> None:
    answered = chat.ask(prompt)
    assert tools_of(answered) == tools
    assert not any(result.get("is_error") for result in answered.results[-1:])
    assert re.search(answer, answered.text), answered.text
    assert "?**" not in answered.text


@pytest.mark.parametrize(
    "prompt",
    [
        "hi",
        "help",
        "who are you?",
        "are you Claude?",
        "thanks",
        "what is the weather",
        "你好",
        "帮助",
        "今天天气如何",
        "?",
    ],
)
def test_talk_without_tools(chat: Chat, prompt: str) -> None:
    answered = chat.ask(prompt)
    assert answered.calls == []
    assert len(answered.text) > 20
    assert "I am Claude" not in answered.text


def test_says_what_it_is(chat: Chat) -> None:
    assert "demo model" in chat.ask("are you Claude?").text
    assert "demo model" in chat.ask("write me a poem about the sea").text
    assert "演示模型" in chat.ask("写一首关于大海的诗").text


def test_all_that_help_promises_is_understood(chat: Chat) -> None:
    promised = [
        prompt
        for language in ("help", "帮助")
        for row in re.findall(r"^\| (`.*?) \|", chat.ask(language).text, re.MULTILINE)
        for prompt in re.findall(r"`([^`]+)`", row)
    ]
    assert len(promised) > 30
    chat.ask("x = 41")
    chat.ask("y = [1, 4, 9]")
    chat.ask("show me a data frame")
    for prompt in promised:
        chat.messages.append({"role": "user", "content": prompt})
        talk = Talk(chat.request())
        assert any(intent(talk) is not None for intent in INTENTS), prompt
        chat.messages.pop()


def test_code_and_variables(chat: Chat) -> None:
    assert "`x`" in chat.ask("x = 41").text
    assert "`42`" in chat.ask("x + 1").text
    assert "`41`" in chat.ask("what is in x?").text
    assert "`41`" in chat.ask("x 是多少").text
    assert "`41`" in chat.ask("x").text
    assert re.search(r"x\s+int", chat.ask("which variables are there").text)
    assert "```text\n0\n1\n```" in chat.ask("for i in range(2): print(i)").text
    chat.ask("data = [3, 1, 2]")
    assert "2.0" in chat.ask("mean of data").text
    assert "3.0" in chat.ask("describe data").text
    assert tools_of(chat.ask("plot data")) == ["run_code", "read_image"]
    assert "`data`" in chat.ask("plot it").text


def test_long_output_is_cut(chat: Chat) -> None:
    answered = chat.ask("for i in range(500): print('```', i)")
    assert len(answered.text) < 2500
    assert "````text" in answered.text
    assert "…" in answered.text


def test_variables_that_are_gone_are_made_again(chat: Chat, tmp_path: Path) -> None:
    chat.ask("plot a damped sine")
    chat.ask("base = 20")
    chat.ask("twice = base * 2")
    chat.tools = PlainPython(tmp_path)  # a resumed session: a new shell
    answered = chat.ask("twice + 2")
    assert tools_of(answered) == ["run_code", "run_code"]
    assert "NameError" in answered.said[0]
    assert "`42`" in answered.text
    chat.tools = PlainPython(tmp_path)
    assert "19 times" in chat.ask("where does it cross zero").text
    chat.tools = PlainPython(tmp_path)
    assert "That is" in chat.ask("plot it").text


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("1/0", "divided by zero"),
        ("import not_there_at_all", "no network"),
        ("undefined_name + 1; print(undefined_name)", "NameError"),
        ("```python\nx = (1\n```", "SyntaxError"),
        ("{}['a']", "no such key"),
        ("open('/nowhere/x')", "no such file"),
        ("import sys; sys.exit(3)", "shell lives on"),
        ("class Odd(Exception): pass\nraise Odd('boo')", "Odd: boo"),
    ],
)
def test_errors_of_user_code_are_explained(chat: Chat, code: str, says: str) -> None:
    answered = chat.ask(code)
    assert len(answered.calls) == 1
    assert says in answered.text


def test_misspelt_variable(chat: Chat) -> None:
    chat.ask("temperature = 20")
    assert "Did you mean `temperature`?" in chat.ask("print(temperatur)").text


def test_other_language(chat: Chat) -> None:
    answered = chat.ask("```bash\nls\n```")
    assert answered.calls == []
    assert "`bash`" in answered.text


def test_slow_job_fits_the_limit() -> None:
    done = "[success] True\n[stdout]\n" + "\n".join(f"step {n}" for n in range(15))
    chat = Chat(lambda name, arguments: {"content": done})
    answered = chat.ask("run a slow job")
    assert "steps = 15" in answered.codes[0]
    assert "15 steps" in answered.text


def test_timeout_is_asked_for_and_told() -> None:
    def tools(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if "sleep" in arguments["code"]:
            assert arguments["timeout"] == 2
            return {
                "content": "[success] False\n[error]\nThe code was stopped after 2 s, the time limit of this call.",
                "is_error": True,
            }
        return {"content": "[success] True\n[result]\n'set before the pause'"}

    answered = Chat(tools).ask("sleep 30 with a timeout of 2")
    assert len(answered.calls) == 2
    assert "still there" in answered.text
    for prompt in (
        "import time; time.sleep(9) with timeout 2",
        "```\ntime.sleep(9)\n```\nwith a time limit of 2 s",
    ):
        answered = Chat(tools).ask(prompt)
        assert len(answered.calls) == 1
        assert answered.text == "The code was stopped after 2 s, the time limit of this call."


def tool_error(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "content": "[tool_error] SandboxUnavailable: bubblewrap is missing.\nDo not retry; tell the user.",
        "is_error": True,
    }


@pytest.mark.parametrize(
    "prompt",
    [
        "1+1",
        "plot a damped sine",
        "make a mistake and fix it",
        "write a file and read it back",
        "tour",
        "download the chart",
        "运行 1+1",
    ],
)
def test_a_broken_sandbox_is_told_and_not_tried_again(prompt: str) -> None:
    answered = Chat(tool_error).ask(prompt)
    assert len(answered.calls) == 1
    assert "bubblewrap is missing" in answered.text


def test_no_sandbox() -> None:
    for prompt in ("1+1", "plot a damped sine", "tour"):
        answered = Chat(tool_error, offered=()).ask(prompt)
        assert answered.calls == []
        assert "no sandbox" in answered.text


def test_missing_tool(tmp_path: Path) -> None:
    chat = Chat(PlainPython(tmp_path), offered=("run_code",))
    assert tools_of(chat.ask("plot a damped sine")) == ["run_code"]
    assert "`write_file`" in chat.ask("write a file and read it back").text


@pytest.mark.parametrize(
    "text", ["", "(nothing)", "[success] True", "[success] False", "[success] False\n[error]\nValueError: no"]
)
@pytest.mark.parametrize("is_error", [False, True])
def test_any_result_leads_to_an_end(text: str, is_error: bool) -> None:
    for prompt in (
        "tour",
        "plot a damped sine",
        "where does it cross zero",
        "gauss",
        "data frame",
        "monte carlo",
        "describe it",
        "plot it",
    ):
        chat = Chat(lambda name, arguments: {"content": text, "is_error": is_error})
        chat.ask("y = [1, 2]")
        answered = chat.ask(prompt)
        assert answered.text
        assert len(answered.codes) <= MAX_CALLS


def test_own_code_is_tried_three_times_at_most() -> None:
    chat = Chat(lambda name, arguments: {"content": "[success] True"})
    chat.ask("y = [1, 2]")
    chat.ask("z = y")
    chat.tools = lambda name, arguments: {
        "content": "[success] False\n[error]\nNameError: name 'y' is not defined",
        "is_error": True,
    }
    assert len(chat.ask("print(y)").calls) <= MAX_TRIES


@pytest.mark.slow
def test_tour(chat: Chat) -> None:
    answered = chat.ask("tour")
    assert tools_of(answered) == [
        "run_code", "run_code", "read_image", "run_code", "read_image", "run_code", "run_code",
        "write_file", "run_code", "read_file", "list_files",
    ]  # fmt: skip
    told = "\n".join(answered.said)
    assert "5050" in told and "2.08" in told and "KeyError" in told


def test_download_of_the_last_chart(chat: Chat) -> None:
    chat.ask("plot a damped sine")
    answered = chat.ask("download the chart")
    assert answered.calls[0].input == {"path": "/tmp/damped_sine.png"}
    assert chat.ask("download /tmp/damped_sine.png now").calls[0].input == {"path": "/tmp/damped_sine.png"}
    assert "could not be downloaded" in chat.ask("download missing.csv").text


def test_summary_for_compaction(chat: Chat) -> None:
    chat.ask("x = 41")
    answered = chat.ask(
        "Your task is to create a detailed summary of the conversation so far, paying close attention to …"
    )
    assert answered.text.startswith("<summary>")
    assert "x = 41" in answered.text


def test_pace_is_in_the_reply() -> None:
    request = Request("m", (Message("user", "hi"),))
    assert DemoModel().reply(request).pace > 0
    assert DemoModel(pace=0).reply(request).pace == 0


def strict_reply(model: DemoModel, request: Request) -> Reply:
    """Like ``reply``, but without the net that catches exceptions."""
    return Reply(model._blocks(Talk(request)))


words = st.sampled_from(
    [
        "plot",
        "draw",
        "sum",
        "1",
        "to",
        "100",
        "100000000000000000000",
        "gauss",
        "prime",
        "is",
        "x",
        "y",
        "it",
        "what",
        "in",
        "mean",
        "of",
        "describe",
        "sleep",
        "timeout",
        "download",
        "file",
        "/tmp/a.png",
        "damped",
        "sine",
        "histogram",
        "tau",
        "0",
        "hz",
        "1e400",
        "sin(x)",
        "/",
        "**",
        "from",
        "-5",
        "5",
        "画",
        "求",
        "和",
        "到",
        "素数",
        "`",
        "```",
        "(",
        ")",
        ":",
        "=",
        "[",
        "]",
        "run",
        "calculate",
        "?",
    ]
)
odd_prompts = st.text(max_size=200) | st.lists(words, max_size=10).map(" ".join)


@settings(max_examples=400, deadline=None)
@given(
    odd_prompts,
    st.sampled_from(
        ["", "[success] True\n[result]\n3", "[success] False\n[error]\nNameError: name 'x' is not defined"]
    ),
)
def test_never_raises_and_always_ends(prompt: str, result: str) -> None:
    chat = Chat(lambda name, arguments: {"content": result, "is_error": "False" in result})
    chat.model.reply = lambda request: strict_reply(DemoModel(pace=0), request)  # type: ignore[method-assign]
    chat.ask("x = 1")
    chat.ask(prompt or "-")


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "system"]), "content": st.text(max_size=20)}
        ),
        min_size=1,
        max_size=5,
    )
)
def test_any_history_is_answered(messages: list[dict[str, Any]]) -> None:
    try:
        request = parse_request(json.dumps({"model": "m", "messages": messages}).encode())
    except WireError:
        return
    (block,) = strict_reply(DemoModel(pace=0), request).blocks
    assert isinstance(block, Text) and block.text


def test_a_long_prompt_is_quick(chat: Chat) -> None:
    start = time.monotonic()
    for prompt in (
        "a b " * 500_000,
        "<system-reminder>" * 50_000,
        "from 1 " * 100_000,
        "`" * 1_000_000,
        "```\n" * 100_000,
        "1 to " * 200_000,
        "(" * 100_000,
    ):
        assert chat.ask(prompt).text
        chat.messages.clear()
    assert time.monotonic() - start < 60  # without limits it is minutes


def test_fault_in_a_rule_becomes_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: DemoModel, talk: Talk) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(DemoModel, "_plan", broken)
    (block,) = DemoModel().reply(Request("m", (Message("user", "hi"),))).blocks
    assert isinstance(block, Text) and "ZeroDivisionError" in block.text


def test_helpers() -> None:
    assert fence("a``` b").startswith("````text\n")
    assert table([["a", "b"], ["1|2", "3"]]) == "| a | b |\n|---|---:|\n| 1\\|2 | 3 |"
    assert table([]) == ""
    assert csv_rows("noise\na,b\n1,2\nmore", "a,") == [["a", "b"], ["1", "2"]]
    assert csv_rows("noise", "a,") == []


def test_fallback_without_a_prompt() -> None:
    plan: Callable[[Talk], Any] = fallback
    with pytest.raises(StopIteration) as stop:
        next(plan(Talk(Request("m", ()))))
    assert "demo model" in stop.value.value


# --- code mode ------------------------------------------------------------------------------------------


class Tools:
    """A ``tools`` module as code finds it, with one clock."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def search(self, query: str) -> list[dict[str, str]]:
        return [{"name": name, "about": query} for name in self.names]

    def parallel(self, calls: list[tuple[str, dict[str, str]]]) -> list[dict[str, str]]:
        return [
            {"timezone": arguments["timezone"], "datetime": "2026-02-03T04:05:06+09:00"}
            for _, arguments in calls
        ]


@pytest.fixture
def code_mode(chat: Chat) -> Chat:
    chat.system = "Find tools first: call_mcp_tool(name, arguments)."
    return chat


def test_code_asks_a_tool_for_the_time(code_mode: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tools", Tools(["other__x", "time__get_current_time"]))  # type: ignore[arg-type]
    answered = code_mode.ask("what time is it in Tokyo and Berlin?")
    assert tools_of(answered) == ["run_code"]
    assert '["Asia/Tokyo", "Europe/Berlin"]' in answered.codes[0]
    assert "| Asia/Tokyo | 2026-02-03 04:05 |" in answered.text
    assert "| Asia/Shanghai |" in code_mode.ask("北京现在几点").text


def test_no_tool_that_knows_the_time(code_mode: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tools", Tools([]))  # type: ignore[arg-type]
    assert "mcp add time" in code_mode.ask("what time is it in Paris").text


def test_code_lists_the_tools(code_mode: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [{"name": "git__git_log", "about": "Shows the log"}]
    monkeypatch.setattr(builtins, "list_mcp_tools", lambda: found, raising=False)
    assert "git__git_log - Shows the log" in code_mode.ask("which tools are there?").text
    found.clear()
    assert "No MCP server is on" in code_mode.ask("list the tools").text


@pytest.mark.parametrize("prompt", ["what time is it in Tokyo", "which tools do you have", "东京现在几点"])
def test_without_code_mode_it_says_how(chat: Chat, prompt: str) -> None:
    answered = chat.ask(prompt)
    assert answered.calls == []
    assert "--code-mode on" in answered.text
