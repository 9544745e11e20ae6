"""What a user sees in each trouble, provoked for real; the documentation holds exactly these words."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.troubles import PRODUCERS, Told, produce
from support.troubles_doc import row, written

MUST_SAY: dict[str, dict[str, list[str]]] = {
    "model": {
        "says that it has no tool": ["did not use the sandbox", "gateway"],
        "call as text": ["as plain text", "CLAUDE_MODEL"],
        "with --sandbox off": ["--sandbox local"],
    },
    "code": {
        "hangs": ["stopped after 2 s", "variables are kept", "Split the work"],
        "ends its shell": ["lost"],
        "without a bound": ["characters cut out of", "The whole output", "output/"],
        "calls for": ["SystemExit"],
    },
    "creating": {
        "401": ["E2B_API_KEY", "401"],
        "403": ["different regions", "E2B_API_URL", "E2B_DOMAIN"],
        "404": ["E2B_API_URL", "404"],
        "405": ["405", "e2b==2.31.0"],
        "429": ["429", "sandboxes list"],
        "500": ["500", "Try again"],
        "never answered": ["did not answer", "SANDBOX_CHAT_START_TIMEOUT"],
        "nothing answers": ["refused the connection"],
        "no key": ["E2B_API_KEY", "--sandbox local"],
    },
    "use": {
        "502": ["502", "Split the work", "variables are kept"],
        "behind our back": ["has ended the sandbox"],
    },
    "left": {
        "without a screen": ["sandbox-chat sandboxes kill --left"],
        "in the terminal": ["End it?", "was ended"],
    },
}
"""By theme: words of the trouble's name, and what must be said in it."""


def test_every_theme_is_checked() -> None:
    assert set(MUST_SAY) == set(PRODUCERS)


@pytest.mark.slow
@pytest.mark.parametrize("theme", PRODUCERS)
def test_what_is_said_and_that_the_documentation_says_it(tmp_path: Path, theme: str) -> None:
    told = produce(theme, tmp_path)
    for name, words in MUST_SAY[theme].items():
        found = [each for each in told if name in each.trouble]
        assert found, name
        for word in words:
            assert word in found[0].user, (name, found[0].user)
    assert all(each.user for each in told)
    table = written().splitlines()
    for each in told:
        assert row(each.trouble, each.user, each.model) in table, (
            "the documentation says something else; run: python tests/support/troubles_doc.py --write"
        )


def test_a_cell_of_the_table_cannot_break_it() -> None:
    said = Told("a|b", "<b>", "")
    assert row(said.trouble, said.user, said.model) == "| a\\|b | &lt;b> | – |"
