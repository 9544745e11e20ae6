"""What ``run --allow`` may name, and which questions it answers."""

from __future__ import annotations

import pytest

from sandbox_chat import allowing
from sandbox_chat.events import ApprovalRequested, Choice, ServerChanged, ServerState, ServerTool


def asked(kind: str, subject: str) -> ApprovalRequested:
    choices = (Choice("once", "o", "once"), Choice("no", "n", "no"))
    return ApprovalRequested(
        approval_id="a", kind=kind, question="?", detail="", choices=choices, default="no", subject=subject
    )


CALL = asked("mcp_tool", "git/git_log #0123456789ab")


@pytest.mark.parametrize("word", ["overwrite", "mcp", "mcp:git", "mcp:my.server_1", "mcp:git/git_log"])
def test_words_that_may_be_given(word: str) -> None:
    assert allowing.check(word) == word


@pytest.mark.parametrize(
    "word", ["", "all", "mcp:", "mcp:git/", "mcp:a b", "mcp/git", "overwrite:x", "mcp_tool", "mcp:git/a b"]
)
def test_other_words_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match="must be overwrite, mcp"):
        allowing.check(word)


@pytest.mark.parametrize("word", ["mcp", "mcp:git", "mcp:git/git_log"])
def test_a_tool_is_allowed_by_all_its_server_or_itself(word: str) -> None:
    assert allowing.answer(CALL, [word]) == "once"


def test_a_server_is_meant_by_its_own_spelling() -> None:
    question = asked("mcp_tool", "my.server/do_it #0123456789ab")
    for word in ("mcp:my.server", "mcp:my.server/do_it"):
        assert allowing.answer(question, [word]) == "once"
    for word in ("mcp:my_server", "mcp:my_server/do_it"):  # there may be one of that name
        assert allowing.answer(question, [word]) == ""


@pytest.mark.parametrize("word", ["overwrite", "mcp:gi", "mcp:git/git", "mcp:git/git_log2", "mcp:git_log"])
def test_nothing_else_allows_it(word: str) -> None:
    assert allowing.answer(CALL, [word]) == ""


def test_a_file_is_replaced_only_by_its_own_word() -> None:
    question = asked("overwrite", "/d/mcp:git")
    assert allowing.answer(question, ["overwrite"]) == "replace"
    assert allowing.answer(question, ["mcp", "mcp:git"]) == ""
    assert allowing.option(question) == "overwrite"


def test_other_questions_are_never_answered() -> None:
    question = asked("leftovers", "git/git_log")
    assert allowing.answer(question, ["overwrite", "mcp", "leftovers"]) == ""
    assert allowing.option(question) == ""


def test_the_narrowest_word_is_offered() -> None:
    assert allowing.option(CALL) == "mcp:git/git_log"
    assert allowing.check(allowing.option(CALL))


@pytest.mark.parametrize("words", [(), ("overwrite", "mcp"), ("mcp:git", "mcp:my.server/do_it")])
def test_servers_that_are_on_may_be_named(words: tuple[str, ...]) -> None:
    assert allowing.problem(words, ["git", "my.server"]) == ""


@pytest.mark.parametrize("word", ["mcp:nope", "mcp:gi", "mcp:nope/git_log", "mcp:Git"])
def test_a_server_that_is_not_on_is_a_mistake(word: str) -> None:
    said = allowing.problem(["overwrite", "mcp:git", word], ["git", "time"])
    assert said.startswith(
        f"--allow {word}: there is no MCP server {word[4:].partition('/')[0]} in this chat."
    )
    assert "which are git, time." in said and "\n" not in said
    said = allowing.problem([word], [])
    assert "for none is on. Switch it on with --mcp NAME" in said and "\n" not in said


def changed(name: str, state: ServerState, *tools: str) -> ServerChanged:
    return ServerChanged(
        name=name, place="host", state=state, tools=tuple(ServerTool(tool, tool) for tool in tools)
    )


def test_a_tool_that_there_is_not_is_told_once_when_the_tools_are_known() -> None:
    unknown = allowing.UnknownTools(
        ["mcp", "mcp:my.server", "mcp:my.server/look", "mcp:my.server/lok", "mcp:git/git_lg", "overwrite"],
        ["my.server", "git"],
    )
    assert unknown.take(changed("my_server", "starting")) == []  # not known yet
    assert unknown.take(changed("my_server", "failed")) == []
    [said] = unknown.take(changed("my_server", "ready", "look", "listen"))  # as the model calls the server
    assert said == (
        "--allow mcp:my.server/lok allows nothing: the MCP server my.server has no such tool. Its tools: look, listen."
    )
    assert unknown.take(changed("my_server", "ready", "look", "listen")) == []
    [said] = unknown.take(changed("git", "ready"))
    assert said.endswith("Its tools: none.")
