"""The README says what the program does: its settings, keys, pictures and commands are checked against it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from support import settings_doc

from sandbox_chat.ui.actions import APP_ACTIONS, CHAT_ACTIONS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_settings_table_is_the_generated_one() -> None:
    assert settings_doc.table().strip() in README, (
        "paste the output of: python tests/support/settings_doc.py table"
    )


def test_every_picture_is_there() -> None:
    for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README):
        assert (ROOT / name).read_bytes().startswith(b"\x89PNG"), name


def test_keys_in_the_table_are_bound() -> None:
    """Each function key and Ctrl+letter of the README is a key of the program's own table, and the other way round."""
    table = README[README.index("### Keys") : README.index("### Pictures")]
    said = {key.lower().replace("ctrl+", "ctrl+") for key in re.findall(r"\bF\d\b|Ctrl\+[A-Z]\b", table)}
    bound = {
        key
        for action in (*APP_ACTIONS, *CHAT_ACTIONS)
        for key in action.keys.split(",")
        if re.fullmatch(r"f\d|ctrl\+[a-z]", key)
    }
    editing = {"ctrl+c", "ctrl+j"}  # of the composer
    assert said - editing == bound


def test_options_of_the_readme_exist() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "sandbox_chat", "--help"], capture_output=True, text=True, check=True
    ).stdout
    for option in ("--demo", "--model", "--sandbox", "--images", "--theme", "--resume", "--log"):
        assert option in README
        assert option in shown
