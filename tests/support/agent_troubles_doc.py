"""The table of failures in ``sandbox_chat/TROUBLES.md``, made of what the program really says.

``python tests/support/agent_troubles_doc.py`` prints it, ``--write`` puts it between its marks in the document.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

START, END = "<!-- failures -->", "<!-- /failures -->"
HEAD = "| trouble | title | what is said | your prompt | the session |\n|---|---|---|---|---|\n"


def document() -> Path:
    """Where the table lies."""
    return Path(__file__).parents[2] / "sandbox_chat" / "TROUBLES.md"


def cell(words: str) -> str:
    """Return words as they stand in a cell of a Markdown table."""
    return words.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def row(trouble: str, title: str, text: str, prompt: str, session: str) -> str:
    """Return one row of the table."""
    return f"| {' | '.join(cell(words) for words in (trouble, title, text, prompt, session))} |"


def written() -> list[str]:
    """Return the rows of the table as they stand in the document."""
    _, start, rest = document().read_text(encoding="utf-8").partition(START)
    table, end, _ = rest.partition(END)
    assert start and end, "the marks are missing"
    return table.strip().splitlines()[2:]


def main() -> None:
    """Provoke everything and print or write the table."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from support.agent_troubles import PRODUCERS

    rows = []
    for producer in PRODUCERS.values():
        with tempfile.TemporaryDirectory() as folder:
            rows += [row(m.trouble, m.title, m.text, m.prompt, m.session) for m in producer(Path(folder))]
    table = HEAD + "\n".join(rows)
    if "--write" in sys.argv[1:]:
        text = document().read_text(encoding="utf-8")
        before, _, rest = text.partition(START)
        _, _, after = rest.partition(END)
        document().write_text(f"{before}{START}\n{table}\n{END}{after}", encoding="utf-8")
    else:
        sys.stdout.write(table + "\n")


if __name__ == "__main__":
    main()
