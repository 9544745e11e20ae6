"""One sandbox in an E2B-compatible cloud, through the cloud's own client. Coroutines; ``e2b`` drives them.

The asynchronous client is used because only there a request under way can be given up from another thread, which
closes its connection; that is how a cloud is told to stop code. Private parts of the client are used in this file alone:

* ``_client`` and ``_jupyter_url``: transport and address of the code interpreter, whose answer is read here, because
  ``run_code`` keeps all output in memory. Until the client bounds that.
* ``_envd_access_token`` and ``_sandbox_url``: to reach a sandbox by the route of ``cube_proxy_node_ip``, or one that the
  old control API made, and never by an address from the environment. Until the client offers these ways.
* ``_create``: the first half of ``create(mcp=…)``, whose other half, the command ``mcp-gateway``, cannot be given a way to
  the sandbox (``cube_proxy_node_ip``) nor a time limit. Until ``create`` takes these.
* ``_envd_version``: whether a sandbox takes a file piece by piece. Until the client tells.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from sandbox_chat.sandbox.base import SandboxUnavailable
from sandbox_chat.sandbox.e2b_errors import (
    CloudError,
    Disconnected,
    Nonsense,
    api_url,
    domain,
    is_gone,
    no_template,
    old_api,
    status_of,
    templates,
)
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean_line

Take = Callable[[dict[str, Any]], None]
INTERPRETER_PORT = 49999
ENVD_PORT = 49983
PATIENCE = 3
"""Operations in a row that may fail in a sandbox that lives, before it is given up and a new one is made."""
_MAX_LINE = 256 << 20
_MAX_SAID = 10_000
_MAX_COMPLAINT = 1 << 20
_TUNING = (
    "E2B_CONNECTION_RETRIES",
    "E2B_KEEPALIVE_EXPIRY",
    "E2B_MAX_CONNECTIONS",
    "E2B_MAX_KEEPALIVE_CONNECTIONS",
)
_NO_CONTEXTS = (404, 405, 501)


def load() -> Any:
    """Import the client and return it; takes about half a second. Raises ``SandboxUnavailable``."""
    try:
        import e2b_code_interpreter  # type: ignore[import-untyped]  # the client has no type marker
    except Exception as error:
        # The client reads these when it is loaded, and fails at a value that is no number.
        odd = sorted(name for name in os.environ if name.startswith("E2B_") and name in _TUNING)
        if odd and isinstance(error, ValueError):
            raise SandboxUnavailable(
                f"The client of the cloud cannot be loaded ({clean_line(str(error))}), because of a variable in the "
                f"environment: {', '.join(odd)}. Remove it, or give it a number."
            ) from None
        raise SandboxUnavailable(
            f"The client of the cloud cannot be loaded ({type(error).__name__}: {error}). Install it again: "
            "pip install 'e2b-code-interpreter>=2.11,<3'."
        ) from None
    return e2b_code_interpreter


def parameters(settings: Settings, timeout: float, *, retries: int = 2) -> dict[str, Any]:
    """Return the client's parameters for a call to the control API, none of them left to the environment.

    Proxies are the exception: the client takes them from ``HTTPS_PROXY`` and its like, as every program does.
    """
    from e2b.connection_config import ApiParams

    wanted: dict[str, Any] = {
        "api_key": settings.e2b_api_key.reveal(),
        "api_url": api_url(settings),
        "domain": domain(settings),
        "sandbox_url": sandbox_url(settings) or None,
        "debug": False,
        "request_timeout": timeout,
        "validate_api_key": False,
        "http_version": "2",
        "retries": retries,
    }
    return {name: value for name, value in wanted.items() if name in ApiParams.__annotations__}


def sandbox_url(settings: Settings) -> str:
    """Address under which sandboxes are reached when it is not each one's own; empty when it is."""
    if settings.cube_proxy_node_ip:
        node = settings.cube_proxy_node_ip
        return node.rstrip("/") if "://" in node else f"http://{node}"
    return settings.e2b_sandbox_url


class Cloud:
    """Speaks with one sandbox. ``create`` comes first; all from one event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.box: Any = None
        self.old_api = False
        """True when the sandbox had to be made by the old control API."""
        self.troubles = 0
        """Operations in a row that failed although the sandbox lives."""
        self._context = ""
        self._answer: Mapping[str, Any] = {}

    @property
    def id(self) -> str:
        """Id of the sandbox, empty before it is made."""
        return str(self.box.sandbox_id) if self.box is not None else ""

    @property
    def takes_pieces(self) -> bool:
        """True when the sandbox takes a file piece by piece; an old one gets it whole."""
        try:
            from e2b.envd.versions import ENVD_OCTET_STREAM_UPLOAD
        except ImportError:
            return False
        return bool(self.box._envd_version >= ENVD_OCTET_STREAM_UPLOAD)

    async def create(self, metadata: Mapping[str, str], seconds: float) -> None:
        """Make the sandbox, within ``seconds`` for each request, of the first of its templates that there is."""
        *others, last = templates(self.settings)
        for template in others:
            try:
                return await self._create(template, metadata, seconds)
            except Exception as error:
                if not no_template(error):
                    raise
        return await self._create(last, metadata, seconds)

    async def _create(self, template: str, metadata: Mapping[str, str], seconds: float) -> None:
        kind = load().AsyncSandbox
        settings = self.settings
        make, more = kind.create, {}
        if settings.sandbox_mcp:
            make, more = kind._create, {"mcp": servers_of(settings), "envs": None}
        try:
            made = await make(
                template=template,
                timeout=settings.e2b_ttl,
                metadata=dict(metadata),
                allow_internet_access=settings.e2b_internet,
                **more,
                # What may have made a sandbox is not repeated unseen: nobody would know the first.
                **parameters(settings, seconds, retries=0),
            )
        except Exception as error:
            if not old_api(error):
                raise
            answer = await self._create_old(template, metadata, seconds, error)
        else:
            answer = {
                "sandboxID": made.sandbox_id,
                "domain": made.sandbox_domain,
                "envdVersion": str(made._envd_version),
                "envdAccessToken": made._envd_access_token,
                "trafficAccessToken": made.traffic_access_token,
            }
        self._answer = answer
        self.box = self._address(kind, answer)

    def twin(self) -> Any:
        """Return another object of the client's for the same sandbox, for the event loop of another thread."""
        return self._address(load().AsyncSandbox, self._answer)

    async def _create_old(
        self, template: str, metadata: Mapping[str, str], seconds: float, first: Exception
    ) -> dict[str, Any]:
        """Make the sandbox where only the old API is known. Raises ``first`` when that is not there either."""
        settings = self.settings
        body = {
            "templateID": template,
            "timeout": settings.e2b_ttl,
            "metadata": dict(metadata),
            "secure": True,
            "allow_internet_access": settings.e2b_internet,
        }
        if settings.sandbox_mcp:
            body["mcp"] = servers_of(settings)
        import httpx

        async with httpx.AsyncClient(**plain(settings, seconds)) as client:
            response = await client.post(f"{api_url(settings)}/sandboxes", json=body)
        if response.status_code in _NO_CONTEXTS and "template" not in response.text.lower():
            raise first
        if response.status_code >= 300:
            raise CloudError(response.status_code, _said(response.text))
        answer = response.json()
        if not isinstance(answer, dict) or not isinstance(answer.get("sandboxID"), str):
            raise CloudError(500, "an answer without the sandbox's id")
        self.old_api = True
        return answer

    def _address(self, kind: Any, answer: Mapping[str, Any]) -> Any:
        """Return the client's object for a sandbox, reached as the settings say."""
        from e2b.connection_config import ConnectionConfig
        from packaging.version import Version

        settings, token = self.settings, answer.get("envdAccessToken")
        name = str(answer["sandboxID"])
        where = answer.get("domain") or domain(settings)
        headers = {"E2b-Sandbox-Id": name, "E2b-Sandbox-Port": str(ENVD_PORT)}
        if isinstance(token, str) and token:
            headers["X-Access-Token"] = token
        if settings.cube_proxy_node_ip:
            headers["Host"] = f"{ENVD_PORT}-{name}.{where}"
        config = ConnectionConfig(
            extra_sandbox_headers=headers, **parameters(settings, settings.e2b_request_timeout)
        )
        # The client would take a missing address from the environment.
        untyped: Any = config
        untyped._sandbox_url = sandbox_url(settings) or None
        return kind(
            sandbox_id=name,
            sandbox_domain=where,
            envd_version=Version(str(answer.get("envdVersion") or "0.1.0")),
            envd_access_token=token if isinstance(token, str) else None,
            traffic_access_token=answer.get("trafficAccessToken") or None,
            connection_config=config,
        )

    # -- the code interpreter --------------------------------------------------------------------------

    def _interpreter(self, path: str) -> tuple[str, dict[str, str]]:
        box = self.box
        base = sandbox_url(self.settings) or box._jupyter_url
        headers = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": str(INTERPRETER_PORT)}
        if box._envd_access_token:
            headers["X-Access-Token"] = box._envd_access_token
        if box.traffic_access_token:
            headers["E2B-Traffic-Access-Token"] = box.traffic_access_token
        if self.settings.cube_proxy_node_ip:
            headers["Host"] = f"{INTERPRETER_PORT}-{self.id}.{box.sandbox_domain}"
        return f"{base}{path}", headers

    async def make_context(self, folder: str, seconds: float) -> None:
        """Make the shell in which code is run. A cloud without contexts of one's own has one that serves."""
        url, headers = self._interpreter("/contexts")
        async with self.box._client as client:
            body = {"cwd": folder, "language": "python"}
            response = await client.post(url, json=body, headers=headers, timeout=seconds)
        if response.status_code in _NO_CONTEXTS and "not found" not in response.text.lower():
            return
        if response.status_code >= 300:
            raise CloudError(response.status_code, _said(response.text))
        answer = response.json()
        if not isinstance(answer, dict) or not isinstance(answer.get("id"), str):
            raise Nonsense("a code interpreter without a context")
        self._context = answer["id"]

    async def execute(self, code: str, take: Take, *, connect_timeout: float) -> None:
        """Run ``code`` and hand on each message as it comes; returns at the end of the answer.

        Cancelling closes the connection, at which a cloud interrupts the code. Raises ``CloudError`` for an answer
        that is not a success, ``Disconnected`` when it ends in the middle.
        """
        import httpx

        url, headers = self._interpreter("/execute")
        body = {"code": code, "context_id": self._context or None, "language": None, "env_vars": None}
        try:
            async with (
                self.box._client as client,
                client.stream(
                    "POST",
                    url,
                    json=body,
                    headers=headers,
                    timeout=httpx.Timeout(None, connect=connect_timeout),
                ) as response,
            ):
                if response.status_code >= 300:
                    raise CloudError(response.status_code, _said(await _complaint(response)))
                buffer = bytearray()
                understood = 0
                async for part in response.aiter_bytes():
                    buffer += part
                    if b"\n" in part:
                        *lines, rest = bytes(buffer).split(b"\n")
                        buffer = bytearray(rest)
                        for line in lines:
                            understood += _message(line, take)
                    elif len(buffer) > _MAX_LINE:
                        raise Nonsense("an endless line")
                understood += _message(bytes(buffer), take)
                if not understood:  # a page of somebody else's, or nothing at all
                    raise Nonsense("an answer that is none of a code interpreter's")
        except (httpx.ReadError, httpx.RemoteProtocolError, httpx.WriteError) as error:
            raise Disconnected(str(error)) from error

    # -- the sandbox -----------------------------------------------------------------------------------

    async def signal(self, pid: int, seconds: float) -> None:
        """Send the interrupt signal to a process of the sandbox."""
        await self.box.commands.run(
            f"kill -INT {pid:d}", user="root", timeout=seconds, request_timeout=seconds
        )

    async def prolong(self, ttl: int, seconds: float) -> None:
        """Let the sandbox live for ``ttl`` seconds from now on."""
        # The client may wait for as long again at each attempt to connect.
        await asyncio.wait_for(self.box.set_timeout(ttl, request_timeout=seconds), seconds)

    async def running(self, seconds: float) -> bool | None:
        """Whether the sandbox lives; ``None`` when nobody can say."""
        try:
            return bool(await asyncio.wait_for(self.box.is_running(request_timeout=seconds), seconds))
        except Exception:
            return None

    async def lives(self, seconds: float) -> bool | None:
        """Whether the sandbox lives, as it says itself or else the control API; ``None`` when nothing can be reached."""
        running = await self.running(seconds)
        if running:
            return True
        # A gateway with a fault answers as for a sandbox that is gone: the control API knows better.
        try:
            found = await asyncio.wait_for(self.box.get_info(request_timeout=seconds), seconds)
        except Exception as error:
            if is_gone(error) or status_of(error) in (404, 410):
                return False
            return True if status_of(error) >= 400 else running
        return str(getattr(found.state, "value", found.state)).lower() != "paused"


def servers_of(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return the MCP servers that run in the sandbox, as plain data."""
    return {name: dict(properties) for name, properties in settings.sandbox_mcp.items()}


def plain(settings: Settings, timeout: float) -> dict[str, Any]:
    """Return arguments of an HTTP client for the parts of the old API that the cloud's own client has lost."""
    import ssl

    return {
        "headers": {"X-API-KEY": settings.e2b_api_key.reveal()},
        "timeout": timeout,
        "verify": ssl.create_default_context(),
    }


def kill(settings: Settings, sandbox_id: str, timeout: float) -> bool:
    """End a sandbox by its id; any thread. False when it was not there any more."""
    return bool(load().Sandbox.kill(sandbox_id, **parameters(settings, timeout, retries=1)))


async def _complaint(response: Any) -> str:
    """The beginning of an answer's body: there may be no end of it."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > _MAX_COMPLAINT:
            break
    return bytes(body[:_MAX_COMPLAINT]).decode("utf-8", "replace")


def _message(line: bytes, take: Take) -> bool:
    """Hand on one message; false when it is none."""
    if not line.strip():
        return False
    try:
        message = json.loads(line)
    except (
        ValueError,
        RecursionError,
    ):  # also when it is not UTF-8: what cannot be understood is passed over
        return False
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        return False
    take(message)
    return True


def _said(text: str) -> str:
    """The message in an answer's body: that of its JSON object, else its text."""
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    found = body.get("message") if isinstance(body, dict) else None
    return str(found if isinstance(found, str) else text)[:_MAX_SAID]
