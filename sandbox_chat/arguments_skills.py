"""The arguments of ``sandbox-chat skills``. Only ``argparse`` is imported, so that ``--help`` is quick."""

from __future__ import annotations

from typing import Any

COMMANDS = ("list", "show", "diff", "promote", "discard", "remove", "search", "init", "path")
OPTIONS = ("--hash",)
"""Options that only ``skills`` has."""


def add_skills(commands: Any, common: Any, json_option: Any) -> None:
    """Add the command ``skills`` with its own commands."""
    kind = type(common)
    skills = commands.add_parser(
        "skills",
        parents=[common, json_option],
        allow_abbrev=False,
        help="list the skills, look at drafts of the agent's, promote or remove one",
        description="Skills are code that worked once and was kept. In code mode the agent hands in drafts; what you promote can be "
        "imported by its code, exactly as it was when you looked at it.",
    )
    actions = skills.add_subparsers(dest="action", metavar="", parser_class=kind)
    for name, words, wants in (
        ("list", "list them (the default)", ""),
        ("show", "show a skill, or a draft that is no skill yet", "NAME"),
        ("diff", "show what a draft changes", "NAME"),
        ("promote", "let code import a draft, or files of yours, after you have looked at them", "NAME"),
        ("discard", "delete a draft", "NAME"),
        ("remove", "take a skill out; its versions are kept", "NAME"),
        ("search", "list those that fit some words", "WORDS"),
        ("init", "put two examples there: a template and a data processor", ""),
        ("path", "print the folder of the skills", ""),
    ):
        options = [common, json_option] if name in ("list", "search") else [common]
        action = actions.add_parser(name, parents=options, allow_abbrev=False, help=words)
        if wants:
            action.add_argument("name", metavar=wants)
        if name == "promote":
            action.add_argument("--yes", action="store_true", help="do not ask; needs --hash")
            action.add_argument(
                "--hash",
                metavar="HASH",
                default="",
                help="promote only what has this hash, as diff prints it",
            )
