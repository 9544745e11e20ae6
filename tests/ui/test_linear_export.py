"""Exporting from the plain line-by-line chat."""

from __future__ import annotations

from pathlib import Path

from support.program import run


def test_export_from_the_plain_chat(tmp_path: Path) -> None:
    typed = "/export early.md\nhello\n/export a.md\n/export\n/export a.pdf\n/export a.md\n/quit\n"
    ended = run("--plain", "--demo", home=tmp_path, stdin=typed)
    assert ended.code == 0, ended.stderr
    work = tmp_path / "work"
    said = ended.stdout
    assert "error: There is nothing to export yet" in said
    assert f"Exported to {work}/a.md\n" in said
    assert f"Exported to {work}/downloads/hello.html\n" in said
    assert "error: The ending of a.pdf names no kind of document." in said
    assert f"error: {work}/a.md exists already, and nothing was written." in said
    assert (work / "a.md").read_text(encoding="utf-8").startswith("# hello\n")
