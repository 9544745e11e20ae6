"""Which names a piece of Python needs, sets and may change, read from its text. Nothing is run."""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import re
import symtable
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

RANDOM = "(random numbers)"
"""Stands for the state of the generators of random numbers that libraries keep."""

_BUILTIN = frozenset(dir(builtins))
_PURE = frozenset(
    [
        "abs", "all", "any", "bool", "callable", "chr", "complex", "dict", "divmod", "enumerate", "filter",
        "float", "format", "frozenset", "getattr", "hasattr", "hash", "hex", "id", "int", "isinstance",
        "issubclass", "iter", "len", "list", "map", "max", "min", "oct", "ord", "pow", "print", "range",
        "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "type", "vars", "zip",
    ]
)  # fmt: skip
"""Functions that change nothing of what they are given."""
_CELL_MAGIC = re.compile(r"^%%(?:time|timeit|capture|prun|python3?|debug)\b.*")
_LINE_MAGIC = re.compile(r"^(\s*)(?:[%!?].*|[\w.]+\?{1,2}\s*)$")
_TAKEN = re.compile(r"^(\s*[\w, ]+=\s*)[%!].*$")
_WHERE = re.compile(
    r'^(?:  \| )?\s*(?:Cell In\s?\[\d+\], line (\d+)\s*|File "<ipython-input-\d+-[^"]{1,80}", line (\d+), in <module>)$',
    re.MULTILINE,
)
"""The frame of the code itself in a traceback: frames of functions say ``in f(x)`` after it."""
_CHAINED = re.compile(
    r"^(?:During handling of the above exception|The above exception was the direct cause)", re.MULTILINE
)
_ARROW = re.compile(r"^\s*-+> *(\d+) ?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Names:
    """Names at the level of a piece of code, not of its functions.

    ``needs`` must be there before; ``sets`` are set for certain, ``binds`` perhaps; what ``touches`` names may be
    changed. ``modules`` are the packages that are imported. ``unclear``: the code could not be read, or sets names
    that it does not tell.
    """

    needs: frozenset[str] = frozenset()
    sets: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    touches: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    unclear: bool = False


def names_of(code: str) -> Names:
    """Return the names of a cell."""
    tree = parse(code)
    if tree is None:
        return Names(unclear=True)
    try:
        return _names(tree.body)
    except RecursionError:
        return Names(unclear=True)


def parse(code: str) -> ast.Module | None:
    """Return the syntax of a cell, the commands of IPython left out; ``None`` for what is no Python."""
    for text in (code, _without_magics(code)):
        try:
            with _unsaid():
                return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


@contextlib.contextmanager
def _unsaid() -> Iterator[None]:
    """Nothing is printed of what Python finds odd in somebody's code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _without_magics(code: str) -> str:
    """Return a cell with the same lines in which IPython's own commands do nothing."""
    lines = code.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        if _CELL_MAGIC.fullmatch(lines[first]) is None:
            return "\n" * (len(lines) - 1)  # another language
        lines[first] = ""
    lines = [_TAKEN.sub(r"\1None", line) for line in lines]
    return "\n".join(_LINE_MAGIC.sub(r"\1pass", line) for line in lines)


def _names(body: list[ast.stmt]) -> Names:
    reader = _Reader()
    sets: set[str] = set()
    reader.block(body, sets)
    return Names(
        needs=frozenset((reader.needs | (reader.later - reader.binds)) - _BUILTIN),
        sets=frozenset(sets),
        binds=frozenset(reader.binds),
        touches=frozenset(reader.touches - _BUILTIN - reader.imported),
        modules=frozenset(reader.modules),
        unclear=reader.star,
    )


class _Reader:
    """Follows a cell from statement to statement. ``sets``: what is set for certain at the place where it is."""

    def __init__(self) -> None:
        self.needs: set[str] = set()
        self.later: set[str] = set()
        self.binds: set[str] = set()
        self.touches: set[str] = set()
        self.imported: set[str] = set()
        self.modules: set[str] = set()
        self.star = False

    def block(self, body: list[ast.stmt], sets: set[str]) -> set[str]:
        """Read statements that run one after the other; ``sets`` grows, and is returned."""
        for statement in body:
            self._statement(statement, sets)
        return sets

    def _statement(self, statement: ast.stmt, sets: set[str]) -> None:
        match statement:
            case ast.If():
                self._leaf(statement.test, sets)
                first, second = self.block(statement.body, {*sets}), self.block(statement.orelse, {*sets})
                sets |= first & second
            case ast.For() | ast.AsyncFor():
                self._leaf(statement.iter, sets)
                self.block(statement.body, sets | self._target(statement.target, sets))
                self.block(statement.orelse, {*sets})
            case ast.While():
                self._leaf(statement.test, sets)
                self.block(statement.body, {*sets})
                self.block(statement.orelse, {*sets})
            case ast.With() | ast.AsyncWith():
                for item in statement.items:
                    self._leaf(item.context_expr, sets)
                    if item.optional_vars is not None:
                        sets |= self._target(item.optional_vars, sets)
                self.block(statement.body, sets)
            case ast.Try() | ast.TryStar():
                self._try(statement, sets)
            case ast.Match():
                self._leaf(statement.subject, sets)
                for case in statement.cases:
                    named = {name for node in ast.walk(case.pattern) if (name := _captured(node))}
                    self.binds |= named
                    inner = sets | named
                    if case.guard is not None:
                        self._leaf(case.guard, inner)
                    self.block(case.body, inner)
            case _:
                self._leaf(statement, sets)

    def _try(self, statement: ast.Try | ast.TryStar, sets: set[str]) -> None:
        before = {*sets}
        outcomes = [self.block(statement.orelse, self.block(statement.body, {*before}))]
        for handler in statement.handlers:
            inner = {*before}
            if handler.type is not None:
                self._leaf(handler.type, inner)
            if handler.name:
                self.binds.add(handler.name)
                inner.add(handler.name)
            outcomes.append(self.block(handler.body, inner) - {handler.name or ""})
        sets |= set.intersection(*outcomes)
        self.block(statement.finalbody, sets)

    def _target(self, target: ast.expr, sets: set[str]) -> set[str]:
        """Return the names that a loop or a ``with`` sets."""
        named = {node.id for node in ast.walk(target) if isinstance(node, ast.Name) and not _loaded(node)}
        self.needs |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and _loaded(n)} - sets
        self.binds |= named
        self.touches |= _touched(target)
        return named

    def _leaf(self, node: ast.stmt | ast.expr, sets: set[str]) -> None:
        """Read a statement, or an expression, in which nothing is decided."""
        now, later, assigned = _scopes(node)
        self.needs |= (now | _augmented(node)) - sets
        self.later |= later
        self.binds |= assigned
        self.touches |= _touched(node)
        sets |= assigned
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                self._imported(inner)

    def _imported(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.ImportFrom):
            self.star |= any(alias.name == "*" for alias in node.names)
            if node.module and not node.level:
                self.modules.add(node.module.partition(".")[0])
            return
        for alias in node.names:
            self.modules.add(alias.name.partition(".")[0])
            self.imported.add(alias.asname or alias.name.partition(".")[0])


def _loaded(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _captured(node: ast.AST) -> str:
    """Return the name that a part of a pattern sets; empty if it sets none."""
    if isinstance(node, ast.MatchAs | ast.MatchStar):
        return node.name or ""
    return (node.rest or "") if isinstance(node, ast.MatchMapping) else ""


def _scopes(statement: ast.stmt | ast.expr) -> tuple[set[str], set[str], set[str]]:
    """Return the names that a statement uses at once, those that its functions use later, and those that it sets."""
    now: set[str] = set()
    later: set[str] = set()
    assigned: set[str] = set()
    try:
        with _unsaid():
            top = symtable.symtable(_apart(statement), "<cell>", "exec")
    except (SyntaxError, ValueError, RecursionError):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                (now if isinstance(node.ctx, ast.Load) else assigned).add(node.id)
        return now, later, assigned
    for symbol in top.get_symbols():
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
            assigned.add(symbol.get_name())
        if symbol.is_referenced():
            now.add(symbol.get_name())
    for table, deferred in _inner(top, deferred=False):
        for symbol in table.get_symbols():
            if not symbol.is_global():
                continue
            if symbol.is_referenced():
                (later if deferred else now).add(symbol.get_name())
            if symbol.is_declared_global() and symbol.is_assigned():
                assigned.add(symbol.get_name())
    # A comprehension's own scope is no name of the cell.
    return now, later, {name for name in assigned if name.isidentifier()}


class _Generators(ast.NodeTransformer):
    """Writes comprehensions as generators, which have the same names."""

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        self.generic_visit(node)
        return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)


def _apart(statement: ast.stmt | ast.expr) -> str:
    """Return the text of a statement in which each comprehension has a scope: from Python 3.12 on only generators have."""
    if any(isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp) for node in ast.walk(statement)):
        statement = _Generators().visit(copy.deepcopy(statement))
    return ast.unparse(statement)


_AT_ONCE = (
    "listcomp",
    "setcomp",
    "dictcomp",
    "genexpr",
    "<listcomp>",
    "<setcomp>",
    "<dictcomp>",
    "<genexpr>",
)


def _inner(table: symtable.SymbolTable, *, deferred: bool) -> Iterator[tuple[symtable.SymbolTable, bool]]:
    for child in table.get_children():
        late = deferred or (child.get_type() == "function" and child.get_name() not in _AT_ONCE)
        yield child, late
        yield from _inner(child, deferred=late)


def _here(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run with a statement: not the bodies of functions."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _here(child)


def _augmented(statement: ast.AST) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return set()
    return {
        node.target.id
        for node in _here(statement)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }


def _touched(statement: ast.AST) -> set[str]:
    """Return the names whose values a statement may change without setting them."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return set()
    found: set[str] = set()
    for node in _here(statement):
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                found |= _root(node)
            case ast.AugAssign():
                found |= _root(node.target)
            case ast.Call(func=ast.Name(id=name)) if name in _PURE:
                continue
            case ast.Call():
                found |= _root(node.func)
                for given in (*node.args, *(keyword.value for keyword in node.keywords)):
                    found |= _root(given)
        if isinstance(node, ast.Attribute) and node.attr == "random":
            found.add(RANDOM)
        if isinstance(node, ast.Name) and node.id == "random":
            found.add(RANDOM)
    return found


def _root(node: ast.AST) -> set[str]:
    """Return the name at the beginning of ``a.b[c].d``."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def needed(names: Names) -> frozenset[str]:
    """Return what must be as it was before some code runs: what it needs, and the state of random numbers."""
    return names.needs | ({RANDOM} & names.touches)


def lines_run(code: str, traceback: str) -> int | None:
    """Return how many of the first lines of a cell that failed had run whole; ``None`` when that is not known."""
    tree = parse(code)
    if tree is None:
        return 0 if not _is_magic(code) else None
    line = _failing_line(code, traceback)
    if line is None:
        return None
    for statement in tree.body:
        first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
        if first <= line <= (statement.end_lineno or first):
            before = [each for each in tree.body if (each.end_lineno or 0) < first]
            return max((each.end_lineno or 0 for each in before), default=0)
    return None


def _is_magic(code: str) -> bool:
    return code.lstrip().startswith("%%")


def _failing_line(code: str, traceback: str) -> int | None:
    starts = [match.start() for match in _CHAINED.finditer(traceback)]
    found = _WHERE.search(traceback, starts[-1] if starts else 0) or _WHERE.search(traceback)
    if found is None:
        return None
    line = int(found[1] or found[2])
    lines = code.split("\n")
    if not 1 <= line <= len(lines):
        return None
    arrow = _ARROW.search(traceback, found.end())
    # The text of the line beside the arrow tells whether the traceback is of this code at all.
    if found[1] and (arrow is None or int(arrow[1]) != line or arrow[2].strip() != lines[line - 1].strip()):
        return None
    return line


def outside_packages(modules: frozenset[str]) -> list[str]:
    """Return those of the modules that do not come with Python, by name."""
    return sorted(
        name for name in modules if name not in sys.stdlib_module_names and not name.startswith("_")
    )
