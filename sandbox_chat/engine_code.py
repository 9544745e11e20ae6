"""Code mode and personal data of a session: what the settings ask for, checked and made. Starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_chat.events import ImageContent, Sink
from sandbox_chat.settings import ConfigError, Settings

if TYPE_CHECKING:
    from sandbox_chat.bridge.server import CodeBridge
    from sandbox_chat.mcp.host import Servers
    from sandbox_chat.tools.context import Ask
    from sandbox_chat.tools.privacy import Privacy


def check(settings: Settings, servers: Sequence[str]) -> None:
    """Raise ``ConfigError`` when code mode cannot be as the settings ask. ``servers`` are the names of those that are on."""
    if settings.code_mode == "off":
        return
    if settings.sandbox == "off":
        raise ConfigError(
            "code_mode: code calls the tools, and with --sandbox off there is none. Use another sandbox, or code_mode off."
        )
    from sandbox_chat.bridge.policy import Policy

    Policy(settings).check(servers)


def skills_folder(settings: Settings) -> Path:
    """Return the folder of the user's skills."""
    return settings.skills_dir or settings.data_path / "skills"


def make_privacy(settings: Settings) -> Privacy | None:
    """Return the vault of a new session, ``None`` when nothing is to be hidden. Raises ``ConfigError``."""
    if not settings.hides_personal_data:
        return None
    from sandbox_chat.tools.privacy import Privacy
    from sandbox_chat.vault import Vault

    return Privacy(Vault(settings))


def make_bridge(
    settings: Settings,
    servers: Servers | None,
    emit: Sink,
    ask: Ask,
    *,
    save_picture: Callable[[bytes, str, int, int], ImageContent],
    privacy: Privacy | None,
    origin: str,
) -> CodeBridge | None:
    """Return code mode of a session, ``None`` when it is off. ``origin`` is the session's id. Raises ``ConfigError``."""
    if settings.code_mode == "off":
        return None
    from sandbox_chat.bridge.private import Private
    from sandbox_chat.bridge.server import CodeBridge
    from sandbox_chat.bridge.shelf import Shelf
    from sandbox_chat.skills import Store
    from sandbox_chat.tools.images import picture_saver

    private = Private(privacy.vault, settings) if privacy is not None else None
    if servers is not None:
        servers.private = private
    return CodeBridge(
        servers,
        settings,
        emit,
        ask,
        save_picture=picture_saver(save_picture),
        private=private,
        shelf=Shelf(Store(skills_folder(settings)), emit, origin=origin),
    )
