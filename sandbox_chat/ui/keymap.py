"""The user's own keys: the table ``[keys]`` of ``config.toml``, checked against the actions that there are.

What is wrong there is told in sentences and never ends the program; the action then keeps its own key.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Mapping

from sandbox_chat.ui.actions import NO_KEY, Action, all_actions
from sandbox_chat.words import tr

OVER = frozenset(
    {
        "approvals",
        "choices",
        "choose",
        "confirm",
        "help",
        "elsewhere",
        "link",
        "lookup",
        "page",
        "picture",
        "rename",
        "sandbox",
        "sessions",
        "values",
        "welcome",
    }
)
"""Places on screens that lie over the chat, which the chat's own keys do not reach."""

MODIFIERS = ("ctrl", "alt", "shift", "super", "hyper", "meta")

_NAMED = frozenset(
    [
        "enter",
        "escape",
        "tab",
        "space",
        "backspace",
        "delete",
        "insert",
        "home",
        "end",
        "pageup",
        "pagedown",
        "up",
        "down",
        "left",
        "right",
    ]
) | {f"f{number}" for number in range(1, 25)}
_ALIASES = {
    "esc": "escape", "return": "enter", "del": "delete", "ins": "insert", "pgup": "pageup", "page_up": "pageup",
    "pgdn": "pagedown", "pgdown": "pagedown", "page_down": "pagedown", "bs": "backspace",
    "control": "ctrl", "option": "alt", "cmd": "super", "command": "super",
}  # fmt: skip
_SIGNS = {
    "solidus": "slash", "reverse_solidus": "backslash", "commercial_at": "at", "hyphen_minus": "minus",
    "plus_sign": "plus", "low_line": "underscore",
}  # fmt: skip
"""Names of signs that Textual shortens."""
_SAME = {"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+[": "escape", "ctrl+left_square_bracket": "escape"}
"""Keys that reach a program as another one."""


def normal(key: str) -> str:
    """Return ``key`` as Textual calls it: ``?`` is ``question_mark``, ``Ctrl+N`` is ``ctrl+n``. Raises ``ValueError``."""
    word = key.strip()
    head, plus, last = word.rpartition("+")
    if plus and not last and (not head or head.endswith("+")):  # the key + itself
        head, last = head.rstrip("+"), "+"
    modifiers = [_ALIASES.get(part.strip().lower(), part.strip().lower()) for part in head.split("+") if part]
    if any(part not in MODIFIERS for part in modifiers) or len(set(modifiers)) != len(modifiers):
        raise ValueError(key)
    if len(last) > 1:
        last = _ALIASES.get(last.lower(), last.lower())
        if last not in _NAMED and not _is_sign(last):
            raise ValueError(key)
    elif not last or not last.isprintable():
        raise ValueError(key)
    elif "ctrl" in modifiers and last.isascii():
        last = last.lower()
    modifiers.sort(key=("alt", "ctrl", "hyper", "meta", "shift", "super").index)
    if len(last) == 1 and not last.isalnum():
        last = _name(last)
    found = "+".join([*modifiers, last])
    return _SAME.get(found, found)


def _name(sign: str) -> str:
    found = unicodedata.name(sign, "").lower().replace("-", "_").replace(" ", "_")
    return _SIGNS.get(found, found) or sign


def _is_sign(name: str) -> bool:
    try:
        return unicodedata.lookup(name.replace("_", " ")).isprintable() and name not in _SIGNS
    except KeyError:
        return name in _SIGNS.values() or name in ("less_than_sign", "greater_than_sign")


def read(wanted: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return the keys that hold, by action, and a sentence for each thing that does not."""
    actions = all_actions()
    chosen: dict[str, tuple[str, ...]] = {}
    faults: list[str] = []
    for name, keys in wanted.items():
        if name not in actions:
            near = difflib.get_close_matches(name, actions, 1)
            hint = tr("keymap.near", name=near[0]) if near else ""
            faults.append(tr("keymap.no_action", name=name) + hint)
            continue
        good: list[str] = []
        for key in keys:
            try:
                good.append(normal(key))
            except ValueError:
                faults.append(tr("keymap.no_key", key=key, name=name))
        if good or not keys:
            chosen[name] = tuple(dict.fromkeys(good))
    return _settle(actions, chosen, faults), faults


def _settle(
    actions: Mapping[str, Action], chosen: dict[str, tuple[str, ...]], faults: list[str]
) -> dict[str, tuple[str, ...]]:
    """Take away keys that two actions of the user's want, and tell of those that hide another action."""
    kept: dict[str, tuple[str, ...]] = {}
    for name, keys in chosen.items():
        good = []
        for key in keys:
            if rival := _rival(actions, kept, name, key):
                faults.append(tr("keymap.twice", key=key, rival=rival, name=name))
            else:
                good.append(key)
        if good or not keys:
            kept[name] = tuple(good)
    others: dict[str, tuple[str, ...]] = {}
    for name, item in actions.items():
        keys = () if name in kept else tuple(item.keys.split(","))
        rivals = {key: rival for key in keys if (rival := _rival(actions, kept, name, key))}
        if rivals:
            others[name] = tuple(key for key in keys if key not in rivals)
        for key, rival in rivals.items() if not others.get(name) else ():
            faults.append(tr("keymap.hidden", key=key, rival=rival, name=name))
    return kept | others


def _rival(actions: Mapping[str, Action], chosen: Mapping[str, tuple[str, ...]], name: str, key: str) -> str:
    """Return which of the user's actions has ``key`` where ``name`` would be meant, empty if none has."""
    return next(
        (other for other, keys in chosen.items() if key in keys and _meet(actions[other], actions[name])), ""
    )


def _meet(one: Action, other: Action) -> bool:
    """Whether a key of the one would be taken for the other: in the same place, or where a priority reaches."""
    if one.place == other.place:
        return True
    for item, place in ((one, other.place), (other, one.place)):
        if item.priority and (item.place == "app" or (item.place == "chat" and place not in OVER)):
            return True
    return False


def keymap(chosen: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return ``chosen`` as Textual takes it."""
    return {name: ",".join(keys) if keys else NO_KEY for name, keys in chosen.items()}
