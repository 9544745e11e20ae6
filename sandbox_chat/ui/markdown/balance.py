"""Which mark of emphasis closes which, and what they then are."""

from __future__ import annotations

from dataclasses import dataclass

from .reference import Node


@dataclass(slots=True, eq=False)
class Mark:
    """One character of a run of emphasis, or a pair of tildes."""

    marker: str
    length: int  # of the run; 0 for tildes
    token: int
    at: int
    open: bool
    close: bool
    only: bool = False  # opens and cannot close
    end: int = -1  # the mark that closes it


def balance(marks: list[Mark]) -> None:
    """Find the closing mark for each opening one, in the way of markdown-it."""
    bottoms: dict[str, list[int]] = {}
    jumps: list[int] = []
    header = 0
    last_token = -2
    for index, closer in enumerate(marks):
        jumps.append(0)
        if marks[header].marker != closer.marker or last_token != closer.token - 1:
            header = index
        last_token = closer.token
        if not closer.close:
            continue
        bottom = bottoms.get(closer.marker)
        if bottom is None:
            bottom = bottoms[closer.marker] = [-1] * 6
        slot = (3 if closer.open else 0) + closer.length % 3
        least = bottom[slot]
        at = header - jumps[header] - 1
        new_least = at
        while at > least:
            opener = marks[at]
            if opener.marker == closer.marker and opener.open and opener.end < 0:
                total = opener.length + closer.length
                odd = (
                    (opener.close or closer.open)
                    and total % 3 == 0
                    and (opener.length % 3 != 0 or closer.length % 3 != 0)
                )
                if not odd:
                    last_jump = jumps[at - 1] + 1 if at > 0 and not marks[at - 1].open else 0
                    jumps[index] = index - at + last_jump
                    jumps[at] = last_jump
                    closer.open = False
                    opener.end = index
                    opener.close = False
                    new_least = -1
                    last_token = -2
                    break
            at -= jumps[at] + 1
        if new_least != -1:
            bottom[(3 if closer.open else 0) + closer.length % 3] = new_least


def pair(marks: list[Mark], nodes: list[Node]) -> None:
    """Put styles where balanced marks stand in ``nodes``."""
    index = len(marks) - 1
    while index >= 0:
        opener = marks[index]
        if opener.end < 0:
            index -= 1
            continue
        closer = marks[opener.end]
        if opener.marker == "~":
            nodes[opener.token], nodes[closer.token] = ("open", "strike"), ("close", "strike")
            index -= 1
            continue
        strong = (
            index > 0
            and marks[index - 1].end == opener.end + 1
            and marks[index - 1].marker == opener.marker
            and marks[index - 1].token == opener.token - 1
            and marks[opener.end + 1].token == closer.token + 1
        )
        style = "strong" if strong else "emphasis"
        nodes[opener.token], nodes[closer.token] = ("open", style), ("close", style)
        if strong:
            nodes[marks[index - 1].token] = nodes[marks[opener.end + 1].token] = ""
            index -= 1
        index -= 1


def close_open(marks: list[Mark], nodes: list[Node]) -> list[Node]:
    """Show what is still open as a style that ends where the text ends. Returns the nodes to be added there."""
    closing: list[Node] = []
    index = 0
    while index < len(marks):
        mark = marks[index]
        index += 1
        if mark.end >= 0 or not mark.open or not mark.only or mark.marker == "_":
            continue
        style = "emphasis" if mark.marker == "*" else "strike"
        if index < len(marks):
            after = marks[index]
            if mark.marker == "*" == after.marker and after.end < 0 and after.token == mark.token + 1:
                style = "strong"
                nodes[after.token] = ""
                index += 1
        nodes[mark.token] = ("open", style)
        closing.append(("close", style))
    return closing[::-1]
