"""Rows from tools: read, cleaned, grouped, described. Standard library only."""

from __future__ import annotations

import ast
import csv
import io
import json
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

Row = dict[str, Any]


def rows_of(data: Any) -> list[Row]:
    """Return rows as a list of dicts, from such a list, JSON or Python text of one, or CSV with a header.

    >>> rows_of("a,b\\n1,x\\n2,y")
    [{'a': '1', 'b': 'x'}, {'a': '2', 'b': 'y'}]
    >>> rows_of('[{"a": 1}]') == rows_of([{"a": 1}]) == rows_of("[{'a': 1}]")
    True
    """
    if isinstance(data, str):
        text = data.strip()
        if text.startswith(("[", "{")):
            try:
                data = json.loads(text)
            except ValueError:
                data = ast.literal_eval(text)
        else:
            return [dict(row) for row in csv.DictReader(io.StringIO(text))]
    if isinstance(data, Mapping):
        lists = [value for value in data.values() if isinstance(value, list)]
        data = lists[0] if len(data) == 1 and lists else [data]
    return [dict(row) for row in data]


def clean(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return rows without spaces around texts, with numbers for texts that are some, and without repeated rows.

    >>> clean([{"a": " 1 ", "b": "x "}, {"a": "1", "b": "x"}, {"a": "", "b": "1.5"}])
    [{'a': 1, 'b': 'x'}, {'a': None, 'b': 1.5}]
    """
    found: list[Row] = []
    seen: set[str] = set()
    for row in rows:
        neat = {str(name).strip(): _value(value) for name, value in row.items()}
        key = json.dumps(neat, sort_keys=True, default=str)
        if key not in seen:
            seen.add(key)
            found.append(neat)
    return found


def _value(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text:
        return None
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        # "007" and "nan" are names, not amounts.
        return (
            text
            if text.lstrip("+-").startswith("0") and text.lstrip("+-").isdigit() and len(text) > 1
            else number
        )
    return text


def group(rows: Iterable[Mapping[str, Any]], by: str, value: str) -> list[Row]:
    """Return one row for each value of ``by``: how many rows, sum and mean of ``value``; the largest sum first.

    >>> group([{"k": "a", "v": 1}, {"k": "b", "v": 5}, {"k": "a", "v": 3}], "k", "v")
    [{'k': 'b', 'count': 1, 'sum': 5, 'mean': 5}, {'k': 'a', 'count': 2, 'sum': 4, 'mean': 2}]
    """
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        amount = row.get(value)
        if isinstance(amount, (int, float)) and not isinstance(amount, bool):
            groups.setdefault(row.get(by), []).append(amount)
    made = [
        {by: key, "count": len(found), "sum": sum(found), "mean": statistics.fmean(found)}
        for key, found in groups.items()
    ]
    for row in made:
        if row["mean"] == int(row["mean"]):
            row["mean"] = int(row["mean"])
    return sorted(made, key=lambda row: -row["sum"])


def describe(rows: Iterable[Mapping[str, Any]]) -> dict[str, Row]:
    """Return facts of each column: how many values, how many are missing, and the least, the largest and the mean, or the commonest.

    >>> describe([{"a": 1}, {"a": 3}, {"a": None}])["a"]
    {'count': 2, 'missing': 1, 'min': 1, 'max': 3, 'mean': 2.0}
    """
    rows = list(rows)
    facts: dict[str, Row] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row[name] for row in rows if row.get(name) is not None]
        about: Row = {"count": len(values), "missing": len(rows) - len(values)}
        if values and all(
            isinstance(value, (int, float)) and not isinstance(value, bool) for value in values
        ):
            about |= {"min": min(values), "max": max(values), "mean": statistics.fmean(values)}
        elif values:
            texts = [str(value) for value in values]
            about |= {"distinct": len(set(texts)), "commonest": statistics.mode(texts)}
        facts[name] = about
    return facts
