"""Records of TLS that no library sends: sealed here, with the keys that OpenSSL logs.

A client that has completed a handshake may send any message of the handshake next, or none.
"""

from __future__ import annotations

import hmac
import struct

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

ALERT, HANDSHAKE, APPLICATION_DATA = 21, 22, 23
RENEGOTIATION_SUITE = "ECDHE-ECDSA-AES128-GCM-SHA256"
KEY_UPDATE = b"\x18\x00\x00\x01\x01"
"""A message of TLS 1.3: the sender's keys are new from here on, and so be the reader's."""

_TAG_BYTES = 16
_HEAD = struct.Struct(">BHH")
_VERSION = 0x0303


class Sealer13:
    """The sending side of a client of TLS 1.3 with AES-256 and SHA-384, from its first data on."""

    def __init__(self, secret: bytes) -> None:
        """``secret`` is CLIENT_TRAFFIC_SECRET_0."""
        self._use(secret)

    def seal(self, kind: int, data: bytes) -> bytes:
        """Return one record; ``data`` may be longer than TLS allows."""
        head = _HEAD.pack(APPLICATION_DATA, _VERSION, len(data) + 1 + _TAG_BYTES)
        nonce = (self._iv ^ self._count).to_bytes(12, "big")
        self._count += 1
        return head + self._cipher.encrypt(nonce, data + bytes([kind]), head)

    def key_update(self) -> bytes:
        """Return a message that renews both sides' keys, and use new ones."""
        record = self.seal(HANDSHAKE, KEY_UPDATE)
        self._use(_expand(self._secret, b"traffic upd", 48))
        return record

    def _use(self, secret: bytes) -> None:
        self._secret = secret
        self._cipher = AESGCM(_expand(secret, b"key", 32))
        self._iv = int.from_bytes(_expand(secret, b"iv", 12), "big")
        self._count = 0


class Sealer12:
    """The same of TLS 1.2 with RENEGOTIATION_SUITE, from behind the client's Finished on."""

    def __init__(self, client_random: bytes, server_random: bytes, master: bytes) -> None:
        block = _prf(master, b"key expansion" + server_random + client_random, 40)
        self._cipher = AESGCM(block[:16])
        self._salt = block[32:36]
        self._count = 1

    def seal(self, kind: int, data: bytes) -> bytes:
        """Return one record."""
        count = self._count.to_bytes(8, "big")
        self._count += 1
        sealed = self._cipher.encrypt(
            self._salt + count, data, count + _HEAD.pack(kind, _VERSION, len(data))
        )
        return _HEAD.pack(kind, _VERSION, len(count) + len(sealed)) + count + sealed


def logged_secrets(lines: str) -> dict[str, tuple[bytes, bytes]]:
    """Return client random and secret, by label, of what OpenSSL has logged of one connection."""
    found = [line.split() for line in lines.splitlines() if not line.startswith("#")]
    return {label: (bytes.fromhex(one), bytes.fromhex(two)) for label, one, two in found}


def _expand(secret: bytes, label: bytes, size: int) -> bytes:
    label = b"tls13 " + label
    info = struct.pack(">HB", size, len(label)) + label + b"\0"
    return HKDFExpand(hashes.SHA384(), size, info).derive(secret)


def _prf(master: bytes, seed: bytes, size: int) -> bytes:
    result, link = b"", seed
    while len(result) < size:
        link = hmac.digest(master, link, "sha256")
        result += hmac.digest(master, link + seed, "sha256")
    return result[:size]
