"""The arguments of the command line: what there is, and what is said of those that are wrong.

Only ``argparse`` is imported at the top, so that ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from sandbox_chat import __version__, arguments_mcp, arguments_serve, arguments_skills

PROGRAM = "sandbox-chat"
USAGE = 2
"""Exit code for wrong usage."""
COMMANDS = ("run", "sessions", "export", "costs", "doctor", "docker", "sandboxes", "mcp", "skills", "serve")
SESSION_COMMANDS = ("list", "show", "delete", "rename")
DOCKER_COMMANDS = ("build",)
SANDBOXES_COMMANDS = ("list", "kill")
LOG = "auto"
"""The value of ``--log`` without a file."""
_OPEN = {"--resume": "--resume=", "--log": f"--log={LOG}"}
"""Options whose value may be left out, and how that is written."""
COST_GROUPS = ("day", "model", "session")
"""What ``costs --by`` may name."""

_OPTIONS = (
    "--demo", "--model", "--sandbox", "--images", "--theme", "--plain", "--log", "--resume", "--json", "--version", "--help",
    "--base", "--wheels", "--tag", "--quiet", "--left", "--all", "--attach", "--allow", "--search", "--yes", "--fork", "--read-only", "--since", "--by",
    "--mcp", "--sandbox-mcp", "--to", "--include-failed", "--scrub", "--force", "--pictures-beside",
    "--code-mode", *arguments_mcp.OPTIONS, *arguments_skills.OPTIONS, *arguments_serve.OPTIONS,
)  # fmt: skip

_OPENINGS = {
    "--fork": "with --resume: go on with a copy of the session; the session itself stays as it is",
    "--read-only": "with --resume: look at the session, also while another program has it open",
}

_ALLOW = (
    "overwrite: a downloaded file may replace one of its name, otherwise both are kept; mcp, mcp:SERVER or "
    "mcp:SERVER/TOOL: tools of MCP servers may run, otherwise they are refused; may be given several times"
)

EPILOG = """\
Without a command the chat opens in the terminal.
Keys and addresses come from the environment, from .env in this folder, or from config.toml:
ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL and ANTHROPIC_AUTH_TOKEN; CLAUDE_MODEL.
"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line that says what was meant."""

    def error(self, message: str) -> NoReturn:
        """Print the error as one line and leave with code 2."""
        import re

        found = re.fullmatch(
            r"argument (?!-)\S*: invalid choice: '(.*)' \(choose from .*\)", message, re.DOTALL
        )
        if found:
            choices: tuple[str, ...] = COMMANDS
            if self.prog.endswith(" sessions"):
                choices = SESSION_COMMANDS
            elif self.prog.endswith(" docker"):
                choices = DOCKER_COMMANDS
            elif self.prog.endswith(" sandboxes"):
                choices = SANDBOXES_COMMANDS
            elif self.prog.endswith(" skills"):
                choices = arguments_skills.COMMANDS
            elif self.prog.endswith(" mcp"):
                choices = arguments_mcp.COMMANDS
            message = f"there is no command {found[1]!r}{_suggest(found[1], choices)}"
        elif message.startswith("unrecognized arguments: "):
            word = message.removeprefix("unrecognized arguments: ").split(" ")[0]
            if word.startswith("-"):
                message = f"there is no option {word!r} here{_suggest(word.split('=')[0], _OPTIONS)}"
            else:
                message = f"{word!r} is one argument too many; put a prompt into quotes"
        say(f"{message}{'' if message.endswith('?') else '.'} See: {PROGRAM} --help")
        sys.exit(USAGE)


def _suggest(word: str, known: tuple[str, ...]) -> str:
    import difflib

    near = [] if word in known else difflib.get_close_matches(word, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _allowed(word: str) -> str:
    from sandbox_chat import allowing

    try:
        return allowing.check(word)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    common = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    group = common.add_argument_group("common options (before or after the command)")
    group.add_argument(
        "--demo",
        action="store_true",
        help="talk to the built-in demo, which is rules and no model; needs no key",
    )
    group.add_argument("--model", metavar="NAME", help="name of the model")
    group.add_argument(
        "--sandbox", metavar="KIND", help="where code runs: local, e2b, docker, off, unsafe-local"
    )
    group.add_argument(
        "--mcp",
        metavar="NAMES",
        help="MCP servers that are on, with commas between (see: sandbox-chat mcp list)",
    )
    group.add_argument(
        "--code-mode",
        choices=("off", "on", "both"),
        metavar="WHICH",
        help="on: the agent's code calls the MCP tools, not the agent itself; both; off (the default)",
    )
    group.add_argument(
        "--sandbox-mcp",
        metavar="SERVERS",
        help="MCP servers that run inside the sandbox: names with commas between, or a JSON object",
    )
    group.add_argument(
        "--images",
        metavar="HOW",
        help="how pictures are drawn: auto, kitty, sixel, iterm, sharp, symbols, half, ascii, off",
    )
    group.add_argument("--theme", metavar="NAME", help="colours: auto, dark, light, contrast, terminal")
    group.add_argument(
        "--log",
        nargs="?",
        const=LOG,
        metavar="FILE",
        help="write a log, in the data folder when no FILE is named (it holds no content and no credential)",
    )
    resume = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    resume.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="ID",
        help="go on with a session: the newest, or the one named",
    )

    for each in ("--fork", "--read-only"):
        resume.add_argument(each, action="store_true", help=_OPENINGS[each])

    plain = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    plain.add_argument(
        "--plain", action="store_true", help="chat line by line, for screen readers: nothing is drawn"
    )

    parser = _Parser(
        prog=PROGRAM,
        description="Chat with Claude in the terminal and watch it run code in a sandbox.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common, resume, plain],
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="", parser_class=_Parser)

    run = commands.add_parser(
        "run",
        parents=[common, resume],
        allow_abbrev=False,
        help="answer one prompt without a screen",
        description="Answer one prompt: the answer goes to stdout, tool calls and cost to stderr. "
        "Exit code 0 ok, 1 the turn failed, 2 usage or configuration, 130 interrupted.",
    )
    run.add_argument("--json", action="store_true", help="print one event a line instead")
    run.add_argument(
        "--attach",
        action="append",
        default=[],
        metavar="FILE",
        help="put a file of yours into the sandbox first; may be given several times",
    )
    run.add_argument(
        "--allow",
        action="append",
        default=[],
        type=_allowed,
        metavar="WHAT",
        help=_ALLOW,
    )
    run.add_argument("prompt", nargs="?", metavar="PROMPT", help="the prompt, or - to read it from stdin")

    sessions = commands.add_parser(
        "sessions",
        parents=[common],
        allow_abbrev=False,
        help="list the saved sessions, search them, show, rename or delete one",
        description="List the saved sessions, the one used last first; search them, show one as text, rename or delete one.",
    )
    sessions.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    search_option = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    for taker in (sessions, search_option):
        taker.add_argument(
            "--search",
            metavar="TEXT",
            default=argparse.SUPPRESS,
            help='only those that hold all these words in one turn; a "phrase" in quotes',
        )
    actions = sessions.add_subparsers(dest="action", metavar="", parser_class=_Parser)
    json_option = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    json_option.add_argument("--json", action="store_true", help="print JSON")
    actions.add_parser(
        "list",
        parents=[common, json_option, search_option],
        allow_abbrev=False,
        help="list them (the default)",
    )
    show = actions.add_parser(
        "show",
        parents=[common, json_option],
        allow_abbrev=False,
        help="show one: the newest, or the one named",
    )
    show.add_argument("id", nargs="?", metavar="ID", help="id, or the beginning of one")
    delete = actions.add_parser(
        "delete",
        parents=[common],
        allow_abbrev=False,
        help="delete some for good",
        description="Delete sessions for good, with the agent's own record of them. One that is open is not deleted.",
    )
    delete.add_argument("ids", nargs="+", metavar="ID", help="id, or the beginning of one")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    rename = actions.add_parser("rename", parents=[common], allow_abbrev=False, help="give one another title")
    rename.add_argument("id", metavar="ID", help="id, or the beginning of one")
    rename.add_argument(
        "title", nargs="*", metavar="TITLE", help="the title; without one, that of the first prompt again"
    )

    doctor = commands.add_parser(
        "doctor",
        parents=[common],
        allow_abbrev=False,
        help="check that everything needed is there",
        description="Check that everything needed is there. Exit code 0 only if a chat would work.",
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")

    docker = commands.add_parser(
        "docker",
        parents=[common],
        allow_abbrev=False,
        help="make the image in which --sandbox docker runs code",
        description="Make what --sandbox docker needs.",
    )
    docker_actions = docker.add_subparsers(
        dest="action", metavar="build", parser_class=_Parser, required=True
    )
    build = docker_actions.add_parser(
        "build",
        parents=[common],
        allow_abbrev=False,
        help="build the image (once for each version of this program)",
        description="Build the image in which code runs. Needs a Docker daemon, or Podman "
        "(SANDBOX_CHAT_DOCKER_COMMAND=podman), and some minutes.",
    )
    build.add_argument(
        "--base", metavar="IMAGE", default="", help="image to begin with: Python 3.11 or newer, pip"
    )
    build.add_argument(
        "--wheels", metavar="DIR", default="", help="install from the wheels in DIR, without a network"
    )
    build.add_argument("--tag", metavar="NAME", default="", help="name of the image")
    build.add_argument(
        "--server",
        metavar="PACKAGE",
        action="append",
        default=[],
        help="install an MCP server for --sandbox-mcp too",
    )
    build.add_argument("--quiet", action="store_true", help="show the builder's words only when it fails")
    _add_sandboxes(commands, common, json_option)
    _add_costs(commands, common, json_option)
    _add_export(commands, common)
    arguments_mcp.add_serve(arguments_mcp.add_mcp(commands, common, json_option), common)
    arguments_skills.add_skills(commands, common, json_option)
    arguments_serve.add_serve(commands, common, _allowed, _ALLOW)
    return parser


def _add_sandboxes(commands: Any, common: _Parser, json_option: _Parser) -> None:
    sandboxes = commands.add_parser(
        "sandboxes",
        parents=[common, json_option],
        allow_abbrev=False,
        help="list the sandboxes that are alive in the cloud or in Docker, or end them",
        description="List the sandboxes of this program that are alive in the cloud (with this key) or in Docker, "
        "or end them. --sandbox e2b or docker looks at one kind only.",
    )
    actions = sandboxes.add_subparsers(dest="action", metavar="", parser_class=_Parser)
    actions.add_parser(
        "list", parents=[common, json_option], allow_abbrev=False, help="list them (the default)"
    )
    kill = actions.add_parser("kill", parents=[common], allow_abbrev=False, help="end some, or all")
    kill.add_argument("ids", nargs="*", metavar="ID", help="id of a sandbox, or the beginning of one")
    kill.add_argument("--left", action="store_true", help="all that a crashed run on this machine has left")
    kill.add_argument("--all", action="store_true", help="all of this program, also those in use")


def _add_export(commands: Any, common: _Parser) -> None:
    export = commands.add_parser(
        "export",
        parents=[common],
        allow_abbrev=False,
        help="write a session as Markdown, HTML, a Jupyter notebook or JSON",
        description="Write a session to a file. Its ending says as what: .md, .html, .ipynb, .json.",
    )
    export.add_argument(
        "id", nargs="?", metavar="ID", help="id, or the beginning of one; without it the newest"
    )
    export.add_argument("--to", metavar="FILE", required=True, help="the file to write")
    export.add_argument(
        "--include-failed", action="store_true", help="in a notebook: failed tool calls too; they are not run"
    )
    export.add_argument(
        "--scrub",
        action="store_true",
        help="take out credentials, the home path, the user's and the computer's name; not in pictures",
    )
    export.add_argument(
        "--pictures-beside",
        action="store_true",
        help="of JSON: pictures in a folder beside it, as Markdown has them",
    )
    export.add_argument("--force", action="store_true", help="replace a file of that name without asking")


def _add_costs(commands: Any, common: _Parser, json_option: _Parser) -> None:
    costs = commands.add_parser(
        "costs",
        parents=[common, json_option],
        allow_abbrev=False,
        help="add up what all sessions have cost",
        description="Add up what all saved sessions have cost and used, by their records. The demo is left out.",
    )
    costs.add_argument("--since", metavar="DATE", help="only turns from that day on: 2026-01-31")
    costs.add_argument(
        "--by",
        choices=COST_GROUPS,
        default="",
        metavar="WHAT",
        help="one row for each day, model, or session",
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line; leaves the program with code 2 and one line when it is wrong."""
    parser = build_parser()
    arguments, server_command = arguments_mcp.split_command(arguments, COMMANDS)
    options = parser.parse_args(_settle_resume(arguments))
    resume = getattr(options, "resume", None)
    if options.command not in (None, "run") and resume is not None:
        parser.error(f"--resume does not go with {options.command!r}")
    if (
        options.command == "sandboxes"
        and options.action == "kill"
        and bool(options.ids) + options.left + options.all != 1
    ):
        parser.error("say which: one or more ids, or --left, or --all")
    if options.command == "mcp":
        options.server_command = server_command
        if problem := arguments_mcp.problem_of(options):
            parser.error(problem)
    if options.command == "run" and options.prompt is None and " " in (getattr(options, "log", None) or ""):
        options.prompt, options.log = options.log, LOG  # run --log "a prompt"
    if options.command == "run" and options.prompt is None:
        if resume and not _like_id(resume):  # run --resume "a prompt"
            options.prompt, options.resume = resume, ""
        else:
            parser.error("the prompt is missing; give it in quotes, or - to read it from stdin")
    _check_opening(parser, options)
    return options


def _check_opening(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse ways to open a session that cannot be."""
    fork, look = getattr(options, "fork", False), getattr(options, "read_only", False)
    if fork and look:
        parser.error("a session is opened with --fork or with --read-only, not with both")
    option = "--fork" if fork else "--read-only" if look else ""
    if option and getattr(options, "resume", None) is None:
        parser.error(f"{option} needs a session; name it with --resume ID, or take the newest with --resume")
    if look and (options.command == "run" or getattr(options, "plain", False)):
        parser.error(
            f"--read-only needs the whole screen; a session is printed by: {PROGRAM} sessions show ID"
        )


def _settle_resume(arguments: list[str]) -> list[str]:
    """Keep ``--resume`` and ``--log`` from taking a command that follows for an id or a file."""
    out: list[str] = []
    command_seen = False
    for word in arguments:
        if word in COMMANDS and not command_seen:
            command_seen = True
            if out and out[-1] in _OPEN:
                out[-1] = _OPEN[out[-1]]
        out.append(word)
    return out


def _like_id(word: str) -> bool:
    return len(word) <= 36 and not word.startswith("-") and not word.strip("0123456789abcdefABCDEF-")


def say(text: str) -> None:
    """Print one line on stderr, clean, if there is still somebody to read it."""
    from sandbox_chat.text import clean

    try:
        sys.stderr.write(f"{PROGRAM}: {clean(text)}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return
