"""The arguments of the command line: what there is, and what is said of those that are wrong.

Only ``argparse`` is imported at the top, so that ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from sandbox_chat import __version__

PROGRAM = "sandbox-chat"
USAGE = 2
"""Exit code for wrong usage."""
COMMANDS = ("run", "sessions", "doctor", "docker", "sandboxes")
SESSION_COMMANDS = ("list", "show")
DOCKER_COMMANDS = ("build",)
SANDBOXES_COMMANDS = ("list", "kill")
ALLOWED = ("overwrite",)
"""What ``run --allow`` may name."""

_OPTIONS = (
    "--demo", "--model", "--sandbox", "--images", "--theme", "--plain", "--log", "--resume", "--json", "--version", "--help",
    "--base", "--wheels", "--tag", "--quiet", "--left", "--all", "--attach", "--allow",
)  # fmt: skip

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

    near = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


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
        "--images",
        metavar="HOW",
        help="how pictures are drawn: auto, kitty, sixel, iterm, sharp, symbols, half, ascii, off",
    )
    group.add_argument("--theme", metavar="NAME", help="colours: auto, dark, light, contrast, terminal")
    group.add_argument("--log", metavar="FILE", help="write a log (it never holds a credential)")
    resume = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    resume.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="ID",
        help="go on with a session: the newest, or the one named",
    )

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
        choices=ALLOWED,
        metavar="WHAT",
        help="overwrite: a downloaded file may replace one of its name; otherwise both are kept",
    )
    run.add_argument("prompt", nargs="?", metavar="PROMPT", help="the prompt, or - to read it from stdin")

    sessions = commands.add_parser(
        "sessions",
        parents=[common],
        allow_abbrev=False,
        help="list the saved sessions, or show one",
        description="List the saved sessions, or show one as text.",
    )
    sessions.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    actions = sessions.add_subparsers(dest="action", metavar="", parser_class=_Parser)
    json_option = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    json_option.add_argument("--json", action="store_true", help="print JSON")
    actions.add_parser(
        "list", parents=[common, json_option], allow_abbrev=False, help="list them (the default)"
    )
    show = actions.add_parser(
        "show",
        parents=[common, json_option],
        allow_abbrev=False,
        help="show one: the newest, or the one named",
    )
    show.add_argument("id", nargs="?", metavar="ID", help="id, or the beginning of one")

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
    build.add_argument("--quiet", action="store_true", help="show the builder's words only when it fails")
    _add_sandboxes(commands, common, json_option)
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


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line; leaves the program with code 2 and one line when it is wrong."""
    parser = build_parser()
    options = parser.parse_args(_settle_resume(arguments))
    resume = getattr(options, "resume", None)
    if options.command in ("sessions", "doctor", "docker", "sandboxes") and resume is not None:
        parser.error(f"--resume does not go with {options.command!r}")
    if (
        options.command == "sandboxes"
        and options.action == "kill"
        and bool(options.ids) + options.left + options.all != 1
    ):
        parser.error("say which: one or more ids, or --left, or --all")
    if options.command == "run" and options.prompt is None:
        if resume and not _like_id(resume):  # run --resume "a prompt"
            options.prompt, options.resume = resume, ""
        else:
            parser.error("the prompt is missing; give it in quotes, or - to read it from stdin")
    return options


def _settle_resume(arguments: list[str]) -> list[str]:
    """Keep ``--resume`` from taking a command that follows it for an id."""
    out: list[str] = []
    command_seen = False
    for word in arguments:
        if word in COMMANDS and not command_seen:
            command_seen = True
            if out and out[-1] == "--resume":
                out[-1] = "--resume="
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
