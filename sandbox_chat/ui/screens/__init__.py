"""The screens: the chat itself, and what opens over it."""
