"""The document about sandboxes, whose tables are put between marks."""

from __future__ import annotations

from pathlib import Path

from support.settings_doc import default_text

from sandbox_chat.settings import fields, variable

DOCUMENT = Path(__file__).resolve().parents[2] / "sandbox_chat" / "SANDBOXES.md"


def between(text: str, name: str) -> str:
    """What stands between the marks of ``name`` in the document."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    return text[text.index(start) + len(start) : text.index(end)].strip("\n")


def put(text: str, name: str, body: str) -> str:
    """The document with ``body`` between the marks of ``name``."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, after = text[: text.index(start) + len(start)], text[text.index(end) :]
    return f"{before}\n{body}\n{after}"


LIMITS = (
    "run_timeout", "sandbox_memory_mb", "sandbox_processes", "sandbox_cpus", "sandbox_cpu_seconds", "sandbox_file_mb",
    "sandbox_disk_mb", "sandbox_workspace", "keep_workspace", "keep_workspace_mb", "sandbox_python", "sandbox_warm", "start_timeout", "output_limit",
    "output_keep_mb", "text_limit", "image_limit", "images_per_call", "html_limit", "table_rows",
    "table_columns", "table_cell", "download_limit", "attach_limit",
)  # fmt: skip


def limits_table() -> str:
    """The settings that bound a sandbox and what comes back from it, as a table."""
    found = {item.name: item for item in fields()}
    lines = ["| variable | default | what it is |", "| --- | --- | --- |"]
    for name in LIMITS:
        item = found[name]
        default = default_text(item)
        lines.append(
            f"| `{variable(item)}` | {f'`{default}`' if default else '–'} | {item.metadata['doc']} |"
        )
    return "\n".join(lines)
