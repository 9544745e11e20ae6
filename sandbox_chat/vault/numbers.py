"""Finds numbers with a check or a form of their own: payment cards, US social security, Chinese identity numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sandbox_chat.vault import checks

_DIGITS = re.compile(r"\d(?:[ -]?\d){8}", re.ASCII)
_CN_ID = re.compile(r"(?<![A-Za-z0-9_.])([1-9]\d{5})([ -]?)(\d{8})\2(\d{3}[\dXx])(?![A-Za-z0-9_]|[.-]\d)")
_BEFORE, _AFTER = r"(?<![A-Za-z0-9_.])(?<![0-9][-/])", r"(?![A-Za-z0-9_]|[./-]\d)"
_CARD = re.compile(
    rf"{_BEFORE}(?:(\d{{13,19}})|(\d{{4}})([ -])\d{{4}}\3\d{{4}}\3\d{{4}}(?:\3\d{{3}})?|3\d{{3}}([ -])\d{{6}}\4\d{{4,5}}){_AFTER}",
    re.ASCII,
)
_CARD_SHORT = re.compile(rf"\d{{4}}([ -])\d{{4}}\1\d{{4}}\1\d{{4}}{_AFTER}", re.ASCII)
_GROUP = re.compile(r"\d{4}[ -]")
_SSN = re.compile(rf"{_BEFORE}(\d{{3}})([ -])(\d{{2}})\2(\d{{4}}){_AFTER}", re.ASCII)
_SSN_BARE = re.compile(rf"{_BEFORE}\d{{9}}{_AFTER}", re.ASCII)
_SSN_WORD = re.compile(r"(?i:\bssn\b|\bssns\b|_ssn\b|\bssn_|social[ _-]?security)|社会安全")
_NOT_SSN = re.compile(r"(?i:part|sku|order|invoice|model|ref|item|isbn|serial|ticket|case|catalog|article)\w{0,5}[ .:#no]{0,6}$")
_NOT_CARD = re.compile(
    r"(?i:order|invoice|tracking|trace|span|offset|seq\w*|timestamp|ts|ns|nanos|barcode|ean|upc|isbn|serial|imei|batch|request|req|txn?|uid|oid|snowflake|tweet|message|msg|thread|job|build|run|pid|commit)"
    r"(?:[ _.-]?(?:id|no|number|num|key))?[\"']?[ ]?[:=#№.]{0,2}[ ]?[\"']?$"
)
_LOOKED_AT = 40


def find_cn_ids(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of Chinese resident identity numbers of 18 signs."""
    for found in _CN_ID.finditer(text):
        if checks.cn_id(found[1] + found[3] + found[4]):
            yield found.span()


def find_cards(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of numbers of payment cards."""
    at = 0
    while found := _CARD.search(text, at):
        at = found.end()
        if checks.card(checks.digits_of(found[0])):
            run = found[1] is not None
            if run and _NOT_CARD.search(text[max(0, found.start() - _LOOKED_AT) : found.start()]):
                continue
            yield found.span()
            continue
        if found[2] is None:
            continue
        # One of the groups may be the first of a card, or the last be no part of it.
        for place in (found.start(), found.start() + 5):
            short = _CARD_SHORT.match(text, place)
            if short and checks.card(checks.digits_of(short[0])):
                yield short.span()
                at = short.end()
                break
        else:
            at = found.start() + 5
            while at and text[at - 1 : at].isdigit():
                at -= 1


def find_social(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of US social security numbers.

    Written with hyphens they are known by their form; with spaces or as a run of digits only where the line says so.
    """
    for found in _SSN.finditer(text):
        before = text[max(0, found.start() - _LOOKED_AT) : found.start()].rpartition("\n")[2]
        if not checks.social_security(found[1] + found[3] + found[4]):
            continue
        said = _SSN_WORD.search(before)
        if said or (found[2] == "-" and not _NOT_SSN.search(before)):
            yield found.span()
    if _SSN_WORD.search(text):
        for found in _SSN_BARE.finditer(text):
            before = text[max(0, found.start() - _LOOKED_AT) : found.start()].rpartition("\n")[2]
            if checks.social_security(found[0]) and _SSN_WORD.search(before):
                yield found.span()
