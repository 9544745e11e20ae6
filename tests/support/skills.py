"""A folder of skills in every state, for tests of what shows them."""

from __future__ import annotations

from pathlib import Path

from sandbox_chat.skills import Store

DOUBLE = '"""Doubles numbers."""\n\n\ndef double(x):\n    return 2 * x\n'
ROWS = "import json\n\n\ndef rows(path):\n    with open(path) as file:\n        return json.load(file)\n"
FETCH = "import urllib.request\n\n\ndef fetch(url):\n    return urllib.request.urlopen(url).read()\n"


def promoted(store: Store, name: str, code: str, description: str) -> None:
    """Put a skill there that the user has promoted."""
    draft = store.save_draft(name, code, description, origin="session-1 call-2")
    store.promote(name, expected=draft.digest)


def some_skills(folder: Path) -> Store:
    """A skill in each state, and two drafts: a new one, and another version of ``double``, which is promoted."""
    store = Store(folder)
    promoted(store, "double", DOUBLE, "Doubles a number.\nAny number.")
    promoted(store, "rows", ROWS, "Reads rows of a file of JSON.")
    (folder / "rows" / "rows.py").write_text(ROWS.replace("json.load(file)", "json.load(file)[:10]"))
    store.add(
        "notes", {"SKILL.md": b"---\nname: notes\ndescription: How notes are written here.\n---\nShort.\n"}
    )
    store.add("broken", {"SKILL.md": b"---\nname: broken\n---\n"})
    (folder / "broken" / "broken.py").symlink_to("/etc/hostname")
    store.save_draft(
        "double",
        DOUBLE.replace("2 * x", "x + x"),
        "Doubles a number by adding it.",
        origin="session-7 call-3",
    )
    store.save_draft("fetch", FETCH, "Fetches a page.", origin="session-7 call-9")
    return store  # fmt: skip
