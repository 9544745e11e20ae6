"""Text that is nested deeply or takes long to read, and prompts that come into the middle of an answer."""

from __future__ import annotations

import re
import time

import pytest

from sandbox_chat import events as ev
from sandbox_chat.journal.export.items import Answer, Item, Prompt, Thinking
from sandbox_chat.journal.export.page_prose import answer
from sandbox_chat.journal.export.prose import SIGNS, fence, safe_markdown
from sandbox_chat.journal.export.scrub import SECRET, Scrubber
from sandbox_chat.journal.export.story import Story

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"


def nested(depth: int, mark: str = "- ") -> str:
    """A list in a list in a list, with a word in each."""
    return "\n".join(f"{' ' * len(mark) * level}{mark}word{level}." for level in range(depth))


@pytest.mark.parametrize("mark", ["- ", "1. "])
@pytest.mark.parametrize("depth", [3, 9, 10, 11, 30, 48, 49, 50, 51, 120])
def test_lists_in_lists_are_shown_whole(depth: int, mark: str) -> None:
    text = f"{nested(depth, mark)}\n\nafter it"
    page = answer(text)
    assert re.findall(r"word(\d+)\.", page) == [str(level) for level in range(depth)]
    assert "after it" in page
    assert ("<pre>" in page) == (depth > 48)
    kept = safe_markdown(text)
    assert kept == (text if depth <= 48 else fence(text, "text"))


@pytest.mark.parametrize(
    "text", ["- " * 30 + "word", "> " * 30 + "word", "- > " * 20 + "word", ">" * 150 + "word"]
)
def test_lists_and_quotations_on_one_line_are_shown_whole(text: str) -> None:
    assert "word" in answer(text)
    assert safe_markdown(text) == fence(text, "text")


SLOW = [
    "[",
    "![",
    "[a](",
    "[a][",
    "[^",
    "[[]",
    "[\n",
    "*a ",
    "_a ",
    "**a *b ",
    "~~a ",
    "*\u00a0",
    "***a ",
    "[](",
    "[a\n\n",
]


@pytest.mark.parametrize("sign", SLOW)
def test_signs_that_take_long_to_read_are_shown_as_they_were_written(sign: str) -> None:
    text = (sign * 40_000)[:40_000].strip()
    start = time.process_time()
    assert safe_markdown(text) == fence(text, "text")
    assert answer(text).startswith("<pre>")
    assert time.process_time() - start < 2


def test_what_is_defused_may_take_long_too() -> None:
    text = "[x]: file:///etc\n" * 5_000  # definitions to the parser, and no words
    assert safe_markdown(text) == fence(text.strip("\n"), "text")


def test_ordinary_text_of_that_length_stays_markdown() -> None:
    row = "| [name](https://example.org/a_b) | *some* `[1, 2]` | snake_case_name |\n"
    table = "| a | b | c |\n|---|---|---|\n" + row * (SIGNS // 2 - 100)
    code = "```python\n" + "[[1, 2], [3, 4]],\n" * 4_000 + "```"
    text = f"**Before**\n\n{table}\n{code}\n\n- and *after*"
    assert safe_markdown(text) == text
    page = answer(text)
    assert page.count("<a ") == SIGNS // 2 - 100
    assert page.count("<pre>") == 1
    assert page.endswith("<li>and <em>after</em></li>\n</ul>\n")


@pytest.mark.parametrize(
    "part",
    ["-eyJaaaaaaaa", "-eyJaaaaaaaa" * 600 + ".eyJ" + "a" * 40_000 + " "],
    ids=["beginnings", "long parts"],
)
def test_the_time_to_scrub_grows_with_the_text(part: str) -> None:
    text = (part * 40_000)[:400_000]
    start = time.process_time()
    assert Scrubber()(text) == text
    assert time.process_time() - start < 5


def test_tokens_are_found_wherever_they_begin() -> None:
    long = JWT.replace(".eyJ", f"{'x' * 6000}.eyJ{'y' * 50_000}", 1)
    for token in (JWT, long):
        assert Scrubber()(f"a-eyJ {token} id-{token} ({token})") == f"a-eyJ {SECRET} id-{SECRET} ({SECRET})"


def told(*events: ev.Event) -> list[Item]:
    start = ev.TurnStarted(turn_id="t", prompt="plot")
    return list(Story(Scrubber.none()).items([start, *events]))[1:]


def test_a_prompt_that_comes_into_an_answer_follows_the_whole_of_it() -> None:
    steered = ev.Steered(turn_id="t", prompt="in blue")
    written = [ev.TextDelta(text="I "), ev.TextDelta(text="begin."), ev.Text(text="I begin.")]
    for place in (1, 2, 3):
        first, second, *_ = told(*written[:place], steered, *written[place:], ev.Text(text="Blue."))
        assert (first, second) == (Answer("I begin.", False), Prompt(1, "in blue", steered.at, steered=True))
    first, second, *_ = told(ev.ThinkingDelta(text="hm"), steered, *written)
    assert first == Thinking("hm")
    assert isinstance(second, Prompt)
    first, second, *_ = told(*written[:2], steered)
    assert (first, second) == (Answer("I begin.", True), Prompt(1, "in blue", steered.at, steered=True))
