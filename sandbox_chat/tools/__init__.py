"""The tools that the model may call, as async functions over a sandbox, and the MCP server made from them.

``context`` and ``schemas`` are light; ``server`` imports the MCP library and is imported where it is used.
"""

from sandbox_chat.tools.context import ImageBlock, TextBlock, ToolContext, ToolOutcome
from sandbox_chat.tools.schemas import SERVER_NAME, TOOL_PREFIX

__all__ = ["SERVER_NAME", "TOOL_PREFIX", "ImageBlock", "TextBlock", "ToolContext", "ToolOutcome"]
