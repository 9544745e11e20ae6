"""Calls of the tools of other MCP servers in the transcript: their server, their arguments, what came of them."""

from __future__ import annotations

from typing import Any

import pytest
from support.screen import HOSTILE, clock, tool_finished, tool_started

from sandbox_chat import events as ev
from sandbox_chat.ui import glyphs, tooltext
from sandbox_chat.ui.screens.results import of_card
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.transcript import Feed, Scene
from sandbox_chat.ui.transcript.card import ToolCard

GIVEN = {"repo_path": "/srv/project", "code": "HEAD~1", "deep": {"a": [1, "你"]}}


def card_of(*more: ev.Event, name: str = "mcp__git__git_log", **given: Any) -> ToolCard:
    feed = Feed(Scene(motion=False, now=clock))
    for event in (tool_started("u1", name, **(given or GIVEN)), *more):
        feed.apply(event)
    return feed.cards["u1"]


def lines(card: ToolCard, width: int = 90) -> list[str]:
    return [row.text.rstrip() for row in card.rows(width) if row.text.strip()]


def test_a_folded_card_names_server_tool_and_arguments() -> None:
    card = card_of(tool_finished("u1", ev.TextContent("two commits", ())))
    assert lines(card, 110) == [
        '✓ git · git_log  0.42 s  repo_path: /srv/project · code: HEAD~1 · deep: {"a": [1, "你"]}'.ljust(108)
        + "▸"
    ] or lines(card, 110)[0].startswith("✓ git · git_log  0.42 s  repo_path: /srv/project · code: HEAD~1")
    assert len(lines(card)) == 1


def test_an_opened_card_shows_every_argument_and_the_result() -> None:
    card = card_of(tool_finished("u1", ev.TextContent("[stdout] two commits", ())))
    card.expand()
    text = "\n".join(lines(card))
    for words in ('"repo_path": "/srv/project",', '"code": "HEAD~1",', '"你"', "[stdout] two commits"):
        assert words in text
    assert '"code": "HEAD~1"' in card.text and "two commits" in card.text  # what is copied
    assert '"repo_path"' in card.plain(0)


def test_its_arguments_are_no_code_to_run_or_to_edit() -> None:
    card = card_of(tool_finished("u1", ev.TextContent("ok", ())))
    assert card.code == "" and card.again == ""
    assert set(card.commands) == {"copy", "page"}
    own = card_of(tool_finished("u1"), name="mcp__sandbox__run_code", code="1")
    assert {"rerun", "edit"} <= set(own.commands)
    other = card_of(tool_finished("u1"), name="mcp__evil__run_code", code="1")
    assert {"rerun", "edit"}.isdisjoint(other.commands) and other.name == "evil · run_code"


def test_while_it_is_written_its_texts_are_seen() -> None:
    feed = Feed(Scene(motion=False, now=clock))
    for piece in ('{"repo_path": "/srv/', 'project", "n": 5, "code": "HE'):
        feed.apply(ev.ToolInputDelta(tool_use_id="u1", name="mcp__git__git_log", text=piece))
    assert "repo_path: /srv/project · code: HE" in lines(feed.cards["u1"])[0]
    feed.cards["u1"].expand()
    assert len(lines(feed.cards["u1"])) == 1


def test_a_failure_is_told_by_its_first_line_in_full() -> None:
    reason = "Input validation error: " + "the repository is not there, " * 8
    card = card_of(
        tool_finished("u1", ev.TextContent(f"{reason}\nfor more see the manual", ()), is_error=True)
    )
    text = " ".join(" ".join(lines(card)[1:]).split())
    assert text == reason.strip()


def test_a_file_that_is_no_text_is_only_saved() -> None:
    sound = ev.FileContent("/nowhere/x.ogg", "audio/ogg", 7, "sound")
    card = card_of(tool_finished("u1", ev.TextContent("ok", ()), sound))
    assert any("sound · 7 bytes · s save" in row for row in lines(card))
    assert of_card(card).whole is None and of_card(card).pages == []


def test_hostile_text_stays_text() -> None:
    words = "\n".join(HOSTILE)
    card = card_of(tool_finished("u1", ev.TextContent(words, ())), **{words: words})
    card.expand()
    text = "\n".join(lines(card, 300))
    for each in HOSTILE:
        assert each in text


def test_the_tools_pane_shows_the_arguments_as_json() -> None:
    state = ChatState()
    state.apply(tool_started("u1", "mcp__git__git_log", **GIVEN))
    tool = state.tools["u1"]
    assert (tool.short_name, tool.server) == ("git · git_log", "git")
    code, language = tooltext.code(tool)
    assert language == "json" and '"code": "HEAD~1"' in code and '"repo_path"' in code
    assert tooltext.whole_code(tool) == ("", "")
    assert tooltext.first_line(tool).startswith("repo_path: /srv/project · code: HEAD~1 · deep:")


@pytest.fixture
def ascii_signs() -> Any:
    glyphs.use("ascii")
    yield
    glyphs.use("unicode")


def test_plain_signs_have_plain_names(ascii_signs: None) -> None:
    del ascii_signs
    assert lines(card_of())[0].isascii() is False  # the arguments are the model's
    assert card_of(repo="x").name == "git - git_log"
    assert lines(card_of(repo="x"))[0].isascii()
