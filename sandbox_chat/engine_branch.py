"""A branch of a session with everything that belongs to it: the record, the pictures, what the agent remembers."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandbox_chat.engine_code import VAULT
from sandbox_chat.gateway.whole_file import write_whole
from sandbox_chat.sandbox.kept_workspace import FOLDER
from sandbox_chat.settings import Settings

log = logging.getLogger(__name__)


def branch(
    settings: Settings,
    session_id: str,
    *,
    after_turn: str | None = None,
    remember: bool = False,
    new_id: str = "",
) -> str:
    """Make a new session that goes on from ``session_id`` after a turn (``None``: the last that ended), return its id.

    ``new_id`` is that of the new session, one that no other has; empty: any.
    What the agent was told to forget after that turn it forgets there too, unless it shall ``remember``.
    The session that it comes from is only read. Where the agent's own record cannot be copied, the agent knows nothing
    of what was said, and the new session says so. Raises ``SessionError`` with a sentence. Blocking.
    """
    from sandbox_chat.journal.fork import fork

    made = fork(
        settings.data_path / "sessions",
        session_id,
        new_id or str(uuid.uuid4()),
        after_turn=after_turn,
        remember=remember,
    )
    if not made.forgotten and (after_turn is None or made.anchor):
        from sandbox_chat.agent.branch import branch_record

        config = agent_config(settings)
        copying = branch_record(config, made.agent_id, made.session_id, made.anchor)
        try:
            with ThreadPoolExecutor(1) as thread:  # the caller may have a loop of its own
                thread.submit(asyncio.run, copying).result()
        except OSError as error:
            log.warning("the agent's record is not copied: %s", error.strerror)
    _copy_values(settings, session_id, made.session_id)
    _copy_workspace(settings, session_id, made.session_id)
    return made.session_id


def _copy_values(settings: Settings, source: str, target: str) -> None:
    """Take along what the tokens of personal data stand for, where that is kept: it is encrypted, and stays so."""
    root = settings.data_path / "sessions"
    try:
        write_whole(root / target / VAULT, (root / source / VAULT).read_bytes())
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("the kept vault is not copied: %s", error.strerror)


def _copy_workspace(settings: Settings, source: str, target: str) -> None:
    """Take along what is kept of the workspace: plain files, as it is now."""
    root = settings.data_path / "sessions"
    if not settings.keep_workspace or not (root / source / FOLDER).is_dir():
        return
    try:
        shutil.copytree(root / source / FOLDER, root / target / FOLDER, symlinks=True)
    except OSError as error:
        log.warning("the kept workspace is not copied: %s", error)


def agent_config(settings: Settings) -> Path:
    """Return the folder in which the CLI keeps its own records of sessions."""
    if settings.claude_login and not settings.demo:
        own = os.environ.get("CLAUDE_CONFIG_DIR")
        return Path(own) if own else Path.home() / ".claude"
    return settings.data_path / "claude" / "config"
