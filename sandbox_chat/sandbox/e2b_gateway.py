"""MCP servers in a cloud's sandbox: the gateway's start, and the address at which it is reached."""

from __future__ import annotations

import asyncio
import json
import shlex
import uuid

from sandbox_chat.sandbox import e2b_errors
from sandbox_chat.sandbox.base import GatewayFailed, McpAddress
from sandbox_chat.sandbox.e2b_client import Cloud, sandbox_url, servers_of
from sandbox_chat.settings import Secret
from sandbox_chat.text import bound_tail, clean

PORT = 50005
"""Where every gateway listens."""
_MOST_SAID = 4000  # characters of what a gateway that failed has said
_HEALTH = 5.0  # seconds that it may take to say that it is well
_NOTHING_THERE = (502, 503, 504)
_SLACK = 5.0  # seconds beyond the command's own time limit


class Gateway:
    """The gateway in the sandbox of ``cloud``. All from the client's event loop."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._token = ""

    async def start(self, seconds: float) -> None:
        """Start it as root, and return when it is ready. Raises ``GatewayFailed`` with the gateway's own words."""
        from e2b import CommandExitException

        settings, token = self._cloud.settings, str(uuid.uuid4())
        run = self._cloud.box.commands.run(
            f"mcp-gateway --config {shlex.quote(json.dumps(servers_of(settings)))}",
            user="root",
            envs={"GATEWAY_ACCESS_TOKEN": token},
            timeout=seconds,
        )
        try:
            await asyncio.wait_for(run, seconds + _SLACK)
        except CommandExitException as error:
            said = error.stderr or error.stdout or f"mcp-gateway ended with exit code {error.exit_code}."
        except Exception as error:
            said = e2b_errors.why(error, settings)
        else:
            self._token = token
            return
        raise GatewayFailed(bound_tail(clean(said).strip(), _MOST_SAID))

    async def address(self) -> McpAddress:
        """Return where it answers, after it was started again if it has ended. Raises ``GatewayFailed``."""
        found = await self._address()
        if await self._ended(found):
            await self.start(self._cloud.settings.sandbox_mcp_timeout)
            found = await self._address()
        return found

    async def _ended(self, found: McpAddress) -> bool:
        """Whether the way to the sandbox says that nothing is there. Without an answer nobody knows."""
        import httpx

        headers = {name: value.reveal() for name, value in found.headers.items()}
        url = found.url.removesuffix("mcp") + "health"
        try:
            async with httpx.AsyncClient(timeout=_HEALTH) as client:
                return (await client.get(url, headers=headers)).status_code in _NOTHING_THERE
        except httpx.HTTPError:
            return False

    async def _address(self) -> McpAddress:
        """The address. The token of a gateway that another process has started is read from its file."""
        box, settings = self._cloud.box, self._cloud.settings
        token = self._token or str(await box.get_mcp_token() or "").strip()
        base = sandbox_url(settings)
        headers: dict[str, str] = {}
        if base:
            headers |= {"E2b-Sandbox-Id": self._cloud.id, "E2b-Sandbox-Port": str(PORT)}
        if box.traffic_access_token:
            headers["E2B-Traffic-Access-Token"] = box.traffic_access_token
        if settings.cube_proxy_node_ip:
            headers["Host"] = box.get_host(PORT)
        return McpAddress(
            url=f"{base}/mcp" if base else box.get_mcp_url(),
            token=Secret(token),
            headers={name: Secret(value) for name, value in headers.items()},
        )
