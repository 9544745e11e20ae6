"""What a request may ask: the task's JSON read strictly, each field checked by the words of the description. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox_chat.serve.errors import Refused

TASK_LIMIT = 2_000_000
"""Characters of the longest task: beyond any model's context."""
USER = "^[A-Za-z0-9._@-]{1,64}$"
SESSION = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
FILE = r"^[0-9a-f]{64}\.(png|jpg|gif|webp|svg|html|bin)$"
"""Name of a picture or page that a session keeps: the hash of what is in it."""
SAYS = r"[^\u0000-\u0020\u007f-\u00a0\u00ad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ufff0-\uffff]"
"""A sign that can be seen: a task has one."""
_USER, _SESSION, _FILE = (re.compile(each.strip("^$")) for each in (USER, SESSION, FILE))
_SAYS = re.compile(SAYS)
_FIELDS = ("userId", "task", "session")
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Ask:
    """What ``POST /task`` asks. ``session`` is empty for a new one."""

    user: str
    task: str
    session: str = ""


def read_ask(raw: bytes) -> Ask:
    """Return what a body asks. Raises ``Refused`` with a sentence that names the field and repeats nothing of it."""
    try:
        found = json.loads(raw.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Refused("not_json") from None
    if not isinstance(found, dict):
        raise Refused("invalid", 'The body must be an object, as {"userId": "ann", "task": "Say hello."}.')
    if any(name not in _FIELDS for name in found):
        raise Refused("invalid", f"The body has a field that is not known; there are {', '.join(_FIELDS)}.")
    user, task, session = found.get("userId"), found.get("task"), found.get("session")
    if not is_user(user):
        raise Refused("invalid", "userId must be 1 to 64 of the signs A-Z a-z 0-9 . _ @ -")
    if not isinstance(task, str) or not 0 < len(task) <= TASK_LIMIT:
        raise Refused("invalid", f"task must be a text of 1 to {TASK_LIMIT:,} characters.")
    task = _SURROGATES.sub("\ufffd", task)
    if not _SAYS.search(task):
        raise Refused("invalid", "task must hold a sign that can be seen.")
    if session is not None and not is_session(session):
        raise Refused(
            "invalid", "session must be the id of a session, as an earlier result gave it, or left out."
        )
    return Ask(str(user), task, session or "")


def is_user(value: object) -> bool:
    """True for what may be a user's id."""
    return isinstance(value, str) and _USER.fullmatch(value) is not None


def is_session(value: object) -> bool:
    """True for what may be a session's id; it holds no path."""
    return isinstance(value, str) and _SESSION.fullmatch(value) is not None


def is_file(value: object) -> bool:
    """True for what may be the name of a session's file; it holds no path."""
    return isinstance(value, str) and _FILE.fullmatch(value) is not None


def read_owner(query: Mapping[str, list[str]]) -> str:
    """Return the user whom a query names, empty when it names none. Raises ``Refused``."""
    if any(name != "userId" for name in query):
        raise Refused("invalid", "There is only the parameter userId here.")
    given = query.get("userId", [])
    if given and not (len(given) == 1 and is_user(given[0])):
        raise Refused("invalid", "userId must be given once, as 1 to 64 of the signs A-Z a-z 0-9 . _ @ -")
    return given[0] if given else ""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _no_number(_name: str) -> float:
    raise ValueError("no number of JSON")
