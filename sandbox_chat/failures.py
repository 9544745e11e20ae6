"""The sentences about a failure, from its kind and what it is about: for the record and for the screen."""

from __future__ import annotations

from collections.abc import Callable

from sandbox_chat.events import About, Notice, Retry, TurnFinished
from sandbox_chat.words import language, tr
from sandbox_chat.words.failures import EN

Say = Callable[..., str]
"""Returns the text of a name in ``words/failures.py`` with values put into it."""


def recorded(kind: str, about: About = ()) -> str:
    """Return the English text of a failure, which is kept with the session. An unknown kind is a fault of the program."""
    return _text(kind, dict(about), _english)


def shown(event: TurnFinished | Notice | Retry) -> str:
    """Return what is shown of an event that tells a failure, in the language that is set.

    That is its own text where the kind is not known here, as in a journal of a later version.
    """
    own = (
        event.error
        if isinstance(event, TurnFinished)
        else event.text
        if isinstance(event, Notice)
        else event.reason
    )
    if language() == "en" or event.kind not in EN:
        return own
    try:
        return _text(event.kind, dict(event.about), _here)
    except (KeyError, IndexError, ValueError):  # a journal that was written by other hands
        return own


def _english(name: str, /, **values: object) -> str:
    return EN[name].format(**values)


def _here(name: str, /, **values: object) -> str:
    return tr(f"failures.{name}", **values)


def _text(kind: str, about: dict[str, str], say: Say) -> str:
    url, model, words = about.get("url", ""), about.get("model", ""), about.get("said", "")
    where = say("endpoint", url=url) if url else say("claude")
    first = say("first_endpoint", url=url) if url else where
    values: dict[str, object] = {
        **about,
        "where": where,
        "Where": first,
        "model": say("model", name=model) if model else say("default_model"),
        "said": say("said", words=words) if words else "",
    }
    text = say(kind, **values)
    if f"title_{kind}" not in EN:
        return text
    return say("whole", title=say(f"title_{kind}", **values), text=text)
