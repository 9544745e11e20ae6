"""Code mode and personal data of a session: what the settings ask for, checked and made. Starts nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_chat.events import Event, ImageContent, Notice, Sink, ToolFinished, TurnFinished, TurnStarted
from sandbox_chat.settings import ConfigError, Settings
from sandbox_chat.text import clean

if TYPE_CHECKING:
    from sandbox_chat.bridge.server import CodeBridge
    from sandbox_chat.mcp.host import Servers
    from sandbox_chat.sandbox.kept_workspace import KeptWorkspace
    from sandbox_chat.sandbox.skills_folder import Skills
    from sandbox_chat.tools.context import Ask
    from sandbox_chat.tools.privacy import Privacy
    from sandbox_chat.vault.keeping import Keeper

VAULT = "vault"
"""File in the session's folder that holds what its tokens stand for, encrypted, where the user asks for that."""
LEFT = "It is left as it is; tokens of earlier runs stay tokens, and new ones are kept in memory only."
KEPT_AFTER = (TurnStarted, ToolFinished, TurnFinished)
"""Events that may bring new personal data along."""
SHORTEST = 12
"""Signs of a passphrase."""


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


def make_skills(settings: Settings) -> Skills | None:
    """Return what gives the user's skills to the sandbox as files, ``None`` when code mode is off. Reads nothing yet."""
    if settings.code_mode == "off":
        return None
    from sandbox_chat.skills import Given, Store

    return Given(Store(skills_folder(settings)))


def make_kept(settings: Settings, session_id: str, emit: Sink) -> KeptWorkspace | None:
    """Return what keeps a session's workspace, ``None`` when it is not to be kept or is a folder of the user's."""
    shared = settings.sandbox_workspace is not None and settings.sandbox != "e2b"
    if not settings.keep_workspace or shared or settings.sandbox not in ("local", "docker", "e2b"):
        return None
    from sandbox_chat.sandbox.kept_workspace import KeptWorkspace

    folder = settings.data_path / "sessions" / session_id
    return KeptWorkspace(
        folder, settings.keep_workspace_mb, lambda words: emit(Notice(level="warning", text=clean(words)))
    )


def make_privacy(settings: Settings) -> Privacy | None:
    """Return the vault of a new session, ``None`` when nothing is to be hidden. Raises ``ConfigError``."""
    if not settings.hides_personal_data:
        return None
    if settings.local_tools:
        raise ConfigError(
            "What the local tools read goes to the model as it is, and personal data is to be hidden from it: leave "
            "SANDBOX_CHAT_LOCAL_TOOLS empty (/attach puts files into the sandbox), or set pii to off."
        )
    if settings.pii_keep and len(settings.pii_passphrase.reveal()) < SHORTEST:
        raise ConfigError(
            f"pii_keep needs a passphrase of {SHORTEST} signs or more: set SANDBOX_CHAT_PII_PASSPHRASE in the environment, "
            "or pii_passphrase in config.toml, or switch pii_keep off."
        )
    from sandbox_chat.tools.privacy import Privacy
    from sandbox_chat.vault import Vault

    return Privacy(Vault(settings))


class KeptValues:
    """What the tokens of a session stand for, kept in its folder where the user asks for that; else it does nothing."""

    def __init__(self, settings: Settings, privacy: Privacy | None, folder: Path, emit: Sink) -> None:
        self._emit = emit
        self._keeper: Keeper | None = None
        if privacy is not None and settings.pii_keep:
            from sandbox_chat.vault.keeping import Keeper

            self._keeper = Keeper(privacy.vault, folder / VAULT, settings.pii_passphrase)

    async def bring(self) -> None:
        """Take in what the tokens of earlier runs stand for; what is wrong with it is told."""
        if self._keeper is None:
            return
        from sandbox_chat.vault.keeping import CannotOpen

        try:
            await asyncio.to_thread(self._keeper.load)
        except CannotOpen as error:
            self._emit(Notice(level="warning", text=clean(f"{error} {LEFT}")))

    def wants(self, event: Event) -> bool:
        """Whether there may be something new to keep after an event."""
        return self._keeper is not None and isinstance(event, KEPT_AFTER)

    def keep(self) -> None:
        """Keep what is new; a failure is told. Blocking."""
        if self._keeper is not None and (problem := self._keeper.save()):
            self._emit(Notice(level="warning", text=clean(problem)))

    async def keep_aside(self) -> None:
        """The same, without blocking the loop."""
        await asyncio.to_thread(self.keep)


def make_bridge(
    settings: Settings,
    servers: Servers | None,
    emit: Sink,
    ask: Ask,
    *,
    save_picture: Callable[[bytes, str, int, int], ImageContent],
    privacy: Privacy | None,
    origin: str,
    asks: bool = False,
) -> CodeBridge | None:
    """Return code mode of a session, ``None`` when it is off. ``origin`` is the session's id; ``asks``: the face
    answers questions that nobody waits for. Raises ``ConfigError``."""
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
        shelf=Shelf(
            Store(skills_folder(settings)),
            emit,
            origin=origin,
            ask=ask if asks else None,
            **({"hide": privacy.text} if privacy is not None else {}),
        ),
    )
