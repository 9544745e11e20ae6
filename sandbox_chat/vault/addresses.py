"""Finds IP addresses, and tells them from versions, section numbers and slices of code.

Addresses that identify no machine are left: loopback, the unspecified one, masks, multicast and reserved ones, networks with
their prefix (``10.0.0.0/8``). Private and documentation addresses are found: they may be of a real machine.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

_V4 = re.compile(r"(?<![\w.])(?<!\d[-_])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d|\.[A-Za-z]|-\d{1,3}\.)(?:/(\d{1,2})(?![\d/.]))?", re.ASCII)
_V6 = re.compile(
    r"(?<![\w:.])(?:[0-9A-Fa-f]{1,4}:|::)[0-9A-Fa-f:]{1,38}(?:\.\d{1,3}){0,3}(?![\w:]|\.\d)(?:/(\d{1,3})(?!\d))?", re.ASCII
)
_V6_START = re.compile(r"(?:[23][0-9a-f]{3}:|f[cd][0-9a-f]{2}:|fe[89ab][0-9a-f]:|::ffff:\d+\.|64:ff9b:)", re.IGNORECASE)
# What stands before the number of a version or a section.
_VERSION = re.compile(
    r"(?:[=~<>!^]=?|\b[vV]\.?|(?i:\b(?:ver(?:sion)?|release|build|firmware|rev(?:ision)?|driver|kernel|update|upgraded?|patch|"
    r"section|sec\.|chapter|figure|fig\.|table|clause|appendix|step|oid|item)s?\b)|[§版本章节])[\"']?\s{0,2}(?:[:=])?\s{0,2}[\"']?$"
)
_ASSIGNED = re.compile(r"(?i:ip|addr\w{0,6}|host\w{0,6}|server|bind|src|dst|peer|client|gateway|dns|from|to|listen)[\"']?\s{0,2}[=:]=?\s{0,2}[\"'(\[]*$")
_PRODUCT = re.compile(r"(?<![\w.])[A-Za-z]+/$")
# Words that speak of a machine, in the line of a number that could as well be a version.
_MACHINE = re.compile(
    r"(?i:\b(?:ips?|ipv4|addr(?:ess(?:es)?)?|hosts?|hostname|nameservers?|dns|ping\w*|from|client|peer|remote|login|ssh|"
    r"inet|router|gateway|subnet|proxy|resolver|server|src|dst|source|destination|connect\w*|listen\w*|traceroute|port|via|"
    r"block\w*|ban\w*|whois|dev)\b)|地址|主机|服务器|://|@|_ip\b|ip_|(?:GET|POST|PUT|HEAD|DELETE) /"
)
_HEADING = re.compile(r"[ \t]+[A-Z一-鿿]")
_SMALL = 40
"""All four numbers below it: so look versions and sections."""
_AROUND = 120


def find_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of IP addresses in ``text``, which is a plain copy."""
    taken = 0
    if ":" in text:
        for found in _V6.finditer(text):
            end = found.start(1) - 1 if found[1] else found.end()
            plain = text[found.start() : end].rstrip(":") if not text[:end].endswith("::") else text[found.start() : end]
            if _V6_START.match(plain) and _v6(plain, found[1]):
                yield found.start(), found.start() + len(plain)
    for found in _V4.finditer(text):
        if found.start() < taken:
            continue
        end = found.start(1) - 1 if found[1] else found.end()
        if _v4(text, found.start(), end, found[1]):
            taken = end
            yield found.start(), end


def _v6(plain: str, prefix: str | None) -> bool:
    try:
        address = ipaddress.IPv6Address(plain)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast:
        return False
    return not (prefix and int(prefix) < 128 and _is_network(address, int(prefix)))


def _v4(text: str, start: int, end: int, prefix: str | None) -> bool:
    try:
        address = ipaddress.IPv4Address(text[start:end])
    except ValueError:
        return False
    first = int(address) >> 24
    if first in (0, 127) or first >= 224 or _is_mask(int(address)):
        return False
    if prefix and int(prefix) < 32 and _is_network(address, int(prefix)):
        return False
    return _is_machine(text, start, end, address)


def _is_network(address: ipaddress.IPv4Address | ipaddress.IPv6Address, prefix: int) -> bool:
    """Whether an address with a prefix has no bits of a host."""
    size = address.max_prefixlen
    return prefix <= size and int(address) & ((1 << (size - prefix)) - 1) == 0


def _is_mask(number: int) -> bool:
    """Whether the bits are ones and then zeros: a netmask."""
    inverse = number ^ 0xFFFFFFFF
    return inverse & (inverse + 1) == 0


def _is_machine(text: str, start: int, end: int, address: ipaddress.IPv4Address) -> bool:
    line = max(text.rfind("\n", max(0, start - _AROUND), start) + 1, start - _AROUND, 0)
    before = text[line:start]
    if _VERSION.search(before) and not _ASSIGNED.search(before):
        return False
    numbers = address.packed
    if numbers[1:] == b"\0\0\0" or (_PRODUCT.search(before) and not address.is_private):
        return False
    if not all(number < _SMALL for number in numbers):
        return True
    at_start = not before.strip(" \t#*-+>|")
    if at_start and _HEADING.match(text, end) and not before.strip(" \t").startswith("|"):
        return False
    if numbers[0] == 10 and not (before[-1:] in "-_ " and before[-2:-1].isalnum() and not _MACHINE.search(before)):
        return True
    after = text[end : end + _AROUND].partition("\n")[0]
    return bool(re.match(r":\d{2,5}\b", after) or _MACHINE.search(before) or _MACHINE.search(after))
