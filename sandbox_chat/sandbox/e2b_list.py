"""The sandboxes of ours that are alive in the cloud: seeing them, and ending them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sandbox_chat.sandbox import e2b_client, e2b_errors, remote
from sandbox_chat.sandbox.base import SandboxError, SandboxUnavailable
from sandbox_chat.sandbox.remote import Remote
from sandbox_chat.settings import Settings

MAX_LISTED = 1000
_PAGE = 100
_PAGES = 200


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
        for _ in range(_PAGES):
            if not pages.has_next or len(found) >= MAX_LISTED:
                break
            for one in pages.next_items():
                # A cloud that passes over the query gives those of other programs, too.
                if (data := _ours(one.metadata, marks)) is not None:
                    times = (_aware(one.started_at), _aware(one.end_at))
                    found.append(_remote(str(one.sandbox_id), data, times, one.state, session_id))
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
    found: list[Remote] = []
    rows = response.json()
    if not isinstance(rows, list):
        raise e2b_errors.Nonsense("a list that is none")
    for row in rows:
        data = _ours(row.get("metadata"), marks) if isinstance(row, dict) else None
        if data is not None and len(found) < MAX_LISTED:
            times = (_time(row.get("startedAt")), _time(row.get("endAt")))
            found.append(
                _remote(str(row["sandboxID"]), data, times, row.get("state") or "running", session_id)
            )
    return found


def _ours(found: Any, marks: Mapping[str, str]) -> dict[str, str] | None:
    """Return the marks of a sandbox as text when it carries all of ``marks``."""
    if not isinstance(found, Mapping):
        return None
    data = {str(name): str(value) for name, value in found.items()}
    return data if all(data.get(name) == value for name, value in marks.items()) else None


def _aware(value: Any) -> datetime | None:
    """Return a time with its zone; what has none is meant as UTC."""
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def _remote(
    sandbox_id: str,
    marks: Mapping[str, str],
    times: tuple[datetime | None, datetime | None],
    state: Any,
    session_id: str,
) -> Remote:
    session = marks.get("session", "")
    left = remote.is_left(marks, times[0]) or bool(
        session_id and session == session_id and not remote.is_mine(marks)
    )
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
        return _aware(datetime.fromisoformat(str(value).replace("Z", "+00:00")))
    except ValueError:
        return None


def _failed(error: Exception, settings: Settings, what: str) -> str:
    status = e2b_errors.status_of(error)
    if status in (401, 403):
        return (
            f"The sandboxes in the cloud could not be {what}: the key is not accepted ({status}). Check E2B_API_KEY, and "
            "that E2B_API_URL and E2B_DOMAIN are of the same cloud and region."
        )
    if 300 <= status < 400:
        return e2b_errors.create_failed(error, settings)
    if status:
        said = e2b_errors.said(error, settings)
        return f"The sandboxes in the cloud could not be {what} ({status}: {said}). Try again in a while."
    return e2b_errors.unreachable(error, settings)
