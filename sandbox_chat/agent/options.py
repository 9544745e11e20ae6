"""The SDK's options for a chat, and the environment of the CLI.

The CLI gets an allow-list of the program's environment and what is set here, nothing else: a launcher
(``launch_cli.py``) stands in for it, because the SDK would merge the options' environment over the whole
one of the program. Imports the SDK: import this module where it is used.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from claude_agent_sdk import ClaudeAgentOptions, McpSdkServerConfig

from sandbox_chat.agent import launch_cli
from sandbox_chat.agent.controls import Controls
from sandbox_chat.agent.endpoint import Endpoint
from sandbox_chat.agent.errors import AgentError, Trouble
from sandbox_chat.agent.program import find_cli
from sandbox_chat.agent.prompt import system_prompt
from sandbox_chat.sandbox.base import SandboxInfo
from sandbox_chat.settings import Settings

MAX_BUFFER = 64 << 20
"""Bytes of the longest message of the CLI. A picture comes twice in one; the SDK's own 1 MiB kills the reader."""

PASSED = (
    "PATH", "TERM", "TZ", "LANG", "LANGUAGE", "USER", "LOGNAME",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
)  # fmt: skip
"""Variables of the program that the CLI gets: what it needs to find its way to the network. Also ``LC_*``."""
LOGIN_PASSED = (
    "HOME",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "XDG_CONFIG_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
)
"""Variables passed on too when the login of an installed Claude Code is used: where it is found."""
SDK_SET = ("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_AGENT_SDK_VERSION", "CLAUDE_CODE_SDK_READS_SESSION_STATE", "PWD")
"""Variables that the SDK itself sets for the CLI."""
NEVER_READ = (
    "//**/.env", "//**/.env.*", "//**/.envrc", "//**/.netrc", "//**/.pgpass", "//**/.npmrc", "//**/.pypirc",
    "//**/*.pem", "//**/*.key", "//**/id_rsa*", "//**/id_ed25519*", "//**/.ssh/**", "//**/.aws/**", "//**/.git/config",
)  # fmt: skip
"""Files that no local tool may read or find: credentials live there. The rules hold for Glob and Grep too."""
NO_TOKEN = "none"  # noqa: S105 - the CLI wants some token, also for a server that asks for none
TOOL_TIMEOUT = 24 * 3600.0
"""Seconds that the CLI waits for a tool: a call may ask the user, who has gone to lunch. What runs in the sandbox has a limit of its own."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders of the CLI: ``home`` is kept from session to session, ``temp`` is removed with the session."""

    home: Path
    temp: Path

    @property
    def config(self) -> Path:
        """Where the CLI keeps its transcripts (``CLAUDE_CONFIG_DIR``) unless a login is used."""
        return self.home / "config"

    @property
    def work(self) -> Path:
        """The CLI's working folder: empty, always the same, so that sessions are found again."""
        return self.home / "work"

    def make(self) -> None:
        """Make them, private to the user. Raises ``AgentError`` when that is not possible."""
        try:
            for folder in (self.home, self.config, self.work):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise AgentError(
                f"The folder {self.home} cannot be made ({error.strerror}), and the agent needs it. "
                "Set SANDBOX_CHAT_DATA_DIR to a folder that can be written."
            ) from None


def cli_environment(
    settings: Settings, endpoint: Endpoint, folders: Folders, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the whole environment of the CLI, without what the SDK adds. ``environ`` is the program's own."""
    names = (*PASSED, *LOGIN_PASSED) if endpoint.use_login else PASSED
    env = {name: environ[name] for name in names if environ.get(name)}
    env.update({name: value for name, value in environ.items() if name.startswith("LC_")})
    if not endpoint.use_login:
        env["HOME"] = str(folders.home)
        env["CLAUDE_CONFIG_DIR"] = str(folders.config)
        env.update(_model_environment(endpoint))
        # Plain requests: without it the CLI tells the model about the folder, system and shell of this computer, which
        # is not where code runs, and does so in messages of the role "system", which many local servers refuse.
        # Not with a login, which is not read then, nor with tools for this computer, two of which are missing then.
        if not settings.local_tools:
            env["CLAUDE_CODE_SIMPLE"] = "1"
    if settings.local_tools:
        env["ENABLE_TOOL_SEARCH"] = "false"  # else the sandbox's tools are hidden behind a search
    env.update(
        {
            "TMPDIR": str(folders.temp),
            "CLAUDE_CODE_TMPDIR": str(folders.temp),
            # Else every tool call is logged in the configuration folder, in a file for each start, for ever.
            "XDG_CACHE_HOME": str(folders.temp / "cache"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_MAX_RETRIES": str(settings.request_retries),
            "API_TIMEOUT_MS": str(int(settings.request_timeout * 1000)),
            "MCP_TOOL_TIMEOUT": str(int(tool_timeout(settings) * 1000)),
        }
    )
    return env


def tool_timeout(settings: Settings) -> float:
    """Seconds that the CLI waits for one tool call."""
    return TOOL_TIMEOUT + 10 * (settings.run_timeout + settings.start_timeout)


def _model_environment(endpoint: Endpoint) -> dict[str, str]:
    env = {}
    if endpoint.base_url:
        env["ANTHROPIC_BASE_URL"] = endpoint.base_url
        env["CLAUDE_CODE_ATTRIBUTION_HEADER"] = "0"  # it differs each time and spoils a gateway's cache
        if _is_loopback(endpoint.base_url):
            env["NO_PROXY"] = env["no_proxy"] = "*"
    if endpoint.auth_token:
        env["ANTHROPIC_AUTH_TOKEN"] = endpoint.auth_token.reveal()
    elif endpoint.api_key:
        env["ANTHROPIC_API_KEY"] = endpoint.api_key.reveal()
    elif endpoint.base_url:
        env["ANTHROPIC_AUTH_TOKEN"] = NO_TOKEN
    return env


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def required_cli() -> Path:
    """Return the path of the CLI. Raises ``AgentError`` when there is none."""
    path = find_cli()
    if path is not None:
        return path
    system = f"{platform.system()} {platform.machine()}"
    raise Trouble("cli_missing", (("system", system),)).as_error()


def read_folder() -> Path:
    """Return the folder that the local tools read: the working folder. Raises ``AgentError`` when it is gone."""
    try:
        return Path.cwd()
    except OSError:
        raise Trouble("folder_gone").as_error() from None


def write_launcher(folder: Path) -> Path:
    """Write the script that the SDK starts in place of the CLI, if it is not there yet, and return its path.

    It holds paths only. Its name depends on its content, so several versions can share the folder.
    """
    program = Path(launch_cli.__file__)
    script = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S {shlex.quote(str(program))} "$@"\n'
    path = folder / f"launch-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    try:
        if path.is_file() and path.read_text(encoding="utf-8") == script:
            return path
        handle, name = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(script)
        Path(name).chmod(0o700)
        Path(name).replace(path)
    except OSError as error:
        raise AgentError(
            f"The file {path} cannot be written ({error.strerror}), and the agent needs it. "
            "Set SANDBOX_CHAT_DATA_DIR to a folder that can be written."
        ) from None
    return path


def build_options(
    settings: Settings,
    endpoint: Endpoint,
    folders: Folders,
    *,
    session_id: str,
    resume: bool,
    new_run: bool,
    servers: Mapping[str, Any],
    info: SandboxInfo | None = None,
    controls: Controls,
    budget: float | None = None,
    on_stderr: Callable[[str], None],
) -> ClaudeAgentOptions:
    """Return the options of one connection.

    ``resume``: the CLI goes on with its own record of the session. ``new_run``: the conversation began in
    an earlier run of the program, whose sandbox is gone. ``servers``: the in-process MCP servers by
    name, ``sandbox`` among them unless it is off; ``info``: where its code runs.
    ``budget``: dollars after which the CLI stops a turn. Makes the launcher under ``folders.home``. Raises ``AgentError``.
    """
    folder = read_folder() if settings.local_tools else None
    env = cli_environment(settings, endpoint, folders, os.environ)
    env[launch_cli.KEEP] = ",".join([*env, *SDK_SET])
    env[launch_cli.PATH] = str(required_cli())
    env[launch_cli.PARENT] = str(os.getpid())
    return ClaudeAgentOptions(
        cli_path=write_launcher(folders.home),
        cwd=folders.work,
        env=env,
        # The CLI lets these read in the folders that it was given and refuses all else, since nobody is asked.
        tools=list(settings.local_tools),
        add_dirs=[folder] if folder is not None else [],
        disallowed_tools=[f"Read({pattern})" for pattern in NEVER_READ] if settings.local_tools else [],
        mcp_servers={
            name: McpSdkServerConfig(type="sdk", name=name, instance=server)
            for name, server in servers.items()
        },
        allowed_tools=[
            f"mcp__{name}__*" for name in servers
        ],  # what must be asked is asked by the tools themselves
        strict_mcp_config=True,
        setting_sources=[],
        system_prompt=system_prompt(
            settings,
            info,
            new_run=new_run,
            private=settings.hides_personal_data,
            today=date.today(),
            folder=folder,
        ),
        max_turns=settings.max_turns,
        model=controls.model or None,
        effort=cast("Any", controls.effort or None),
        thinking=cast("Any", controls.thinking_option),
        max_budget_usd=budget,
        resume=session_id if resume else None,
        session_id=None if resume else session_id,
        include_partial_messages=True,
        max_buffer_size=MAX_BUFFER,
        verbatim_prompts=False,  # else orders could not be given; see ``Connection.query``
        stderr=on_stderr,
    )
