"""Questions about tools of MCP servers: recorded in English, shown in the language that is set, what is not ours untouched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox_chat import questions, words
from sandbox_chat.events import ApprovalAnswered, ApprovalRequested, Choice
from sandbox_chat.mcp.base import Endpoint, ServerConfig, ToolDefinition
from sandbox_chat.mcp.permission import CHOICES, Permission
from sandbox_chat.settings import Settings
from sandbox_chat.tools.context import Question
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.transcript.blocks import NoticeBlock
from sandbox_chat.ui.transcript.feed import Feed
from sandbox_chat.words.questions import EN, ZH

HERE = ServerConfig(name="notes", command=("notes",))
THERE = ServerConfig(name="notes", endpoint=Endpoint(url="https://user@example.com:8443/mcp"))
TOOL = ToolDefinition(server="notes", name="add", original="add", description="Adds.", schema={})
RENAMED = ToolDefinition(server="notes", name="a_b", original="a b", description="Adds.", schema={})
ENGLISH = re.compile(r"\b(run|tool|server|computer|allowed|goes|session)\b", re.IGNORECASE)


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    yield
    words.use("en")


async def asked(
    folder: Path, config: ServerConfig, tool: ToolDefinition, arguments: str, *, allow: tuple[str, ...] = ()
) -> ApprovalRequested:
    """What a call is asked about, as the event that is recorded."""
    found: list[Question] = []

    async def ask(question: Question) -> str:
        found.append(question)
        return "no"

    permission = Permission(Settings(mcp_allow=allow), folder / "pins.json")
    await permission.refusal(config, tool, arguments, "u1", ask)
    [one] = found
    return ApprovalRequested(
        approval_id="a1",
        kind=one.kind,
        question=one.question,
        detail=one.detail,
        choices=one.choices,
        default=one.default,
        tool_use_id=one.tool_use_id,
        subject=one.subject,
        lasting=one.lasting,
    )


@pytest.mark.parametrize(
    ("config", "tool", "tail"),
    [
        (HERE, TOOL, "它在本机运行，拥有你的权限。"),
        (THERE, TOOL, "它会发送到 example.com:8443。"),
        (HERE, RENAMED, "服务器中的名称是 'a b'。\n它在本机运行，拥有你的权限。"),
    ],
)
async def test_the_question_is_chinese_and_the_arguments_stay(
    tmp_path: Path, config: ServerConfig, tool: ToolDefinition, tail: str
) -> None:
    arguments = '{\n  "text": "x",\n  "n": 1\n}'
    event = await asked(tmp_path, config, tool, arguments)
    assert questions.shown(event) is event  # what is recorded is English
    words.use("zh")
    shown = questions.shown(event)
    assert shown.question == f"运行服务器 notes 的 {tool.name}？"
    assert shown.detail == f"{arguments}\n{tail}"
    assert [choice.label for choice in shown.choices] == [ZH[f"mcp_tool_{c.name}"] for c in CHOICES]
    assert [(choice.name, choice.key) for choice in shown.choices] == [(c.name, c.key) for c in CHOICES]
    assert not any(ENGLISH.search(text) for text in (shown.question, tail, *(c.label for c in shown.choices)))
    assert (shown.subject, shown.default, shown.lasting) == (event.subject, event.default, event.lasting)


async def test_what_changed_and_a_damaged_record(tmp_path: Path) -> None:
    words.use("zh")
    pins = tmp_path / "pins.json"
    pins.write_text("{")
    event = questions.shown(await asked(tmp_path, HERE, TOOL, "{}", allow=("notes/*",)))
    assert event.detail.startswith(f"无法读取已允许内容的记录（it is no JSON）：{pins}\n{{}}\n")
    pins.unlink()
    allowing = Permission(Settings(mcp_allow=("notes/*",)), pins)
    assert await allowing.refusal(HERE, TOOL, "{}", "u", lambda _: pytest.fail("it asked")) == ""
    other = ToolDefinition(server="notes", name="add", original="add", description="It goes to x.", schema={})
    event = questions.shown(await asked(tmp_path, HERE, other, "{}", allow=("notes/*",)))
    first, *rest = event.detail.split("\n")
    assert first == "它与允许时已不相同："
    assert rest == ["description:", "-Adds.", "+It goes to x.", "{}", "它在本机运行，拥有你的权限。"]


def test_other_questions_and_other_texts_stay() -> None:
    words.use("zh")
    choices = (Choice("once", "o", "do it"), Choice("no", "n", "do not run it"))
    event = ApprovalRequested(
        approval_id="a",
        kind="mcp_tool",
        question="Go on?",
        detail="It goes to x.",
        choices=choices,
        default="no",
    )
    shown = questions.shown(event)
    assert (shown.question, shown.detail) == (event.question, event.detail)
    assert [choice.label for choice in shown.choices] == ["do it", "不运行"]
    event = ApprovalRequested(
        approval_id="a", kind="overwrite", question=EN["mcp_tool"], detail="", choices=choices, default="no"
    )
    assert questions.shown(event) is event


@pytest.mark.parametrize(
    ("by", "choice", "text"),
    [
        ("user", "once", "运行一次"),
        ("remembered", "never", "本会话内绝不运行此工具"),
        ("default", "no", "不运行（无人可问）"),
        ("option", "once", "运行一次（命令行选项）"),
        ("cancelled", "", "已撤回"),
    ],
)
async def test_the_screen_says_it_in_its_language(tmp_path: Path, by: str, choice: str, text: str) -> None:
    event = await asked(tmp_path, HERE, TOOL, "{}")
    words.use("zh")
    state, feed = ChatState(), Feed()
    state.apply(event)
    assert state.questions["a1"].question == "运行服务器 notes 的 add？"
    answer = ApprovalAnswered(approval_id="a1", choice=choice, by=by)
    state.apply(answer)
    assert [label for _, label in state.allowed.answers.values()] in ([], [text])
    feed.apply(event)
    feed.apply(answer)
    [block] = feed.blocks
    assert isinstance(block, NoticeBlock) and text in block.text and "运行服务器 notes 的 add？" in block.text
