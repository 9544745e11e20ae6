"""The arguments of ``sandbox-chat mcp``. Only ``argparse`` is imported, so that ``--help`` is quick."""

from __future__ import annotations

import argparse
from typing import Any

COMMANDS = ("list", "add", "remove", "test", "tools", "serve")
OPTIONS = (
    "--property",
    "--env",
    "--url",
    "--header",
    "--insecure",
    "--cwd",
    "--timeout",
    "--from",
    "--http",
    "--token-file",
)
"""Options that only ``mcp`` has."""

_ADD = """\
Add an MCP server of yours. It is on in every chat from then on, until it is removed or has "disabled": true in mcp.json,
which lies beside config.toml. Four ways:

  sandbox-chat mcp add git --property repository=~/work      one of the catalogue (see: sandbox-chat mcp list)
  sandbox-chat mcp add notes -- npx -y some-server ~/notes   a program with its arguments
  sandbox-chat mcp add docs --url https://host/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'
  sandbox-chat mcp add --from .mcp.json [NAME...]            those of a file, after showing what each would run

Write ${NAME} for a credential: it is then taken from the environment when the server is started, and is in no file.
"""


def add_mcp(commands: Any, common: Any, json_option: Any) -> Any:
    """Add the command ``mcp`` with its own commands; returns what further ones are added to."""
    kind = type(common)
    mcp = commands.add_parser(
        "mcp",
        parents=[common],
        allow_abbrev=False,
        help="list the MCP servers that can be switched on; add, remove, or test one",
        description="MCP servers give the agent tools beside the sandbox's. They run on this machine, and each call asks you first.",
    )
    mcp.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    actions = mcp.add_subparsers(dest="action", metavar="", parser_class=kind)
    actions.add_parser(
        "list",
        parents=[common, json_option],
        allow_abbrev=False,
        help="list them (the default)",
        description="List the MCP servers that are known: which are on, where each comes from, how it is started, and what it needs.",
    )
    add = actions.add_parser(
        "add",
        parents=[common],
        allow_abbrev=False,
        help="add one: of the catalogue, a program, an address, or those of a file",
        usage="sandbox-chat mcp add NAME [options] [-- COMMAND ...]",
        description=_ADD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add.add_argument("names", nargs="*", metavar="NAME", help="its name here")
    add.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a property of a server of the catalogue; a list by giving it several times",
    )
    add.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="a variable for the server; without a value it is taken from the environment at each start",
    )
    add.add_argument(
        "--url", default="", metavar="URL", help="address of a server that speaks streamable HTTP"
    )
    add.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="a header for that address",
    )
    add.add_argument(
        "--insecure", action="store_true", help="the address may be http although it is not on this machine"
    )
    add.add_argument("--cwd", default="", metavar="DIR", help="folder in which the program is started")
    add.add_argument(
        "--timeout", type=float, default=None, metavar="SECONDS", help="seconds that one call may take"
    )
    add.add_argument(
        "--from",
        dest="from_file",
        default="",
        metavar="FILE",
        help="take over servers of a file such as .mcp.json",
    )
    add.add_argument("--force", action="store_true", help="replace a server of that name")
    add.add_argument("--yes", action="store_true", help="do not ask")
    remove = actions.add_parser(
        "remove",
        parents=[common],
        allow_abbrev=False,
        help="remove one that was added, with what was installed for it",
    )
    remove.add_argument("name", metavar="NAME")
    test = actions.add_parser(
        "test",
        parents=[common],
        allow_abbrev=False,
        help="start one and list its tools",
        description="Start a server and list its tools; says how long it took, or what failed. Exit code 1 when it failed.",
    )
    test.add_argument("name", metavar="NAME")
    tools = actions.add_parser(
        "tools",
        parents=[common, json_option],
        allow_abbrev=False,
        help="list the tools of one, or of all that are on",
    )
    tools.add_argument("name", nargs="?", default="", metavar="NAME")
    return actions


def add_serve(actions: Any, common: Any) -> None:
    """Add ``mcp serve`` to the commands of ``mcp``."""
    serve = actions.add_parser(
        "serve",
        parents=[common],
        allow_abbrev=False,
        help="offer the sandbox's tools to another MCP client",
        description="Offer the sandbox's six tools as an MCP server: on stdin and stdout, for a client that starts this "
        "program, such as: claude mcp add sandbox -- sandbox-chat mcp serve. Each client has a sandbox of its own.",
    )
    serve.add_argument(
        "--http",
        metavar="[HOST:]PORT",
        default=None,
        help="serve over streamable HTTP instead, on this computer only unless a HOST is given; each request needs the token",
    )
    serve.add_argument(
        "--token-file",
        metavar="FILE",
        default="",
        help="file with that token, made when it is missing; mcp/serve-token in the data folder when left out",
    )


def split_command(arguments: list[str], known: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the arguments, and the command after ``--`` of ``mcp add`` apart: none of it is an option of ours.

    ``known`` are the program's commands.
    """
    if "--" in arguments:
        place = arguments.index("--")
        first = next((number for number, word in enumerate(arguments[:place]) if word in known), place)
        if arguments[first] == "mcp" and "add" in arguments[first:place]:
            return arguments[:place], arguments[place + 1 :]
    return arguments, []


def problem_of(options: argparse.Namespace) -> str:
    """Return what is wrong with the arguments of ``mcp``, empty when nothing is."""
    if options.action == "serve" and options.token_file and options.http is None:
        return "--token-file goes with --http; stdio needs no token"
    if options.action != "add":
        return ""
    names, command, url, file = options.names, options.server_command, options.url, options.from_file
    if bool(command) + bool(url) + bool(file) > 1:
        return "a server is a command, a --url or --from a file, only one of them"
    if not file and len(names) != 1:
        return (
            "name the server that is to be added; a command comes after --"
            if not names
            else f"{names[1]!r} is one argument too many; a command comes after --"
        )
    used = {
        "--property": options.property,
        "--env": options.env,
        "--header": options.header,
        "--insecure": options.insecure,
        "--cwd": options.cwd,
        "--timeout": options.timeout is not None,
    }
    fitting = (
        () if file
        else ("--header", "--insecure", "--timeout") if url
        else ("--env", "--cwd", "--timeout") if command
        else ("--property", "--env", "--cwd", "--timeout")
    )  # fmt: skip
    what = "--from" if file else "--url" if url else "a command" if command else "a server of the catalogue"
    for option, given in used.items():
        if given and option not in fitting:
            return f"{option} does not go with {what}"
    return ""
