"""Tokens that stand for personal values: ``<EMAIL:k3f9…>``. Their ends are random, so that they tell nothing, not even an order."""

from __future__ import annotations

import re
import secrets

SIGNS = "abcdefghjkmnpqrstuvwxyz23456789"
"""What the random part is made of: no sign that is taken for another."""
LENGTH = 12
"""Signs of the random part: 59 bits, so that no token is guessed."""
TOKEN = re.compile(rf"<([A-Z][A-Z0-9_]{{1,20}}):[{SIGNS}]{{{LENGTH}}}>")
"""A token of any vault."""


def new_token(kind: str) -> str:
    """Return a fresh token of a kind."""
    return f"<{kind}:{''.join(secrets.choice(SIGNS) for _ in range(LENGTH))}>"


def kind_of(token: str) -> str:
    """Return the kind that a token names."""
    return token[1 : token.index(":")]
