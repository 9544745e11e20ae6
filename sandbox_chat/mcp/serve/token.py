"""The token that opens the HTTP server: read from a private file, which is made when it is missing."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from sandbox_chat.settings import ConfigError, Secret
from sandbox_chat.text import clean

NAME = "serve-token"
"""Name of the file in the data folder's ``mcp``."""
_SHORTEST, _LONGEST = 16, 512


def load_token(path: Path) -> Secret:
    """Return the token in ``path``; a missing file is made with a random one, readable by the user alone.

    Raises ``ConfigError`` with a sentence when the file cannot be used: others may read it, it is no plain file,
    or what it holds is no token.
    """
    with contextlib.suppress(FileNotFoundError):
        return _read(path)
    try:
        _make(path)
        return _read(path)
    except OSError as error:
        raise ConfigError(
            f"The token file {clean(str(path))} cannot be made ({error.strerror}). Name another with --token-file."
        ) from None


def _read(path: Path) -> Secret:
    said = f"The token file {clean(str(path))}"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(f"{said} cannot be read ({error.strerror}).") from None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise ConfigError(f"{said} is not a plain file. Name another with --token-file.")
        if info.st_uid not in (os.geteuid(), 0):
            raise ConfigError(
                f"{said} belongs to another user, who knows what it holds. Name another with --token-file."
            )
        if info.st_mode & 0o077:
            raise ConfigError(f"{said} can be read by others. Run: chmod 600 {clean(str(path))}")
        text = os.read(fd, _LONGEST + 3).decode("utf-8", "replace").strip()
    finally:
        os.close(fd)
    if not (_SHORTEST <= len(text) <= _LONGEST and text.isascii() and text.isprintable() and " " not in text):
        raise ConfigError(
            f"{said} holds no token: it must be one line of {_SHORTEST} to {_LONGEST} letters, digits and signs. "
            "Remove it to have one made."
        )
    return Secret(text)


def _make(path: Path) -> None:
    """Write a random token at once or not at all; one that another program has just made is left. Raises ``OSError``."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}-{secrets.token_hex(6)}.part")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "w") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)
