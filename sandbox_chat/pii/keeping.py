"""A vault on disk: its values encrypted with a passphrase of the user's."""

from __future__ import annotations

import json
import os

from sandbox_chat.settings import Secret

MAGIC = b"sandbox-chat vault 1\n"
_SALT, _NONCE = 16, 12


class CannotOpen(Exception):
    """The vault on disk cannot be opened; the message says why."""


def seal(values: dict[str, str], passphrase: Secret) -> bytes:
    """Return values by token, encrypted: scrypt (RFC 7914) makes the key, AES-256-GCM encrypts."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    salt, nonce = os.urandom(_SALT), os.urandom(_NONCE)
    data = json.dumps(values).encode()
    return MAGIC + salt + nonce + AESGCM(_key(passphrase, salt)).encrypt(nonce, data, MAGIC)


def unseal(data: bytes, passphrase: Secret) -> dict[str, str]:
    """Return the values. Raises ``CannotOpen``."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if not data.startswith(MAGIC) or len(data) < len(MAGIC) + _SALT + _NONCE:
        raise CannotOpen("The kept vault is damaged, or of another version.")
    rest = data[len(MAGIC) :]
    salt, nonce, sealed = rest[:_SALT], rest[_SALT : _SALT + _NONCE], rest[_SALT + _NONCE :]
    try:
        found = json.loads(AESGCM(_key(passphrase, salt)).decrypt(nonce, sealed, MAGIC))
    except InvalidTag:
        raise CannotOpen(
            "The kept vault cannot be opened: the passphrase is another one, or it is damaged."
        ) from None
    if not isinstance(found, dict):
        raise CannotOpen("The kept vault is damaged.")
    return {str(token): str(value) for token, value in found.items()}


def _key(passphrase: Secret, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return Scrypt(salt=salt, length=32, n=1 << 15, r=8, p=1).derive(passphrase.reveal().encode())
