"""Verification of passwords that are sent in plain text, without a mechanism of SASL."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.broker.runtime.threads import Pool
from barnabas.broker.security.acls.access import always
from barnabas.protocol.sasl.scram import (
    ScramCredential,
    ScramMechanism,
    credential_of,
    salted_password,
)

if TYPE_CHECKING:
    from barnabas.broker.security.sasl.plain_users import PlainUsers

Find: TypeAlias = Callable[[str], ScramCredential]
THREADS: Final = 4
StillHolds: TypeAlias = Callable[[], bool]
"""Returns whether the password of a login is still valid for its user."""


class Passwords:
    """Users of all SASL listeners of a broker.

    A principal has no listener, so its password is that of any of them.
    """

    def __init__(
        self, plain: Sequence[PlainUsers], scram: Sequence[tuple[ScramMechanism, Find]]
    ) -> None:
        """``scram``: the offered mechanisms, and the functions that find a name's credential."""
        self._plain = plain
        self._scram = scram
        self._threads = Pool("passwords", THREADS)

    def __bool__(self) -> bool:
        return bool(self._plain or self._scram)

    async def verify(self, name: str, password: str) -> StillHolds | None:
        """Return a function that checks if the login is still valid, or None for a wrong password.

        An unknown name takes as long. SCRAM credentials need thousands of rounds of hashing, which
        run on a thread; meanwhile the credential can change.
        """
        plain = [users.verify(name, password) for users in self._plain]
        credentials = [(mechanism, find(name)) for mechanism, find in self._scram]
        matches = []
        if credentials:
            matches = await self._threads.run(partial(_match_all, credentials, password))
        if any(plain):
            return always  # They are those of the configuration.
        proved = [
            (find, kept)
            for is_same, (_, find), (_, kept) in zip(matches, self._scram, credentials, strict=True)
            if is_same
        ]

        def still_holds() -> bool:
            return any(find(name) == kept for find, kept in proved)

        return still_holds if still_holds() else None

    def close(self) -> None:
        """Close the threads that verify passwords."""
        self._threads.close()


def _match_all(
    credentials: Sequence[tuple[ScramMechanism, ScramCredential]], password: str
) -> list[bool]:
    return [_matches(mechanism, kept, password) for mechanism, kept in credentials]


def _matches(mechanism: ScramMechanism, kept: ScramCredential, password: str) -> bool:
    salted = salted_password(mechanism, password, kept.salt, kept.iterations)
    made = credential_of(mechanism, salted, kept.salt, kept.iterations)
    return hmac.compare_digest(made.stored_key, kept.stored_key)
