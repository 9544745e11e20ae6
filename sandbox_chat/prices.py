"""Prices of models that the user knows and the agent's program does not: the tables ``[prices."NAME"]`` of ``config.toml``.

Dollars for a million tokens. A name that ends in ``*`` stands for all names that begin so; the exact name wins, then
the longest beginning.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox_chat.values import ConfigError, number

MILLION = 1_000_000
HIGHEST = 100_000.0
"""Dollars for a million tokens beyond which a price is surely a slip."""
HIGHEST_BUDGET = 1_000_000.0
"""Dollars of the largest budget of a session."""
NAMES = ("input", "output", "cache_read", "cache_write")
"""What a price table holds."""
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d*)?")


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens: read as input, written, read from the cache, put into the cache."""

    input: float
    output: float
    cache_read: float
    cache_write: float

    def cost(self, *, input: int, output: int, cache_read: int, cache_write: int) -> float:
        """Return what so many tokens cost, in dollars."""
        return (
            input * self.input
            + output * self.output
            + cache_read * self.cache_read
            + cache_write * self.cache_write
        ) / MILLION


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Return the price of a model, ``None`` when the table has none."""
    if model in prices:
        return prices[model]
    fitting = [name for name in prices if name.endswith("*") and model.startswith(name[:-1])]
    return prices[max(fitting, key=len)] if fitting else None


def read_prices(table: Any, where: str) -> dict[str, Price]:
    """Return the prices by model of the table ``[prices]``. ``where`` names the file in messages.

    Raises ``ConfigError`` with one sentence that names the model and what is wrong.
    """
    if not isinstance(table, dict):
        raise ConfigError(
            f'prices in {where} must be tables: [prices."NAME OF A MODEL"] with input = 3.0 and output = 15.0.'
        )
    return {name: _price(name, numbers, where) for name, numbers in _models(table, "", where)}


def _models(table: Mapping[str, Any], name: str, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield names and their tables. A name with dots and without quotes comes as tables within tables."""
    for key, value in table.items():
        full = f"{name}.{key}" if name else key
        if not isinstance(value, dict):
            raise ConfigError(
                f"{full} under prices in {where} must be a table of prices: "
                f'[prices."{full}"] with input = 3.0 and output = 15.0.'
            )
        if value and all(isinstance(inner, dict) for inner in value.values()):
            yield from _models(value, full, where)
        else:
            yield full.strip(), value


def _price(name: str, numbers: Mapping[str, Any], where: str) -> Price:
    subject = f'[prices."{name}"] in {where}'
    if not name or "*" in name[:-1]:
        raise ConfigError(f"{subject} must name a model; a * may stand at the end only.")
    for key, value in numbers.items():
        if key not in NAMES:
            near = difflib.get_close_matches(key, NAMES, 1)
            hint = f"; did you mean {near[0]}?" if near else f": it holds {', '.join(NAMES)}."
            raise ConfigError(f"{subject} has {key}, which is no price{hint}")
        counted = isinstance(value, int | float) and not isinstance(value, bool)
        if not counted or not math.isfinite(value) or not 0 <= value <= HIGHEST:
            raise ConfigError(
                f"{key} of {subject} must be dollars for a million tokens, a number from 0 to {HIGHEST:g}."
            )
    missing = [key for key in NAMES[:2] if key not in numbers]
    if missing:
        raise ConfigError(f"{subject} lacks {' and '.join(missing)}: dollars for a million tokens.")
    fresh = float(numbers["input"])
    return Price(
        input=fresh,
        output=float(numbers["output"]),
        cache_read=float(numbers.get("cache_read", fresh)),
        cache_write=float(numbers.get("cache_write", fresh)),
    )


def read_budget(text: str) -> float:
    """Return the dollars that a user typed for a budget. Raises ``ValueError`` for what is none.

    A comma stands between thousands only: ``5,50`` is none, for it would be 550.
    """
    typed = text.strip().removeprefix("$").strip()
    if _THOUSANDS.fullmatch(typed):
        typed = typed.replace(",", "")
    return float(number(0, HIGHEST_BUDGET)(typed))
