"""The command ``mcp``: lists the servers that can be switched on, adds, removes and tries them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sandbox_chat import words
from sandbox_chat.settings import Settings
from sandbox_chat.settings_sources import working_folder

if TYPE_CHECKING:
    import argparse


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Do what the arguments of ``mcp`` say; return the exit code. Raises ``ConfigError``."""
    words.use(words.choose(settings.language, os.environ))
    environ, folder = dict(os.environ), working_folder()
    as_json = getattr(options, "json", False)
    if options.action == "add":
        from sandbox_chat.mcp_face import adding

        return adding.add(settings, options, environ, folder)
    if options.action == "remove":
        from sandbox_chat.mcp_face import adding

        return adding.remove(settings, options.name, environ, folder)
    if options.action == "test":
        from sandbox_chat.mcp_face import trying

        return trying.test(settings, options.name, environ, folder)
    if options.action == "tools":
        from sandbox_chat.mcp_face import trying

        return trying.tools(settings, options.name, environ, folder, as_json=as_json)
    from sandbox_chat.mcp_face import listing

    return listing.print_list(settings, environ, folder, as_json=as_json)
