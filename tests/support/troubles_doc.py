"""The table of troubles in the documentation, made of what the program really says.

``python tests/support/troubles_doc.py`` prints it, ``--write`` puts it between its marks in ``sandbox_chat/SANDBOXES.md``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

START, END = "<!-- troubles -->", "<!-- /troubles -->"
HEAD = "| trouble | what you see | what the model is told |\n|---|---|---|\n"


def document() -> Path:
    """Where the table lies."""
    return Path(__file__).parents[2] / "sandbox_chat" / "SANDBOXES.md"


def cell(words: str) -> str:
    """Return words as they stand in a cell of a Markdown table."""
    return words.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;") or "–"


def row(trouble: str, user: str, model: str) -> str:
    """Return one row of the table."""
    return f"| {cell(trouble)} | {cell(user)} | {cell(model)} |"


def written() -> str:
    """Return the table as it stands in the documentation; empty when there is none."""
    text = document().read_text(encoding="utf-8")
    _, start, rest = text.partition(START)
    table, end, _ = rest.partition(END)
    return table.strip() if start and end else ""


def write(table: str) -> None:
    """Put the table between its marks, which are added at the end if they are not there."""
    path = document()
    text = path.read_text(encoding="utf-8") if path.is_file() else "# Sandboxes\n"
    if START not in text:
        text = f"{text.rstrip()}\n\n## Troubles\n\n{START}\n{END}\n"
    elif END not in text:
        text = text.replace(START, f"{START}\n{END}", 1)
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{START}\n{table}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Provoke everything and print or write the table."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from support.troubles import PRODUCERS, produce

    rows = []
    for theme in PRODUCERS:
        with tempfile.TemporaryDirectory() as folder:
            rows += [row(told.trouble, told.user, told.model) for told in produce(theme, Path(folder))]
    table = HEAD + "\n".join(rows)
    if "--write" in sys.argv[1:]:
        write(table)
    else:
        sys.stdout.write(table + "\n")


if __name__ == "__main__":
    main()
