"""Personal data: found in text, replaced by tokens that say nothing, and put back where that is allowed."""

from __future__ import annotations

from sandbox_chat.pii.vault import Finding, Stream, Vault

__all__ = ["Finding", "Stream", "Vault"]
