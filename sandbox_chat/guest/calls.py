"""What code in a sandbox finds as ``tools`` and ``skills``: the host's MCP tools and the user's skills, over a socket in a file.

The same file is used by the guest and, as text, in a cloud's own kernel: Python 3.8 and the standard library suffice.
A call is one connection: ``u32 length, JSON`` there and back. To end it early the connection is closed.
"""

from __future__ import annotations

import base64
import builtins
import contextlib
import functools
import importlib.abc
import importlib.machinery
import inspect
import json
import keyword
import linecache
import os
import socket
import struct
import sys
import types
import unicodedata
from typing import Any, Callable, Iterable, Mapping, Sequence  # noqa: UP035 - Python 3.8 must read this

HEADER = struct.Struct("!I")
LONGEST = 1 << 30
"""Bytes of the longest answer; the host's own limit is lower."""
WORKERS = 64
"""Calls that are awaited or made side by side at the same time."""
_PIECE = 1 << 18


class ToolError(Exception):
    """A call of a tool did not give a result; the message says why, in the server's own words where it failed."""


class ToolArgumentError(ToolError, TypeError):
    """The arguments are not those that the tool takes; the message names them."""


class ToolNotFoundError(ToolError, LookupError):
    """There is no such tool, server or skill."""


class ToolDeniedError(ToolError, PermissionError):
    """The user, or what they have set, does not allow the call."""


class ToolTimeoutError(ToolError, TimeoutError):
    """The tool took longer than the call may."""


class ToolStoppedError(ToolError):
    """The call was stopped, or the run that may make calls is over."""


class ToolLimitError(ToolError):
    """A limit struck: too many calls, too long arguments, too large a result."""


ERRORS = {
    "arguments": ToolArgumentError,
    "unknown": ToolNotFoundError,
    "denied": ToolDeniedError,
    "timeout": ToolTimeoutError,
    "stopped": ToolStoppedError,
    "limit": ToolLimitError,
}


class Host:
    """Asks the host. ``ask`` from any thread and process of the sandbox."""

    def __init__(self, path: str, token: str) -> None:
        # The token shows in no attribute: code that prints what it finds does not print it.
        self.ask: Callable[..., Any] = functools.partial(_ask, path, lambda: token)

    def __repr__(self) -> str:
        return "<the way to the host's tools>"


def _ask(path: str, token: Callable[[], str], op: str, **fields: Any) -> Any:
    __tracebackhide__ = True
    try:
        body = json.dumps({"token": token(), "op": op, **fields}).encode("ascii")
    except (TypeError, ValueError, RecursionError) as problem:
        raise ToolArgumentError("The arguments cannot be written as JSON: {}.".format(problem)) from None  # noqa: UP032 - for Python 3.8 too
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            sock.connect(path)
            # What the host refuses by its length is not read to its end.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                sock.sendall(HEADER.pack(len(body)) + body)
            answer = _receive(sock)
        except OSError as problem:
            raise ToolStoppedError(f"The host does not answer ({problem.strerror or problem}).") from None
    if answer.get("ok"):
        return _value(answer)
    kind = ERRORS.get(str(answer.get("kind")), ToolError)
    raise kind(str(answer.get("text")))


def _receive(sock: socket.socket) -> Any:
    (length,) = HEADER.unpack(_exactly(sock, HEADER.size))
    if length > LONGEST:
        raise OSError("an answer that is too long")
    return json.loads(_exactly(sock, length).decode("utf-8"))


def _exactly(sock: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = sock.recv(min(_PIECE, count - len(data)))
        if not part:
            raise OSError("the connection was closed: the call was stopped, or no run may make calls now")
        data += part
    return bytes(data)


def _value(answer: Mapping[str, Any]) -> Any:
    """Return a result as a Python value: as it is, or its parts, texts and bytes."""
    if "parts" not in answer:
        return answer.get("value")
    try:
        parts = [
            base64.b64decode(part["data"]) if "data" in part else part["text"] for part in answer["parts"]
        ]
    except ValueError:
        raise ToolError("The tool gave damaged bytes.") from None
    return parts[0] if len(parts) == 1 else parts


# --- functions ----------------------------------------------------------------------------------------------


def functions(host: Host) -> dict[str, Any]:
    """Return the functions that code calls, by name."""

    def list_mcp_tools(query: str | None = None, detail: str = "summary") -> Any:
        """List the tools of the MCP servers, all or those that fit ``query``.

        ``detail``: ``names`` (a list of names ``server__tool``), ``summary`` (name and first line of each),
        ``full`` (with description and schema).
        """
        __tracebackhide__ = True
        return host.ask("list", query=query, detail=detail)

    def get_mcp_tool_details(name: str) -> Any:
        """Return description, schema and Python signature of the tool ``server__tool``."""
        __tracebackhide__ = True
        return host.ask("details", name=name)

    def call_mcp_tool(
        name: str, arguments: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> Any:
        """Call the tool ``server__tool``; returns its result as a Python value.

        Structured content as it is, else JSON as its value, else text; pictures as bytes. ``timeout`` in seconds.
        Raises ``tools.ToolError``.
        """
        __tracebackhide__ = True
        return host.ask("call", name=name, arguments=dict(arguments or {}), timeout=timeout)

    def search(query: str, limit: int = 8) -> Any:
        """Return name and first line of the tools that fit ``query`` best, the best first."""
        __tracebackhide__ = True
        return host.ask("search", query=query, limit=limit)

    def parallel(calls: Iterable[Sequence[Any]], timeout: float | None = None) -> list[Any]:
        """Make several calls ``(name, arguments)`` at the same time; returns their results in order.

        When some fail, the first of their errors is raised after all have ended.
        """
        from concurrent.futures import ThreadPoolExecutor

        wanted = [(call[0], call[1] if len(call) > 1 else None) for call in calls]
        with ThreadPoolExecutor(min(WORKERS, max(1, len(wanted)))) as pool:
            made = [pool.submit(call_mcp_tool, name, arguments, timeout) for name, arguments in wanted]
        return [each.result() for each in made]

    def list_skills(query: str | None = None) -> Any:
        """Return name and first line of the user's skills, all or those that fit ``query``."""
        __tracebackhide__ = True
        return host.ask("skills", query=query)

    def read_skill(name: str, file: str | None = None) -> Any:
        """Return the code of a skill, the text of one that is no code, or one of its other files."""
        __tracebackhide__ = True
        return host.ask("skill_text", name=name, file=file)

    def save_skill(name: str, code: str, description: str) -> Any:
        """Hand in code that worked as a draft of a skill. It can be imported once the user has promoted it."""
        __tracebackhide__ = True
        return host.ask("draft", name=name, code=code, description=description)

    made = (list_mcp_tools, get_mcp_tool_details, call_mcp_tool, search)
    more = (list_skills, read_skill, save_skill)
    found = {each.__name__: awaitable(each) for each in (*made, *more)}
    return {**found, "parallel": parallel}


def awaitable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function that waits a twin to be awaited, as ``function.aio``."""

    @functools.wraps(function)
    async def aio(*args: Any, **options: Any) -> Any:
        import asyncio

        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_pool(os.getpid()), functools.partial(function, *args, **options))

    aio.__name__ = function.__name__
    untyped: Any = function
    untyped.aio = aio
    return function


@functools.lru_cache(maxsize=1)
def _pool(_process: int) -> Any:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(WORKERS, thread_name_prefix="tools")


# --- typed functions for each server ------------------------------------------------------------------------


_KINDS = {
    "string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict,
}  # fmt: skip


class _Unset:
    def __repr__(self) -> str:
        return "..."


UNSET = _Unset()
"""Stands for an argument that is not given."""


def python_name(name: str, taken: Iterable[str] = ()) -> str:
    """Return a name as it is written in Python: hyphens become underscores, keywords and Python's own names get one at their end."""
    name = unicodedata.normalize("NFKC", name)  # as Python reads what is written in code
    word = "".join(sign if ("_" + sign).isidentifier() else "_" for sign in name) or "_"
    if not word.isidentifier():
        word = "_" + word
    if keyword.iskeyword(word) or (word[:2] == "__" == word[-2:] and word.strip("_")):
        word += "_"
    unique, number = word, 2
    while unique in taken:
        unique, number = f"{word}_{number}", number + 1
    return unique


def arguments_of(schema: Any) -> tuple[dict[str, Any], list[str], dict[str, str]]:
    """Return what a schema says of a tool's arguments: each by its name, those that are needed, and the names of all by
    those that they have in Python, in the order in which they are given there."""
    found = schema if isinstance(schema, dict) else {}
    properties, required = found.get("properties"), found.get("required")
    properties = properties if isinstance(properties, dict) else {}
    needed = [key for key in properties if isinstance(required, list) and key in required]
    if isinstance(required, list):
        needed.sort(key=required.index)
    names: dict[str, str] = {}
    for key in [*needed, *(key for key in properties if key not in needed)]:
        names[python_name(key, [*names, "timeout", "more"])] = key
    return properties, needed, names


def stub(host: Host, tool: Mapping[str, Any], name: str) -> Callable[..., Any]:
    """Return a function that calls ``tool``, with the signature and the docstring that its schema gives.

    ``tool`` holds ``name`` (the whole one), ``description`` and ``schema``.
    """
    schema = tool.get("schema") or {}
    properties, required, names = arguments_of(schema)
    usual = inspect.Parameter
    parameters = [
        usual(
            word,
            usual.POSITIONAL_OR_KEYWORD,
            default=usual.empty if key in required else UNSET,
            annotation=_annotation(properties[key]),
        )
        for word, key in names.items()
    ]
    parameters.append(usual("timeout", usual.KEYWORD_ONLY, default=None, annotation=float))
    if schema.get("additionalProperties") or not properties:
        parameters.append(usual("more", usual.VAR_KEYWORD))
    signature = inspect.Signature(parameters)

    def call(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        try:
            bound = signature.bind(*args, **options)
        except TypeError as problem:
            raise ToolArgumentError(f"{name}{signature}: {problem}") from None
        timeout = bound.arguments.pop("timeout", None)
        given = dict(bound.arguments.pop("more", {}))
        given.update({names[word]: value for word, value in bound.arguments.items() if value is not UNSET})
        return host.ask("call", name=tool["name"], arguments=given, timeout=timeout)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = _doc(str(tool.get("description") or ""), names, properties)
    untyped: Any = call
    untyped.__signature__ = signature
    untyped.__annotations__ = {each.name: each.annotation for each in parameters}
    return awaitable(call)


def _annotation(schema: Any) -> Any:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), None)
    return _KINDS.get(str(kind), Any)


def _doc(description: str, names: Mapping[str, str], properties: Mapping[str, Any]) -> str:
    lines = [description]
    for word, key in names.items():
        about = properties[key].get("description") if isinstance(properties[key], dict) else None
        if about:
            lines.append(f"{word}: {about}")
    return "\n".join(lines)


# --- modules ------------------------------------------------------------------------------------------------


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes the modules ``tools``, ``tools.<server>``, ``skills`` and ``skills.<name>``."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._functions = functions(host)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """Return how a module is made that is ours; ``None`` for all others."""
        top, _, rest = fullname.partition(".")
        if top not in ("tools", "skills") or "." in rest:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=not rest)

    def create_module(self, spec: Any) -> Any:
        """Return a new module."""
        return types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Fill it."""
        top, _, rest = module.__name__.partition(".")
        if top == "tools":
            self._tools(module, rest)
        else:
            self._skills(module, rest)

    def offer(self) -> None:
        """Make the functions known everywhere, without an import."""
        for name in ("list_mcp_tools", "get_mcp_tool_details", "call_mcp_tool", "save_skill"):
            setattr(builtins, name, self._functions[name])

    def _tools(self, module: Any, server: str) -> None:
        if not server:
            module.__doc__ = "The user's MCP tools: list_mcp_tools(), search(query), call_mcp_tool(name, arguments), from tools.<server> import <tool>."
            module.__dict__.update(self._functions)
            module.__dict__.update({each.__name__: each for each in (ToolError, *ERRORS.values())})
            module.__all__ = [*self._functions, "ToolError"]
            return
        try:
            found = self.host.ask("server", name=server)
        except ToolNotFoundError as problem:
            raise ModuleNotFoundError(str(problem), name=module.__name__) from None
        module.__doc__ = f"Tools of the MCP server {found['server']}."
        names: list[str] = []
        for tool in found["tools"]:
            names.append(python_name(tool["tool"], names))
            setattr(module, names[-1], stub(self.host, tool, names[-1]))
        module.__all__ = names

    def _skills(self, module: Any, name: str) -> None:
        if not name:
            module.__doc__ = "The user's skills: from skills import <name>. tools.list_skills() lists them."
            module.__getattr__ = functools.partial(_attribute, "skills")
            return
        try:
            found = self.host.ask("skill", name=name)
        except ToolNotFoundError as problem:
            raise ModuleNotFoundError(str(problem), name=module.__name__) from None
        except ToolError as problem:
            raise ImportError(str(problem), name=module.__name__) from None
        source = str(found["source"])
        place = f"<skill {name}>"
        module.__file__ = place
        module.__version__ = found.get("version")
        linecache.cache[place] = (len(source), None, source.splitlines(True), place)
        exec(compile(source, place, "exec"), module.__dict__)  # noqa: S102 - what an import is


def _attribute(package: str, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    import importlib

    try:
        return importlib.import_module(f"{package}.{name}")
    except ModuleNotFoundError as problem:
        raise AttributeError(str(problem)) from None


def install(path: str, token: str) -> None:
    """Offer the host's tools to code in this process; the host listens at ``path``. An earlier offer is withdrawn."""
    for found in [each for each in sys.meta_path if type(each).__name__ == Finder.__name__]:
        sys.meta_path.remove(found)
    for name in [each for each in sys.modules if each.partition(".")[0] in ("tools", "skills")]:
        loader = getattr(getattr(sys.modules[name], "__spec__", None), "loader", None)
        if type(loader).__name__ == Finder.__name__:
            del sys.modules[name]
    finder = Finder(Host(path, token))
    sys.meta_path.insert(0, finder)
    finder.offer()
