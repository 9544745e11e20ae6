"""Where the model is and how to get in."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox_chat.settings import Secret


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The model's endpoint.

    ``base_url`` is empty for Claude itself. Of ``auth_token`` and ``api_key`` the token wins. ``model`` is
    always passed on when set. ``use_login``: nothing of these is used, but the login of an installed
    Claude Code, which is looked for in the user's own home.
    """

    base_url: str
    auth_token: Secret
    api_key: Secret
    model: str
    use_login: bool = False
