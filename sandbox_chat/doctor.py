"""Checks that everything needed is there: each with *ok*, *note* or *problem*, and what to do.

A note is worth knowing and stops nothing; a problem means that a chat would not work. No credential
is shown, only whether it is set.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from sandbox_chat import __version__
from sandbox_chat.agent.program import find_cli
from sandbox_chat.scratch import Scratch
from sandbox_chat.settings import ConfigError, Settings, load
from sandbox_chat.settings_sources import working_folder
from sandbox_chat.text import clean, clean_line

State = Literal["ok", "note", "problem"]

OLDEST_PYTHON = (3, 11)
CLI_TIMEOUT = 30.0  # seconds: 400 MB are read from the disk at the first start
REACH_TIMEOUT = 4.0  # seconds for a connection to the model's endpoint


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. ``advice`` says what to do and is empty when nothing is to be done."""

    name: str
    state: State
    text: str
    advice: str = ""


def run(
    overrides: Mapping[str, Any],
    *,
    as_json: bool = False,
    faults: Callable[[Settings], Sequence[str]] = lambda _: (),
) -> int:
    """Print all checks; return 0 when a chat would work, else 1. ``overrides`` as for ``settings.load``.

    ``faults`` says what is wrong with settings that only the interface understands.
    """
    checks = []
    if not as_json:
        _write(f"sandbox-chat {__version__}\n")
    for check in check_all(overrides, faults):
        checks.append(check)
        if not as_json:
            _write(_lines(check))
    good = all(check.state != "problem" for check in checks)
    if as_json:
        found = {"ok": good, "version": __version__, "checks": [asdict(check) for check in checks]}
        _write(json.dumps(found, indent=1) + "\n")
    else:
        _write(
            "Everything needed is there.\n"
            if good
            else "A chat would not work yet: see the problems above.\n"
        )
    return 0 if good else 1


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _lines(check: Check) -> str:
    lines = f"{check.state:>7}  {check.name}: {check.text}\n"
    return lines + (f"         → {check.advice}\n" if check.advice else "")


def check_all(
    overrides: Mapping[str, Any], faults: Callable[[Settings], Sequence[str]] = lambda _: ()
) -> Iterator[Check]:
    """Yield all checks, one by one as they are done. A check that fails itself is a problem, not an end."""
    try:
        settings = load(overrides)
        yield from _configuration(settings)
        for fault in faults(settings):
            yield Check("keys", "note", clean(fault))
    except ConfigError as error:
        settings = Settings()
        yield Check(
            "configuration",
            "problem",
            clean(str(error)),
            "Until then the other checks use the default settings.",
        )
    checks: dict[str, Callable[[], Check]] = {
        "python": check_python,
        "agent": check_agent,
        "isolation": partial(check_isolation, settings),
        **({"warm start": partial(check_warm_start, settings)} if settings.sandbox == "local" else {}),
        "limits": partial(check_limits, settings),
        "model": partial(check_model, settings),
        "sandbox credentials": partial(check_sandbox_credentials, settings),
        "MCP servers": partial(check_servers, settings),
        "pictures": partial(check_pictures, settings),
        "data folder": lambda: check_folder("data folder", settings.data_path),
        "cache folder": lambda: check_folder("cache folder", settings.cache_path),
        "downloads folder": lambda: check_folder("downloads folder", settings.downloads_path),
    }
    for name, check in checks.items():
        yield _guarded(name, check, settings)


def _guarded(name: str, check: Callable[[], Check], settings: Settings) -> Check:
    try:
        found = check()
    except Exception as error:
        what = f"the check failed ({type(error).__name__}: {clean_line(str(error))})"
        found = Check(name, "problem", what, "Please report this fault.")
    text, advice = settings.scrub(found.text), settings.scrub(found.advice)
    return Check(found.name, found.state, clean(text), clean(advice))


def _configuration(settings: Settings) -> Iterator[Check]:
    sources = sorted(set(settings.origins.values()))
    yield Check(
        "configuration", "ok", "from " + ", ".join(map(clean, sources)) if sources else "all defaults"
    )
    for warning in settings.warnings:
        yield Check("configuration", "note", clean(warning))


def check_python() -> Check:
    """Is this Python new enough?"""
    text = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info >= OLDEST_PYTHON:
        return Check("python", "ok", text)
    return Check(
        "python", "problem", text, "Install Python 3.11 or newer and install the program again with it."
    )


def check_agent() -> Check:
    """Is the CLI of the agent SDK there, and does it start?"""
    again = "Install the program again: pip install --force-reinstall claude-agent-sdk"
    path = find_cli()
    if path is None:
        return Check(
            "agent",
            "problem",
            "the agent's program is not there: not in claude-agent-sdk, not on the PATH",
            again,
        )
    with Scratch() as home:
        env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home),
            "TMPDIR": str(home),
        }
        try:
            done = subprocess.run(
                [str(path), "--version"],
                env=env,
                cwd=home,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=CLI_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Check("agent", "problem", f"{path} did not answer within {CLI_TIMEOUT:g} s", again)
        except OSError as error:
            return Check("agent", "problem", f"{path} cannot be started ({error.strerror})", again)
    said = clean_line((done.stdout or done.stderr).decode("utf-8", "replace"))
    if done.returncode != 0:
        return Check("agent", "problem", f"{path} ended with code {done.returncode}: {said}", again)
    return Check("agent", "ok", f"CLI {said}")


def check_isolation(settings: Settings) -> Check:
    """Can code be run in the sandbox that is chosen?"""
    kind = settings.sandbox
    if kind == "off":
        return Check(
            "isolation",
            "note",
            "the sandbox is off, so no code can be run",
            "Drop --sandbox off to run code.",
        )
    if kind == "unsafe-local":
        return Check("isolation", "note", "none: code runs on this machine as you", "Prefer --sandbox local.")
    if kind in ("e2b", "docker"):
        return _check_remote(settings, kind)
    from sandbox_chat.sandbox import probe

    good, text = probe(settings)
    if good:
        return Check("isolation", "ok", text)
    return Check("isolation", "problem", text, "With --sandbox off the chat works without running code.")


def check_warm_start(settings: Settings) -> Check:
    """Are local sandboxes ready at once? Without that they only start more slowly."""
    from sandbox_chat.sandbox import warm_report

    usable, text = warm_report(settings)
    return Check("warm start", "ok" if usable else "note", text)


INSTEAD = "With --sandbox local code runs on this computer (Linux); with --sandbox off the chat works without running code."


def _check_remote(settings: Settings, kind: str) -> Check:
    """Does the cloud or the daemon answer, and is what a sandbox is made of there? Starts none."""
    from sandbox_chat.sandbox import docker, docker_program, remotes
    from sandbox_chat.sandbox.base import SandboxError

    try:
        if kind == "docker":
            docker.check(settings)
        alive = len(remotes(settings, kind))
        image = docker_program.image(settings) if kind == "docker" else ""
        if image:
            answer = docker_program.call(settings, ["image", "inspect", "--format", "{{.Id}}", image])
            if answer.code != 0:
                raise docker_program.explain(settings, answer.err)
    except SandboxError as error:
        text = str(error).replace(f" {docker_program.INSTEAD}", "")
        return Check("isolation", "problem", text, INSTEAD)
    where = (
        f"{settings.docker_command} answers, the image {image} is there"
        if kind == "docker"
        else f"the cloud accepts the key, template {settings.e2b_template}"
    )
    words = f"{where}; {alive} sandbox{'' if alive == 1 else 'es'} of this program alive"
    return Check("isolation", "ok", words, "See them with: sandbox-chat sandboxes list" if alive else "")


def check_limits(settings: Settings) -> Check:
    """Which limits hold for the code here?"""
    from sandbox_chat.sandbox import limits_report

    found = limits_report(settings)
    return Check("limits", "ok", " ".join(found) if found else f"those of {settings.sandbox}")


def check_model(settings: Settings) -> Check:
    """Is a model configured, and does its address answer? No request is made to the model itself."""
    if settings.demo:
        return Check("model", "ok", "the built-in demo: rules, no model")
    if settings.anthropic_base_url:
        return _check_gateway(settings)
    name = settings.model or "the CLI's default"
    if settings.anthropic_api_key:
        return Check("model", "ok", f"Claude with ANTHROPIC_API_KEY (set), model {name}")
    if settings.claude_login:
        return Check("model", "ok", f"Claude with the login of Claude Code, model {name}")
    if settings.anthropic_auth_token:
        return Check(
            "model",
            "problem",
            "ANTHROPIC_AUTH_TOKEN is set, but no address that it belongs to",
            "Set ANTHROPIC_BASE_URL to the gateway's address.",
        )
    return Check(
        "model",
        "problem",
        "no model is configured",
        "Set ANTHROPIC_API_KEY (or ANTHROPIC_BASE_URL and ANTHROPIC_AUTH_TOKEN) in .env, or use --demo.",
    )


def _check_gateway(settings: Settings) -> Check:
    url = settings.anthropic_base_url
    token = "set" if settings.anthropic_auth_token or settings.anthropic_api_key else "not set"
    about = f"{url}, token {token}, model {settings.model or 'not named'}"
    problem = reach(url)
    if problem:
        return Check(
            "model", "problem", f"{about}: {problem}", "Check ANTHROPIC_BASE_URL and that the server runs."
        )
    if not settings.model:
        return Check(
            "model",
            "note",
            f"{about}: it answers",
            "Set CLAUDE_MODEL: a gateway may not know the default model.",
        )
    return Check("model", "ok", f"{about}: it answers")


def reach(url: str, timeout: float = REACH_TIMEOUT) -> str:
    """Ask ``url`` for anything over HTTP; return why nothing came, empty when the server answers at all.

    Sends no credential. A proxy that the environment names is not used, except that with one for
    this scheme a failure to connect directly proves nothing and is not reported.
    """
    import http.client
    import socket
    import ssl
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme in getproxies() and not proxy_bypass(host):
        return ""
    secure = parts.scheme == "https"
    link: http.client.HTTPConnection
    link = (http.client.HTTPSConnection if secure else http.client.HTTPConnection)(
        host, parts.port, timeout=timeout
    )
    try:
        link.request("HEAD", parts.path or "/", headers={"User-Agent": f"sandbox-chat/{__version__}"})
        link.getresponse()
    except socket.gaierror:
        return f"the host {host} is not known"
    except TimeoutError:
        return f"no answer within {timeout:g} s"
    except ConnectionRefusedError:
        return "the connection was refused"
    except ssl.SSLError as error:
        return f"no secure connection ({error.reason or 'TLS failed'})"
    except http.client.HTTPException:
        return "what answers there does not speak HTTP"
    except (OSError, ValueError) as error:
        return f"it cannot be reached ({clean_line(str(error), 100)})"
    finally:
        link.close()
    return ""


def check_sandbox_credentials(settings: Settings) -> Check:
    """Are the credentials of the chosen sandbox set?"""
    if settings.sandbox != "e2b":
        return Check("sandbox credentials", "ok", f"none needed for {settings.sandbox}")
    if settings.e2b_api_key:
        return Check("sandbox credentials", "ok", "E2B_API_KEY is set")
    return Check(
        "sandbox credentials", "problem", "E2B_API_KEY is not set", "Set it in .env, or use --sandbox local."
    )


def check_servers(settings: Settings) -> Check:
    """Can the MCP servers that are on be started, as far as that can be told without doing so?"""
    from sandbox_chat.mcp.config import fault_of, look

    environ = dict(os.environ)
    try:
        survey = look(settings, environ, working_folder())
    except ConfigError as error:
        return Check("MCP servers", "problem", str(error), "See them with: sandbox-chat mcp list")
    found = [(known, fault_of(known, environ, settings.data_path)) for known in survey.on()]
    stopping = [*survey.unknown, *(text for known, text in found if text and known.named)]
    names = ", ".join(clean_line(known.name, 64) for known in survey.on())
    inside = f"; inside the sandbox: {', '.join(settings.sandbox_mcp)}" if settings.sandbox_mcp else ""
    faults = [*survey.unknown, *(text for _, text in found if text), *survey.warnings]
    text = (names or "none is on") + inside
    if not faults:
        return Check("MCP servers", "ok", text)
    said = " ".join(dict.fromkeys(faults))
    return Check(
        "MCP servers",
        "problem" if stopping else "note",
        f"{text}. {said}",
        "See them with: sandbox-chat mcp list",
    )


def check_pictures(settings: Settings) -> Check:
    """How will pictures be drawn, as far as the environment tells? The chat asks the terminal itself."""
    if settings.images != "auto":
        return Check("pictures", "ok", f"{settings.images} (chosen)")
    if not sys.stdout.isatty():
        return Check("pictures", "note", "stdout is no terminal, so the chat cannot be opened here")
    env = os.environ
    term, program = env.get("TERM", ""), env.get("TERM_PROGRAM", "")
    if term == "dumb":
        return Check(
            "pictures", "note", "TERM is dumb, so the chat cannot be opened here", "Use sandbox-chat run."
        )
    if env.get("TMUX") or term.startswith(("screen", "tmux")):
        return Check("pictures", "ok", "half-cells (inside tmux or screen)")
    if "kitty" in term or env.get("KITTY_WINDOW_ID") or program in ("ghostty", "WezTerm"):
        return Check("pictures", "ok", f"kitty protocol, by the environment ({program or term})")
    if term.startswith(("foot", "mlterm", "contour")) or program in ("iTerm.app", "mintty", "vscode"):
        return Check("pictures", "ok", f"sixel, by the environment ({program or term})")
    return Check("pictures", "ok", f"the terminal will be asked (TERM {term or 'not set'}); else half-cells")


def check_folder(name: str, folder: Path) -> Check:
    """Can files be made in ``folder``, or in the nearest folder above it that exists? Leaves nothing behind."""
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    setting = "SANDBOX_CHAT_DOWNLOADS_DIR" if name.startswith("downloads") else "SANDBOX_CHAT_DATA_DIR"
    try:
        with tempfile.TemporaryDirectory(prefix=".sandbox-chat-check-", dir=place):
            pass
    except OSError as error:
        where = "" if place == folder.absolute() else f", {place} being what is there"
        text = f"{folder} cannot be written ({error.strerror}{where})"
        state: State = "note" if name.startswith("downloads") else "problem"
        return Check(name, state, text, f"Mend its permissions, or name another folder in {setting}.")
    return Check(name, "ok", str(folder))
