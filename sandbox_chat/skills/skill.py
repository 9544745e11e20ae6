"""What a skill is: its files, its description, its digest, and what may be wrong with it."""

from __future__ import annotations

import ast
import difflib
import hashlib
import keyword
import re
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sandbox_chat.signs import suspect
from sandbox_chat.text import bound, clean, clean_line

State = Literal["ready", "changed", "new", "damaged"]
MANIFEST = "SKILL.md"
"""The file that says what a skill is, in the form that other agents use too: front matter with name and description."""
CODE_BYTES = 200_000
"""Bytes of the code of one skill."""
ALL_BYTES = 4_000_000
"""Bytes of all files of one skill."""
FILES = 64
"""Files of one skill."""
DESCRIPTION = 1000
"""Characters of a description."""
FIRST_LINE = 160
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}", re.ASCII)
_FRONT = re.compile(r"\A---\r?\n(.*?)\r?\n---\r?\n?", re.DOTALL)
_FIELD = re.compile(r"^(name|description):[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_TAKEN = frozenset(("tools", "skills", "test", "main", "setup", "conftest"))
_BASE64 = re.compile(r"[A-Za-z0-9+/]{200,}={0,2}")
_ADDRESS = re.compile(r"https?://[^\s'\")]+")
_MODULES = frozenset(
    [
        "socket",
        "subprocess",
        "ctypes",
        "multiprocessing",
        "pty",
        "http",
        "urllib",
        "requests",
        "httpx",
        "aiohttp",
        "ftplib",
        "smtplib",
    ]
)
_CALLS = frozenset(("eval", "exec", "compile", "__import__", "system", "popen", "remove", "rmtree", "unlink"))


class SkillError(Exception):
    """Something about a skill is not as it must be. The message is a sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill in the folder. ``digest`` is of its files as they are now, ``version`` the number that was promoted last, 0 before.

    ``state``: ``ready`` (as promoted), ``changed`` (its files are others than those that were promoted), ``new`` (never
    promoted), ``damaged`` (its files cannot be used).
    """

    name: str
    description: str
    digest: str
    state: State
    version: int
    origin: str
    path: Path
    files: tuple[str, ...] = ()
    problem: str = ""

    @property
    def first_line(self) -> str:
        """The first line of its description."""
        lines = self.description.strip().splitlines()
        return clean_line(lines[0], FIRST_LINE) if lines else ""


@dataclass(frozen=True, slots=True)
class Draft:
    """Code that the agent handed in. ``digest`` is what the user promotes: another draft of the name has another one."""

    name: str
    description: str
    digest: str
    origin: str
    path: Path


@dataclass(frozen=True, slots=True)
class Look:
    """What a user looks at before they promote ``digest``. ``difference`` is clean; ``cut``: it is not all of it."""

    name: str
    digest: str
    origin: str
    difference: str
    risks: tuple[str, ...]
    files: Mapping[str, bytes]
    cut: bool = False


def check_name(name: str) -> None:
    """Raise ``SkillError`` when a name cannot be that of a skill, which is imported by it."""
    if (
        not _NAME.fullmatch(name)
        or keyword.iskeyword(name)
        or name in sys.stdlib_module_names
        or name in _TAKEN
    ):
        raise SkillError(
            f"{clean(bound(name, 60))!r} cannot be the name of a skill: small letters, digits and _, a letter first, at most "
            "41, and no word or module of Python."
        )


def check_code(code: str) -> None:
    """Raise ``SkillError`` when code cannot be that of a skill."""
    if len(code.encode("utf-8", "replace")) > CODE_BYTES:
        raise SkillError(f"The code of a skill may have {CODE_BYTES:,} bytes, and this has more.")
    if not code.strip():
        raise SkillError("The code of the skill is empty.")
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SkillError(f"The code of the skill is no Python: {clean_line(str(error))}.") from None


def check_description(text: str) -> None:
    """Raise ``SkillError`` when a text cannot describe a skill."""
    if not text.strip() or len(text) > DESCRIPTION or "\n---" in text:
        raise SkillError(
            f"The description of a skill has 1 to {DESCRIPTION:,} characters: what it does, in its first line."
        )


def manifest(name: str, description: str) -> str:
    """Return the text of a skill's ``SKILL.md``."""
    first, _, rest = description.strip().partition("\n")
    line = first.replace("\\", "\\\\").replace('"', '\\"')
    body = f"\n{rest.strip()}\n" if rest.strip() else ""
    return f'---\nname: {name}\ndescription: "{line}"\n---\n\n# {name}\n{body}\nUse it in code: `from skills import {name}`.\n'


def described(text: str) -> tuple[str, str]:
    """Return name and description that a ``SKILL.md`` gives; empty where it gives none."""
    front = _FRONT.match(text)
    found = dict(_FIELD.findall(front.group(1))) if front else {}
    words = found.get("description", "")
    if words in ("|", ">", ">-", "|-") and front is not None:  # a block: its first lines
        after = front.group(1).split("description:", 1)[1].splitlines()[1:]
        lines = []
        for line in after:
            if line[:1] not in (" ", "\t"):
                break
            lines.append(line.strip())
        words = " ".join(lines)
    if len(words) > 1 and words[0] == words[-1] and words[0] in "\"'":
        words = words[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return found.get("name", "").strip("\"'"), words


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return the digest of a skill's files with their names, whatever their order."""
    whole = hashlib.sha256()
    for name in sorted(files):
        data = files[name]
        whole.update(f"{len(name.encode())} {len(data)} ".encode() + name.encode() + data)
    return whole.hexdigest()


def difference(before: Mapping[str, bytes], after: Mapping[str, bytes], label: str) -> str:
    """Return how files differ from those that were promoted; ``label`` says what they are."""
    lines: list[str] = []
    for key in sorted({*before, *after}):
        was, now = (files.get(key, b"").decode("utf-8", "replace").splitlines() for files in (before, after))
        lines += difflib.unified_diff(was, now, f"promoted/{key}", f"{label}/{key}", lineterm="")
    return "\n".join(lines)


def risks(files: Mapping[str, bytes]) -> list[str]:
    """Return what a reader should look at, a sentence each. That nothing is found says nothing."""
    found: list[str] = []
    for name, data in sorted(files.items()):
        text = data.decode("utf-8", "replace")
        signs = sorted({f"U+{ord(sign):04X}" for sign in text if sign not in "\n\t\r" and suspect(sign)})
        if signs:
            found.append(f"{name} has signs that do not show or change the order: {', '.join(signs[:8])}.")
        if _BASE64.search(text):
            found.append(f"{name} has a long text that may be encoded data.")
        addresses = sorted(set(_ADDRESS.findall(text)))
        if addresses:
            found.append(f"{name} names addresses: {clean_line(', '.join(addresses[:5]), 200)}.")
        if name.endswith(".py"):
            found += _in_code(name, text)
    return found


def _in_code(name: str, text: str) -> list[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [f"{name} is no Python."]
    modules: set[str] = set()
    calls: set[str] = set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            calls.add(called)
            if called == "open" and len(node.args) > 1 and "r" not in ast.unparse(node.args[1]):
                calls.add("open for writing")
        elif isinstance(node, ast.Name):
            names.add(node.id)
    found = []
    if odd := sorted(modules & (_MODULES | {"tools"})):
        found.append(f"{name} imports {', '.join(odd)}.")
    if odd := sorted(calls & (_CALLS | {"open for writing", "call_mcp_tool", "parallel"})):
        found.append(f"{name} calls {', '.join(odd)}.")
    if odd := sorted(
        each for each in names if not each.isascii() or unicodedata.normalize("NFKC", each) != each
    ):
        found.append(
            f"{name} has names with letters that may look like others: {clean_line(', '.join(odd[:5]), 100)}."
        )
    return found
