"""A chat with the demo model without any network: its tool calls are carried out in this process.

``Chat.ask`` goes round as the agent's program does: request, tool call, result, request … answer.
"""

from __future__ import annotations

import contextlib
import io
import json
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox_chat.demo.model import DemoModel
from sandbox_chat.demo.reply import Text, ToolUse, complete
from sandbox_chat.demo.wire import Request, parse_request

TOOLS = ("run_code", "write_file", "read_file", "read_image", "list_files", "download_file")


class PlainPython:
    """Runs code in one namespace, in this process; ``/tmp`` in code and paths is ``folder``. Only for the demo's own code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def place(self, text: str) -> str:
        """Put ``folder`` in place of ``/tmp``."""
        return text.replace("/tmp/", f"{self.folder}/").replace("'/tmp'", repr(str(self.folder)))

    def run_code(self, code: str, timeout: int = 25) -> dict[str, Any]:
        """Run code and answer in the sections of the real tool."""
        import ast

        import matplotlib

        matplotlib.use("Agg")
        out = io.StringIO()
        value: Any = None
        try:
            tree = ast.parse(self.place(code))
            last = tree.body[-1] if tree.body else None
            if isinstance(last, ast.Expr):
                tree.body.pop()
            with contextlib.redirect_stdout(out):
                exec(compile(tree, "<cell>", "exec"), self.names)
                if isinstance(last, ast.Expr):
                    value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), self.names)
        except BaseException as error:
            lines = traceback.format_exception(error)
            parts = ["[success] False"]
            if out.getvalue():
                parts.append("[stdout]\n" + out.getvalue())
            parts.append(f"[error]\n{type(error).__name__}: {error}")
            parts.append("[traceback]\n" + "".join(lines))
            return {"content": "\n".join(parts), "is_error": True}
        parts = ["[success] True"]
        if out.getvalue():
            parts.append("[stdout]\n" + out.getvalue())
        if value is not None:
            parts.append(f"[result]\n{value!r}")
        return {"content": [{"type": "text", "text": "\n".join(parts)}], "is_error": False}

    def write_file(self, path: str, content: str) -> dict[str, Any]:
        """Write a text file."""
        Path(self.place(path)).write_text(content)
        return {"content": [{"type": "text", "text": f"wrote {path}"}]}

    def read_file(self, path: str) -> dict[str, Any]:
        """Read a text file."""
        return {"content": [{"type": "text", "text": Path(self.place(path)).read_text()}]}

    def read_image(self, path: str) -> dict[str, Any]:
        """Check that a picture is there."""
        if not Path(self.place(path)).read_bytes().startswith(b"\x89PNG"):
            return {"content": "not a picture", "is_error": True}
        source = {"type": "base64", "media_type": "image/png", "data": ""}
        return {"content": [{"type": "image", "source": source}]}

    def list_files(self, path: str = "/tmp") -> dict[str, Any]:
        """List the folder."""
        return {
            "content": [{"type": "text", "text": "\n".join(sorted(p.name for p in self.folder.iterdir()))}]
        }

    def download_file(self, path: str) -> dict[str, Any]:
        """Pretend to download."""
        size = len(Path(self.place(path)).read_bytes())
        return {"content": [{"type": "text", "text": f"saved {path} ({size} bytes)"}]}


@dataclass
class Answered:
    """What one prompt led to."""

    text: str
    calls: list[ToolUse] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def codes(self) -> list[str]:
        """The code of the ``run_code`` calls."""
        return [str(call.input["code"]) for call in self.calls if call.name.endswith("run_code")]


class Chat:
    """A chat: ``tools`` carries out calls by name (an object with methods, or a function of name and arguments)."""

    def __init__(
        self,
        tools: object | Callable[[str, dict[str, Any]], dict[str, Any]],
        *,
        offered: tuple[str, ...] = TOOLS,
    ) -> None:
        self.model = DemoModel(pace=0)
        self.tools = tools
        self.offered = offered
        self.system = ""
        self.messages: list[dict[str, Any]] = []

    def request(self) -> Request:
        """The request for the history as it stands, through the wire's own parser."""
        body = {
            "model": "demo",
            "max_tokens": 1000,
            "stream": True,
            "system": self.system,
            "messages": self.messages,
            "tools": [{"name": f"mcp__sandbox__{name}", "input_schema": {}} for name in self.offered],
        }
        return parse_request(json.dumps(body).encode())

    def ask(self, prompt: str, *, limit: int = 30) -> Answered:
        """Send a prompt and go round until the answer has no tool call."""
        self.messages.append({"role": "user", "content": [{"type": "text", "text": prompt}]})
        answered = Answered("")
        for _ in range(limit):
            request = self.request()
            reply = complete(self.model.reply(request), request)
            content: list[dict[str, Any]] = []
            results: list[dict[str, Any]] = []
            for block in reply.blocks:
                if isinstance(block, Text):
                    content.append({"type": "text", "text": block.text})
                    answered.said.append(block.text)
                elif isinstance(block, ToolUse):
                    content.append(
                        {"type": "tool_use", "id": block.id, "name": block.name, "input": dict(block.input)}
                    )
                    answered.calls.append(block)
                    result = self._carry_out(block)
                    answered.results.append(result)
                    results.append({"type": "tool_result", "tool_use_id": block.id, **result})
            self.messages.append({"role": "assistant", "content": content})
            if not results:
                answered.text = answered.said[-1]
                return answered
            self.messages.append({"role": "user", "content": results})
        raise AssertionError("the model does not come to an end")

    def _carry_out(self, block: ToolUse) -> dict[str, Any]:
        name = block.name.removeprefix("mcp__sandbox__")
        if callable(self.tools):
            result: dict[str, Any] = self.tools(name, dict(block.input))
            return result
        try:
            done: dict[str, Any] = getattr(self.tools, name)(**block.input)
        except Exception as error:
            return {"content": f"{type(error).__name__}: {error}", "is_error": True}
        return done
