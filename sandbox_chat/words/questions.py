"""What the user is asked about a call of an MCP server's tool, and how a question was answered.

The English texts are also what is recorded with the session. ``{tool}``, ``{name}`` and ``{server}`` are names as the
server or the user gave them.
"""

from __future__ import annotations

EN = {
    "mcp_tool": "Run {tool} of the server {server}?",
    "mcp_tool_once": "run it once",
    "mcp_tool_session": "always run this tool in this session",
    "mcp_tool_never": "never run this tool in this session",
    "mcp_tool_no": "do not run it",
    "mcp_tool_called": "The server calls it {name}.",
    "mcp_tool_here": "It runs on this computer, with your rights.",
    "mcp_tool_there": "It goes to {host}.",
    "mcp_tool_changed": "It is not as it was when it was allowed:",
    "mcp_tool_unreadable": "The record of what was allowed cannot be read ({reason}): {path}",
    "withdrawn": "withdrawn",
    "by_default": "{label} (nobody was asked)",
    "by_option": "{label} (option of the command line)",
}

ZH = {
    "mcp_tool": "运行服务器 {server} 的 {tool}？",
    "mcp_tool_once": "运行一次",
    "mcp_tool_session": "本会话内始终运行此工具",
    "mcp_tool_never": "本会话内绝不运行此工具",
    "mcp_tool_no": "不运行",
    "mcp_tool_called": "服务器中的名称是 {name}。",
    "mcp_tool_here": "它在本机运行，拥有你的权限。",
    "mcp_tool_there": "它会发送到 {host}。",
    "mcp_tool_changed": "它与允许时已不相同：",
    "mcp_tool_unreadable": "无法读取已允许内容的记录（{reason}）：{path}",
    "withdrawn": "已撤回",
    "by_default": "{label}（无人可问）",
    "by_option": "{label}（命令行选项）",
}
