"""An issuer of tokens for tests: keys, their public set, tokens good and bad."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from barnabas.storage.runtime.clock import now_seconds

ISSUER = "https://issuer.example"
AUDIENCE = "brokers"


@cache
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return a key; the same one for a name each time."""
    return rsa.generate_private_key(65537, bits)


@cache
def ec_key(name: str, curve: type[ec.EllipticCurve] = ec.SECP256R1) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(curve())


@cache
def ed_key(name: str) -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def public_entry(key: Any, key_id: str | None, **more: Any) -> dict[str, Any]:
    """Return a key's public part as an entry of a set of keys."""
    public = key.public_key()
    kind = {
        rsa.RSAPrivateKey: RSAAlgorithm,
        ec.EllipticCurvePrivateKey: ECAlgorithm,
        ed25519.Ed25519PrivateKey: OKPAlgorithm,
    }
    algorithm = next(found for base, found in kind.items() if isinstance(key, base))
    entry = json.loads(algorithm.to_jwk(public))
    entry.pop("key_ops", None)
    return {**entry, **({} if key_id is None else {"kid": key_id}), **more}


def key_set(*entries: dict[str, Any]) -> bytes:
    return json.dumps({"keys": list(entries)}).encode()


def standard_set() -> bytes:
    """The public keys of ``token``'s issuer."""
    return key_set(
        public_entry(rsa_key("one"), "rsa", use="sig"),
        public_entry(ec_key("one"), "ec", alg="ES256"),
        public_entry(ed_key("one"), "ed"),
    )


STANDARD = {"RS256": "rsa", "PS256": "rsa", "ES256": "ec", "EdDSA": "ed"}


def private_key(algorithm: str) -> Any:
    return {"rsa": rsa_key, "ec": ec_key, "ed": ed_key}[STANDARD[algorithm]]("one")


def claims(user: str = "alice", lifetime_s: float = 600, **changes: Any) -> dict[str, Any]:
    """Return claims that hold, with changes; None takes one away."""
    now = now_seconds()
    found = {
        "sub": user,
        "iss": ISSUER,
        "aud": AUDIENCE,
        "iat": int(now),
        "exp": int(now + lifetime_s),
        **changes,
    }
    return {name: value for name, value in found.items() if value is not None}


def token(
    user: str = "alice",
    algorithm: str = "RS256",
    *,
    key: Any = None,
    key_id: str | None = "",
    lifetime_s: float = 600,
    headers: dict[str, Any] | None = None,
    **changes: Any,
) -> str:
    """Return a signed token; an empty ``key_id`` is that of the algorithm's key."""
    if key_id == "":
        key_id = STANDARD.get(algorithm)
    named = {} if key_id is None else {"kid": key_id}
    key = private_key(algorithm) if key is None else key
    payload = claims(user, lifetime_s, **changes)
    return jwt.encode(payload, key, algorithm, headers={**named, **(headers or {})})


def unsigned(user: str = "alice", algorithm: str = "none", **changes: Any) -> str:
    """Return a token without a signature."""
    parts = [{"alg": algorithm, "typ": "JWT"}, claims(user, **changes)]
    encoded = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in parts]
    return b".".join([*encoded, b""]).decode()


def public_pem(key: Any) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
