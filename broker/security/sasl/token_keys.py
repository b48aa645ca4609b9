"""The public keys by which tokens are verified: a JSON Web Key Set (RFC 7517).

Only what can verify a signature of the allowed kinds is taken: no symmetric keys, ever, so that a
public key can never serve as the secret of an HMAC, and of each key its public part.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from jwt import PyJWK

KEYS_MAX: Final = 100
RSA_BITS_MIN: Final = 2048

_PUBLIC: Final[Mapping[str, tuple[str, ...]]] = {
    "RSA": ("n", "e"),
    "EC": ("crv", "x", "y"),
    "OKP": ("crv", "x"),
}
"""The members of a key's public part, by its type."""

_CURVES: Final[Mapping[str, str]] = {
    "P-256": "ES256",
    "P-384": "ES384",
    "P-521": "ES512",
    "Ed25519": "EdDSA",
    "Ed448": "EdDSA",
}
_WITH_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")


class MalformedKeys(Exception):
    """The text is no set of keys, or has none that could verify a token."""


class TokenKey(NamedTuple):
    """One key, and the algorithms that it may be used for."""

    key_id: str | None
    algorithms: tuple[str, ...]
    key: Any


class KeySet:
    """Keys by their ids."""

    def __init__(self, keys: Iterable[TokenKey] = ()) -> None:
        self._keys = tuple(keys)

    def __len__(self) -> int:
        return len(self._keys)

    def for_token(self, key_id: str | None, algorithm: str) -> Sequence[Any]:
        """Return the possible keys of a token: by its key ID, or all of its algorithm."""
        return [
            each.key
            for each in self._keys
            if algorithm in each.algorithms and key_id in {None, each.key_id}
        ]

    def has_id(self, key_id: str | None) -> bool:
        """Return whether a key has this ID."""
        return any(each.key_id == key_id for each in self._keys)


def parse_keys(text: bytes, algorithms: Sequence[str]) -> KeySet:
    """Parse a key set; return the keys for ``algorithms``. Raises MalformedKeys."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedKeys("the JSON Web Key Set is not JSON") from error
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise MalformedKeys('no JSON Web Key Set: it has no "keys"')
    if len(entries) > KEYS_MAX:
        raise MalformedKeys(f"{len(entries)} keys, more than {KEYS_MAX}")
    keys = [
        found
        for entry in entries
        if isinstance(entry, dict) and (found := _key_of(entry, algorithms)) is not None
    ]
    if not keys:
        raise MalformedKeys(f"no key in it is for any of {', '.join(algorithms)}")
    return KeySet(keys)


def _key_of(entry: Mapping[str, Any], allowed: Sequence[str]) -> TokenKey | None:
    """Return a key that may verify tokens, or None for other kinds and uses."""
    key_id = entry.get("kid")
    operations = entry.get("key_ops", ["verify"])
    if not isinstance(key_id, str | None) or entry.get("use", "sig") != "sig":
        return None
    if not isinstance(operations, list) or "verify" not in operations:
        return None
    kind = entry.get("kty")
    members = _PUBLIC.get(kind) if isinstance(kind, str) else None
    if members is None or not all(isinstance(entry.get(name), str) for name in members):
        return None
    possible = _WITH_RSA if kind == "RSA" else (_CURVES.get(entry["crv"], ""),)
    named = entry.get("alg")
    algorithms = tuple(each for each in possible if each in allowed and named in (None, each))
    if not algorithms:
        return None
    public = {"kty": kind, **{name: entry[name] for name in members}}
    key = _loaded(public, algorithms[0])
    return None if key is None else TokenKey(key_id, algorithms, key)


def _loaded(public: dict[str, Any], algorithm: str) -> Any:  # noqa: ANN401  cryptography's class
    """Return a key for the verifying library, or None if it is invalid or too weak."""
    from jwt import PyJWK, PyJWTError

    try:
        found: PyJWK = PyJWK(public, algorithm)
    except (PyJWTError, ValueError):
        return None
    if public["kty"] == "RSA" and found.key.key_size < RSA_BITS_MIN:
        return None
    return found.key
