"""Files in the sandbox: written, read back, listed, brought out."""

from __future__ import annotations

import posixpath
import re

from sandbox_chat.demo.steps import Call, Plan, fence, gave_up, one_line, run
from sandbox_chat.demo.talk import Talk

PATH = "/tmp/notes.txt"  # noqa: S108 - a path inside the sandbox
NOTES = """\
Three things about this sandbox
1. Variables stay between calls.
2. Files live in /tmp until it ends.
3. It has no network.
"""
COUNT = f"""\
from pathlib import Path

text = Path({PATH!r}).read_text()
lines, words = len(text.splitlines()), len(text.split())
with Path({PATH!r}).open("a") as file:
    file.write(f"Counted: {{lines}} lines, {{words}} words.\\n")
print(f"lines: {{lines}}")
print(f"words: {{words}}")
"""


def notes(talk: Talk) -> Plan | None:
    """Write a file, work on it with code, read it back, list the folder."""
    wanted = (
        r"\b(write|create|save|make)\b.{0,20}\bfiles?\b|\bfiles?\b.{0,30}\bread\b.{0,10}\bback\b|\bread\b.{0,10}\bwrite\b.{0,10}\bfile|"
        r"(写|创建|新建|保存).{0,8}文件|文件.{0,8}读"
    )
    return write_and_read(talk) if talk.says(wanted) else None


def write_and_read(talk: Talk) -> Plan:
    """The plan of ``notes``."""
    written = yield Call(
        "write_file",
        {"path": PATH, "content": NOTES},
        talk.t(
            "I write a small file, count its words with Python, and read it back.",
            "我写一个小文件，用 Python 统计字数，再读回来。",
        ),
    )
    if not written.ok:
        return gave_up(talk, written)
    counted = yield from run(talk, COUNT)
    if not counted.ok:
        return gave_up(talk, counted)
    back = yield Call("read_file", {"path": PATH})
    if not back.ok:
        return gave_up(talk, back)
    listed = yield Call("list_files", {"path": "/tmp"})  # noqa: S108
    values = counted.values()
    answer = talk.t(
        f"`{PATH}` had **{values.get('lines', '?')} lines** and **{values.get('words', '?')} words**; the code has added a line. Read back:",
        f"`{PATH}` 原有 **{values.get('lines', '?')} 行**、**{values.get('words', '?')} 个词**；代码又追加了一行。读回的内容：",
    )
    answer += "\n\n" + fence(back.text.strip())
    if listed.ok:
        answer += talk.t("\n\nThe folder now:", "\n\n目录现在的内容：") + "\n\n" + fence(listed.text.strip())
    return answer


def listing(talk: Talk) -> Plan | None:
    """List the sandbox's folder."""
    wanted = r"\b(list|show|which|what)\b.{0,20}\b(files?|folder|directory)\b|^\s*ls\b|(列出|有哪些|查看|显示).{0,8}(文件|目录)"
    return _listing(talk) if talk.says(wanted) else None


def _listing(talk: Talk) -> Plan:
    match = re.search(r"(/(?:tmp|home|usr|etc|opt)[\w./-]*)", talk.head)
    path = match[1] if match else "/tmp"  # noqa: S108
    outcome = yield Call("list_files", {"path": path})
    if not outcome.ok:
        return gave_up(talk, outcome)
    return talk.t(f"In `{path}`:", f"`{path}` 的内容：") + "\n\n" + fence(outcome.text.strip() or "(empty)")


def download(talk: Talk) -> Plan | None:
    """Bring a file out of the sandbox: the one that is named, or the last chart."""
    return _download(talk) if talk.says(r"\bdownload\b|\bfetch\b.{0,20}\bfile|下载") else None


def _download(talk: Talk) -> Plan:
    named = re.search(r"(/[\w./-]+\w|\b[\w-]+\.(?:png|txt|csv|json|pdf|svg|jpe?g|md|py)\b)", talk.head)
    pictures = talk.pictures()
    if named:
        path = named[1]
    elif pictures:
        path = pictures[-1]
    else:
        written = yield Call(
            "write_file",
            {"path": PATH, "content": NOTES},
            talk.t("There is no chart yet, so I write a small file first.", "还没有图表，我先写一个小文件。"),
        )
        if not written.ok:
            return gave_up(talk, written)
        path = PATH
    outcome = yield Call("download_file", {"path": path})
    if not outcome.ok:
        return talk.t(
            f"`{path}` could not be downloaded: {one_line(outcome.error)}",
            f"无法下载 `{path}`：{one_line(outcome.error)}",
        )
    name = posixpath.basename(path)
    return (
        talk.t(f"`{name}` is out of the sandbox:", f"已从沙箱取出 `{name}`：")
        + "\n\n"
        + fence(outcome.text.strip())
    )
