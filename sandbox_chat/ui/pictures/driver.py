"""The one private part of Textual that pictures use.

``App._driver.write``: bytes for the terminal that are not part of a frame (a kitty picture is sent once
and then shown by plain characters). Writing to stderr directly could fall into the middle of a frame,
which the driver's thread writes. Remove when Textual has a public way to write to the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.app import App


def send(app: App[Any], data: str) -> None:
    """Write ``data`` to the terminal between two frames; nothing without a terminal."""
    driver = app._driver
    if driver is not None and data and not app.is_headless:
        driver.write(data)
