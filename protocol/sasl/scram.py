"""SCRAM (RFC 5802, RFC 7677): both sides prove that they know a password, and neither sends it.

The broker stores what a password is verified by, never the password. Nonces and salts are handed
in. Grammar and rules are Apache Kafka's: no channel binding, no SASLprep, an authorization id must
be the user. Stricter: a final message must repeat the GS2 header; user names may be UTF-8.

Rules of this file:

* **Existing users are not revealed.** ``ScramServer`` gets a credential for every name; for the
  name of no user it is one that no proof matches. Work, words and the step that fails are the same.
* Secrets are compared in constant time.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.protocol.sasl.exchange import Accepted, Challenge, OtherUser, SaslFailed, Step

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16_384
"""Limits for credentials that clients set: Kafka's."""

CLIENT_ITERATIONS_MAX: Final = 1_000_000
"""Maximum number of rounds that a client accepts from a broker: half a second. Without a limit any
server could stop a client for any time (CVE-2026-10143)."""

MESSAGE_BYTES_MAX: Final = 8192

OTHER_AUTHORIZATION_ID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)

_NAME: Final = r"(?:[^\0=,]|=2C|=3D)+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS: Final = r"(?:,[A-Za-z]+=[^\0,]+)*"
_BASE64: Final = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)?"

_CLIENT_FIRST: Final = re.compile(
    rf"(?P<header>n,(?:a=(?P<authorization>{_NAME}))?,)"
    rf"(?P<bare>(?:m=[^\0,]+,)?n=(?P<user>{_NAME}),r=(?P<nonce>{_NONCE}){_EXTENSIONS})",
    re.DOTALL,
)
_SERVER_FIRST: Final = re.compile(
    rf"(?:m=[^\0,]+,)?r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}})"
    rf"{_EXTENSIONS}",
    re.DOTALL,
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<unproved>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})",
    re.DOTALL,
)
_SERVER_FINAL: Final = re.compile(
    rf"(?:e=(?P<error>[^\0=,]+)|v=(?P<signature>{_BASE64})){_EXTENSIONS}", re.DOTALL
)
_NO_BINDING: Final = b"n,,"


class ScramMechanism(NamedTuple):
    """One hash function, by the name of its mechanism."""

    name: str
    number: int
    """In requests about credentials."""
    hash_name: str
    digest_bytes: int

    @property
    def failed(self) -> str:
        """Return the client's error, one message for every reason, as in Kafka."""
        return (
            "Authentication failed during authentication due to invalid credentials with SASL "
            f"mechanism {self.name}"
        )


SCRAM_SHA_256: Final = ScramMechanism("SCRAM-SHA-256", 1, "sha256", 32)
SCRAM_SHA_512: Final = ScramMechanism("SCRAM-SHA-512", 2, "sha512", 64)
MECHANISMS: Final = {each.name: each for each in (SCRAM_SHA_256, SCRAM_SHA_512)}


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """The stored credential that verifies a password."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def salted_password(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
) -> bytes:
    """Return the salted password, as clients derive it: a millisecond for 4,096 iterations."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def credential_of(
    mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Return the stored credential of a salted password."""
    client_key = hmac.digest(salted, b"Client Key", mechanism.hash_name)
    stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
    server_key = hmac.digest(salted, b"Server Key", mechanism.hash_name)
    return ScramCredential(salt, stored_key, server_key, iterations)


class _Conversation(NamedTuple):
    """The server's state between its two messages."""

    header: bytes
    user: str
    nonce: str
    messages: str
    """The client's first message without its header, and the server's response."""


class ScramServer:
    """The server's side: takes two tokens."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        find: Callable[[str], ScramCredential],
        nonce: str,
        only: str | None = None,
    ) -> None:
        """``find`` returns a user's credential; for an unknown name one that no proof matches.

        ``nonce`` is the server's part: printable characters, used this once. ``only``: the one user
        who may log in; others fail at the first message.
        """
        self._mechanism = mechanism
        self._find = find
        self._nonce = nonce
        self._only = only
        self._begun: _Conversation | None = None

    def step(self, token: bytes) -> Step:
        """Process the client's next message."""
        if self._begun is None:
            return self._challenge(token)
        return self._verify(self._begun, token)

    def _challenge(self, token: bytes) -> Step:
        found = _matched(_CLIENT_FIRST, token)
        if found is None:
            raise SaslFailed(self._mechanism.failed)
        user = _decoded_name(found["user"])
        if _decoded_name(found["authorization"] or "") not in {"", user}:
            raise SaslFailed(OTHER_AUTHORIZATION_ID, user)
        if self._only is not None and user != self._only:
            raise OtherUser(user)
        credential = self._find(user)
        nonce = found["nonce"] + self._nonce
        answer = f"r={nonce},s={_base64(credential.salt)},i={credential.iterations}"
        messages = f"{found['bare']},{answer}"
        self._begun = _Conversation(found["header"].encode(), user, nonce, messages)
        return Challenge(answer.encode())

    def _verify(self, begun: _Conversation, token: bytes) -> Step:
        mechanism = self._mechanism
        found = _matched(_CLIENT_FINAL, token)
        # The whole nonce: without this, what was said once could be said again (CVE-2024-56128).
        if found is None or not hmac.compare_digest(found["nonce"], begun.nonce):
            raise SaslFailed(mechanism.failed, begun.user)
        if binascii.a2b_base64(found["binding"]) not in {begun.header, _NO_BINDING}:
            raise SaslFailed(mechanism.failed, begun.user)
        # Looked up again: it may have been changed or deleted since the first message.
        credential = self._find(begun.user)
        message = f"{begun.messages},{found['unproved']}".encode()
        proof = binascii.a2b_base64(found["proof"])
        signature = hmac.digest(credential.stored_key, message, mechanism.hash_name)
        client_key = _xor(proof.ljust(len(signature), b"\0"), signature)
        stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
        is_proved = hmac.compare_digest(stored_key, credential.stored_key)
        if not is_proved or len(proof) != mechanism.digest_bytes:
            raise SaslFailed(mechanism.failed, begun.user)
        answer = hmac.digest(credential.server_key, message, mechanism.hash_name)
        return Accepted(f"v={_base64(answer)}".encode(), begun.user)


class ScramClient:
    """The client's side: sends two tokens, and verifies that the server knows the credential."""

    def __init__(self, mechanism: ScramMechanism, user: str, password: str, nonce: str) -> None:
        """``nonce`` is printable, without commas, and used this once."""
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={nonce}"
        self._expected: bytes | None = None
        """The expected signature of the server, once this side has sent its proof."""

    def first(self) -> bytes:
        """Return the first message."""
        return _NO_BINDING + self._bare.encode()

    def rounds(self, token: bytes) -> int:
        """Return the number of rounds of hashing that ``step`` takes."""
        found = _matched(_SERVER_FIRST, token) if self._expected is None else None
        iterations = 0 if found is None else int(found["iterations"])
        return iterations if iterations <= CLIENT_ITERATIONS_MAX else 0  # Refused, not counted.

    def step(self, token: bytes) -> bytes | None:
        """Process the server's next message."""
        if self._expected is None:
            return self._prove(token)
        found = _matched(_SERVER_FINAL, token)
        if found is None:
            raise SaslFailed("the server's last message cannot be read")
        if found["error"]:
            raise SaslFailed(f"the server refuses: {found['error']}")
        if not hmac.compare_digest(binascii.a2b_base64(found["signature"]), self._expected):
            raise SaslFailed("the server does not know the password")
        return None

    def _prove(self, token: bytes) -> bytes:
        mechanism = self._mechanism
        found = _matched(_SERVER_FIRST, token)
        if found is None:
            raise SaslFailed("the server's first message cannot be read")
        nonce = found["nonce"]
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise SaslFailed("the server's first message answers another one")
        iterations = int(found["iterations"])
        if not ITERATIONS_MIN <= iterations <= CLIENT_ITERATIONS_MAX:
            raise SaslFailed(
                f"the server asks for {iterations} iterations; {ITERATIONS_MIN} to "
                f"{CLIENT_ITERATIONS_MAX} are allowed"
            )
        salt = binascii.a2b_base64(found["salt"])
        salted = salted_password(mechanism, self._password, salt, iterations)
        credential = credential_of(mechanism, salted, salt, iterations)
        unproved = f"c={_base64(_NO_BINDING)},r={nonce}"
        message = f"{self._bare},{token.decode()},{unproved}".encode()
        client_key = hmac.digest(salted, b"Client Key", mechanism.hash_name)
        signature = hmac.digest(credential.stored_key, message, mechanism.hash_name)
        self._expected = hmac.digest(credential.server_key, message, mechanism.hash_name)
        return f"{unproved},p={_base64(_xor(client_key, signature))}".encode()


def _matched(pattern: re.Pattern[str], token: bytes) -> re.Match[str] | None:
    if len(token) > MESSAGE_BYTES_MAX:
        return None
    try:
        return pattern.fullmatch(token.decode())
    except UnicodeDecodeError:
        return None


def _decoded_name(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def _xor(left: bytes, right: bytes) -> bytes:
    """Return the exclusive or of two byte strings, as long as the shorter one."""
    return bytes(a ^ b for a, b in zip(left, right, strict=False))
