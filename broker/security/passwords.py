"""Whether a password is a user's, where it is sent as it is and not by a mechanism of SASL."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from barnabas.protocol.sasl.scram import (
    ScramCredential,
    ScramMechanism,
    credential_of,
    salted_password,
)

if TYPE_CHECKING:
    from barnabas.broker.security.plain_users import PlainUsers

Find: TypeAlias = Callable[[str], ScramCredential]


class Passwords:
    """The users of all SASL listeners of a broker.

    A principal has no listener, so its password is that of any of them.
    """

    def __init__(
        self, plain: Sequence[PlainUsers], scram: Sequence[tuple[ScramMechanism, Find]]
    ) -> None:
        """``scram``: the mechanisms that are offered, and what finds the credential of a name."""
        self._plain = plain
        self._scram = scram

    def __bool__(self) -> bool:
        return bool(self._plain or self._scram)

    async def verify(self, name: str, password: str) -> bool:
        """Whether a password is a user's; takes as long for a name that is nobody's.

        SCRAM keeps what takes thousands of rounds to make of a password: that is for a thread.
        """
        matches = [users.verify(name, password) for users in self._plain]
        credentials = [(mechanism, find(name)) for mechanism, find in self._scram]
        if credentials:
            hashed = await asyncio.to_thread(_match_all, credentials, password)
            matches.extend(hashed)
        return any(matches)


def _match_all(
    credentials: Sequence[tuple[ScramMechanism, ScramCredential]], password: str
) -> list[bool]:
    return [_matches(mechanism, kept, password) for mechanism, kept in credentials]


def _matches(mechanism: ScramMechanism, kept: ScramCredential, password: str) -> bool:
    salted = salted_password(mechanism, password, kept.salt, kept.iterations)
    made = credential_of(mechanism, salted, kept.salt, kept.iterations)
    return hmac.compare_digest(made.stored_key, kept.stored_key)
