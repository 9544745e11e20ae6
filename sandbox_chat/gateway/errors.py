"""What can go wrong before the gateway serves."""

from __future__ import annotations


class StartError(Exception):
    """The gateway cannot start. The message says why, in sentences for people."""


class ConfigError(StartError):
    """The configuration is not valid. Nothing was started."""
