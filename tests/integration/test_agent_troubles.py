"""Case A2: each failure in plain words, the prompt kept, the session working on. The document holds exactly these words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.agent_troubles import BACK, HALF, IN_PART, PRODUCERS, Met
from support.agent_troubles_doc import row, written

MUST_SAY: dict[str, dict[str, list[str]]] = {
    "refusals": {
        "400: the model is not known": ["does not know the model scripted-model-1", "CLAUDE_MODEL"],
        "400: anything else": ["unsupported parameter", "CLAUDE_MODEL"],
        "401": ["did not accept the token", "ANTHROPIC_AUTH_TOKEN"],
        "402": ["no credit", "Top it up"],
        "403": ["this key may not use the API", "region"],
        "404": ["does not know the model", "ANTHROPIC_BASE_URL"],
        "413": ["pictures and long results", "new session"],
        "too long": ["context", "new session"],
        "429 with *": ["slow down", "Wait a little"],
        "429 without": ["slow down", "Wait a little"],
        "500": ["out of memory", "Send the prompt again"],
        "502": ["usually temporary"],
        "529": ["overloaded", "in a moment"],
    },
    "answers": {
        "the stream is cut": ["Send the prompt again"],
        "an error event": ["Send the prompt again"],
        "closed before a byte": ["Send the prompt again"],
        "a web page": ["Messages API", "ANTHROPIC_BASE_URL"],
        "an empty stream": ["Send the prompt again"],
        "no byte": ["within 1 s", "SANDBOX_CHAT_REQUEST_TIMEOUT"],
        "after a part": ["overloaded"],
    },
    "way": {
        "the connection is refused": ["the connection was refused", "ANTHROPIC_BASE_URL"],
        "the name": ["gateway.invalid", "could not be looked up"],
        "not trusted": ["certificate", "NODE_EXTRA_CA_CERTS"],
        "the server has none": ["http://"],
        "the proxy": ["HTTPS_PROXY"],
        "none is set": ["wants a credential", "ANTHROPIC_AUTH_TOKEN"],
        "does not know the token": ["did not accept the token"],
        "the login": ["Run claude and log in"],
    },
    "program": {
        "missing": ["pip install --force-reinstall claude-agent-sdk"],
        "cannot be started": ["could not be started", "sandbox-chat doctor"],
        "killed": ["SIGKILL", "started again with the same session"],
        "too long": ["too long", "started again with the same session"],
    },
}
"""By theme: words of the trouble's name, and what must be said in it."""
RAW = re.compile(r'API Error|\{"type"|ede_diagnostic|</?html|req_[0-9a-f]{6}|/login\b', re.IGNORECASE)
"""What is for programs, and stands in no sentence for people."""


def check(theme: str, found: list[Met]) -> None:
    """Check the words of a theme and that the document holds them."""
    for name, words in MUST_SAY[theme].items():
        [each] = [one for one in found if name in one.trouble]
        for word in words:
            assert word in each.text, (each.trouble, each.title, each.text)
    for each in found:
        assert each.kind != "unknown", (each.trouble, each.text)
        assert not RAW.search(f"{each.title} {each.text}"), each
        assert len(each.title) <= 40 and 40 <= len(each.text) <= 420, each
    table = written()
    for each in found:
        assert row(each.trouble, each.title, each.text, each.prompt, each.session) in table, (
            "the document says something else; run: python tests/support/agent_troubles_doc.py --write"
        )


def test_a2_every_theme_is_checked() -> None:
    assert set(MUST_SAY) == set(PRODUCERS)
    assert len(written()) == sum(len(names) for names in MUST_SAY.values())


@pytest.mark.slow
def test_a2_refusals_of_the_endpoint(tmp_path: Path) -> None:
    found = PRODUCERS["refusals"](tmp_path)
    assert {each.prompt for each in found} == {BACK}
    check("refusals", found)


@pytest.mark.slow
def test_a2_answers_that_are_none(tmp_path: Path) -> None:
    found = PRODUCERS["answers"](tmp_path)
    assert [each.prompt for each in found if "after a part" in each.trouble] == [IN_PART]
    assert not any(HALF[:10] in each.text for each in found)
    check("answers", found)


@pytest.mark.slow
def test_a2_the_way_to_the_endpoint(tmp_path: Path) -> None:
    found = PRODUCERS["way"](tmp_path)
    assert {each.prompt for each in found} == {BACK}
    check("way", found)


@pytest.mark.slow
def test_a2_the_agents_program(tmp_path: Path) -> None:
    check("program", PRODUCERS["program"](tmp_path))


@pytest.mark.parametrize("words", ["a|b", "<b>", "a\\b"], ids=["a bar", "an angle bracket", "a backslash"])
def test_a_cell_of_the_table_cannot_break_it(words: str) -> None:
    line = row(words, "t", "x", "p", "s")
    assert re.search(r"(?<!\\)\|", line.strip("| ")) is not None
    assert len(re.findall(r"(?<!\\)\|", line)) == 6
