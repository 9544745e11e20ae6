"""The widgets of the chat's screen, one a file."""
