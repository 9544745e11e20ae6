"""What the first prompt of a resumed session will cost, when the endpoint's cache no longer holds the conversation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sandbox_chat.agent.errors import Trouble
from sandbox_chat.events import Notice, TurnFinished
from sandbox_chat.plain import cost_text, duration_text
from sandbox_chat.prices import MILLION, price_of
from sandbox_chat.settings import Settings

_PRICES = re.compile(r"\$([\d.]+)\s*/\s*\$([\d.]+) per Mtok")
"""How the agent's program writes the prices of a model, input and output, in its list of models."""
_LONG = re.compile(r"\$([\d.]+)\s*/\s*\$[\d.]+ for prompts over (\d+)k")
"""The same for the prices of long prompts, where they are others."""


def cold_notice(
    earlier: TurnFinished | None,
    settings: Settings,
    *,
    model: str,
    now: datetime,
    models: Iterable[Mapping[str, Any]] = (),
) -> Notice | None:
    """Return what to say at a resume, ``None`` when the next prompt is not dear or the cache is still warm.

    ``earlier`` is the session's last turn, ``model`` the name asked for, ``models`` the list of the agent's program.
    """
    limit = settings.cold_tokens
    if earlier is None or settings.demo or limit <= 0 or earlier.context.used < limit:
        return None
    idle = (now - earlier.at).total_seconds()
    if idle < settings.cold_after:
        return None
    tokens = earlier.context.used
    about = {"tokens": f"{tokens:,}", "time": duration_text(1000 * idle), "model": model}
    own = price_of(model, settings.prices)
    kind, price = "cold_tokens", 0.0
    if (listed := list_price(models, model, tokens)) is not None:
        kind, price = "cold_listed", listed
    elif own is not None:
        kind, price = "cold_priced", own.cache_write
    if kind != "cold_tokens":
        about |= {"cost": cost_text(tokens * price / MILLION), "price": f"${price:g}"}
    said = Trouble(kind, tuple(about.items()))
    return Notice(level="warning", text=said.text, kind=said.kind, about=said.about)


def list_price(models: Iterable[Mapping[str, Any]], model: str, tokens: int) -> float | None:
    """Return dollars for a million tokens of input in a prompt of so many, by the list of the agent's program.

    ``None`` when it does not say.
    """
    wanted = model or "default"
    for item in models:
        if wanted in (item.get("value"), item.get("resolvedModel")):
            words = str(item.get("description", ""))
            found, long = _PRICES.search(words), _LONG.search(words)
            if long is not None and tokens > 1000 * int(long[2]):
                found = long
            return float(found[1]) if found else None
    return None
