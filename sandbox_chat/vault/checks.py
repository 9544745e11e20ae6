"""Checks of numbers: Luhn, issuers of cards, social security, Chinese identity, bank accounts. Pure."""

from __future__ import annotations

import datetime

_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_SIGNS = "10X98765432"
_PROVINCES = frozenset(
    "11 12 13 14 15 21 22 23 31 32 33 34 35 36 37 41 42 43 44 45 46 50 51 52 53 54 61 62 63 64 65 71 81 82 83".split()
)
_ADVERTISED = frozenset({"078051120", "219099999"})
"""Social security numbers that were printed in advertisements and are nobody's."""


def digits_of(text: str) -> str:
    """Return the digits of a text."""
    return "".join(sign for sign in text if "0" <= sign <= "9")


def luhn(digits: str) -> bool:
    """Whether the last digit checks the others, as on cards."""
    total = 0
    for place, sign in enumerate(reversed(digits)):
        digit = ord(sign) - 48
        total += _DOUBLED[digit] if place % 2 else digit
    return total % 10 == 0


def card_issuer(digits: str) -> bool:
    """Whether cards of that length begin so."""
    size, two, three, four = len(digits), int(digits[:2]), int(digits[:3]), int(digits[:4])
    return (
        (digits[0] == "4" and size in (13, 16, 19))
        or ((51 <= two <= 55 or 2221 <= four <= 2720) and size == 16)
        or (two in (34, 37) and size == 15)
        or ((four == 6011 or 644 <= three <= 649 or two == 65) and 16 <= size <= 19)
        or ((300 <= three <= 305 or two in (36, 38, 39)) and size == 14)
        or (3528 <= four <= 3589 and 16 <= size <= 19)
        or (two == 62 and 16 <= size <= 19)
        or (2200 <= four <= 2204 and size == 16)
    )


def card(digits: str) -> bool:
    """Whether it is the number of a payment card."""
    return 13 <= len(digits) <= 19 and len(set(digits)) > 2 and card_issuer(digits) and luhn(digits)


def social_security(digits: str) -> bool:
    """Whether nine digits can be a US social security number."""
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return (
        area not in ("000", "666")
        and area[0] != "9"
        and group != "00"
        and serial != "0000"
        and digits not in _ADVERTISED
    )


def cn_id(number: str) -> bool:
    """Whether 18 signs are a Chinese resident identity number: province, day of birth, check sign."""
    number = number.upper()
    if len(number) != 18 or not number[:17].isdigit() or not number.isascii() or number[:2] not in _PROVINCES:
        return False
    try:
        born = datetime.date(int(number[6:10]), int(number[10:12]), int(number[12:14]))
    except ValueError:
        return False
    total = sum(int(sign) * weight for sign, weight in zip(number, _WEIGHTS, strict=False))
    return born.year >= 1880 and _SIGNS[total % 11] == number[17]


def iban(number: str) -> bool:
    """Whether it is the number of a bank account by its check digits."""
    plain = "".join(number.split()).upper()
    if not 15 <= len(plain) <= 34 or not plain.isalnum() or not plain.isascii():
        return False
    turned = plain[4:] + plain[:4]
    return int("".join(str(int(sign, 36)) for sign in turned)) % 97 == 1


def check(validator: str, value: str) -> bool:
    """Whether ``value`` passes the check of that name; the empty one passes all."""
    if validator == "luhn":
        return len(digits := digits_of(value)) > 1 and luhn(digits)
    if validator == "cn_id":
        return cn_id("".join(value.split()).replace("-", ""))
    return iban(value) if validator == "iban" else True
