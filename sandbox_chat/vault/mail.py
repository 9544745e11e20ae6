"""Finds e-mail addresses. Each ``@`` is looked at once, with bounded text before and after it."""

from __future__ import annotations

import re
from collections.abc import Iterator

_AT = re.compile(r"(?<=[A-Za-z0-9_+-])(?:@|%40)(?=[A-Za-z0-9])")
_LOCAL = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-'"
_DOMAIN = re.compile(
    r"((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}(?:xn--[a-z0-9-]{2,40}|[A-Za-z]{2,24}))(?![A-Za-z0-9-])"
)
_ESCAPE = re.compile(r".*%[0-9A-Fa-f]{2}")
_APOSTROPHE = re.compile(r"[A-Za-z]{1,3}'[A-Za-z][A-Za-z0-9._+-]*")
_USER_INFO = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{1,15}://[^\s/@]{0,100}$")
_CALL = re.compile(r"\(")
_NUMBERS = re.compile(r"\d+\.\d+")
# Names of a service with which programs log in: nobody is called so.
_SERVICES = frozenset({"git", "hg", "svn", "gitlab", "gitea", "forgejo", "aur"})
# What ends so is a file, a method or a field of code.
_ENDINGS = frozenset(
    "png jpg jpeg gif svg webp ico css scss js mjs ts jsx tsx html htm json xml yaml yml toml txt csv tsv pdf lock whl "
    "gz tgz bz2 xz exe dll so log conf cfg ini bak tmp rc alpha beta dev final shape dtype values mean sum".split()
)
_LONGEST_LOCAL = 64
_LONGEST_DOMAIN = 253


def find_mail(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of e-mail addresses in ``text``, which is a plain copy."""
    end = 0
    for at in _AT.finditer(text):
        if at.start() < end:
            continue
        domain = _DOMAIN.match(text, at.end(), at.end() + _LONGEST_DOMAIN + 1)
        if domain is None:
            continue
        local = _local(text, at.start())
        if not local:
            continue
        start = at.start() - len(local)
        if _meant(text, local, domain):
            end = domain.end()
            yield start, end


def _local(text: str, at: int) -> str:
    """Return what stands before the ``@`` of an address, empty if it is none."""
    before = text[max(0, at - _LONGEST_LOCAL - 1) : at]
    local = before[len(before.rstrip(_LOCAL)) :]
    if "%" in local and (escaped := _ESCAPE.match(local)):
        local = local[escaped.end() :]
    if "'" in local and not _APOSTROPHE.fullmatch(local):
        local = local[local.rindex("'") + 1 :]
    local = local.lstrip(".-+%'")
    return local if len(local) <= _LONGEST_LOCAL and ".." not in local else ""


def _meant(text: str, local: str, domain: re.Match[str]) -> bool:
    name = domain[1].lower()
    if local.lower() in _SERVICES or name.rpartition(".")[2] in _ENDINGS:
        return False
    if _NUMBERS.match(name) or _CALL.match(text, domain.end()):  # package@1.2.beta, a@b.dot(c)
        return False
    start = domain.start() - 1
    line = text[max(0, start - 130) : start]
    return "://" not in line or not _USER_INFO.search(line)
