"""The file with the token, which lets another process that may read it use the endpoint."""

from __future__ import annotations

import contextlib
import stat
from pathlib import Path

from .errors import StartError
from .whole_file import write_whole


def check_token(token: str) -> None:
    """Raise ``StartError`` unless ``token`` can be sent in a header and is not empty."""
    if not token:
        raise StartError("There is no token: put it into the environment variable GATEWAY_ACCESS_TOKEN.")
    if not token.isascii() or not token.isprintable() or " " in token or len(token) > 4096:
        raise StartError("The token must be printable characters of ASCII without spaces, at most 4096.")


def make_folder(folder: Path) -> None:
    """Make a folder for a token, for its owner only, if it is not there. Raises ``OSError``."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def check_place(path: Path) -> None:
    """Raise ``StartError`` when something other than a plain file is there, which is not replaced. Raises ``OSError``."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.lstat().st_mode):
            raise StartError(
                f"The token file {path} is not a plain file. Choose another place with --token-file, or remove it."
            )


def write_token(path: Path, token: str) -> None:
    """Write the file at once, readable for its owner only. Raises ``OSError``."""
    write_whole(path, token.encode())


def remove_token(path: Path, token: str) -> None:
    """Remove the file if it holds this token."""
    with contextlib.suppress(OSError, ValueError):
        if path.read_text("ascii") == token:
            path.unlink()
