"""PKCS12 (RFC 7292), which keytool writes. ``cryptography`` is imported for such a store only."""

from __future__ import annotations

from typing import NamedTuple


class Pkcs12Refused(Exception):
    """Store that cannot be opened."""

    def __init__(self, reason: str, *, wants_password: bool = False) -> None:
        """``wants_password``: whether the store needs a password and none is set."""
        super().__init__(reason)
        self.wants_password = wants_password


class Pkcs12Store(NamedTuple):
    """Content of a store; the key is not encrypted."""

    key_pem: str | None
    chain: list[bytes]
    """Certificate of the key in DER, or empty."""
    others: list[bytes]


def read_pkcs12(data: bytes, password: str | None) -> Pkcs12Store:
    """Open a store; raises Pkcs12Refused."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        store = pkcs12.load_pkcs12(data, password.encode() if password else None)
        der = serialization.Encoding.DER
        own = [] if store.cert is None else [store.cert.certificate.public_bytes(der)]
        others = [each.certificate.public_bytes(der) for each in store.additional_certs]
        key_pem = None
        if store.key is not None:
            key_pem = store.key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ).decode()
    except UnsupportedAlgorithm as error:
        raise Pkcs12Refused(f"the encryption of the store is not supported: {error}") from None
    except (ValueError, TypeError):
        # The library, like Java, does not distinguish a wrong password from a damaged store.
        if not password:
            raise Pkcs12Refused("the store needs a password", wants_password=True) from None
        raise Pkcs12Refused("the password is wrong, or the file is not a PKCS12 store") from None
    return Pkcs12Store(key_pem, own, others)
