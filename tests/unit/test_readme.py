"""The README says what the program does: its settings, keys, pictures and commands are checked against it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from support import keys_doc, settings_doc

from sandbox_chat.ui.actions import of
from sandbox_chat.ui.screens.help import PLACES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_settings_table_is_the_generated_one() -> None:
    assert settings_doc.table().strip() in README, (
        "paste the output of: python tests/support/settings_doc.py table"
    )


def test_every_picture_is_there() -> None:
    for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README):
        assert (ROOT / name).read_bytes().startswith(b"\x89PNG"), name


def test_keys_table_is_the_generated_one() -> None:
    keys = (ROOT / "sandbox_chat" / "KEYS.md").read_text(encoding="utf-8")
    assert keys.endswith(keys_doc.table()), "put the output of python tests/support/keys_doc.py into KEYS.md"


def test_keys_of_the_readme_are_bound() -> None:
    section = README.partition("### Keys")[2].partition("\n### ")[0]
    named = {f"ctrl+{key.lower()}" for key in re.findall(r"Ctrl\+([A-Z])\b", section)}
    named |= {key.lower() for key in re.findall(r"\bF\d+\b", section)}
    bound = {key.strip() for place in PLACES for item in of(place) for key in item.keys.split(",")}
    assert len(named) > 15
    assert named <= bound


def test_options_of_the_readme_exist() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "sandbox_chat", "--help"], capture_output=True, text=True, check=True
    ).stdout
    for option in ("--demo", "--model", "--sandbox", "--images", "--theme", "--plain", "--resume", "--log"):
        assert option in README
        assert option in shown
