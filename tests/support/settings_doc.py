"""Writes the documentation of the settings from the settings themselves.

``python tests/support/settings_doc.py env > .env.example`` and ``… table`` for the README.
"""

from __future__ import annotations

import dataclasses
import sys
import textwrap
from pathlib import Path
from typing import Any

from sandbox_chat.settings import Secret, fields, variable

GROUPS = {
    "model": "Model: a key of your own, or a gateway, or the demo",
    "sandbox": "Sandbox: where code runs",
    "tools": "Tools: what one call may give back",
    "interface": "Interface",
    "program": "Program",
}
HEAD = """\
# Settings of Sandbox Chat. Copy this file to .env in the folder where you start the program and
# take the "# " away before what you change. A variable that is set in the environment wins over this file.
# The same settings can be in config.toml in your configuration folder, by their lower-case name.
# Never commit a .env file that holds a key.
"""
PLACEHOLDERS = {
    "SANDBOX_CHAT_PII_PASSPHRASE": "…",
    "SANDBOX_CHAT_CODE_MODE_POLICY": "git=read-only,time=free",
    "SANDBOX_CHAT_PII_PATTERNS": '[{"name": "STAFF", "regex": "E-[0-9]{6}"}]',
    "SANDBOX_CHAT_PII_REVEAL": "mail/send/to",
    "SANDBOX_CHAT_SKILLS_DIR": "~/skills",
    "SANDBOX_CHAT_HTTP_TOKEN": "a-long-random-word",
    "ANTHROPIC_API_KEY": "your-key",
    "ANTHROPIC_BASE_URL": "https://gateway.example.com",
    "ANTHROPIC_AUTH_TOKEN": "your-token",
    "CLAUDE_MODEL": "claude-sonnet-5-5",
    "SANDBOX_CHAT_EFFORT": "high",
    "SANDBOX_CHAT_THINKING": "on",
    "SANDBOX_CHAT_SILENCE_TIMEOUT": "660",
    "E2B_API_KEY": "your-key",
    "E2B_API_URL": "https://api.cloud.example.com",
    "E2B_DOMAIN": "cloud.example.com",
    "E2B_SANDBOX_URL": "https://sandbox.cloud.example.com",
    "CUBE_PROXY_NODE_IP": "10.0.0.5",
    "SANDBOX_CHAT_E2B_TAG": "my-project",
    "SANDBOX_CHAT_DOCKER_IMAGE": "my-image:latest",
    "SANDBOX_CHAT_SANDBOX_WORKSPACE": "./workspace",
    "SANDBOX_PYTHON": "/usr/bin/python3",
    "SANDBOX_CHAT_MCP": "time,git",
    "SANDBOX_CHAT_MCP_CONFIG": "~/.mcp.json",
    "SANDBOX_CHAT_MCP_ALLOW": "time/*,git/git_log",
    "SANDBOX_CHAT_SANDBOX_MCP": "time,fetch",
    "CUBE_MCP_TEMPLATE_ID": "mcp-gateway",
    "CUBE_TEMPLATE_ID": "my-template",
    "SANDBOX_CHAT_LOCAL_TOOLS": "Read,Glob,Grep",
    "SANDBOX_CHAT_DOWNLOADS_DIR": "~/Downloads",
    "SANDBOX_CHAT_DATA_DIR": "~/sandbox-chat",
    "SANDBOX_CHAT_LOG": "sandbox-chat.log",
}


def default_text(item: dataclasses.Field[Any]) -> str:
    """Return a setting's default as it would be written, empty if it has none."""
    value = item.default
    if value is None or value == () or isinstance(value, Secret):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def not_here(item: dataclasses.Field[Any]) -> str:
    """Return what is said of a setting that a folder's ``.env`` may not set."""
    if item.metadata["own"]:
        return " Not taken from .env: set it in the environment or in config.toml."
    listed = ", ".join(item.metadata["own_values"])
    return f" {listed} is not taken from .env." if listed else ""


def env_example() -> str:
    """Return the text of ``.env.example``."""
    parts = [HEAD]
    group = ""
    for item in fields():
        if item.metadata["group"] != group:
            group = item.metadata["group"]
            parts.append(f"\n# --- {GROUPS[group]} ---\n")
        name = variable(item)
        default = default_text(item)
        about = item.metadata["doc"] + (f" Default: {default}." if default else "") + not_here(item)
        parts.append("\n" + "".join(f"# {line}\n" for line in textwrap.wrap(about, 98)))
        parts.append(f"# {name}={default or PLACEHOLDERS[name]}\n")
    return "".join(parts)


def table() -> str:
    """Return all settings as Markdown tables, one for each group."""
    parts = []
    group = ""
    for item in fields():
        if item.metadata["group"] != group:
            group = item.metadata["group"]
            parts.append(
                f"\n**{GROUPS[group]}**\n\n| variable | in `config.toml` | default | what it is |\n|---|---|---|---|\n"
            )
        default = default_text(item)
        shown = f"`{default}`" if default else "–"
        parts.append(
            f"| `{variable(item)}` | `{item.name}` | {shown} | {item.metadata['doc']}{not_here(item)} |\n"
        )
    return "".join(parts).lstrip("\n")


def example_file() -> Path:
    """Where ``.env.example`` lies."""
    return Path(__file__).parents[2] / ".env.example"


if __name__ == "__main__":
    sys.stdout.write({"env": env_example, "table": table}[sys.argv[1]]())
