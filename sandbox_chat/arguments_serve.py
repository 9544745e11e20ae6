"""The arguments of ``sandbox-chat serve``. Only ``argparse`` is imported, so that ``--help`` is quick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

OPTIONS = ("--no-auth", "--log-json")
"""Options that only ``serve`` has."""


def add_serve(commands: Any, common: Any, allowed: Callable[[str], str], about_allow: str) -> None:
    """Add the command ``serve``. ``allowed`` checks a word of ``--allow``, ``about_allow`` says what it may be."""
    serve = commands.add_parser(
        "serve",
        parents=[common],
        allow_abbrev=False,
        help="run tasks for other programs, over HTTP",
        description="Run tasks for other programs, over HTTP: POST /task, GET /health, GET /metrics, DELETE /sessions/ID; GET "
        "/openapi.json describes them. Each user has sessions, sandboxes and skills of their own. SIGTERM lets running tasks finish.",
    )
    serve.add_argument(
        "--http",
        metavar="[HOST:]PORT",
        required=True,
        help="where to listen, on this computer only unless a HOST is given; each request needs the token",
    )
    serve.add_argument(
        "--token-file",
        metavar="FILE",
        default="",
        help="file with that token, made when it is missing; the setting http_token, or http-token in the data folder when left out",
    )
    serve.add_argument("--no-auth", action="store_true", help="no token is needed; on this computer only")
    serve.add_argument("--allow", action="append", default=[], type=allowed, metavar="WHAT", help=about_allow)
    serve.add_argument(
        "--log-json",
        action="store_true",
        help="write a JSON line for each request and task on stderr; with --log they are in that file in any case",
    )
