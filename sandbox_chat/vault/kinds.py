"""Finds personal data in text: e-mail addresses, IP addresses, card, social security, identity and phone numbers.

A kind is a pattern that is quick, and a check. The order matters: what one kind has taken, a later one does not look at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sandbox_chat.vault import checks

KINDS = ("EMAIL", "IP", "CN_ID", "CARD", "SSN", "PHONE")
"""The kinds that are known, as they stand in tokens."""
LONGEST_LINE = 20_000
"""Characters of one line in which phone numbers of other regions are looked for."""


class Span(NamedTuple):
    """A value in a text, from ``start`` to ``end``."""

    start: int
    end: int
    kind: str


Finder = Callable[[str], Iterator[Span]]

# --- e-mail -------------------------------------------------------------------------------------------------

_EMAIL = re.compile(
    r"(?<![\w.%+@])(?<!\w['’])[\w](?:[\w.%+'-]{0,62}[\w%+-])?@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w@-])"
)
_NO_PEOPLE = ("git", "hg", "svn", "npm")  # users of repositories
_NO_DOMAINS = frozenset(
    [
        "sum",
        "mean",
        "dot",
        "shape",
        "values",
        "transpose",
        "item",
        "reshape",
        "astype",
        "conj",
        "inv",
        "js",
        "ts",
        "txt",
        "csv",
        "pdf",
        "png",
        "jpg",
        "svg",
        "json",
        "yaml",
        "yml",
        "toml",
        "html",
        "css",
        "go",
        "java",
    ]
)
_OF_PEOPLE = frozenset(
    ["com", "org", "net", "edu", "gov", "cn", "de", "uk", "fr", "jp", "eu", "us", "io", "info", "me"]
)
"""Ends of domains that are not the ends of files too."""
_URL_BEFORE = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/@\"'<>?#]{0,200}$", re.IGNORECASE)


def emails(text: str) -> Iterator[Span]:
    """E-mail addresses; not users of repositories, and not the user's part of an address of the web."""
    if "@" not in text:
        return
    for match in _EMAIL.finditer(text):
        name, _, domain = match.group().partition("@")
        end = match.end()
        first, _, last = domain.rpartition(".")
        if last.lower() in _NO_DOMAINS and first.rpartition(".")[2].lower() in _OF_PEOPLE and "." in first:
            end -= len(last) + 1  # the name of a file that begins with an address
        elif last.lower() in _NO_DOMAINS:
            continue
        if name.lower() in _NO_PEOPLE or ".." in name:
            continue
        if _URL_BEFORE.search(text, max(0, match.start() - 220), match.start()):
            continue
        yield Span(match.start(), end, "EMAIL")


# --- IP addresses -------------------------------------------------------------------------------------------

_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\w)", re.ASCII)
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])(?!\.\d)", re.ASCII)
_VERSION_BEFORE = re.compile(
    r"(?:(?:[=~<>!]=|[\^~])\s?|\bv\.?\s?|version[\s:=\"']{1,4}|release[\s:=\"']{1,4}|\bver[.\s:=]{1,3}|"
    r"\b(?:build|firmware|driver|kernel|bios|patch|update|sdk|api)[\s:=]{1,3}|"
    r"\b(?:up|down)grad\w+[^\n]{0,16}\s|\b(?:updat|bump|migrat)(?:ed?|ing)[^\n]{0,16}\s|"
    r"section\s|chapter\s|clause\s|§\s?|第\s?|版本[::\s]{0,2})$",
    re.IGNORECASE,
)
_WORD_BEFORE = re.compile(r"([^\W\d_][\w+.-]*)[ \t]+$")
_OF_ADDRESSES = frozenset(
    [
        "ip",
        "ips",
        "ipv4",
        "host",
        "hosts",
        "addr",
        "address",
        "addresses",
        "from",
        "to",
        "server",
        "client",
        "peer",
        "ping",
        "dns",
        "nameserver",
        "gateway",
        "via",
        "src",
        "dst",
        "source",
        "destination",
        "remote",
        "local",
        "router",
        "by",
        "on",
        "at",
        "for",
        "and",
        "or",
        "is",
        "was",
        "inet",
        "route",
        "node",
        "user",
        "login",
        "connect",
        "connected",
        "connecting",
        "listening",
        "bind",
        "curl",
        "ssh",
        "telnet",
        "traceroute",
        "dig",
        "resolver",
        "地址",
        "来自",
        "主机",
        "服务器",
    ]
)
_KNOWN = ("1.1.1.1", "1.0.0.1", "8.8.8.8", "8.8.4.4", "9.9.9.9")
_SECTION_AFTER = re.compile(r"[ \t]+[A-Z\u4e00-\u9fff][\w\u4e00-\u9fff]")


def addresses(text: str) -> Iterator[Span]:
    """IP addresses; not versions, and not numbers of sections."""
    if text.count(":") >= 2:
        for match in _IPV6.finditer(text):
            found = match.group()
            if (
                (found.count(":") > 2 or any(sign.isdigit() for sign in found))
                and len(found) > 5
                and checks.address(found)
            ):
                yield Span(match.start(), match.end(), "IP")
    if text.count(".") < 3:
        return
    for match in _IPV4.finditer(text):
        if checks.address(match.group()) and not _is_version(text, match):
            yield Span(match.start(), match.end(), "IP")


def _is_version(text: str, match: re.Match[str]) -> bool:
    start = match.start()
    before = text[max(0, start - 32) : start]
    if _VERSION_BEFORE.search(before):
        return True
    if int(match.group().partition(".")[0]) > 9 or match.group() in _KNOWN:
        return False
    word = _WORD_BEFORE.search(before)
    if word is not None:
        return word.group(1).lower() not in _OF_ADDRESSES
    line_before = before.rpartition("\n")[2].strip("#*- \t")
    return not line_before and _SECTION_AFTER.match(text, match.end()) is not None


# --- numbers ------------------------------------------------------------------------------------------------

_CN_ID = re.compile(r"(?<![\w.-])\d{17}[\dXx](?![\w])(?!\.(?!0+\b)\d)", re.ASCII)
_CARD = re.compile(
    r"(?<![\w.+-])(?:\d{13,19}|\d{4}(?:([ -])\d{4})(?:\1\d{4})\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5})(?![\w-])(?!\.(?!0+\b)\d)",
    re.ASCII,
)
_SSN = re.compile(r"(?<![\w.-])\d{3}-\d{2}-\d{4}(?![\w-])(?!\.\d)", re.ASCII)
_SSN_SAID = re.compile(
    r"(?:\bssn\b|social security(?: number| no\.?)?)[\"'\s:=#is]{1,12}(\d{9}|\d{3} \d{2} \d{4})(?![\w-])",
    re.IGNORECASE | re.ASCII,
)


def identities(text: str) -> Iterator[Span]:
    """Chinese resident identity numbers."""
    for match in _CN_ID.finditer(text):
        if checks.cn_id(match.group()):
            yield Span(match.start(), match.end(), "CN_ID")


def cards(text: str) -> Iterator[Span]:
    """Numbers of payment cards, with spaces or hyphens between groups or none."""
    for match in _CARD.finditer(text):
        if checks.card(match.group()):
            yield Span(match.start(), match.end(), "CARD")


def securities(text: str) -> Iterator[Span]:
    """US social security numbers: with hyphens, or after words that say so."""
    for match in _SSN.finditer(text):
        if checks.ssn(match.group()):
            yield Span(match.start(), match.end(), "SSN")
    for match in _SSN_SAID.finditer(text):
        if checks.ssn(match.group(1)):
            yield Span(*match.span(1), "SSN")


# --- phone numbers ------------------------------------------------------------------------------------------

_SEP = r"[ .\-\u2010-\u2015]"
_PLUS = re.compile(
    r"(?<![\w+.])(?:\+|00(?=[1-9]\d{0,2}[ .\-/(]))[1-9]\d{0,2}(?:[ .\-\u2010-\u2015/]{0,2}(?:\(\d{1,5}\)|\d{1,5})){1,7}(?!\w)(?!\.\d)",
    re.ASCII,
)
_NANP = re.compile(
    r"(?<![\w.+-])(?<!\d )(?<!\d, )(?:1"
    + _SEP
    + r")?(?:\(\d{3}\)"
    + _SEP
    + r"?|\d{3}"
    + _SEP
    + r")\d{3}"
    + _SEP
    + r"\d{4}(?![\w-])(?!\.\d)(?! ?\d)",
    re.ASCII,
)
_CN_MOBILE = re.compile(
    r"(?<![\w.+-])(?:86[ -]?)?1[3-9]\d(?:\d{8}|([ -])\d{4}\1\d{4})(?![\w-])(?!\.\d)", re.ASCII
)
_CN_LINE = re.compile(
    r"(?<![\w.+-])(?:\(0\d{2,3}\) ?|0\d{2,3}[ -])\d{7,8}(?![\w-])(?!\.\d)|(?<![\w.+-])[48]00-\d{3,4}-\d{3,4}(?![\w-])",
    re.ASCII,
)
_SAID = re.compile(
    r"(?:\bphone(?:[ _-]?(?:number|no))?|\btel(?:ephone)?|\bmobile|\bcell(?:phone)?|\bfax|\bcall(?: me)?(?: at| on)?|\bwhatsapp|\btext me at|"
    r"电话|手机号?码?|联系方式|传真|致电)[\"'\s:=.#(]{0,6}(?:is|是|at|on|为)?[\"'\s:=(]{0,3}"
    r"(\+?\d[\d().\- ]{5,18}\d)(?![\w-])(?!\.\d)",
    re.IGNORECASE | re.ASCII,
)
_DIGITS = re.compile(r"\d[^\n]{0,40}?\d", re.ASCII)


class Phones:
    """Phone numbers, by the library ``phonenumbers``: as they are written in China and North America, with a country's code,
    after a word that says so, and in further ``regions`` by the library's own search, which is slower."""

    def __init__(self, regions: Sequence[str]) -> None:
        self._regions = tuple(regions)
        self._others = tuple(region for region in regions if region not in ("US", "CN"))

    def __call__(self, text: str) -> Iterator[Span]:
        """Yield the phone numbers of a text."""
        if sum(sign.isdigit() for sign in text[:64]) < 7 and checks_few(text):
            return
        for match in _PLUS.finditer(text):
            found = match.group()
            word = f"+{found[2:]}" if found.startswith("00") else found
            if self._valid(word, None):
                yield Span(match.start(), match.end(), "PHONE")
        if "CN" in self._regions:
            for pattern in (_CN_MOBILE, _CN_LINE):
                for match in pattern.finditer(text):
                    if self._valid(match.group(), "CN"):
                        yield Span(match.start(), match.end(), "PHONE")
        if "US" in self._regions:
            for match in _NANP.finditer(text):
                if self._valid(match.group(), "US"):
                    yield Span(match.start(), match.end(), "PHONE")
        for match in _SAID.finditer(text):
            if self._possible(match.group(1)):
                yield Span(*match.span(1), "PHONE")
        if self._others:
            yield from self._elsewhere(text)

    def _valid(self, text: str, region: str | None) -> bool:
        import phonenumbers

        try:
            return phonenumbers.is_valid_number(phonenumbers.parse(text, region))
        except phonenumbers.NumberParseException:
            return False

    def _possible(self, text: str) -> bool:
        import phonenumbers

        number = checks.digits_of(text)
        if not 7 <= len(number) <= 15 or len(set(number)) < 3:
            return False
        for region in self._regions or (None,):
            try:
                if phonenumbers.is_possible_number(phonenumbers.parse(text, region)):
                    return True
            except phonenumbers.NumberParseException:
                continue
        return False

    def _elsewhere(self, text: str) -> Iterator[Span]:
        import phonenumbers

        at = 0
        for line in text.splitlines(keepends=True):
            if sum(sign.isdigit() for sign in line) >= 7:
                for region in self._others:
                    for match in phonenumbers.PhoneNumberMatcher(line[:LONGEST_LINE], region):
                        if any(not sign.isdigit() for sign in match.raw_string):
                            yield Span(at + match.start, at + match.end, "PHONE")
            at += len(line)


def checks_few(text: str) -> bool:
    """Whether a text has fewer than seven digits: there is no phone number in it then."""
    count = 0
    for sign in "0123456789":
        count += text.count(sign)
        if count >= 7:
            return False
    return True


FINDERS: dict[str, Finder] = {
    "EMAIL": emails,
    "IP": addresses,
    "CN_ID": identities,
    "CARD": cards,
    "SSN": securities,
}


def find(text: str, finders: Sequence[Finder], taken: Sequence[tuple[int, int]] = ()) -> list[Span]:
    """Return the values in a text, in order and apart from each other; earlier finders go first. ``taken`` is left out."""
    mask = bytearray(len(text))
    for start, end in taken:
        mask[start:end] = b"\1" * (end - start)
    found: list[Span] = []
    for finder in finders:
        for span in finder(text):
            if span.start < span.end and not any(mask[span.start : span.end]):
                mask[span.start : span.end] = b"\1" * (span.end - span.start)
                found.append(span)
    return sorted(found)
