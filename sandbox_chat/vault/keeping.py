"""A vault on disk: its values encrypted with a passphrase of the user's. Blocking; not for a loop."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_chat.gateway.whole_file import write_whole
from sandbox_chat.settings import Secret

if TYPE_CHECKING:
    from sandbox_chat.vault.vault import Vault

log = logging.getLogger(__name__)

MAGIC = b"sandbox-chat vault 1\n"
_SALT, _NONCE = 16, 12


class CannotOpen(Exception):
    """The vault on disk cannot be opened; the message says why."""


class Keeper:
    """Keeps the values of ``vault`` in the file ``path``. Any thread.

    What cannot be opened is never written over: then nothing is kept, and ``load`` says so.
    """

    def __init__(self, vault: Vault, path: Path, passphrase: Secret) -> None:
        self._vault = vault
        self._path = path
        self._passphrase = passphrase
        self._lock = threading.Lock()
        self._key: tuple[bytes, bytes] | None = None  # salt and key; making the key is slow on purpose
        self._kept = 0
        self._closed = False

    def load(self) -> None:
        """Take the values in that an earlier run kept; without a file there are none. Raises ``CannotOpen`` with a sentence."""
        with self._lock:
            try:
                data = self._path.read_bytes()
            except FileNotFoundError:
                return
            except OSError as error:
                self._closed = True
                raise CannotOpen(f"What its tokens stand for cannot be read ({error.strerror}).") from None
            try:
                salt = _parts(data)[0]
                key = _key(self._passphrase, salt)
                values = _opened(data, key)
            except CannotOpen:
                self._closed = True
                raise
            self._key = (salt, key)
            self._vault.take(values)
            self._kept = self._vault.count

    def save(self) -> str:
        """Keep the values if there are new ones. Returns why that failed, empty when it did not."""
        with self._lock:
            values = self._vault.values()
            if self._closed or len(values) == self._kept:
                return ""
            if self._key is None:
                salt = os.urandom(_SALT)
                self._key = (salt, _key(self._passphrase, salt))
            try:
                write_whole(self._path, _sealed(values, *self._key))
            except OSError as error:
                log.warning("the vault could not be kept: %s", error.strerror)
                return f"What the tokens of personal data stand for could not be kept ({error.strerror})."
            self._kept = len(values)
            return ""


def seal(values: Mapping[str, str], passphrase: Secret) -> bytes:
    """Return values by token, encrypted: scrypt (RFC 7914) makes the key, AES-256-GCM encrypts."""
    salt = os.urandom(_SALT)
    return _sealed(values, salt, _key(passphrase, salt))


def unseal(data: bytes, passphrase: Secret) -> dict[str, str]:
    """Return the values. Raises ``CannotOpen``."""
    return _opened(data, _key(passphrase, _parts(data)[0]))


def _sealed(values: Mapping[str, str], salt: bytes, key: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = os.urandom(_NONCE)
    data = json.dumps(dict(values)).encode()
    return MAGIC + salt + nonce + AESGCM(key).encrypt(nonce, data, MAGIC + salt)


def _parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Return salt, nonce and what is encrypted."""
    if not data.startswith(MAGIC) or len(data) < len(MAGIC) + _SALT + _NONCE:
        raise CannotOpen("The kept vault is damaged, or of another version.")
    rest = data[len(MAGIC) :]
    return rest[:_SALT], rest[_SALT : _SALT + _NONCE], rest[_SALT + _NONCE :]


def _opened(data: bytes, key: bytes) -> dict[str, str]:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    salt, nonce, sealed = _parts(data)
    try:
        found = json.loads(AESGCM(key).decrypt(nonce, sealed, MAGIC + salt))
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
