"""Verification of bearer tokens (signed JWTs): the user, and the time of expiry.

Rules of this file:

* **The token decides nothing about its verification.** Its algorithm must be one of those
  configured, all of which use public keys, and must fit the key. Keys come only from the configured
  source, regardless of the token's header.
* **A missing claim is invalid**: issuer, audience, subject, and both times.
* The rules for claims are Apache Kafka's (its BrokerJwtValidator), and the strict ones of 4.4.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jwt import PyJWS, PyJWTError

from barnabas.broker.security.sasl.token_keys import KeySet
from barnabas.protocol.sasl.oauthbearer import InvalidToken, Verified

KEYS_TRIED_MAX: Final = 4
"""Maximum number of keys tried for a token that does not name its key."""
USER_MAX: Final = 1024
TIME_MAX_S: Final = 2**63 - 1
"""Largest time accepted, which is also Apache Kafka's largest number."""
LIFETIME_MAX_MS: Final = 10 * 365 * 24 * 3_600_000
"""Maximum time until a session expires: ten years."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """Requirements of a listener on tokens."""

    algorithms: tuple[str, ...]
    issuer: str | None
    """Expected issuer, or None to accept every issuer whose key is in the set."""
    audiences: tuple[str, ...]
    """Expected audiences, of which one must match; empty to accept tokens for every audience."""
    skew_ms: int
    """Maximum difference, in milliseconds, between the clocks of the issuer and of this broker."""
    user_claim: str = "sub"
    scope_claim: str = "scope"


class TokenVerifier:
    """Verifier of the tokens of one listener."""

    def __init__(
        self,
        rules: TokenRules,
        keys: Callable[[], KeySet],
        now_ms: Callable[[], int],
        on_unknown_key: Callable[[], None],
    ) -> None:
        """``keys`` returns the current keys; ``on_unknown_key`` is called if newer ones may
        exist.
        """
        self._rules = rules
        self._keys = keys
        self._now_ms = now_ms
        self._on_unknown_key = on_unknown_key
        self._signatures = PyJWS(algorithms=list(rules.algorithms))

    def verify(self, token: str) -> Verified:
        """Return the user and expiry that a token proves; raises InvalidToken."""
        claims = self._claims(token)
        rules, now_ms = self._rules, self._now_ms()
        expires_ms = _time_ms(claims, "exp")
        if now_ms - rules.skew_ms >= expires_ms:
            raise InvalidToken(f"claim exp is in the past: {expires_ms // 1000}")
        if _time_ms(claims, "iat") > now_ms + rules.skew_ms:
            raise InvalidToken(f"claim iat is in the future: {claims['iat']}")
        if "nbf" in claims and _time_ms(claims, "nbf") > now_ms + rules.skew_ms:
            raise InvalidToken(f"claim nbf is in the future: {claims['nbf']}")
        if rules.issuer is not None and claims.get("iss") != rules.issuer:
            raise InvalidToken("token issuer does not match sasl.oauthbearer.expected.issuer")
        if rules.audiences and not set(_texts(claims.get("aud"))) & set(rules.audiences):
            raise InvalidToken("token audience does not match sasl.oauthbearer.expected.audience")
        if rules.scope_claim in claims:
            _check_scopes(claims[rules.scope_claim])
        return Verified(_user(claims, rules.user_claim), min(expires_ms, now_ms + LIFETIME_MAX_MS))

    def _claims(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token, if its signature is valid."""
        try:
            header = self._signatures.get_unverified_header(token)
            algorithm, key_id = header.get("alg"), header.get("kid")
            if not isinstance(algorithm, str) or algorithm not in self._rules.algorithms:
                raise InvalidToken(f"token algorithm is none of {self._rules.algorithms}")
            if "crit" in header:
                raise InvalidToken("token header has critical extensions (crit)")
            payload = self._verified(token, algorithm, self._candidates(key_id, algorithm))
            claims = json.loads(payload, parse_constant=_refuse_constant)
        except (PyJWTError, ValueError, RecursionError) as error:
            raise InvalidToken(f"token cannot be parsed: {type(error).__name__}") from error
        if not isinstance(claims, dict):
            raise InvalidToken("token payload is not a JSON object")
        return claims

    def _candidates(self, key_id: str | None, algorithm: str) -> Sequence[Any]:
        keys = self._keys()
        found = keys.for_token(key_id, algorithm)[:KEYS_TRIED_MAX]
        if not found:
            if not keys.has_id(key_id):
                self._on_unknown_key()
            raise InvalidToken("no key of the key server fits the token")
        return found

    def _verified(self, token: str, algorithm: str, keys: Sequence[Any]) -> bytes:
        """Return the payload of a token that one of these keys has signed."""
        for key in keys:
            try:
                found = self._signatures.decode_complete(token, key, [algorithm])
            except PyJWTError:
                continue
            payload: bytes = found["payload"]
            return payload
        raise InvalidToken("token signature is not valid")


def _time_ms(claims: Mapping[str, Any], name: str) -> int:
    value = claims.get(name)
    # JSON numbers of any size can be compared, and NaN is not smaller than any number.
    if isinstance(value, bool) or not isinstance(value, int | float) or not value <= TIME_MAX_S:
        raise InvalidToken(f"{name} is no time")
    if value < 0:
        raise InvalidToken(f"{name} is before all times")
    return int(value * 1000)


def _user(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    user = value.strip() if isinstance(value, str) else ""
    if not user or len(user) > USER_MAX:
        raise InvalidToken(f"{name} is no name")
    try:
        user.encode()
    except UnicodeEncodeError:  # JSON can name one half of a pair of surrogates.
        raise InvalidToken(f"{name} has half of a character") from None
    return user


def _texts(value: object) -> list[str]:
    """Return the texts of a claim that is one text or a list."""
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _check_scopes(value: object) -> None:
    """Reject empty and repeated scopes, as Kafka does; scopes have no other meaning here."""
    scopes = [value] if isinstance(value, str) else value
    if not isinstance(scopes, list):
        return
    if not all(isinstance(each, str) and each.strip() for each in scopes):
        raise InvalidToken("token scopes have an empty entry")
    if len({each.strip() for each in scopes}) != len(scopes):
        raise InvalidToken("token scopes have an entry twice")


def _refuse_constant(name: str) -> None:
    raise ValueError(name)
