"""Where settings come from beside the command line: reading ``.env`` and ``config.toml``, and what to say of slips in them.

Raises ``ConfigError`` with a sentence for a file that cannot be used.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sandbox_chat.values import ConfigError

KEYS = "keys"
"""Table of ``config.toml`` with keys of one's own; it holds no settings."""
PRICES = "prices"
"""Table of ``config.toml`` with prices of models, by their names (see ``prices.py``)."""


def working_folder() -> Path:
    """Return the present folder. Raises ``ConfigError`` when it is gone."""
    try:
        return Path.cwd()
    except OSError:
        raise ConfigError(
            "The working folder no longer exists. Change to another folder and start again."
        ) from None


def unknown_variables(
    names: Iterable[str], known: set[str], prefix: str, where: str, *, near: bool = False
) -> list[str]:
    """Return warnings about variables with our ``prefix`` that are not ``known``; with ``near`` also about likely slips."""
    found = []
    for name in names:
        if name in known:
            continue
        ours = name.startswith(prefix)
        close = difflib.get_close_matches(name, known, 1, cutoff=0.6 if ours else 0.9) if ours or near else []
        if ours or close:
            hint = f" Did you mean {close[0]}?" if close else ""
            found.append(f"The variable {name} in {where} is not a setting and was ignored.{hint}")
    return found


def read_dotenv(path: Path, warnings: list[str]) -> dict[str, str]:
    """Return the variables of a ``.env`` file; none when there is no file. What is odd in it is added to ``warnings``."""
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(
            f"The file {path} cannot be read ({reason}). Mend it, or remove it, or start in another folder."
        ) from None
    import io
    import logging

    from dotenv import dotenv_values

    lines: list[int] = []

    def note(record: logging.LogRecord) -> bool:  # keeps the library's complaint off the screen
        lines.extend(part for part in record.args or () if isinstance(part, int))
        return False

    logger = logging.getLogger("dotenv.main")
    logger.addFilter(note)
    try:
        found = dotenv_values(stream=io.StringIO(content), interpolate=False)
    finally:
        logger.removeFilter(note)
    warnings.extend(f"Line {line} of {path} cannot be understood and was ignored." for line in lines)
    return {name: value for name, value in found.items() if value is not None}


def read_config(path: Path, names: set[str], warnings: list[str]) -> dict[str, Any]:
    """Return the settings of a ``config.toml`` file by name, those of ``names``; none when there is no file.

    The tables ``[keys]`` and ``[prices]`` are returned as they are meant: lists of keys by the name of an action,
    prices by the name of a model.
    """
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(
            f"The file {path} cannot be read ({error.strerror}). Mend its permissions or remove it."
        ) from None
    import tomllib

    try:
        data = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ConfigError(f"The file {path} is not UTF-8 text. Mend it or remove it.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"The file {path} is not valid TOML: {error}. Mend that line.") from None
    found: dict[str, Any] = {}
    if isinstance(data.get(KEYS), dict):
        found[KEYS] = _keys(data.pop(KEYS), path, warnings)
    if PRICES in data:
        from sandbox_chat.prices import read_prices

        found[PRICES] = read_prices(data.pop(PRICES), str(path))
    sandbox = data.get("sandbox")
    if isinstance(sandbox, dict) and isinstance(sandbox.get("mcp"), dict):
        found["sandbox_mcp"] = sandbox.pop("mcp")
    for key, value in data.items():
        # A table groups settings for the eye: [sandbox] run_timeout = 20 is the same as run_timeout = 20.
        inner = value if isinstance(value, dict) else {key: value}
        for name, item in inner.items():
            if name in names:
                found[name] = item
            else:
                near = difflib.get_close_matches(name, names, 1)
                hint = f" Did you mean {near[0]}?" if near else ""
                warnings.append(f"{name} in {path} is not a setting and was ignored.{hint}")
    return found


def _keys(table: dict[str, Any], path: Path, warnings: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the keys by action: ``"composer.send" = "ctrl+s"``, or a list of keys, or the same in sub-tables."""
    found: dict[str, tuple[str, ...]] = {}
    for name, value in table.items():
        if isinstance(value, dict):  # composer.send = … without quotes is a table in TOML
            found.update({f"{name}.{word}": keys for word, keys in _keys(value, path, warnings).items()})
            continue
        listed = value if isinstance(value, list) else [value]
        if all(isinstance(key, str) for key in listed):
            found[name] = tuple(key.strip() for key in listed if key.strip())
        else:
            warnings.append(
                f"The keys of {name!r} in {path} must be text or a list of texts and were ignored."
            )
    return found
