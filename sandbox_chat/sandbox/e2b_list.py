"""The sandboxes of ours that are alive in the cloud: seeing them, and ending them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sandbox_chat.sandbox import e2b_client, e2b_errors, remote
from sandbox_chat.sandbox.base import SandboxError, SandboxUnavailable
from sandbox_chat.sandbox.remote import Remote
from sandbox_chat.settings import Settings

MAX_LISTED = 1000
_PAGE = 100


def list_sandboxes(settings: Settings, session_id: str = "") -> list[Remote]:
    """Return all of ours, oldest first, whoever with this key made them. Raises ``SandboxError`` with a sentence.

    Those of ``session_id`` that another process made count as left: that session is open here now.
    """
    if not settings.e2b_api_key:
        raise SandboxUnavailable(e2b_errors.NO_KEY)
    try:
        found = with_marks(settings, {"app": remote.APP}, settings.e2b_request_timeout, session_id)
    except SandboxError:
        raise
    except Exception as error:
        raise SandboxError(_failed(error, settings, "listed")) from error
    return sorted(found, key=lambda one: (one.started is None, one.started))


def leftovers(settings: Settings, session_id: str = "") -> list[Remote]:
    """Return those that a crashed run of this machine has left behind. Raises ``SandboxError``."""
    return [found for found in list_sandboxes(settings, session_id) if found.left]


def kill(settings: Settings, sandbox_id: str) -> bool:
    """End one by its id; false when it was not there any more. Raises ``SandboxError``."""
    if not settings.e2b_api_key:
        raise SandboxUnavailable(e2b_errors.NO_KEY)
    try:
        return e2b_client.kill(settings, sandbox_id, settings.e2b_request_timeout)
    except SandboxError:
        raise
    except Exception as error:
        raise SandboxError(_failed(error, settings, "ended")) from error


def with_marks(
    settings: Settings, marks: Mapping[str, str], timeout: float, session_id: str = ""
) -> list[Remote]:
    """Return the sandboxes that carry all of ``marks``. Raises what the client raises."""
    kind = e2b_client.load()
    from e2b.sandbox.sandbox_api import SandboxQuery

    found: list[Remote] = []
    try:
        pages = kind.Sandbox.list(
            query=SandboxQuery(metadata=dict(marks)),
            limit=_PAGE,
            **e2b_client.parameters(settings, timeout, retries=1),
        )
        while pages.has_next and len(found) < MAX_LISTED:
            found += [
                _remote(one.sandbox_id, one.metadata, (one.started_at, one.end_at), one.state, session_id)
                for one in pages.next_items()
            ]
    except Exception as error:
        if not e2b_errors.old_api(error):
            raise
        found = _old_list(settings, marks, timeout, session_id)
    return found


def _old_list(settings: Settings, marks: Mapping[str, str], timeout: float, session_id: str) -> list[Remote]:
    """The same where only the old control API is known, which gives all at once."""
    import urllib.parse

    import httpx

    with httpx.Client(**e2b_client.plain(settings, timeout)) as client:
        query = urllib.parse.urlencode(marks)
        response = client.get(f"{e2b_errors.api_url(settings)}/sandboxes", params={"metadata": query})
    if response.status_code >= 300:
        raise e2b_errors.CloudError(response.status_code, response.text)
    found = []
    for row in response.json()[:MAX_LISTED]:
        data = row.get("metadata") or {}
        if all(data.get(name) == value for name, value in marks.items()):
            times = (_time(row.get("startedAt")), _time(row.get("endAt")))
            found.append(
                _remote(str(row["sandboxID"]), data, times, row.get("state") or "running", session_id)
            )
    return found


def _remote(
    sandbox_id: str,
    marks: Mapping[str, str],
    times: tuple[datetime | None, datetime | None],
    state: Any,
    session_id: str,
) -> Remote:
    session = marks.get("session", "")
    left = remote.is_left(marks) or bool(session_id and session == session_id and not remote.is_mine(marks))
    return Remote(
        kind="e2b",
        id=sandbox_id,
        session=session,
        tag=marks.get("tag", ""),
        started=times[0],
        ends=times[1],
        state=str(getattr(state, "value", state)),
        left=left,
        here=remote.is_here(marks),
    )


def _time(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return None


def _failed(error: Exception, settings: Settings, what: str) -> str:
    status = e2b_errors.status_of(error)
    if status in (401, 403):
        return (
            f"The sandboxes in the cloud could not be {what}: the key is not accepted ({status}). Check E2B_API_KEY, and "
            "that E2B_API_URL and E2B_DOMAIN are of the same cloud and region."
        )
    if status:
        said = e2b_errors.said(error, settings)
        return f"The sandboxes in the cloud could not be {what} ({status}: {said}). Try again in a while."
    return e2b_errors.unreachable(error, settings)
