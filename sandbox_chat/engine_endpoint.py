"""Where the model of a session is: an endpoint of the user's, or the demo's on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox_chat.settings import ConfigError, Secret, Settings

if TYPE_CHECKING:
    from sandbox_chat.agent.session import Endpoint
    from sandbox_chat.demo.server import MessagesServer

DEMO_MODEL = "demo"
NO_MODEL = (
    "No model is configured. Set ANTHROPIC_API_KEY (or ANTHROPIC_BASE_URL and ANTHROPIC_AUTH_TOKEN for a "
    "gateway) in the environment or in .env, or use --demo, which needs no key."
)


def check_model(settings: Settings) -> None:
    """Raise ``ConfigError`` with a sentence when no model is configured."""
    if not settings.demo and not settings.has_model:
        raise ConfigError(NO_MODEL)


def endpoint_of(settings: Settings, demo: MessagesServer | None) -> Endpoint:
    """Return where the model is: at ``demo``, which runs, or without one where the settings say."""
    from sandbox_chat.agent.session import Endpoint

    if demo is not None:
        return Endpoint(
            base_url=demo.url,
            auth_token=Secret(demo.token),
            api_key=Secret(""),
            model=DEMO_MODEL,
            use_login=False,
        )
    return Endpoint(
        base_url=settings.anthropic_base_url,
        auth_token=settings.anthropic_auth_token,
        api_key=settings.anthropic_api_key,
        model=settings.model,
        use_login=settings.claude_login,
    )


def start_demo(pace: float) -> MessagesServer:
    """Start the demo model's endpoint on loopback. ``pace``: seconds between two words."""
    from sandbox_chat.demo.model import DemoModel
    from sandbox_chat.demo.server import MessagesServer

    server = MessagesServer(DemoModel(pace=pace))
    server.start()
    return server
