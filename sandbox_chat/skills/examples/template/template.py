"""A skill to begin with."""

from __future__ import annotations


def greet(name: str) -> str:
    """Return a greeting.

    >>> greet("Ada")
    'Hello, Ada.'
    """
    return f"Hello, {name}."
