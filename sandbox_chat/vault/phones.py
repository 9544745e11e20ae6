"""Finds phone numbers: candidates by their form, checked with phonenumbers.

Its own matcher is not used, because it takes a tenth of a second for a dense page. A number must be valid for its country;
after a word that speaks of phones it may be a run of digits, and be one of the American numbers that are kept for fiction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

_SEVEN = re.compile(r"\d(?:[^\d\n]{0,3}\d){6}", re.ASCII)
_BEFORE = r"(?<![A-Za-z0-9_.+])(?<!\d[-/:,])"
_AFTER = r"(?![A-Za-z0-9_]|[-/.:,]\d)"
_INTERNATIONAL = re.compile(
    rf"(?<![A-Za-z0-9_])(?:\+|(?<![\d.,:/-])(?:00|011[ -]))[1-9](?:[ ().\-/]{{0,2}}\d){{6,14}}(?:[ ]?(?:x|ext\.?)[ ]?\d{{1,6}})?{_AFTER}", re.ASCII
)
_AMERICAN = re.compile(
    rf"{_BEFORE}(?:1[ .-])?(?:\([2-9]\d{{2}}\)[ ]?|[2-9]\d{{2}}([ .-]))[2-9]\d{{2}}([ .-])\d{{4}}(?:[ ]?(?:x|ext\.?)[ ]?\d{{1,6}})?{_AFTER}", re.ASCII
)
_CHINESE_MOBILE = re.compile(rf"{_BEFORE}(?:\(?86\)?[ -]?)?1[3-9]\d([ -]?)\d{{4}}\1\d{{4}}{_AFTER}", re.ASCII)
_CHINESE_LINE = re.compile(rf"{_BEFORE}(?:\(0\d{{2,3}}\)[ -]?|0\d{{2,3}}[ -])[2-9]\d{{2,3}}[ -]?\d{{4}}(?:[ -]?(?:转|x|ext\.?)[ ]?\d{{1,6}})?{_AFTER}", re.ASCII)
_CHINESE_SERVICE = re.compile(rf"{_BEFORE}[48]00-?\d{{3,4}}-?\d{{3,4}}{_AFTER}", re.ASCII)
_OTHER = re.compile(rf"{_BEFORE}\(?0\d(?:[ ().\-/]{{0,2}}\d){{6,12}}{_AFTER}", re.ASCII)
_RUN = re.compile(rf"(?<![A-Za-z0-9_.+])\d{{7,15}}{_AFTER}", re.ASCII)
_WORD = re.compile(
    r"(?i:\b(?:tele?)?phones?\b|phone|\btel\b|\bmobile\b|\bcell(?:ular)?\b|\bfax\b|\bwhatsapp\b|\bsms\b|\bmsisdn\b|"
    r"\bcall(?:er|ed|back)?\b|\bdial\w*\b|\btext(?:ed)? (?:me|us|to)\b|\bcontact\b|\bhotline\b|\breach\b|\bring\b|\bmob\b)|"
    r"电话|手机|联系方式|座机|热线|传真|拨打|致电|号码是|联系人|微信|电話|手機"
)
# After these words, a run of digits counts something else.
_COUNTED = re.compile(
    r"(?i:\b(?:size|bytes|len\w*|count|offset|time\w*|ts|epoch|seq\w*|pid|inode|total|order\w*|invoice|tracking|serial|"
    r"isbn|ean|sku|ref\w*|ticket|txn?|version|build|hash|seed|nonce|amount|price|balance|duration|elapsed|rows?|id|uid|uuid|no|"
    r"population|revenue|distance|port)|订单号?|编号|单号|流水号|序列号|金额|数量|合计|总计|时间戳)[\"'\]]?[ ]{0,2}[:：=#.]{0,2}[ ]{0,2}[\"']?$"
)
_UNIT = re.compile(r"\s?(?:bytes?|[KMGT]i?B|B|ns|us|µs|ms|s|元|rows?|records?|个|条|次|万|亿|%|\$|km|kg|tokens?)(?![A-Za-z])")
_MONEY = re.compile(r"[$€£¥#]\s?$")
_NEIGHBOUR_BEFORE = re.compile(r"[\d\0][ \t,;|]{1,4}$")
_NEIGHBOUR_AFTER = re.compile(r"[ \t,;|]{1,4}[-+]?[\d\0]")
_FICTION = re.compile(r"1?[2-9]\d{2}55501\d{2}")
_LOOKED_AT = 48


class Phones:
    """Phone numbers of some regions, and of any where the country's number is written."""

    def __init__(self, regions: Sequence[str]) -> None:
        self.regions = tuple(regions)
        self._forms: list[tuple[re.Pattern[str], str]] = []
        if "US" in regions or "CA" in regions:
            self._forms.append((_AMERICAN, "US" if "US" in regions else "CA"))
        if "CN" in regions:
            self._forms += [(_CHINESE_MOBILE, "CN"), (_CHINESE_LINE, "CN"), (_CHINESE_SERVICE, "CN")]
        self._others = tuple(region for region in regions if region not in ("US", "CA", "CN"))

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the places of phone numbers in ``text``, which is a plain copy, in any order, some perhaps twice."""
        if not _SEVEN.search(text):
            return
        for found in _INTERNATIONAL.finditer(text):
            if self._international(found[0]):
                yield found.span()
        for form, region in self._forms:
            for found in form.finditer(text):
                if self._national(text, found, region):
                    yield found.span()
        for region in self._others:
            for found in _OTHER.finditer(text):
                if _valid(found[0], region) and not _counted(text, found.start()):
                    yield found.span()
        yield from self._runs(text)

    def _international(self, number: str) -> bool:
        if number.startswith("+"):
            plain = number
        else:
            plain = "+" + number.removeprefix("011").removeprefix("00").lstrip(" -")
        return _valid(plain, None) or bool(_FICTION.fullmatch(_plain_digits(plain)))

    def _national(self, text: str, found: re.Match[str], region: str) -> bool:
        start, end = found.span()
        number = found[0]
        if not (_valid(number, region) or (region == "US" and _FICTION.fullmatch(_plain_digits(number)))):
            return False
        before = _before(text, start)
        if _WORD.search(before):
            return True
        run = number.isdigit()
        if run and (_COUNTED.search(before) or _MONEY.search(before) or _UNIT.match(text, end)):
            return False
        loose = " " in number and "(" not in number
        if loose or (run and region == "US"):
            return not (_NEIGHBOUR_BEFORE.search(before) or _NEIGHBOUR_AFTER.match(text, end))
        return not ("-" in number and _COUNTED.search(before))

    def _runs(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield runs of digits after a word that speaks of phones."""
        if not _WORD.search(text):
            return
        for found in _RUN.finditer(text):
            before = _before(text, found.start())
            word = None
            for word in _WORD.finditer(before):
                pass
            if word is None or _COUNTED.search(before) or _far(before[word.end() :]):
                continue
            digits = found[0]
            if any(_valid(digits, region) for region in self.regions) or _FICTION.fullmatch(digits):
                yield found.span()


def _far(between: str) -> bool:
    """Whether what stands between a word and a number makes it a number of something else."""
    return len(between) > 24 or bool(re.search(r"[.;。；]\s", between))


def _counted(text: str, start: int) -> bool:
    return bool(_COUNTED.search(_before(text, start)))


def _before(text: str, start: int) -> str:
    """Return the line before a place, as far as it is looked at."""
    return text[max(0, start - _LOOKED_AT) : start].rpartition("\n")[2]


def _plain_digits(number: str) -> str:
    return "".join(sign for sign in number.partition("x")[0].partition("e")[0] if "0" <= sign <= "9")


@lru_cache(maxsize=4096)
def _valid(number: str, region: str | None) -> bool:
    """Whether a number is valid in a region; ``None``: in the country that it names."""
    import phonenumbers  # its tables are loaded with the first number

    try:
        parsed = phonenumbers.parse(number.replace("转", "x"), region)
    except phonenumbers.NumberParseException:
        return False
    return phonenumbers.is_valid_number(parsed)
