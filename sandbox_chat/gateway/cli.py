"""The command line of ``mcp-gateway``."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from . import VERSION, catalog, config, launch
from .clone import GITHUB
from .errors import ConfigError, StartError

_ABOUT = """\
Starts MCP servers and offers the tools of all of them at one address, http://HOST:PORT/mcp (streamable HTTP),
to clients that have the token. Returns when every server has listed its tools; the gateway then runs on in the
background. GET /health needs no token.
"""
_MORE = """\
The configuration is a JSON object: the name of each server, and its properties.
  {"time": {}}                                        a server of the catalogue (mcp-gateway catalog)
  {"github/OWNER/REPO": {"installCmd": "npm ci",      a repository: cloned, installed, started
                         "runCmd": "node server.js",
                         "envs": {"KEY": "value"}}}
  {"mine": {"runCmd": "python3 /opt/mine.py"}}        any other command

The token is taken from the environment variable GATEWAY_ACCESS_TOKEN. Neither it nor the values of "envs" are
written to the log or passed to another server.

All servers of one gateway are one trust domain: they run as the same user on the same machine, so each of them
can read what the others can, their variables too. Put servers that must not trust each other into sandboxes of
their own.

Exit codes: 0 ready, 1 not started (nothing is left running), 2 the configuration or an option is not valid,
130 interrupted (nothing is left running).
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "version":
            print(f"mcp-gateway {VERSION}")  # noqa: T201 - the answer
            return 0
        if chosen.command == "catalog":
            print(_listing(catalog.load(chosen.catalog)))  # noqa: T201 - the answer
            return 0
        if (chosen.config is None) == (chosen.config_file is None):
            parser.error("one of --config and --config-file is needed")
        return _start(chosen)
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        return _say("interrupted; nothing is left running.", 130)
    except ConfigError as error:
        return _say(error, 2)
    except StartError as error:
        return _say(error, 1)


def _start(chosen: argparse.Namespace) -> int:
    token = os.environ.pop("GATEWAY_ACCESS_TOKEN", "")
    text = chosen.config if chosen.config is not None else _read(chosen.config_file)
    running = launch.start(
        config.parse(text),
        token,
        port=chosen.port,
        host=chosen.host,
        token_file=chosen.token_file,
        log_file=chosen.log_file,
        startup_timeout=chosen.startup_timeout,
        catalog=chosen.catalog,
        clones=chosen.clones,
        github=chosen.github,
    )
    print(  # noqa: T201 - the answer
        f"Ready at http://{chosen.host}:{running.port}/mcp: {len(running.servers)} servers, "
        f"{len(running.tools)} tools (process {running.pid})."
    )
    return 0


def _read(path: str) -> str:
    try:
        if path == "-":
            return sys.stdin.read()
        return Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"The configuration {path} cannot be read: {error}.") from None


def _listing(entries: dict[str, catalog.Entry]) -> str:
    lines: list[str] = []
    for name, entry in sorted(entries.items()):
        program = entry.package or " ".join(entry.command)
        lines.append(f"{name:20}{entry.description}  ({program})".rstrip())
        for key, prop in entry.properties.items():
            about = "required" if prop.required else "optional"
            if prop.default is not None:
                about = f"default {prop.default}"
            lines.append(f"{'':4}{key}: {prop.type}, {about}. {prop.description}".rstrip())
    return "\n".join(lines)


def _say(error: Exception | str, code: int) -> int:
    print(f"mcp-gateway: {error}", file=sys.stderr)  # noqa: T201 - the message of a command
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mcp-gateway",
        description=_ABOUT,
        epilog=_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "command", nargs="?", choices=("catalog", "version"), help="list the catalogue; say the version"
    )
    parser.add_argument("--config", metavar="JSON", help="the configuration")
    parser.add_argument(
        "--config-file", metavar="FILE", help="the configuration in a file; - for standard input"
    )
    parser.add_argument("--port", type=_port, default=launch.PORT, help="port (default %(default)s)")
    parser.add_argument("--host", default=launch.HOST, help="address to listen at (default %(default)s)")
    parser.add_argument(
        "--startup-timeout",
        type=_seconds,
        default=launch.TIMEOUT,
        metavar="SECONDS",
        help="time that the servers have to start (default %(default)g)",
    )
    for option, default, about in (
        ("--token-file", launch.TOKEN_FILE, "file for the token, while the gateway runs"),
        ("--log-file", launch.LOG_FILE, "log: what the servers write to standard error"),
        ("--catalog", catalog.EXTRA, "catalogue that adds servers or replaces them"),
    ):
        parser.add_argument(
            option, type=Path, default=default, metavar="FILE", help=f"{about} (default %(default)s)"
        )
    parser.add_argument("--clones", type=Path, metavar="FOLDER", help="where repositories are cloned to")
    parser.add_argument(
        "--github",
        default=GITHUB,
        metavar="URL",
        help="where they are cloned from (default %(default)s)",
    )
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError("a number up to 65535 is needed")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError("a number of seconds up to 3600 is needed")
    return value
