"""The check digits and ranges by which a number is told to be a card, a social security or an identity number."""

from __future__ import annotations

import datetime
import ipaddress

_CN_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CN_CHECK = "10X98765432"
# ISO/IEC 7812: the first digits of issuers, as ranges of the first six, and the lengths of their cards.
_ISSUERS = (
    (400000, 499999, (13, 16, 19)),  # Visa
    (510000, 559999, (16,)),  # Mastercard
    (222100, 272099, (16,)),
    (340000, 349999, (15,)),  # American Express
    (370000, 379999, (15,)),
    (300000, 305999, (14,)),  # Diners Club
    (360000, 369999, (14,)),
    (380000, 399999, (14,)),
    (601100, 601199, (16, 17, 18, 19)),  # Discover
    (644000, 659999, (16, 17, 18, 19)),
    (352800, 358999, (16,)),  # JCB
    (620000, 629999, (16, 17, 18, 19)),  # UnionPay
)


def digits_of(text: str) -> str:
    """Return the digits of a text, 0 to 9."""
    return "".join(sign for sign in text if "0" <= sign <= "9")


def luhn(text: str) -> bool:
    """Whether the last digit is right by ISO/IEC 7812 (Luhn)."""
    total = 0
    for place, sign in enumerate(reversed(digits_of(text))):
        number = int(sign) * (2 if place % 2 else 1)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def card(text: str) -> bool:
    """Whether a number is that of a payment card: an issuer's first digits, its length, and the check digit."""
    number = digits_of(text)
    if not 13 <= len(number) <= 19 or len(set(number)) < 2:
        return False
    first = int(number[:6])
    return any(low <= first <= high and len(number) in sizes for low, high, sizes in _ISSUERS) and luhn(
        number
    )


def ssn(text: str) -> bool:
    """Whether a number can be a US social security number (SSA: area not 000, 666 or 900–999, group not 00, serial not 0000)."""
    number = digits_of(text)
    area, group, serial = number[:3], number[3:5], number[5:]
    return (
        len(number) == 9
        and area not in ("000", "666")
        and area < "900"
        and group != "00"
        and serial != "0000"
    )


def cn_id(text: str) -> bool:
    """Whether a number is a Chinese resident identity number (GB 11643-1999: region, date of birth, check sign)."""
    number = text.upper()
    if len(number) != 18 or not number[:17].isdigit() or not "11" <= number[:2] <= "91":
        return False
    try:
        born = datetime.date(int(number[6:10]), int(number[10:12]), int(number[12:14]))
    except ValueError:
        return False
    if not 1880 <= born.year <= 2100:
        return False
    total = sum(int(sign) * weight for sign, weight in zip(number, _CN_WEIGHTS, strict=False))
    return _CN_CHECK[total % 11] == number[17]


def address(text: str) -> bool:
    """Whether a text is an IP address that belongs to somebody: not this machine, nobody, everybody or a mask."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if found.is_loopback or found.is_unspecified or found.is_multicast:
        return False
    return not (found.version == 4 and text.startswith("255."))
