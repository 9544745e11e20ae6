"""The folders that every sandbox has, made in a cloud's sandbox: ``/workspace``, and ``/skills`` in code mode.

They lie at the root of the file system, so they are made as root where the cloud allows that, else as the ordinary user.
What belongs to root there an ordinary user's code cannot change. Where neither works, that is said once and all goes on.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping

from sandbox_chat.sandbox import e2b_errors
from sandbox_chat.sandbox.bwrap import WORKSPACE
from sandbox_chat.sandbox.e2b_client import Cloud
from sandbox_chat.sandbox.skills_folder import NOT_THERE, SKILLS, SkillsFolder
from sandbox_chat.settings import Settings

log = logging.getLogger(__name__)

TIMEOUT = 10.0
"""Seconds that one of these steps may take."""
MAKE = f"umask 022; mkdir -p {WORKSPACE} && chmod 1777 {WORKSPACE}"
UNPACK = (
    f"umask 022; rm -rf /.skills-new /.skills-old && mkdir /.skills-new && tar -xf {{tar}} -C /.skills-new "
    f"&& {{{{ [ ! -e {SKILLS} ] || mv {SKILLS} /.skills-old; }}}} && mv /.skills-new {SKILLS} && rm -rf /.skills-old; "
    "code=$?; rm -f {tar}; exit $code"
)
NO_WORKSPACE = f"There is no {WORKSPACE} in this cloud's sandbox ({{why}}): use /tmp, which is as new."
_REFUSED = ("CommandExitException", "AuthenticationException", "InvalidArgumentException")
"""Failures at which another user may succeed."""


class Folders:
    """Makes the folders of one sandbox, and keeps the skills up to date."""

    def __init__(self, settings: Settings, cloud: Cloud, skills: SkillsFolder | None) -> None:
        self._settings = settings
        self._cloud = cloud
        self._skills = skills
        self._have: Mapping[str, Mapping[str, bytes]] | None = None
        self._unsaid: list[str] = []
        self._timeout = min(settings.e2b_request_timeout, TIMEOUT)

    async def make(self) -> None:
        """Make them. Never fails; what went wrong is said by ``renew``."""
        if why := await self._do(MAKE):
            self._unsaid.append(NO_WORKSPACE.format(why=why))
        await self._put_skills()

    async def renew(self) -> list[str]:
        """Bring the skills up to date. Returns what is to be told, sentences that were not told before."""
        await self._put_skills()
        said, self._unsaid = self._unsaid, []
        return said

    async def _put_skills(self) -> None:
        if self._skills is None:
            return
        try:
            given, tar = await asyncio.to_thread(self._skills.packed, self._have)
            why = await self._unpack(tar) if tar else ""
        except OSError as error:
            given, why = {}, error.strerror or str(error)
        if why:
            self._unsaid.append(NOT_THERE.format(place=SKILLS, why=why))
            self._skills = None
        else:
            self._have = given

    async def _unpack(self, tar: bytes) -> str:
        path = f"/tmp/.skills-{secrets.token_hex(8)}.tar"  # noqa: S108 - in the sandbox
        return await self._do(UNPACK.format(tar=path), path, tar)

    async def _do(self, script: str, path: str = "", data: bytes = b"") -> str:
        """Write a file, if there is one, and run a script, as root or else as whom the cloud takes. Returns why it failed."""
        why = ""
        for user in ("root", None):
            try:
                if path:
                    await self._cloud.box.files.write(
                        path, data, user=user, request_timeout=self._timeout + len(data) / (1 << 20)
                    )
                await self._cloud.box.commands.run(
                    script, user=user, cwd="/", timeout=self._timeout, request_timeout=self._timeout
                )
            except Exception as error:
                why = e2b_errors.said(error, self._settings).rstrip(".")
                log.info("a folder of the sandbox could not be made as %s: %s", user or "its user", why)
                if type(error).__name__ not in _REFUSED:
                    break
            else:
                return ""
        return why
