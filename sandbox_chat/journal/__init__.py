"""The append-only record of sessions."""
