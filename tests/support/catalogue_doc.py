"""The document of the catalogue of MCP servers, made of the catalogue.

``python tests/support/catalogue_doc.py`` prints it, ``--write`` puts it in ``sandbox_chat/MCP.md`` between its marks.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sandbox_chat.mcp import catalog
from sandbox_chat.mcp.catalog import CatalogEntry

START, END = "<!-- catalogue -->", "<!-- /catalogue -->"
REGISTRIES = {"npm": "npm", "pypi": "PyPI"}


def document() -> Path:
    """Where it lies."""
    return Path(__file__).parents[2] / "sandbox_chat" / "MCP.md"


def generated() -> str:
    """Return what is made of the catalogue: a table of all servers, and a paragraph for each."""
    entries = catalog.load().values()
    parts = [
        "| server | what it does | tools | started here, and one real call | reaches | status |\n|---|---|---|---|---|---|"
    ]
    parts += [_row(entry) for entry in entries]
    started = [entry for entry in entries if entry.checked.started]
    called = [entry for entry in entries if entry.checked.answered]
    tools = sum(len(entry.checked.tools) for entry in started)
    size = sum(entry.checked.size for entry in started)
    parts.append(
        f"\n{len(started)} of {len(entries)} were started, {len(called)} of them answered a real call. They have {tools} tools, "
        f"whose definitions have {size:,} characters.\n"
    )
    parts += [_paragraph(entry) for entry in entries]
    return "\n".join(parts).rstrip()


def _row(entry: CatalogEntry) -> str:
    checked = entry.checked
    if checked.answered:
        said = f"yes; `{checked.called}` answered `{_cell(checked.found)}`"
    elif checked.started:
        said = f"started; not called: {_cell(checked.reason)}"
    else:
        said = f"no: {_cell(checked.reason)}"
    reaches = ", ".join(entry.reaches) or "nothing"
    tools = len(checked.tools) if checked.started else "–"
    return f"| [{entry.name}](#{entry.name}) | {_cell(entry.about)} | {tools} | {said} | {reaches} | {_status(entry)} |"


def _status(entry: CatalogEntry) -> str:
    return entry.status + (f"; see {_cell(entry.successor)}" if entry.successor else "")


def _paragraph(entry: CatalogEntry) -> str:
    lines = [f"### {entry.name}", "", f"**{entry.title}.** {entry.about}", ""]
    lines.append(f"* **Risk**: {entry.risk}")
    lines.append(
        f"* **Package**: {REGISTRIES[entry.registry]} `{entry.package}` {entry.version}, licence {entry.license or 'not stated in the package'}, {_status(entry)}; "
        f"{'node' if entry.registry == 'npm' else 'Python'} {entry.runtime}{_beside(entry)}"
    )
    for item in entry.properties.values():
        told = [item.kind]
        told += ["needed"] if item.required else []
        told += ["a credential"] if item.secret else []
        told += [f"from `{item.variable}`"] if item.variable else []
        told += [f"the program {item.programs[0]} when it is installed"] if item.programs else []
        told += [f"default `{_value(item.default)}`"] if item.default is not None else []
        lines.append(f"* `{item.name}` ({', '.join(told)}): {item.about}")
    if entry.checked.tools:
        names = ", ".join(f"`{name}`" for name in entry.checked.tools)
        lines.append(f"* **Tools**: {names}" + "".join(f". {note}" for note in entry.checked.notes))
    return "\n".join(lines) + "\n"


def _beside(entry: CatalogEntry) -> str:
    told = "".join(f", with `{each}`" for each in entry.requires)
    told += "".join(f", with `{each}` in place of what it asks for" for each in entry.instead.values())
    return told + "".join(f", `{each}` built from source" for each in entry.from_source)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).replace("{{data}}", "<data>/mcp/files/…")


def _cell(words: str) -> str:
    return words.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def written() -> str:
    """Return the generated part as it stands in the document; empty when there is none."""
    text = document().read_text(encoding="utf-8")
    _, start, rest = text.partition(START)
    part, end, _ = rest.partition(END)
    return part.strip() if start and end else ""


def main() -> None:
    """Print the generated part, or write it."""
    if "--write" not in sys.argv[1:]:
        sys.stdout.write(generated() + "\n")
        return
    path = document()
    before, _, rest = path.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{START}\n{generated()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
