"""Sandbox Chat: chat with Claude in a terminal and watch it run code in a sandbox."""

__version__ = "0.1.0"
