"""What can go wrong with a cloud, each in a sentence that says what happened and what to do."""

from __future__ import annotations

import re

from sandbox_chat.settings import Settings
from sandbox_chat.text import clean_line

FITTING = "e2b==2.31.0 e2b-code-interpreter==2.8.1"
"""Versions of the client that speak the old control API."""
DEFAULT_DOMAIN = "e2b.app"
_TEMPLATE = Settings.__dataclass_fields__["e2b_template"].default
MCP_TEMPLATE = "mcp-gateway"
"""Template of sandboxes with MCP servers, unless the settings name another."""
_DETAIL = 300  # characters of what the cloud said that a message repeats
_BYTES = re.compile(r"b(['\"])(.*)\1", re.DOTALL)
_PASSWORD = re.compile(r"(\w://)[^\s/@]+@")
_STATUS = re.compile(r"^\s*([1-5]\d\d)\b(?!\.\d):?\s*")


class CloudError(Exception):
    """An answer of the cloud that is not a success: its ``status`` and what it said."""

    def __init__(self, status: int, said: str = "") -> None:
        super().__init__(f"{status}: {said}")
        self.status = status


class Nonsense(Exception):
    """An answer that none of the cloud's services gives: a login page of the network, or of a proxy."""


class Disconnected(Exception):
    """The connection ended before the answer did."""


class ThisSide(Exception):
    """Reading or writing a file of this machine failed in a transfer; the argument is the ``OSError``.

    The client's own time-outs are ``OSError``, too: by this they are told apart.
    """


def domain(settings: Settings) -> str:
    """Domain of the cloud's sandboxes."""
    return settings.e2b_domain or DEFAULT_DOMAIN


def templates(settings: Settings) -> list[str]:
    """Return the templates of which a sandbox is made, the first that there is.

    With MCP servers inside: the one that was named; else ``cube_mcp_template_id`` or ``mcp-gateway``, then ``cube_template_id``.
    """
    named = "e2b_template" in settings.origins or settings.e2b_template != _TEMPLATE
    if not settings.sandbox_mcp or named:
        return [settings.e2b_template]
    found = [settings.cube_mcp_template_id or MCP_TEMPLATE, settings.cube_template_id]
    return list(dict.fromkeys(name for name in found if name))


def no_template(error: BaseException) -> bool:
    """True when a create was refused because the cloud has no such template."""
    return status_of(error) in (400, 404) and "template" in str(error).lower()


def api_url(settings: Settings) -> str:
    """Control address of the cloud."""
    return settings.e2b_api_url or f"https://api.{domain(settings)}"


def status_of(error: BaseException) -> int:
    """HTTP status of the answer behind an error of the client; 0 when there was no answer."""
    status = getattr(error, "status", None) or getattr(error, "status_code", None)
    if isinstance(status, int):
        return status
    names = {kind.__name__ for kind in type(error).__mro__}
    if "AuthenticationException" in names:
        return 401
    if names & {"NotFoundException", "SandboxNotFoundException"}:
        return 404
    found = _STATUS.match(str(error)) if names & {"SandboxException"} else None
    return int(found[1]) if found else 0


def is_gone(error: BaseException) -> bool:
    """True when an error of the client says that the sandbox does not exist any more."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"SandboxNotFoundException", "SandboxNotRunningException"}:
        return True
    text = str(error).lower()
    return status_of(error) in (404, 410, 502) and ("not found" in text or "not running" in text)


def is_nonsense(error: BaseException) -> bool:
    """True when something answered that does not speak the cloud's language; the client then stumbles over it."""
    if isinstance(error, (ValueError, KeyError, TypeError, AttributeError, IndexError, Nonsense)):
        return True
    text = str(error).lower()
    return any(
        sign in text
        for sign in ("body of the request is none", "invalid content-type", "could not be decoded")
    )


def is_timeout(error: BaseException) -> bool:
    """True when the cloud did not answer in time."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, TimeoutError) or ("TimeoutException" in names and not is_gone(error))


def is_unsent(error: BaseException) -> bool:
    """True when the request surely never reached the cloud."""
    return "ConnectError" in {kind.__name__ for kind in type(error).__mro__}


def may_have_worked(error: BaseException) -> bool:
    """False when an error of a create says for certain that nothing was made."""
    status = status_of(error)
    return (not status and not is_unsent(error)) or status in (500, 502, 504)


def said(error: BaseException, settings: Settings) -> str:
    """What the cloud said, short, clean, without credentials and without the status before it."""
    text = _STATUS.sub("", str(error), count=1)
    if found := _BYTES.fullmatch(text):  # the client's way to show a body that is no JSON
        text = found[2]
    text = _PASSWORD.sub(r"\1[secret]@", settings.scrub(text))  # that of a proxy
    return clean_line(text, _DETAIL).rstrip(".")


def _quoted(error: BaseException, settings: Settings) -> str:
    text = said(error, settings)
    return f" The cloud said: {text}." if text else ""


def old_api(error: BaseException) -> bool:
    """True when a refused create looks like a server that knows only the old control API."""
    status = status_of(error)
    return status == 405 or (status == 404 and "template" not in str(error).lower())


def create_failed(error: BaseException, settings: Settings) -> str:
    """Say why no sandbox was made, and what to do."""
    status, url = status_of(error), api_url(settings)
    if status == 401:
        return (
            f"The cloud at {url} did not accept the key (401). Check E2B_API_KEY: it must be whole and belong to this "
            f"cloud and region; E2B_API_URL and E2B_DOMAIN must be those of the key.{_quoted(error, settings)}"
        )
    if status == 403:
        return (
            f"The cloud at {url} refused to make a sandbox (403). Most often key, address and domain are of different "
            f"regions: check that E2B_API_KEY, E2B_API_URL ({url}) and E2B_DOMAIN ({domain(settings)}) belong together, "
            f"and that the key may create sandboxes.{_quoted(error, settings)}"
        )
    if old_api(error):
        return (
            f"The cloud at {url} does not know the control API of this client ({status} when a sandbox was to be made, "
            f"also by the old way). Check E2B_API_URL; for a server with only the old API install {FITTING}."
        )
    if no_template(error):
        names = " and no template ".join(repr(name) for name in templates(settings))
        more = " and the program mcp-gateway, or CUBE_MCP_TEMPLATE_ID" if settings.sandbox_mcp else ""
        return (
            f"The cloud has no template {names} for this key ({status}). Set SANDBOX_CHAT_E2B_TEMPLATE to one of its "
            f"templates with a code interpreter{more}.{_quoted(error, settings)}"
        )
    if status == 429:
        return (
            "The cloud makes no more sandboxes for this key at the moment (429): too many are alive, or too many were "
            f"asked for. See and end them with 'sandbox-chat sandboxes list', or wait a minute.{_quoted(error, settings)}"
        )
    if status >= 500:
        return (
            f"The cloud at {url} has a fault of its own ({status}). Try again in some minutes; if it lasts, see the "
            f"cloud's status page, or use --sandbox local.{_quoted(error, settings)}"
        )
    if 300 <= status < 400:
        return (
            f"The server at {url} sends to another address ({status}), where the key must not go unasked. Set E2B_API_URL "
            "to the cloud's own address; a login page of the network may be in the way."
        )
    if status:
        return f"The cloud at {url} did not make a sandbox ({status}).{_quoted(error, settings)} Check the E2B settings."
    return unreachable(error, settings)


def unreachable(error: BaseException, settings: Settings) -> str:
    """Say why the cloud did not answer at all, or not as one, and what to do."""
    url = api_url(settings)
    kind, words = _why(error, settings)
    check = "Check E2B_API_URL and E2B_DOMAIN, the network, and the proxy (HTTPS_PROXY) if there is one."
    match kind:
        case "no tls":
            return f"The server at {url} does not speak TLS: the address must begin with http://, or have another port. {check}"
        case "certificate":
            return (
                f"The connection to the cloud at {url} is not safe: its certificate is not accepted. {check}"
            )
        case "name":
            return f"The cloud's name in {url} is not known. {check}"
        case "refused":
            return f"The cloud at {url} refused the connection. {check}"
        case "time":
            return (
                f"The cloud at {url} did not answer in time. Try again; {check[0].lower()}{check[1:]} "
                "SANDBOX_CHAT_START_TIMEOUT gives it more time."
            )
        case "nonsense":
            return (
                f"What answers at {url} does not speak like an E2B-compatible cloud, or has a fault: its answer makes no "
                f"sense. A login page of the network may be in the way. {check}"
            )
    return f"The cloud at {url} cannot be reached ({words}). {check}"


def why(error: BaseException, settings: Settings) -> str:
    """Say in some words why a sandbox does not answer, for the brackets behind a sentence."""
    if status := status_of(error):
        return f"{status}: {said(error, settings)}".rstrip(": ")
    return _why(error, settings)[1]


def _why(error: BaseException, settings: Settings) -> tuple[str, str]:
    texts: list[str] = []
    chain: BaseException | None = error
    while chain is not None and len(texts) < 8:
        texts.append(f"{type(chain).__name__} {chain}")
        chain = chain.__cause__ or chain.__context__
    text = " ".join(texts).lower()
    if "invalidcontenttype" in text:
        return "no tls", "it does not speak TLS"
    if "certificate" in text or "tls" in text or "ssl" in text:
        return "certificate", "its certificate is not accepted"
    if "dns" in text or "resolve" in text or "name or service" in text or "nodename" in text:
        return "name", "its name is not known"
    if "refused" in text:
        return "refused", "the connection was refused"
    if is_timeout(error):
        return "time", "no answer in time"
    if is_nonsense(error):
        return "nonsense", "the answer makes no sense; a login page or a proxy may be in the way"
    return "", said(error, settings) or type(error).__name__


def failed_once(error: BaseException, settings: Settings) -> str:
    """Say that a run failed for a reason of the cloud's that may pass, while the sandbox lives."""
    return (
        f"The cloud's code interpreter failed ({why(error, settings)}) and most likely did not run the code. The sandbox and "
        "its variables are kept. Run it again."
    )


def away(error: BaseException | None, settings: Settings) -> str:
    """Say that nothing of the cloud can be reached now, so that nobody knows more of the sandbox."""
    words = f" ({why(error, settings)})" if error is not None else ""
    return (
        f"The sandbox in the cloud cannot be reached{words}, so the code was most likely not run. Its variables are not "
        "given up: they are there when the connection comes back within the sandbox's time. Check the network and run it "
        "again."
    )


NO_KEY = (
    "The sandbox 'e2b' needs a key. Set E2B_API_KEY in the environment or in .env (and E2B_API_URL and E2B_DOMAIN for a "
    "cloud other than E2B's own), or use --sandbox local."
)
GONE = "The cloud has ended the sandbox (its time was over, or it was killed)."


def gateway(seconds: float) -> str:
    """Say that a gateway between here and the sandbox ended a call that took long."""
    return (
        f"The cloud's gateway ended this call after {seconds:.0f} s (502); most clouds allow about 30 s. The code was "
        "stopped, the variables are kept. Split the work into shorter calls."
    )


def cut(seconds: float) -> str:
    """Say that the connection was lost while code ran."""
    return (
        f"The connection to the cloud was cut {seconds:.1f} s after the start of the code. The code was stopped; what it "
        "did until then stands and the variables are kept. Run it again."
    )
