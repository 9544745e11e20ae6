"""Finding Python in what a user types: fenced, after a verb, or as it stands."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection

from sandbox_chat.demo.talk import parse

PROMPT_LIMIT = 20_000
"""Characters of a prompt that is looked at as possible code; more is not parsed."""
FENCE_LIMIT = 200_000
"""Characters of a prompt that are searched for fences."""

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([\w+.-]*)[ \t]*(.*?)[ \t]*$")
_PYTHON = {"", "py", "python", "python3", "ipython", "pycon", "py3"}
_VERB = re.compile(
    r"^(?:please\s+|can you\s+|could you\s+|请|帮我)*"
    r"(?P<verb>run|execute|eval(?:uate)?|python|calculate|compute|what(?:'s| is)|how much is|"
    r"运行|执行|计算|算一下|算算|算)"
    r"(?:\s+(?:this|the)?\s*(?:following\s+)?(?:python\s+)?(?:code|代码))?(?P<colon>\s*[:：])?\s*(?P<rest>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_TICKS = re.compile(r"`([^`\n]+)`")
_MAGIC = re.compile(r"^(?:%{1,2}[a-z]\w*|![a-z./~])", re.IGNORECASE)
_BUILTINS = frozenset(dir(builtins))
_STRONG = (
    ast.Assign, ast.AugAssign, ast.Import, ast.ImportFrom, ast.For, ast.While, ast.If, ast.With,
    ast.Try, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Match, ast.ListComp, ast.DictComp,
    ast.GeneratorExp, ast.SetComp, ast.NamedExpr, ast.Lambda,
)  # fmt: skip


def fenced(prompt: str) -> list[tuple[str, str]]:
    """The fenced blocks of a prompt as (language, code); an unclosed fence reaches to the end."""
    found: list[tuple[str, str]] = []
    mark, language, lines = "", "", list[str]()
    for line in prompt[:FENCE_LIMIT].splitlines():
        match = _FENCE.match(line)
        if not mark and match and "`" not in match[3]:
            mark, language, lines = match[1], match[2].lower(), []
        elif mark and match and match[1].startswith(mark) and not (match[2] or match[3]):
            found.append((language, "\n".join(lines)))
            mark = ""
        elif mark:
            lines.append(line)
    if mark:
        found.append((language, "\n".join(lines)))
    if not found:
        _, opened, rest = prompt[:FENCE_LIMIT].partition("```")
        inline, closed, _ = rest.partition("```")
        if opened and closed:
            found = [("", inline.strip())]
    return [(language, code) for language, code in found if code.strip()]


def is_python(language: str) -> bool:
    """True for the names that a fence of Python may carry, or none."""
    return language in _PYTHON


def without_prompts(code: str) -> str:
    """Drop the ``>>>`` and ``...`` of a copied interpreter session, and its output lines."""
    if not re.search(r"^>>> ?", code, re.MULTILINE):
        return code
    kept = re.findall(r"^(?:>>>|\.\.\.)(?: (.*))?$", code, re.MULTILINE)
    return "\n".join(kept)


def find(prompt: str, names: Collection[str] = ()) -> str:
    """Return the Python that ``prompt`` asks to run, or ``""``. ``names`` are variables known from before."""
    blocks = [code for language, code in fenced(prompt) if is_python(language)]
    if blocks:
        return without_prompts("\n\n".join(blocks))
    if len(prompt) > PROMPT_LIMIT:
        return ""
    text = prompt.strip()
    if text.startswith(">>>"):
        return without_prompts(text)
    if _MAGIC.match(text) and "\n" not in text:
        return text
    if looks_like_python(text, names):
        return text
    return _after_verb(text, names)


def _after_verb(text: str, names: Collection[str]) -> str:
    match = _VERB.match(text)
    if match is None:
        return ""
    rest = match["rest"].strip()
    if (ticks := _TICKS.search(rest)) and parse(ticks[1]) is not None:
        return ticks[1]
    strict = match["verb"].lower() in ("run", "execute", "python", "运行", "执行")
    if not strict:
        # Arithmetic as people write it.
        rest = rest.rstrip(" ?？=。.").replace("^", "**").replace("×", "*").replace("÷", "/")
    if match["colon"] and parse(rest) is not None:
        return rest
    return rest if looks_like_python(rest, names) else ""


def looks_like_python(text: str, names: Collection[str] = ()) -> bool:
    """True when ``text`` is Python that somebody means to run, not a sentence that happens to parse.

    "hello", "half-life", "note: this" and "continue" parse as Python, too. So a statement must do something
    (assign, import, call, loop), or be about numbers, builtins and known variables only.
    """
    tree = parse(text)
    if tree is None or not tree.body:
        return False
    known = _BUILTINS.union(names)
    nodes = list(ast.walk(tree))
    if any(isinstance(node, _STRONG) for node in nodes):
        return True
    if any(isinstance(node, ast.AnnAssign) and node.value is not None for node in nodes):
        return True
    used = [node.id for node in nodes if isinstance(node, ast.Name)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    if calls:
        return any(_serious(call, known) for call in calls)
    if any(not isinstance(item, ast.Expr | ast.Assert | ast.Delete) for item in tree.body):
        return False
    if any(name not in known and not _short(name) for name in used):
        return False
    if len(nodes) <= 4 and all(isinstance(item, ast.Expr) for item in tree.body):
        # A lone word or number: only a variable that exists.
        return len(used) == 1 and used[0] in names
    return True


def _serious(call: ast.Call, known: Collection[str]) -> bool:
    """True for a call that is no remark in brackets: ``print(x)``, ``df.head()``, ``f(3)``, not ``thanks (really)``."""
    if not isinstance(call.func, ast.Name) or call.func.id in known or not (call.args or call.keywords):
        return True
    return any(not isinstance(arg, ast.Name) or arg.id in known or _short(arg.id) for arg in call.args)


def _short(name: str) -> bool:
    """True for names that are variables even if nothing has set them yet."""
    return len(name) == 1 or name == "df"
